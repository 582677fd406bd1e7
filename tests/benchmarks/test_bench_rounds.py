"""Turns, medians, ratios; environments; which commands `make bench` runs."""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from benchmarks.__main__ import COMPARISONS, command
from benchmarks.harness import arguments, environments, eole, joeynmt, rounds
from benchmarks.harness.arguments import one_of
from benchmarks.harness.command import reported_speed
from benchmarks.harness.peer import System
from benchmarks.minutes import reached


def test_every_system_has_its_turn_in_every_round_and_none_is_always_first() -> None:
    order = list(rounds.turns("abc", 4))
    assert order[:6] == [(0, "a"), (0, "b"), (0, "c"), (1, "b"), (1, "c"), (1, "a")]
    assert Counter(item for _, item in order) == {"a": 4, "b": 4, "c": 4}
    assert [item for _, item in order][::3] == ["a", "b", "c", "a"]


def test_figures_are_collected_by_system_in_the_order_of_rounds(capsys: pytest.CaptureFixture[str]) -> None:
    systems = [System(name, "dragoman", "", {}) for name in ("ours", "theirs")]
    drift = iter(range(1, 100))

    def turn(system: System) -> dict[str, Any]:
        return {"speed": float(next(drift)), "peak_mib": 10.0, "versions": {"torch": "2"}}

    found = rounds.alternate(systems, 3, turn, "speed")
    assert [one["speed"] for one in found["ours"]] == [1, 4, 5]
    assert [one["speed"] for one in found["theirs"]] == [2, 3, 6]
    assert capsys.readouterr().err.count("round") == 6
    table = rounds.summary(found, ("speed", "loss"))
    assert table["ours"] == {"speed": {"median": 4, "min": 1, "max": 5, "runs": 3}, "versions": {"torch": "2"}}


def test_ratios_are_of_runs_of_the_same_round() -> None:
    found = {"ours": [{"s": 2.0}, {"s": 40.0}, {"s": 9.0}], "theirs": [{"s": 1.0}, {"s": 10.0}, {"s": 3.0}]}
    faster = rounds.ratios(found, "s", ["ours"], ["theirs"])["ours / theirs"]
    assert faster == {"median": 3.0, "min": 2.0, "max": 4.0, "runs": 3}
    shorter = rounds.ratios(found, "s", ["theirs"], ["ours"], inverse=True)["theirs / ours"]
    assert shorter == faster


def test_the_best_setting_is_the_one_of_the_greatest_score() -> None:
    chosen, tried = rounds.best("toy", [16, 32, 64], {16: 1.0, 32: 5.0, 64: 3.0}.__getitem__)
    assert chosen == 32
    assert [one["score"] for one in tried] == [1.0, 5.0, 3.0]


JOEYNMT = "Epoch   1, Step: {:8d}, Batch Loss: {:12.6f}, Batch Acc: 0.1, Tokens per Sec: {:8.0f}, Lr: 0.1\n"
EOLE = (
    "INFO] Step {:2d}/    6; acc: 0.0; ppl: 9.0; xent: {:.2f}; lr: 1e-4; bsz:  31/ 40/20; 337/{:4d} tok/s;   0 sec;\n"
)


@pytest.mark.parametrize(("system", "line"), [(joeynmt, JOEYNMT), (eole, EOLE)], ids=["JoeyNMT", "Eole"])
def test_the_speed_of_a_command_is_that_of_its_own_reports(system: Any, line: str) -> None:
    log = line.format(2, 9.0, 10) + "something else\n" + line.format(4, 8.0, 100) + line.format(6, 7.5, 300)
    assert reported_speed(system.SAYS, log) == {"tokens_per_s": pytest.approx(150.0), "last_loss": 7.5}
    with pytest.raises(RuntimeError, match="2 times instead of 3"):
        reported_speed(system.SAYS, log.removesuffix(line.format(6, 7.5, 300)))


def test_a_target_is_reached_by_the_shortest_run_that_has_it() -> None:
    runs = [{"minutes": m, "scores": {"BLEU": b}} for m, b in ((20.0, 39.2), (8.0, 36.5), (4.0, 35.9))]
    assert reached(runs) == {"36": 8.0, "39.1": 20.0}
    assert reached(runs[2:]) == {"36": None, "39.1": None}


def test_environments_are_made_once_and_again_when_their_requirements_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[list[str]] = []

    def run(words: list[Any], **options: Any) -> None:
        calls.append([str(word) for word in words])
        if words[2] == "venv":
            words[3].mkdir(parents=True)
        if "fail" in (tmp_path / "peers/toy.txt").read_text():
            raise subprocess.CalledProcessError(1, "pip")

    monkeypatch.setattr(subprocess, "run", run)
    monkeypatch.setattr(environments, "PEERS", tmp_path / "peers")
    monkeypatch.setattr(environments, "ROOT", tmp_path)
    (tmp_path / "peers").mkdir()
    requirements = tmp_path / "peers/toy.txt"
    requirements.write_text("torch==2.0\nother==1\n")
    cache = tmp_path / "cache"
    assert environments.python_of("toy", cache) == cache / "toy/bin/python"
    assert [words[-1] for words in calls] == [str(cache / "toy"), "torch==2.0", str(requirements)]
    environments.python_of("toy", cache)
    assert len(calls) == 3
    requirements.write_text("fail==1\n")
    for _ in range(2):  # what failed is not there
        with pytest.raises(subprocess.CalledProcessError):
            environments.python_of("toy", cache)
    assert environments.python_of("dragoman") == Path(sys.executable)


def test_every_peer_pins_all_its_packages() -> None:
    found = sorted(path.stem for path in environments.PEERS.glob("*.txt"))
    assert {"ctranslate2", "joeynmt", "transformers"} <= set(found)
    for name in found:
        lines = (environments.PEERS / f"{name}.txt").read_text(encoding="utf-8").splitlines()
        assert all(line.startswith("#") or "==" in line for line in lines), name


def test_every_comparison_is_a_module_and_gets_the_options_it_takes(tmp_path: Path) -> None:
    for name in COMPARISONS:
        assert (environments.ROOT / f"benchmarks/{name}.py").is_file(), name
    assert command("training", tmp_path, None)[2:] == ["benchmarks.training", "--data", str(tmp_path)]
    assert command("latency", None, tmp_path)[2:] == ["benchmarks.latency", "--run", str(tmp_path)]
    assert command("startup", tmp_path, tmp_path)[2:] == ["benchmarks.startup"]


def test_the_command_of_a_record_names_what_is_not_default_and_no_folder(tmp_path: Path) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("what", nargs="*", type=one_of(("batch", "layers")))
    parser.add_argument("--data", type=Path)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--presets", nargs="+", default=["small", "base"])
    parser.add_argument("--no-guard", dest="guard", action="store_false")
    parser.add_argument("--commands", nargs="*", default=["small"])

    def said(*words: str) -> str:
        return arguments.command("toy", parser, parser.parse_args(words))

    assert said("--rounds", "3") == "python -m benchmarks.toy"
    options = ["layers", "--data", str(tmp_path), "--presets", "tiny", "small", "--no-guard", "--rounds", "5"]
    assert said(*options) == "python -m benchmarks.toy layers --data DATA --rounds 5 --presets tiny small --no-guard"
    assert said("--commands") == "python -m benchmarks.toy --commands"
    assert said() == "python -m benchmarks.toy"
    with pytest.raises(SystemExit):
        said("vocabulary")
