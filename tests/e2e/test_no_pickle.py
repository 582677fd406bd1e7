"""Of the files that a run leaves, none is a pickle; that no command unpickles is row M1 of the fault suite."""

from __future__ import annotations

from pathlib import Path


def test_no_file_of_a_run_is_a_pickle_or_an_archive(tiny_run: Path) -> None:
    files = [path for path in tiny_run.rglob("*") if path.is_file()]
    assert len(files) > 20
    assert {path.suffix for path in files} <= {
        ".safetensors", ".json", ".jsonl", ".yaml", ".spm", ".txt", ".ids", ".offsets", ".text", ".ends",
        ".hashes",
    }  # fmt: skip
    for path in files:
        start = path.read_bytes()[:4]
        assert not start.startswith((b"PK", b"\x80\x02", b"\x80\x04", b"\x80\x05", b"\x1f\x8b")), path
