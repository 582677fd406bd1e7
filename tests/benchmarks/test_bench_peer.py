"""Processes that speak JSON lines: answers, failures, memory."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from benchmarks.harness.command import growth_percent, watched
from benchmarks.harness.environments import PEERS
from benchmarks.harness.peer import PeerError, System, precisions, started

TOY = f"""
import sys
sys.path.insert(0, {str(PEERS)!r})
from serve import serve

def prepare(factor):
    print("a library says something")  # which must not get between the answers
    def run(n, how="well"):
        if how == "badly":
            raise ValueError("no such number")
        if how == "not at all":
            sys.exit(3)
        if how == "with a child":
            import subprocess
            subprocess.run([sys.executable, "-c", "import time; x = bytearray(80 << 20); time.sleep(1.5)"])
        if how == "what is loaded":
            with open("/proc/self/maps") as maps:
                return {{"product": "libresolv.so" in maps.read()}}
        return {{"product": factor * n}}
    return run

serve(prepare, ["numpy"])
"""


@pytest.fixture
def toy(tmp_path: Path) -> Callable[..., System]:
    (tmp_path / "toy.py").write_text(TOY, encoding="utf-8")
    return lambda **settings: System("toy", "dragoman", str(tmp_path / "toy.py"), settings, threads=1)


def test_a_system_is_prepared_once_and_answers_every_request(toy: Callable[..., System]) -> None:
    with started(toy(factor=3)) as ask:
        answers = [ask(n=n) for n in (1, 2, 5)]
    assert [answer["product"] for answer in answers] == [3, 6, 15]
    assert answers[0]["versions"].keys() == {"numpy"}
    assert 5 < answers[0]["peak_mib"] <= answers[-1]["peak_mib"] < 200


def test_what_a_system_could_not_do_is_reported_and_it_continues(toy: Callable[..., System]) -> None:
    with started(toy(factor=3)) as ask:
        with pytest.raises(PeerError, match=r"toy: (.|\n)*ValueError: no such number"):
            ask(n=1, how="badly")
        assert ask(n=2)["product"] == 6


def test_a_system_that_ends_is_told(toy: Callable[..., System]) -> None:
    with started(toy(factor=3)) as ask, pytest.raises(PeerError, match="ended with status 3"):
        ask(n=1, how="not at all")


def test_a_system_that_cannot_be_prepared_is_told(toy: Callable[..., System]) -> None:
    with pytest.raises(PeerError, match="unexpected keyword argument 'number'"), started(toy(number=3)):
        pass


def test_the_memory_of_worker_processes_counts(toy: Callable[..., System]) -> None:
    with started(toy(factor=1)) as ask:
        alone, with_child = ask(n=1)["peak_mib"], ask(n=1, how="with a child")["peak_mib"]
    assert 75 < with_child - alone < 140


def test_running_before_preparing_is_refused(tmp_path: Path, toy: Callable[..., System]) -> None:
    script = toy(factor=1).script
    done = subprocess.run([sys.executable, script], input='{"do": "run"}\n', capture_output=True, text=True, check=True)
    assert "before anything was prepared" in json.loads(done.stdout)["error"]


def test_a_command_is_watched_and_its_failure_shows_what_it_said(tmp_path: Path) -> None:
    work = "import time; x = bytearray(60 << 20); time.sleep(0.8)"
    done = watched([sys.executable, "-c", work], tmp_path / "said.txt")
    assert done.peak_mib > 60
    assert done.seconds > 0.8
    assert max(done.samples_mib) > 60
    with pytest.raises(RuntimeError, match=r"exit status 7\n(.|\n)*too bad"):
        watched([sys.executable, "-c", "import sys; print('too bad'); sys.exit(7)"], tmp_path / "said.txt")


def test_growth_leaves_the_start_out() -> None:
    assert growth_percent([1.0, 1.0, 100.0, 100.0, 100.0, 100.0, 100.0, 100.0, 110.0, 110.0]) == pytest.approx(10.0)


def test_a_library_can_be_loaded_before_all_others(toy: Callable[..., System]) -> None:
    for preload in ("", "libresolv.so.2"):
        with started(toy(factor=1)._replace(preload=preload)) as ask:
            assert ask(n=1, how="what is loaded")["product"] is bool(preload)


@pytest.mark.parametrize("has_bf16", [True, False])
def test_bf16_is_left_out_where_the_processor_has_none(has_bf16: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    facts = dict.fromkeys(("avx512_bw", "avx512_vl", "avx512_dq"), has_bf16)
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: facts)
    why = "this processor has no bf16"
    assert precisions() == ((["bf16", "fp32"], {}) if has_bf16 else (["fp32"], {"bf16": why}))
    if not has_bf16:
        with (
            pytest.raises(PeerError, match=f"toy: {why}") as error,
            started(System("toy", "dragoman", "is_never_started.py", {"precision": "bf16"})),
        ):
            pass
        assert error.value.refusal == why
