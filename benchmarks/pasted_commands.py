"""Commands that README, the documentation and ``--help`` print, pasted into a shell as they stand: how many fail.

    python -m benchmarks.pasted_commands before    ``after`` for the state after a change; or a part of a page's name

Commands are the lines of fenced blocks that begin with a program of ``PROGRAMS``, and the examples of each ``--help``.
The commands of a page run one after the other in one folder, as a reader pastes them. That folder is prepared by
``prepare``: corpora of the phrasebook under the names that the pages use, and trained runs. Four rules shorten them:

1. ``dragoman`` is a script that adds ``SHORT`` to trainings, ``--quick`` to experiments, and puts a server into the
   background once it answers. Everything else of a command stays as it is printed.
2. A folder that stands in for a model hub lies under the name that the page gives; there is no network.
3. A run that a command makes is removed before it.
4. ``LEFT_OUT`` names what is not pasted, each with its reason.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from docs.site.reference import without_parts

ROOT = Path(__file__).resolve().parent.parent

PROGRAMS = ("dragoman ", "echo ", "cp ", "ln ", "curl ", "torchrun ", "tensorboard ", "make ", "docker ", "pip ",
            "source ", "python3 ", "head ", "git ", "uv ")  # fmt: skip
LEFT_OUT = {
    "make ": "installs packages; make test-wheel and CI run them",
    "docker ": "needs Docker",
    "pip ": "needs a package index",
    "uv ": "needs a package index",
    "source ": "chooses an environment; the shell has one",
    "python3 -m venv": "makes an environment; the shell has one",
    "torchrun ": "needs several machines or processes; tests/e2e/test_torchrun.py",
    "tensorboard ": "a server of another project",
}
"""Commands by their beginning that are not pasted, and why."""
SHORT = [
    "train.max_steps=40", "train.warmup_steps=4", "train.validate_every=40", "train.save_every=40", "train.lr=1e-2",
    "train.batch_tokens=512", "model.d_model=32", "model.n_heads=2", "model.d_ff=64", "model.n_encoder_layers=2",
    "model.n_decoder_layers=2", "data.tokenizer.vocab_size=700", "decode.max_extra_tokens=5",
]  # fmt: skip
"""Settings that are added to every training; those that a command sets itself win, except the number of steps."""
TIMEOUT_S, DEMO_TIMEOUT_S = 900, 2400  # they end what hangs, also on a busy machine

SHIM = '''#!/usr/bin/env -S {python} -S -E
"""Sends a command to the process that has dragoman loaded; see ``benchmarks.pasted_commands``."""
import json, os, socket, sys, time, urllib.error, urllib.request
args = sys.argv[1:]
short = [word for setting in {short!r} for word in ("--set", setting)]
if "--help" in args or "--resume" in args:
    pass
elif args[:1] == ["train"]:
    own_size = "--from-run" in args and not any(arg.endswith(".yaml") for arg in args)
    args = ["train", *(short[:22] if own_size else short), *args[1:], *short[:2]]
elif args[:1] == ["distill"]:
    args = ["distill", *short[:12], *args[1:], *short[:2]]
elif args[:1] == ["demo"]:
    args = ["demo", *short, *args[1:]]
elif args[:1] == ["lab"] and len(args) > 1:
    args = [*args, "--quick"]
waits = args[:1] == ["serve"] and "--make-key" not in args
connection = socket.socket(socket.AF_UNIX)
connection.connect("{socket}")
request = json.dumps(dict(args=args, cwd=os.getcwd(), environment=dict(os.environ))).encode()
socket.send_fds(connection, [request], [0, 1, 2])
if not waits:
    sys.exit(int(connection.recv(100) or 1))
port = args[args.index("--port") + 1] if "--port" in args else "5000"
connection.settimeout(0.3)
while True:
    try:
        sys.exit(int(connection.recv(100) or 1))
    except TimeoutError:
        pass
    try:
        urllib.request.urlopen(f"http://127.0.0.1:{{port}}/livez", timeout=5).read()
        sys.exit(0)
    except urllib.error.HTTPError:
        sys.exit(0)
    except OSError:
        pass
'''


def serve_forks(path: Path) -> None:
    """Run each command that a shim sends in a fork of this process, which has loaded torch; see ``SHIM``."""
    import torch  # noqa: F401

    import dragoman.training.run
    import dragoman.translation.translator  # noqa: F401
    from dragoman.cli import main as dragoman_main

    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    listener.listen()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        connection, _ = listener.accept()
        text, streams, _, _ = socket.recv_fds(connection, 2**20, 3)
        if os.fork() == 0:
            _run_and_answer(connection, json.loads(text), streams, dragoman_main)
        connection.close()
        for stream in streams:
            os.close(stream)


def _run_and_answer(
    connection: socket.socket, request: Mapping[str, Any], streams: list[int], run: Callable[[], None]
) -> None:
    """Run a command in another fork, send its exit status, and end; a server ends when its page has ended."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    child = os.fork()
    if child == 0:
        os.chdir(request["cwd"])
        os.environ.clear()
        os.environ.update(request["environment"])
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
        sys.argv = ["dragoman", *request["args"]]
        with Path("pids").open("a", encoding="utf-8") as pids:
            pids.write(f"{os.getpid()}\n")
        status = 1
        try:
            run()
        except SystemExit as end:
            status = end.code if isinstance(end.code, int) else int(end.code is not None)
        except BaseException:
            traceback.print_exc()
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError):
                stream.flush()
        os._exit(status)
    _, status = os.waitpid(child, 0)
    with contextlib.suppress(OSError):
        connection.send(str(os.waitstatus_to_exitcode(status)).encode())
    os._exit(0)


