"""Training, resuming and translating unpickle nothing."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

_AUDITED = """
import sys
found = []
sys.addaudithook(lambda event, args: found.append(args) if event == "pickle.find_class" else None)
import pickle
pickle.loads(pickle.dumps(print))
assert found == [("builtins", "print")], "the hook does not see what it should"
found.clear()
import dragoman
config, run, src, ref = sys.argv[1:]
dragoman.train(config, out=run, overrides=["train.max_steps=4"], quiet=True)
dragoman.train(out=run, resume=True, overrides=["train.max_steps=8"], quiet=True)
dragoman.Translator.load(run).translate(["a dog", ""])
dragoman.evaluate(run, src=src, ref=ref)
print(found)
"""


def test_nothing_is_ever_unpickled(tmp_path: Path, tiny: Callable[..., Any], corpus: Any) -> None:
    config = tmp_path / "config.yaml"
    config.write_text(yaml.safe_dump(tiny(save_every=2, validate_every=4, ema=0.9, average=2)), encoding="utf-8")
    command = [sys.executable, "-c", _AUDITED, config, tmp_path / "x", corpus.valid_src, corpus.valid_tgt]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "[]\n"), done.stderr


def test_no_file_of_a_run_is_a_pickle_or_an_archive(tiny_run: Path) -> None:
    files = [path for path in tiny_run.rglob("*") if path.is_file()]
    assert len(files) > 20
    assert {path.suffix for path in files} <= {
        ".safetensors", ".json", ".jsonl", ".yaml", ".spm", ".txt", ".ids", ".offsets", ".text", ".ends",
    }  # fmt: skip
    for path in files:
        start = path.read_bytes()[:4]
        assert not start.startswith((b"PK", b"\x80\x02", b"\x80\x04", b"\x80\x05", b"\x1f\x8b")), path
