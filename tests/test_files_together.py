"""Several files and a report that are one fact, temporary folders, and names of outputs."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from dragoman.errors import ConfigError, DragomanError
from dragoman.files import (
    MOST_NAME_BYTES,
    check_name,
    final_name,
    read_report,
    remove_folder,
    remove_leftovers,
    temporary_folder,
    whole_files,
    write_output,
    write_report,
    write_text,
)

Listing = Callable[[Path], list[str]]


def make(folder: Path, text: str) -> None:
    """Write two sides and their report."""
    sides = (folder / "x.en", folder / "x.de")
    with whole_files(sides, folder / "x.json") as outs:
        for out in outs:
            out.write(text.encode())
    write_report(folder / "x.json", {"text": text}, sides)


def vouched(folder: Path) -> str | None:
    """The text that the report vouches for; None if it does not."""
    report = read_report(folder / "x.json", (folder / "x.en", folder / "x.de"))
    return None if report is None else report["text"]


def test_a_report_vouches_for_just_the_files_that_it_was_written_for(tmp_path: Path) -> None:
    assert vouched(tmp_path) is None
    make(tmp_path, "one")
    assert vouched(tmp_path) == "one"
    assert read_report(tmp_path / "x.json", (tmp_path / "x.en",)) is None
    (tmp_path / "x.de").write_text("two", encoding="utf-8")
    assert vouched(tmp_path) is None
    (tmp_path / "x.json").write_text("[" * 100_000, encoding="utf-8")
    assert vouched(tmp_path) is None


def test_if_the_body_fails_the_older_files_and_their_report_stay(tmp_path: Path, listing: Listing) -> None:
    make(tmp_path, "one")

    def fail() -> None:
        with whole_files((tmp_path / "x.en", tmp_path / "x.de"), tmp_path / "x.json") as outs:
            outs[0].write(b"two")
            raise DragomanError("no pair is fit")

    with pytest.raises(DragomanError):
        fail()
    assert vouched(tmp_path) == "one"
    assert listing(tmp_path) == ["x.de", "x.en", "x.json"]


@pytest.mark.parametrize("n", range(1, 9))
def test_a_kill_never_leaves_old_beside_new_nor_a_report_beside_others(tmp_path: Path, n: int) -> None:
    make(tmp_path, "one")
    child = os.fork()
    if not child:
        left = n

        def deadly(real: Callable[..., object]) -> Callable[..., object]:
            def call(*args: object, **kwargs: object) -> object:
                nonlocal left
                left -= 1
                if not left:
                    os.kill(os.getpid(), signal.SIGKILL)
                return real(*args, **kwargs)

            return call

        for name in ("unlink", "replace"):
            setattr(Path, name, deadly(getattr(Path, name)))
        make(tmp_path, "two")
        os._exit(0)
    os.waitpid(child, 0)
    texts = {path.read_text(encoding="utf-8") for path in tmp_path.glob("x.[ed][ne]")}
    assert len(texts) <= 1
    if (tmp_path / "x.json").exists():
        assert vouched(tmp_path) in texts
    make(tmp_path, "one")
    assert vouched(tmp_path) == "one"
    assert not list(tmp_path.glob(".*"))


def test_leftovers_of_dead_writers_go_and_those_of_live_ones_stay(tmp_path: Path, listing: Listing) -> None:
    (tmp_path / ".x.en.0123abcd.tmp").write_text("half", encoding="utf-8")
    (tmp_path / ".x.0123abcd.tmp").mkdir()
    for name in (".x.en.0123abc.tmp", ".hidden", "x.0123abcd.tmp"):  # which nobody here writes
        (tmp_path / name).write_text("other", encoding="utf-8")
    with temporary_folder(tmp_path / "live") as live:
        remove_leftovers(tmp_path)
        assert listing(tmp_path) == sorted([".hidden", ".x.en.0123abc.tmp", "x.0123abcd.tmp", live.name])
    assert not live.exists()
    assert (final_name(live), final_name(Path("x.en"))) == ("live", "x.en")


def test_a_temporary_folder_of_a_killed_process_goes_with_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, listing: Listing
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    child = os.fork()
    if not child:
        with temporary_folder() as folder:
            (folder / "x").write_text("half", encoding="utf-8")
            os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)
    assert len(listing(tmp_path)) == 2
    with temporary_folder() as folder:
        assert listing(tmp_path) == [folder.name]
    assert listing(tmp_path) == []


def test_a_folder_is_removed_with_all_that_is_in_it(tmp_path: Path, listing: Listing) -> None:
    (tmp_path / "x/y").mkdir(parents=True)
    remove_folder(tmp_path / "x")
    assert listing(tmp_path) == []


def test_an_output_goes_through_links_and_into_pipes(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "file")
    write_output(tmp_path / "link", b"text")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "file").read_bytes() == b"text"
    reading, writing = os.pipe()
    write_output(Path(f"/dev/fd/{writing}"), b"text")
    assert os.read(reading, 9) == b"text"
    os.close(reading)
    os.close(writing)


def test_a_name_leaves_room_for_that_of_the_temporary_file(tmp_path: Path) -> None:
    longest = tmp_path / ("ü" * (MOST_NAME_BYTES // 2) + "x" * (MOST_NAME_BYTES % 2))
    check_name(longest)
    write_text(longest, "text")
    with pytest.raises(ConfigError, match=f"must have at most {MOST_NAME_BYTES} bytes, got {MOST_NAME_BYTES + 1};"):
        check_name(longest.with_name(longest.name + "x"))
