"""Quality by the clock: which checkpoint counts, what is scored, and how the page shows it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from benchmarks import clock
from benchmarks.page import clock as section


def _checkpoint(path: Path, age_s: float) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"weights")
    os.utime(path, (time.time() - age_s, time.time() - age_s))
    return path


def test_the_newest_whole_checkpoint_before_the_limit_counts(tmp_path: Path) -> None:
    now = time.time()
    assert clock.newest_checkpoint(tmp_path, "model-*", now) is None
    old, new, later = (_checkpoint(tmp_path / f"model-{n}", age) for n, age in ((1, 300), (2, 200), (3, 100)))
    _checkpoint(tmp_path / "model-4", 0)  # may still be written
    chosen = [clock.newest_checkpoint(tmp_path, "model-*", now - age) for age in (250, 150, 0)]
    assert [one[0] for one in chosen if one is not None] == [old, new, later]
    folder = tmp_path / "steps/step_1"
    _checkpoint(folder / "weights", 100)
    os.utime(folder, (now - 100, now - 100))
    assert clock.newest_checkpoint(tmp_path, "steps/step_*", now) is not None
    (folder / "vocabulary").write_bytes(b"")  # a folder is whole when its last file is
    assert clock.newest_checkpoint(tmp_path, "steps/step_*", now + 60) is None


def test_a_corpus_with_one_set_beside_its_training_text_gives_half_to_validation(tmp_path: Path) -> None:
    (tmp_path / "tatoeba-en-de").mkdir()
    for lang in ("en", "de"):
        (tmp_path / f"tatoeba-en-de/dev.{lang}").write_bytes("".join(f"{lang} {n}\n" for n in range(5)).encode())
    text = clock.text_of(tmp_path, "tatoeba-en-de", tmp_path / "runs")
    assert (text.src, text.tgt) == ("en", "de")
    assert Path(f"{text.valid}.de").read_bytes() == b"de 0\nde 2\nde 4\n"
    assert Path(f"{text.test}.en").read_bytes() == b"en 1\nen 3\n"


def test_scores_are_of_whole_translations(tmp_path: Path) -> None:
    lines = [f"the dog number {n} sees a small cat" for n in range(20)]
    (tmp_path / "test.de").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    text = clock.Text("x", "en", "de", tmp_path, tmp_path, tmp_path / "test")
    assert clock.scores(text, tmp_path / "test.de")["BLEU"] == 100
    (tmp_path / "short.de").write_text("".join(f"{line}\n" for line in lines[1:]), encoding="utf-8")
    with pytest.raises(SystemExit, match="19 lines, the test set 20"):
        clock.scores(text, tmp_path / "short.de")


def test_the_page_tells_seeds_from_intervals_and_what_had_no_checkpoint() -> None:
    ours = {"3": [{"BLEU": 30.0}, {"BLEU": 32.0}], "10": [{"BLEU": 36.0}, {"BLEU": 37.0}]}
    peer: dict[str, Any] = {"3": [], "10": [{"BLEU": 20.0, "interval": [19.0, 21.5]}]}
    figures = {"corpora": {"multi30k": {"dragoman": ours, "Marian": peer}}, "peers": {"versions": {"Marian": "m 1"}}}
    machine = {"cores": 2, "cpu": "a processor", "memory_gib": 23.5}
    record = {"figures": figures, "machine": machine, "command": "c", "date": "d", "versions": {}}
    made = section({"AMX": record})
    assert "| dragoman | 31.0 (30.0-32.0) | 36.5 (36.0-37.0) |" in made.text
    assert "| Marian | no checkpoint yet | 20.0 (19.0-21.5) |" in made.text
    assert len(made.draw) == 1
    again = {"10": [{"BLEU": 25.0, "interval": [24.0, 26.5]}], "3": []}
    smaller = {**record, "figures": {**figures, "corpora": {"multi30k": {"Marian": again}}}}
    made = section({"AMX": record}, {"AMX": smaller})
    assert (
        "| Marian | no checkpoint yet | 20.0 (19.0-21.5) |\n| Marian, smaller | no checkpoint yet | 25.0" in made.text
    )
    (panel,) = made.draw[0][1].args[0].values()
    assert [(line.name, line.y[-1]) for line in panel] == [("dragoman", 36.5), ("Marian", 25.0)]


def test_the_record_keeps_what_this_machine_has_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clock, "RESULTS", tmp_path)
    peers = {"sizes": {"d_model": 8}, "subwords": 100, "versions": {"Marian": "m 1"}}
    before = {
        "corpora": {
            "multi30k": {"dragoman": {"3": [{"seed": 1, "BLEU": 1.0}, {"seed": 2, "BLEU": 2.0}]},
                         "Marian": {"3": [{"BLEU": 5.0}], "10": [{"BLEU": 6.0}]}},
            "tatoeba-en-de": {"Marian": {"3": []}},
        },
        "peers": {**peers, "updates": [1]}, "note": "n",
    }  # fmt: skip
    record = {"machine": clock.machine(), "figures": before}
    (tmp_path / "clock.json").write_text(json.dumps(record), encoding="utf-8")
    new = {
        "corpora": {"multi30k": {"dragoman": {"3": [{"seed": 2, "BLEU": 2.5}]}, "Marian": {"3": []}}},
        "peers": {**peers, "versions": {"Eole": "e 1"}},
    }
    found = clock.with_earlier("clock", json.loads(json.dumps(new)))
    assert found["corpora"] == {
        "multi30k": {"dragoman": {"3": [{"seed": 1, "BLEU": 1.0}, {"seed": 2, "BLEU": 2.5}]},
                     "Marian": {"3": [], "10": [{"BLEU": 6.0}]}},
        "tatoeba-en-de": {"Marian": {"3": []}},
    }  # fmt: skip
    assert found["note"] == "n"
    assert found["peers"] == {**peers, "updates": [1], "versions": {"Marian": "m 1", "Eole": "e 1"}}
    other = {**record, "machine": {"cpu": "another"}}
    (tmp_path / "clock.json").write_text(json.dumps(other), encoding="utf-8")
    assert clock.with_earlier("clock", new) == new
    wider = {**record, "figures": {**before, "peers": {**peers, "subwords": 200}}}
    (tmp_path / "clock.json").write_text(json.dumps(wider), encoding="utf-8")
    assert clock.with_earlier("clock", new) == new


def test_a_peer_is_ended_whatever_happens_and_its_checkpoints_are_copied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = "import pathlib, sys, time; pathlib.Path(sys.argv[1], 'm-1').write_bytes(b'w'); time.sleep(300)"
    installed: list[str] = []
    peer = clock.PEERS["Marian"]._replace(
        install=lambda: installed.append("Marian"), checkpoints="m-*",
        prepare=lambda job: [sys.executable, "-c", script, str(job.folder)],
    )  # fmt: skip
    monkeypatch.setitem(clock.PEERS, "Marian", peer)
    monkeypatch.setattr(clock, "WHOLE_S", 0.2)
    monkeypatch.setattr(clock, "POLL_S", 0.1)
    job = clock.Job(tmp_path, "en", "de", tmp_path, tmp_path, "fp32", clock.RECIPE)
    begun: list[Any] = []
    popen = subprocess.Popen

    def start(*args: Any, **kwargs: Any) -> Any:
        begun.append(popen(*args, **kwargs))
        return begun[-1]

    monkeypatch.setattr(subprocess, "Popen", start)
    kept = clock.train_peer("Marian", job, [0, 0.05])
    assert installed == ["Marian"]
    assert kept["0"] is None
    assert kept["0.05"] is not None
    assert Path(kept["0.05"]["checkpoint"]).read_bytes() == b"w"
    assert json.loads((tmp_path / "kept.json").read_text(encoding="utf-8")) == kept
    assert begun[0].poll() is not None
    monkeypatch.setattr(clock, "newest_checkpoint", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        clock.train_peer("Marian", job, [1])
    assert begun[1].poll() is not None
