"""Schemathesis on the server's whole OpenAPI: valid and invalid requests, and what each answer must look like.

    python -m benchmarks.api_schema --run RUN [--examples 500] [--path /v1/translate ...]

Checked are no 5xx, and that status, content type, headers and body of an answer are those of the document. Each path is
a run of its own; with ``--path`` some of them, and what the result has of the others stays. Schemathesis lives in an
environment of its own (below ``.bench/``).
"""

from __future__ import annotations

import argparse
import http.client
import json
import re
import subprocess
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

from benchmarks.harness.environments import python_of
from benchmarks.record import RESULTS, save
from benchmarks.serving import Server

Json = Any
NAME = "api-schema"
CHECKS = (
    "not_a_server_error", "status_code_conformance", "content_type_conformance", "response_headers_conformance",
    "response_schema_conformance",
)  # fmt: skip


def paths_of(server: Server) -> list[str]:
    """The paths of its OpenAPI document."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
    connection.request("GET", "/spec")
    return list(json.loads(connection.getresponse().read())["paths"])


def tried(python: Path, server: Server, path: str, examples: int) -> Json:
    """What Schemathesis finds on one path."""
    started = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        done = subprocess.run(
            [python.parent / "schemathesis", "run", f"http://127.0.0.1:{server.port}/spec", "--include-path", path,
             "--checks", ",".join(CHECKS), "--max-examples", str(examples), "--phases", "examples,coverage,fuzzing",
             "--continue-on-failure", "--request-timeout", "60", "--seed", "1",
             "--report", "junit", "--report-junit-path", report],
            capture_output=True, text=True,
        )  # fmt: skip
        if not report.is_file():
            raise SystemExit(done.stdout + done.stderr)
        cases = list(ElementTree.parse(report).getroot().iter("testcase"))
    counted = re.search(r"([\d,]+) generated", done.stdout)
    return {
        "operations": len(cases),
        "requests": int(counted[1].replace(",", "")) if counted else None,
        "failures": [
            f"{case.get('name')}: {' '.join((problem.get('message') or problem.text or '').split())[:600]}"
            for case in cases
            for problem in [*case.findall("failure"), *case.findall("error")]
        ],
        "exit": done.returncode,
        "seconds": round(time.perf_counter() - started, 1),
    }


def known(examples: int) -> Json:
    """What the result has already, of as many examples."""
    path = RESULTS / f"{NAME}.json"
    figures = json.loads(path.read_text(encoding="utf-8"))["figures"] if path.is_file() else {}
    return figures.get("paths", {}) if figures.get("examples_an_operation") == examples else {}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", type=Path, required=True)
    parser.add_argument("--examples", type=int, default=500)
    parser.add_argument("--path", nargs="+", help="of the document; all of them if it is left out")
    args = parser.parse_args()
    python = python_of("schemathesis")
    with tempfile.TemporaryDirectory() as folder:
        server = Server(args.run, "--glossaries", f"{folder}/glossaries")
        try:
            there = paths_of(server)
            found = {path: each for path, each in known(args.examples).items() if path in there}
            for path in args.path or there:
                found[path] = tried(python, server, path, args.examples)
                print(path, found[path], flush=True)
                total = {key: sum(each[key] or 0 for each in found.values()) for key in ("operations", "requests")}
                figures = {
                    **total,
                    "examples_an_operation": args.examples,
                    "checks": list(CHECKS),
                    "failures": [failure for each in found.values() for failure in each["failures"]],
                    "server_lives_on": server.process.poll() is None,
                    "paths_left": [path for path in there if path not in found],
                    "paths": {path: found[path] for path in there if path in found},
                }
                command = f"python -m benchmarks.api_schema --run RUN --examples {args.examples}"
                save(NAME, figures, command, ("fastapi", "uvicorn"))
        finally:
            server.stop()


if __name__ == "__main__":
    main()
