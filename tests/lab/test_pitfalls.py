"""The experiment pitfalls: each bug is seen, and the test named for it fails when the bug is made in our code."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from make_bugs import BUGS

from dragoman.lab import bugs
from dragoman.lab.experiment import Lab
from dragoman.lab.pitfalls import PITFALLS, run

ROOT = Path(__file__).resolve().parent.parent.parent
LOUD = {
    "keys in the queries' shape", "-1e9 in half precision", "view of what is not contiguous",
    "a decoder of encoder layers", "forward inside __init__", "no super().__init__()", "arguments in another order",
    "positions on another device",
}  # fmt: skip


@pytest.mark.parametrize("pitfall", PITFALLS, ids=lambda pitfall: pitfall.name)
def test_the_tests_that_are_named_exist(pitfall: object) -> None:
    path, name = pitfall.test.split("::")  # type: ignore[attr-defined]
    assert f"\ndef {name}(" in (ROOT / path).read_text(encoding="utf-8")


def test_bugs_are_loud_or_silent_as_they_are(tmp_path: Path) -> None:
    found = run(Lab(tmp_path, quick=True))
    assert {name for name, seen in found.numbers.items() if seen["loud"]} == LOUD
    assert all(seen["symptom"] != "no error" for seen in found.numbers.values())
    assert all(claim.holds for claim in found.verdict)
    unshifted = found.numbers["targets not shifted"]["numbers"]
    assert unshifted["wrong_accuracy"] > 0.95
    assert unshifted["wrong_spoken"] < 0.2 < 0.6 < unshifted["right_spoken"]


def test_what_is_right_is_right() -> None:
    assert bugs.mask_added().numbers["right"] == 0
    assert bugs.padded_queries().numbers["right"] == 0
    assert bugs.causal_encoder().numbers["wrong"] == 0 < bugs.causal_encoder().numbers["right"]
    dropped = bugs.norm_dropped().numbers
    assert dropped["right"] == pytest.approx(1, abs=0.05)
    assert dropped["wrong"] > 10
    memory = bugs.norm2_of_memory().numbers
    assert memory["fresh"] < 1e-4 < 0.1 < memory["trained"]
    loss = bugs.loss_over_padding().numbers
    assert loss["wrong"] < 0.7 * loss["right"]
    padding = bugs.padding_idx().numbers
    assert padding["gradient_of_word_1"] == 0 < padding["gradient_of_padding"]


def test_what_each_bug_replaces_is_there() -> None:
    assert set(BUGS) <= {pitfall.name for pitfall in PITFALLS}
    assert [name for name, (target, attribute, _) in BUGS.items() if not hasattr(target, attribute)] == []


@pytest.mark.slow
def test_each_named_test_fails_with_its_bug_and_passes_without() -> None:
    done = subprocess.run(
        [sys.executable, "tests/lab/make_bugs.py"], cwd=ROOT, capture_output=True, text=True, timeout=280
    )
    assert done.stdout.splitlines()[-1:] == ["MISSED []"], done.stdout[-3000:] + done.stderr[-3000:]
