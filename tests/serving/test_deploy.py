"""The files of ``deploy/`` start a server that answers: their own commands are run."""

from __future__ import annotations

import re
import shlex
import signal
import subprocess
import sys
import tomllib
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from dragoman.cli import main
from dragoman.serving.keys import make_key
from dragoman.serving.options import ServeOptions
from limits import LONG_S, wait_until
from processes import Forked

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"


def unit() -> dict[str, str]:
    """The settings of the systemd unit."""
    lines = (DEPLOY / "dragoman.service").read_text(encoding="utf-8").split("\n")
    return dict(line.split("=", 1) for line in lines if re.match(r"\w+=", line))


def container(instruction: str) -> list[str]:
    """What follows an instruction in the Containerfile, each time it is there."""
    text = (DEPLOY / "Containerfile").read_text(encoding="utf-8").replace("\\\n", " ")
    return [line.split(None, 1)[1] for line in text.split("\n") if line.startswith(f"{instruction} ")]


def service() -> Any:
    """The service of the compose file."""
    return yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))["services"]["dragoman"]


@contextmanager
def running(arguments: list[str], **instead: str) -> Iterator[str]:
    """A process with these arguments of ``dragoman``, on a free port; its address."""
    for what, path in instead.items():
        arguments = [each.replace(what, path) for each in arguments]
    assert "5000" in arguments or "--port" not in arguments
    kept = [each for each in arguments if each not in ("--port", "5000")]
    process = Forked(main, ["dragoman", *kept, "--port", "0"])
    try:
        wait_until(lambda: b" on http://" in process.errors or process.poll() is not None)
        found = re.search(r":(\d+)  \(", process.errors.decode())
        assert found is not None, process.errors
        yield f"http://127.0.0.1:{found[1]}"
        process.send_signal(signal.SIGTERM)
        assert process.wait(LONG_S) == 0
    finally:
        process.kill()
        process.wait()


def status(url: str, **headers: str) -> int:
    request = urllib.request.Request(url, headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=LONG_S) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        with error:
            return error.code


@pytest.fixture
def keys(tmp_path: Path) -> tuple[Path, str]:
    """A file of keys and the key in it."""
    path = tmp_path / "keys"
    return path, make_key(path, "me")


def test_the_unit_starts_a_server_with_keys_and_glossaries(
    tiny_run: Path, tmp_path: Path, keys: tuple[Path, str]
) -> None:
    program, *arguments = shlex.split(unit()["ExecStart"])
    assert Path(program).name == "dragoman"
    with running(
        arguments,
        **{"/srv/dragoman/en-de": str(tiny_run), "${CREDENTIALS_DIRECTORY}": str(keys[0].parent),
           "${STATE_DIRECTORY}": str(tmp_path)},
    ) as url:  # fmt: skip
        assert status(f"{url}/readyz") == 200
        assert status(f"{url}/v1/languages") == 401
        assert status(f"{url}/v1/languages", authorization=f"Bearer {keys[1]}") == 200
        assert status(f"{url}/v2/glossaries", authorization=f"DeepL-Auth-Key {keys[1]}") == 200
    assert (tmp_path / "glossaries").is_dir()
    grace = int(arguments[arguments.index("--grace") + 1])
    assert int(unit()["TimeoutStopSec"]) > grace
    assert unit()["LoadCredential"].startswith("keys:")


def test_the_steps_at_the_head_of_the_unit_make_what_it_names() -> None:
    text = (DEPLOY / "dragoman.service").read_text(encoding="utf-8")
    steps = "\n".join(line for line in text.split("\n") if line.startswith("#"))
    credential = Path(unit()["LoadCredential"].partition(":")[2])
    run = next(word for word in shlex.split(unit()["ExecStart"]) if word.startswith("/srv"))
    made = re.findall(r"mkdir -p (.*)", steps)[0].split()
    assert str(credential.parent) in made
    assert str(Path(run).parent) in made
    assert f"--keys {credential} --make-key" in steps
    assert f" {run} " in steps
    program = shlex.split(unit()["ExecStart"])[0]
    assert f"python3 -m venv {Path(program).parents[1]}" in steps
    assert f"{Path(program).with_name('pip')} install '.[serve]'" in steps


def test_the_container_of_the_compose_file_starts_one(tiny_run: Path, tmp_path: Path, keys: tuple[Path, str]) -> None:
    (entry,), (health,) = container("ENTRYPOINT"), re.findall(r"CMD (\[.*\])", "\n".join(container("HEALTHCHECK")))
    program, *first = yaml.safe_load(entry)
    assert program == "dragoman"
    own = service()
    arguments = [*first, *own["command"]]
    mounts = {each["target"]: each for each in own["volumes"]}
    assert mounts["/models/run"]["read_only"]
    assert any(("/glossaries" in line and "chown" in line) or "--owner" in line for line in container("RUN"))
    with running(
        arguments,
        **{"/models/run": str(tiny_run), "/run/secrets/keys": str(keys[0]), "/glossaries": str(tmp_path / "stored")},
    ) as url:
        _, *check = yaml.safe_load(health)
        check = [each.replace("http://127.0.0.1:5000", url) for each in check]
        assert url in " ".join(check)
        assert subprocess.run([sys.executable, *check], check=False).returncode == 0
        assert status(f"{url}/v1/languages", authorization=f"Bearer {keys[1]}") == 200
    assert subprocess.run([sys.executable, *check], check=False, capture_output=True).returncode != 0
    assert int(own["stop_grace_period"].rstrip("s")) > ServeOptions().grace
    assert own["ports"] == [f"127.0.0.1:{port}:{port}" for port in container("EXPOSE")]
    assert own["init"]


def test_what_the_container_is_built_from_is_there() -> None:
    for line in container("COPY"):
        *sources, _ = line.split()
        assert all((ROOT / source).exists() for source in sources)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    asked = re.findall(r"'\.\[([\w,]+)\]'", " ".join(container("RUN")))
    assert asked
    assert all(extra in project["optional-dependencies"] for extra in asked[0].split(","))
    for named in (project["readme"], *project.get("license-files", [])):
        assert named in " ".join(container("COPY"))


def test_the_proxy_lets_through_what_a_server_takes() -> None:
    text = (DEPLOY / "nginx.conf").read_text(encoding="utf-8")
    found = re.search(r"client_max_body_size (\d+)m;", text)
    assert found is not None
    assert int(found[1]) * 2**20 >= max(ServeOptions().max_body, ServeOptions().max_document)
    assert text.count("{") == text.count("}")
    route = re.search(r"location = /translate_file \{([^}]*)\}", text)  # it answers when the document is done
    assert route is not None
    assert "proxy_read_timeout 1h;" in route[1]


def test_a_glossary_that_one_process_stores_all_have(tmp_path: Path) -> None:
    from dragoman.serving.glossaries import Dictionary, Glossaries, UnknownError

    one, other = Glossaries(tmp_path), Glossaries(tmp_path)
    made = one.add("", "names", [Dictionary("en", "de", {"Bank": "Ufer"})])
    assert other.get(made.id, "") == made
    assert other.list("") == [made.outline]
    other.delete(made.id, "")
    with pytest.raises(UnknownError):
        one.get(made.id, "")
    assert one.list("") == []
