"""Rows A: API keys keep their owners apart. One key neither sees, changes nor exhausts what is another's."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks.full_disk import measured
from benchmarks.two_keys import Client, at_once, crossings, exhausted, waits
from dragoman.cli import main
from dragoman.serving.keys import make_key
from limits import LONG_S, wait_until
from processes import Forked

Figure = Callable[[str, str], None]
CAN_MOUNT = shutil.which("unshare") and not subprocess.run(["unshare", "-rm", "true"], capture_output=True).returncode
NAMES = ("alice-5e1f", "bob")


@pytest.fixture
def serve(several_run: Path, tmp_path: Path) -> Iterator[Callable[..., tuple[Client, ...]]]:
    """A function that starts a server with two keys; returns a client for each."""
    processes = []

    def start(*arguments: Any) -> tuple[Client, ...]:
        keys = [make_key(tmp_path / "keys", name) for name in NAMES]
        words = ["--keys", tmp_path / "keys", "--glossaries", tmp_path / "g", "--documents", tmp_path / "d", *arguments]
        process = Forked(main, ["dragoman", "serve", *map(str, [several_run, "--port", 0, *words])])
        processes.append(process)
        wait_until(lambda: b" on http://" in process.errors or process.poll() is not None)
        port = re.search(r":(\d+)  \(", process.errors.decode())
        assert port is not None, process.errors
        return tuple(Client(int(port[1]), key) for key in keys)

    yield start
    for process in processes:
        process.kill()
        process.wait(LONG_S)


def test_A1_no_route_crosses_from_one_key_to_another(serve: Any, figure: Figure) -> None:
    alice, bob = serve()
    seen = crossings(alice.port, alice, bob, NAMES[:1])
    assert seen["unproven"] == [], (
        "these routes never succeeded for the owner: teach benchmarks/two_keys.py their fields"
    )
    assert seen["crossings"] == []
    assert seen["operations"] >= 30
    figure(
        "A1", f"{seen['operations']} routes, {seen['requests']} requests of another key: {len(seen['crossings'])} cross"
    )


@pytest.mark.faults
def test_A2_one_key_exhausts_no_limit_and_no_turn_of_another(serve: Any, figure: Figure) -> None:
    alice, bob = serve()
    pair = "en", "de"
    seen = exhausted(alice, bob, pair)
    assert seen == {
        "glossaries_of_alice": 750, "then_bobs_glossary": 201, "documents_of_alice": 150, "then_bobs_document": 200,
        "after_she_fetched_all_of_hers_her_next_document": 200,
    }  # fmt: skip
    waited = waits(alice, bob, pair)
    assert waited["refused"] == 0, waited
    figure(
        "A2",
        f"a key stores {seen['glossaries_of_alice']} glossaries and {seen['documents_of_alice']} documents, "
        f"and another still stores its own; while the first sends 24 lines from 32 clients, 0 of {waited['asked']} "
        f"short requests are refused ({waited['beside_p50_ms']} ms, alone {waited['alone_p50_ms']} ms)",
    )


@pytest.mark.faults
def test_A3_uploads_at_once_pass_no_limit(serve: Any, figure: Figure) -> None:
    alice, bob = serve()
    accepted = [at_once(client, ("en", "de")) for client in (alice, bob)]
    assert accepted == [{"200": 24, "429": 36}, {"200": 8, "429": 52}]
    figure("A3", f"60 uploads at once of one key, then of another: {accepted}")


@pytest.mark.faults
@pytest.mark.skipif(not CAN_MOUNT, reason="needs user namespaces, to mount a small file system")
def test_A4_a_full_disk_is_told_without_a_path_and_over_when_there_is_room(tiny_run: Path, figure: Figure) -> None:
    seen = measured(tiny_run, 50)
    documents, glossaries = seen["documents"], seen["glossaries"]
    assert set(documents["uploads"]) == {"200", "507"}, seen
    assert set(glossaries["writes"]) == {"507"}, seen
    assert (documents["leaks"]["texts"], glossaries["leaks"]["texts"]) == (0, 0), seen
    assert (documents["litter"], glossaries["litter"]) == (0, 0), seen
    assert documents["readiness"] == {
        "/readyz": 200, "/readyz/storage": 503, "/readyz/storage with room": 200,
    }, seen  # fmt: skip
    assert set(documents["ends"]) == {"done"}, seen
    assert seen["result"]["status"] == "done", seen
    assert (glossaries["the_old_one_is_unchanged"], glossaries["delete"]) == (True, 204), seen
    assert documents["seconds_to_the_first_accepted_upload"] <= 1, seen
    assert glossaries["seconds_to_the_first_accepted_glossary"] <= 1, seen
    figure(
        "A4",
        f"a disk of 600 KiB: uploads {documents['uploads']}, glossaries {glossaries['writes']}, 0 answers with a path, "
        f"0 files left; accepted {documents['seconds_to_the_first_accepted_upload']} s after there was room; "
        "a document begun before the disk was full was translated",
    )