def commands_of(text: str) -> list[str]:
    """Return the commands of the fenced blocks of a page, lines that end with a backslash joined."""
    found = []
    for block in re.findall(r"^```(?:bash|console|text|sh)?\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL):
        for line in block.replace("\\\n", "\\\0").split("\n"):
            command = line.removeprefix("$ ").strip()
            if command.startswith(PROGRAMS):
                found.append(re.sub(r"\\\0\s*", "", command))
    return found


def pages() -> dict[str, list[str]]:
    """Return the commands of README, of each page in both languages and of each ``--help``, by the page's name."""
    from dragoman.cli.commands import COMMANDS

    names = [*ROOT.glob("README*.md"), *sorted((ROOT / "docs").rglob("*.md"))]
    skipped = ("docs/project", "docs/decisions", "docs/_build", "docs/lab", "docs/zh/lab", "docs/results",
               "docs/zh/results", "docs/understand", "docs/zh/understand")  # fmt: skip
    found = {}
    for path in names:
        name = path.relative_to(ROOT).as_posix()
        text = without_parts(path.read_text(encoding="utf-8"))  # recorded examples are no commands to paste
        if not name.startswith(skipped) and (commands := commands_of(text)):
            found[name] = commands
    return found | {f"dragoman {name} --help": list(about.examples) for name, about in COMMANDS.items()}


def without_what_ran(listed: Mapping[str, list[str]]) -> dict[str, list[str]]:
    """Leave out pages whose commands are all those of an earlier page, such as its Chinese twin."""
    kept: dict[str, list[str]] = {}
    for name, commands in listed.items():
        if commands not in kept.values():
            kept[name] = commands
    return kept


# --- the folder -------------------------------------------------------------------------------------------------------

ENGLISH_GERMAN = {
    "train": 300, "test": 20, "valid": 30, "val": 30, "dev": 120, "emails": 120, "news": 60, "medical": 120,
    "mine": 120, "own": 60, "web": 60, "newstest2013": 30, "newstest2014": 20, "held_out": 20, "book": 20,
    "multi30k/train": 300, "multi30k/val": 30, "multi30k/test_2016_flickr": 20, "tatoeba-en-de/train": 300,
    "runs/demo/corpus/train": 300, "runs/demo/corpus/held_out": 20,
}  # fmt: skip
"""Pairs of each English-German corpus, by its name."""
COPIES = (
    "second", "teacher", "demo", "there", "a", "b", "multi30k", "tatoeba", "student", "opus", "first-old",
    "imported", "old",
)  # fmt: skip
"""Runs that are copies of ``runs/first``."""
EVALUATED = ("train", "valid", "news")


def prepare(folder: Path) -> None:
    """Make the folder that each page's commands begin in."""
    from dragoman.data import phrasebook

    folder.mkdir(parents=True)
    for seed, (name, count) in enumerate(ENGLISH_GERMAN.items()):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        split = "train" if name in EVALUATED or count > 100 else "held_out"
        phrasebook.write(count, f"{path}.en", f"{path}.de", seed=seed, split=split)
    for name, count in (("train", 300), ("manual-train", 300), ("manual-dev", 120)):
        phrasebook.write(count, folder / f"{name}.en", folder / f"{name}.zh", tgt_lang="zh")
    phrasebook.write(300, folder / "train.en", folder / "train.de")
    phrasebook.write(120, folder / "dev.en", folder / "dev.de", split="held_out")
    (folder / "craft").mkdir()
    for name in ("train", "dev"):
        phrasebook.write_trees(60, folder / f"craft/{name}.clean.trees")
    shutil.copytree(ROOT / "configs", folder / "configs")
    _write_small_files(folder)
    _write_documents(folder)
    _make_runs(folder)


def _write_small_files(folder: Path) -> None:
    data = "data:\n  train: {src: train.en, tgt: train.de}\n  valid: {src: valid.en, tgt: valid.de}\n"
    units = '<tuv xml:lang="en"><seg>We sing.</seg></tuv><tuv xml:lang="de"><seg>Wir singen.</seg></tuv>'
    texts = {
        "my.yaml": data,
        "medical.yaml": data.replace("train.", "medical."),
        "terms.tsv": "teacher\tLehrkraft\nbook\tBuch\n",
        "first.comet": "0.5\n0.7\n0.6\n",
        "second.comet": "0.6\n0.7\n0.8\n",
        "other.comet": "0.6\n0.7\n0.8\n",
        "pairs.tsv": "The dog sleeps.\tDer Hund schläft.\nWe sing.\tWir singen.\n",
        "memory.tmx": f'<tmx version="1.4"><header srclang="en"/><body><tu>{units}</tu></body></tmx>',
        "keys": "",
        "prices.csv": "id,description\n1,The dog sleeps.\n",
        "library.po": 'msgid ""\nmsgstr "Content-Type: text/plain; charset=UTF-8\\n"\n\nmsgid "We sing."\nmsgstr ""\n',
        "manual/one.md": "# We sing.\n\nThe dog sleeps.\n",
    }
    for name, text in texts.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    for name in ("documents", "glossaries", "corpus"):
        (folder / name).mkdir()
    shutil.copy(folder / "test.en", folder / "corpus/part.en")
    rows = "".join(f"{i}\tWe sing.\t{i}\tWir singen.\n" for i in range(30))
    (folder / "shuffled.tsv").write_text(rows, encoding="utf-8")
    for name in ("other.de", "test.hyp.de"):
        shutil.copy(folder / "test.de", folder / name)


def _write_documents(folder: Path) -> None:
    from docx import Document

    document = Document()
    document.add_paragraph("The dog sleeps.")
    document.save(str(folder / "report.docx"))


def _make_runs(folder: Path) -> None:
    """Train one run for each direction, and copy them to the names that the pages use."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}

    def dragoman(*args: str) -> None:
        done = subprocess.run(
            [sys.executable, "-m", "dragoman", *args], cwd=folder, env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr

    short = [word for setting in SHORT for word in ("--set", setting)]
    for src, tgt, out in (("en", "de", "first"), ("de", "en", "back"), ("en", "zh", "pydocs")):
        dragoman("train", f"train.{src}", f"train.{tgt}", "--out", f"runs/{out}", *short)
    two = "data:\n  train:\n" + "".join(
        f"    - {{src: train.en, tgt: train.{lang}, src_lang: en, tgt_lang: {label}}}\n"
        for lang, label in (("de", "de"), ("zh", "fr"))
    )
    (folder / "several.yaml").write_text(two + "  valid: {src: valid.en, tgt: valid.de, src_lang: en, tgt_lang: de}\n")
    dragoman("train", "several.yaml", "--out", "runs/several", *short)
    for name in COPIES:
        shutil.copytree(folder / "runs/first", folder / "runs" / name, dirs_exist_ok=True)
    shutil.copytree(folder / "runs/back", folder / "runs/reverse")
    shutil.copytree(folder / "runs/first", folder / "old/first")
    dragoman("export", "runs/first", "--format", "huggingface", "--out", "Helsinki-NLP/opus-mt-en-de")
    shutil.copytree(folder / "Helsinki-NLP/opus-mt-en-de", folder / "opus-mt-en-de")
    dragoman("export", "runs/first", "--format", "argos", "--out", "translate-en_de-1_0.argosmodel")
    dragoman("augment", "--forward", "runs/there", "--src", "news.en", "--out", "made")


# --- pasting ----------------------------------------------------------------------------------------------------------


def left_out(command: str) -> str | None:
    """Return why a command is not pasted; None if it is."""
    if " --ray " in command and importlib.util.find_spec("ray") is None:
        return "needs dragoman[ray]; make test-ray"
    return next((why for start, why in LEFT_OUT.items() if command.startswith(start)), None)


def _remove_its_run(folder: Path, command: str) -> None:
    """Remove the run that a command makes, if it is there from the preparation."""
    made = re.search(r"dragoman (?:train|distill|import|augment|demo)\b(?!.*--resume).*--out (\S+)", command)
    if made is not None:
        shutil.rmtree(folder / made[1], ignore_errors=True)
    elif command.startswith("dragoman demo") and "--resume" not in command:
        tgt_lang = re.search(r"--to (\S+)", command)
        shutil.rmtree(folder / (f"runs/demo-{tgt_lang[1]}" if tgt_lang else "runs/demo"), ignore_errors=True)


def paste(page: str, commands: list[str], prepared: Path, bin_folder: Path) -> list[dict[str, Any]]:
    """Run the commands of a page in a copy of the folder; return what became of each."""
    environment = {**os.environ, "PATH": f"{bin_folder}{os.pathsep}{os.environ['PATH']}", "OMP_NUM_THREADS": "1"}
    environment |= {"KEY": "dummy", "HF_HUB_OFFLINE": "1"}
    results: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "here"
        shutil.copytree(prepared, folder)
        (folder / ".venv").mkdir()
        (folder / ".venv/bin").symlink_to(bin_folder)
        for command in commands:
            result: dict[str, Any] = {"page": page, "command": command}
            results.append(result)
            if (why := left_out(command)) is not None:
                result["left out"] = why
                continue
            _remove_its_run(folder, command)
            n_before = len(_process_numbers(folder))
            with (folder / "errors").open("w+b") as errors:
                try:
                    shell = ["bash", "-o", "pipefail", "-c", command]
                    done = subprocess.run(
                        shell, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                        stderr=errors, timeout=DEMO_TIMEOUT_S if command.startswith("dragoman demo") else TIMEOUT_S,
                    )  # fmt: skip
                    result["status"] = done.returncode
                except subprocess.TimeoutExpired:
                    result["status"] = 124
                    _end(_process_numbers(folder)[n_before:], folder, signal.SIGKILL)
                errors.seek(0)
                lines = errors.read().decode("utf-8", "replace").strip().split("\n")
            result["error"] = lines[-1][:300] if result["status"] else ""
        _end(_process_numbers(folder), folder, signal.SIGTERM)
    return results


def _process_numbers(folder: Path) -> list[int]:
    """Return the processes that the commands of a page have started, ended ones too."""
    pids = folder / "pids"
    return [int(number) for number in pids.read_text().split()] if pids.exists() else []


def _end(numbers: Sequence[int], folder: Path, sign: signal.Signals) -> None:
    """Send a signal to those processes that still run in ``folder``; the number of another may be used again."""
    for number in numbers:
        with contextlib.suppress(OSError):
            if Path(f"/proc/{number}/cwd").resolve(strict=True) == folder.resolve():
                os.kill(number, sign)


def main() -> None:
    """Paste all commands, or those of one page, and write the record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("state", nargs="?", default="", help="before, after, or the name of a page")
    parser.add_argument("pages", nargs="*", help="pages to paste again, whose results replace those of the record")
    parser.add_argument("--work", type=Path, help="folder to keep the prepared folder in")
    args = parser.parse_args()
    if shutil.which("unshare") and not os.environ.get("WITHOUT_NETWORK"):
        os.environ["WITHOUT_NETWORK"] = "1"
        inner = [
            "bash",
            "-c",
            'ip link set lo up; exec "$@"',
            "bash",
            sys.executable,
            "-m",
            "benchmarks.pasted_commands",
        ]
        os.execvp("unshare", ["unshare", "-rn", *inner, *sys.argv[1:]])
    work = args.work or Path(tempfile.mkdtemp())
    if not (work / "prepared").exists():
        prepare(work / "prepared")
    bin_folder = work / "bin"
    bin_folder.mkdir(exist_ok=True)
    path = bin_folder / "socket"
    path.unlink(missing_ok=True)
    (bin_folder / "dragoman").write_text(SHIM.format(python=sys.executable, short=SHORT, socket=path), encoding="utf-8")
    (bin_folder / "dragoman").chmod(0o755)
    server = os.fork()
    if server == 0:
        serve_forks(path)
    while not path.exists():
        time.sleep(0.1)
    try:
        _paste_all(args.state, args.pages, work)
    finally:
        os.kill(server, signal.SIGTERM)


def _paste_all(state: str, pages_again: list[str], work: Path) -> None:
    """Paste the commands of all pages, or of those with ``state`` in their name, or of some pages again."""
    listed = without_what_ran(pages())
    if state not in ("before", "after"):
        listed = {name: commands for name, commands in listed.items() if state in name}
    elif pages_again:
        listed = {name: commands for name, commands in listed.items() if name in pages_again}
    results = []
    for page, commands in listed.items():
        started = time.monotonic()
        results += paste(page, commands, work / "prepared", work / "bin")
        failed = [result for result in results if result["page"] == page and result.get("status")]
        print(f"{page}: {len(commands)} commands, {len(failed)} fail, {time.monotonic() - started:.0f} s", flush=True)
        for result in failed:
            print(f"   {result['command']}\n      {result['error']}", flush=True)
    if state in ("before", "after"):
        _record(state, results, pages_again)


def _record(state: str, results: list[dict[str, Any]], pages_again: list[str]) -> None:
    from benchmarks.record import RESULTS
    from benchmarks.scripts_record import record

    pasted = [result for result in results if "status" in result]
    failures = [result for result in pasted if result["status"] != 0]
    left_out = {result["command"]: result["left out"] for result in results if "left out" in result}
    n_pasted = len(pasted)
    if pages_again:  # their commands were counted before
        earlier = json.loads((RESULTS / "newcomer/pasted_commands.json").read_text(encoding="utf-8"))[state]
        failures = [result for result in earlier["failures"] if result["page"] not in pages_again] + failures
        n_pasted, left_out = earlier["pasted"], earlier["left out"]
    figures = {"pasted": n_pasted, "failed": len(failures), "failures": failures, "left out": left_out}
    inputs = {
        "rule": "all commands of README, docs in both languages and --help; pages that say the same as an earlier one "
        "are pasted once",
        "settings added to trainings": SHORT,
        "corpora": ENGLISH_GERMAN,
        "seed": "the place of a corpus in the list",
    }
    record("pasted_commands", state, figures, inputs, "newcomer")


if __name__ == "__main__":
    main()
