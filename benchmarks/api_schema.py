"""Schemathesis on the server's whole OpenAPI: valid and invalid requests, and what each answer must look like.

    python -m benchmarks.api_schema --run RUN [--examples 500]

Checked are no 5xx, and that status, content type, headers and body of an answer are those of the document. Schemathesis
lives in an environment of its own (below ``.bench/``).
"""

from __future__ import annotations

import argparse
import re
import subprocess
import tempfile
import xml.etree.ElementTree as ElementTree
from pathlib import Path

from benchmarks.harness.environments import python_of
from benchmarks.record import save
from benchmarks.serving import Server

CHECKS = (
    "not_a_server_error", "status_code_conformance", "content_type_conformance", "response_headers_conformance",
    "response_schema_conformance",
)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", type=Path, required=True)
    parser.add_argument("--examples", type=int, default=500)
    args = parser.parse_args()
    python = python_of("schemathesis")
    with tempfile.TemporaryDirectory() as folder:
        server = Server(args.run, "--glossaries", f"{folder}/glossaries")
        report = Path(folder) / "report.xml"
        try:
            done = subprocess.run(
                [python.parent / "schemathesis", "run", f"http://127.0.0.1:{server.port}/spec", "--checks",
                 ",".join(CHECKS), "--max-examples", str(args.examples), "--phases", "examples,coverage,fuzzing",
                 "--continue-on-failure", "--request-timeout", "60", "--seed", "1",
                 "--report", "junit", "--report-junit-path", report],
                capture_output=True, text=True,
            )  # fmt: skip
            alive = server.process.poll() is None
        finally:
            server.stop()
        root = ElementTree.parse(report).getroot()
    failures = [
        f"{case.get('name')}: {' '.join((problem.get('message') or problem.text or '').split())[:300]}"
        for case in root.iter("testcase")
        for problem in [*case.findall("failure"), *case.findall("error")]
    ]
    print("\n".join(done.stdout.split("\n")[-40:]))
    counted = re.search(r"([\d,]+) generated", done.stdout)
    figures = {
        "operations": len(list(root.iter("testcase"))),
        "examples_an_operation": args.examples,
        "requests": int(counted[1].replace(",", "")) if counted else None,
        "checks": list(CHECKS),
        "failures": failures,
        "exit": done.returncode,
        "server_lives_on": alive,
    }
    command = f"python -m benchmarks.api_schema --run RUN --examples {args.examples}"
    save("api-schema", figures, command, ("fastapi", "uvicorn"))


if __name__ == "__main__":
    main()
