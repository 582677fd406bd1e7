"""The letter of HTTP and JSON: rows H1 to H9, tried by requests made from the server's OpenAPI document.

``benchmarks/contract_cases.py`` has the requests and what their answers must be. ``make test`` sends a part.
"""

from __future__ import annotations

import re
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from amounts import amounts

from benchmarks.contract import held_uploads, spec_of
from benchmarks.contract_cases import Case, cases, fault
from benchmarks.serving import Server
from dragoman import cli
from limits import LONG_S, wait_until
from processes import Forked

Figure = Callable[[str, str], None]


@pytest.fixture(scope="module")
def port(tiny_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """The port of a server; at its end its log has no traceback."""
    folder = tmp_path_factory.mktemp("glossaries")
    process = Forked(cli.main, ["dragoman", "serve", str(tiny_run), "--port", "0", "--glossaries", str(folder),
                                "--max-wait", "600"])  # fmt: skip
    try:
        wait_until(lambda: b" on http://" in process.errors or process.poll() is not None)
        match = re.search(rb"on http://127\.0\.0\.1:(\d+)", process.errors)
        assert match is not None, process.errors
        yield int(match[1])
        process.send_signal(signal.SIGTERM)
        assert process.wait(LONG_S) == 0
        assert b"Traceback" not in process.errors
    finally:
        process.kill()
        process.wait()


@pytest.fixture(scope="module")
def by_kind(port: int) -> dict[str, list[Case]]:
    made: dict[str, list[Case]] = {}
    for case in cases(spec_of(port)):
        made.setdefault(case.kind, []).append(case)
    return made


def checked(kind: str, n: int, port: int, by_kind: Any) -> str:
    """Send requests of one kind; return how many, in words, if every answer is as the contract says."""
    own = by_kind[kind][:: max(1, len(by_kind[kind]) // n)]
    wrong = [f"{case.name}: {why}" for case in own if (why := fault(port, case))]
    assert not wrong, f"{len(wrong)} of {len(own)}:\n" + "\n".join(wrong[:40])
    return f"{len(own):,} requests ({kind}): 0 answered otherwise than the contract says"


@amounts(quick=83, full=10_000)
def test_H1_every_method_is_answered(port: int, by_kind: Any, figure: Figure, n: int) -> None:
    figure("H1", checked("methods", n, port, by_kind))


@amounts(quick=151, full=10_000)
def test_H2_a_number_is_a_number(port: int, by_kind: Any, figure: Figure, n: int) -> None:
    figure("H2", checked("numbers", n, port, by_kind))


@amounts(quick=83, full=10_000)
def test_H3_a_body_is_read_or_refused(port: int, by_kind: Any, figure: Figure, n: int) -> None:
    figure("H3", checked("bodies", n, port, by_kind))


@amounts(quick=83, full=10_000)
def test_H4_a_path_with_slashes_more_is_the_path(port: int, by_kind: Any, figure: Figure, n: int) -> None:
    figure("H4", checked("paths", n, port, by_kind))


@amounts(quick=10_000, full=10_000)
def test_H5_a_host_is_one_of_those_named(port: int, by_kind: Any, figure: Figure, n: int) -> None:
    figure("H5", checked("hosts", n, port, by_kind))


@amounts(quick=10_000, full=10_000)
def test_H6_a_request_whose_end_is_unclear_is_the_last(
    port: int, by_kind: Any, figure: Figure, n: int
) -> None:  # fmt: skip
    figure("H6", checked("framing", n, port, by_kind))


@amounts(quick=19, full=10_000)
def test_H9_no_document_makes_an_answer_that_names_a_file_of_the_server(
    port: int, by_kind: Any, figure: Figure, n: int
) -> None:
    figure("H9", checked("uploads", n, port, by_kind))


@pytest.mark.faults
def test_H7_the_bodies_of_all_requests_together_have_a_limit(tiny_run: Path, figure: Figure) -> None:
    server = Server(tiny_run, "--max-wait", "600")
    try:
        seen = held_uploads(server)
    finally:
        server.stop()
    assert seen["uploads_by_status"].get("429", 0) >= 20, seen
    assert seen["memory_growth_mib"] < 300, seen  # all 40 together have 725
    assert seen["translated_meanwhile"] == "20 of 20", seen
    figure(
        "H7",
        f"{seen['uploads']} uploads of {seen['bytes_each']:,} bytes that stop before their end: "
        f"{seen['uploads_by_status']}, {seen['memory_growth_mib']} MiB more, {seen['translated_meanwhile']} texts "
        "translated meanwhile",
    )
