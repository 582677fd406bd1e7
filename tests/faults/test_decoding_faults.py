"""Rows X1 to X6: what translating never does, whatever comes in and whatever happens meanwhile."""

from __future__ import annotations

import io
import json
import random
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cluster_here
import pytest
import torch
from amounts import amounts
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from dragoman.bundle import load_bundle
from dragoman.data.corpus import BOM_BYTES
from dragoman.fast.step import FastTransformer
from dragoman.languages.casing import case_of
from dragoman.languages.scripts import is_blank
from dragoman.translation.keeping.protected import find
from dragoman.translation.second_reading import usual_case
from dragoman.translation.translator import Translator
from echo import Echo
from processes import start_code, start_script

Command = Callable[..., Any]
Figure = Callable[[str, str], None]

HERE = Path(__file__).parent
WORDS = ["the", "a", "dog", "cat", "man", "woman", "sees", "likes", "finds", "big", "small", "red", "today", "here"]


def sentences(count: int, seed: int, longest: int = 12) -> list[str]:
    chance = random.Random(seed)
    return [" ".join(chance.choices(WORDS, k=chance.randint(1, longest))) for _ in range(count)]


@pytest.fixture(scope="module")
def translator(tiny_run: Path) -> Translator:
    return Translator.load(tiny_run, "cpu")


# --- X1 ---------------------------------------------------------------------------------------------------------------


PIECES = [b"a dog", b"", b" ", b"the cat", b"\r", b"\x0b", b"\x0c", b"\x1c", b"\xc2\x85", b"\xe2\x80\xa8", b"\xff",
          b"\0", "日本".encode(), b"\t", b"\xf0\x9f\x90\x95", b"\n", b"\n", b"\r\n", b"x",
          b"Go. ", b"No!  "]  # fmt: skip
files = st.one_of(st.lists(st.sampled_from(PIECES), max_size=12).map(b"".join), st.binary(max_size=40))


def count_lines(content: bytes) -> int:
    return content.count(b"\n") + (not content.endswith(b"\n") and content not in (b"", BOM_BYTES))


def in_usual_case(line: str, model: Translator) -> str:
    """Return a line in Title Case as it is read a second time; any other as it is."""
    fixed = [(span.start, span.end) for span in find(line)]
    is_title = case_of(line, fixed) == "title"
    return usual_case(line, "title", model.plan().src_lang, model.src_tokenizer, fixed) if is_title else line


@amounts(200, 10_000)
def test_X1_as_many_lines_come_out_as_go_in_and_in_order_of_a_stub(n: int, tiny_run: Path, figure: Figure) -> None:
    real = load_bundle(tiny_run)
    stub = Echo(real.tgt_tokenizer.vocab_size)  # says its source
    echo = Translator(real._replace(weights=stub, manifest={}))  # type: ignore[arg-type]  # no usual length: not split
    tried = lines = 0

    @settings(max_examples=n, suppress_health_check=list(HealthCheck), database=None)
    @given(files)
    @example(b"AA\0AA\0Aa")  # Title Case
    @example(b"a\x01\x7f7 50\x101 QM6\x0f7")  # digits beside what nobody sees
    def check(content: bytes) -> None:
        nonlocal tried, lines
        asked = stub.n_rows
        found = list(echo.translate_stream(io.BytesIO(content), "x", beam_size=1, guard=False, truecase=False))
        assert len(found) == count_lines(content)
        texts = content.removeprefix(BOM_BYTES).decode("utf-8", "replace").replace("\0", "\ufffd").split("\n")
        ended = [text.removesuffix("\r") for text in texts[:-1]] + texts[-1:]
        wanted = ["" if is_blank(text) else text for text in ended][: len(found)]
        read = echo.src_tokenizer.normalised  # the stub says what the model reads
        assert [read(translation.text).text for translation in found] == [read(text).text for text in wanted]
        cased = list(echo.translate_stream(io.BytesIO(content), "x", beam_size=1, guard=False))
        for translation, text in zip(cased, wanted, strict=True):
            assert read(translation.text).text in (read(text).text, read(in_usual_case(text, echo)).text)
        if not any(wanted):
            assert stub.n_rows == asked, "the model was asked about blank lines"
        tried, lines = tried + 1, lines + len(found)

    check()
    assert tried >= n
    figure("X1", f"{tried:,} generated files with a stub model: {lines:,} lines in, as many out, in order, 0 lost; "
                 "blank lines never reach the model")  # fmt: skip


@amounts(20, 300)
def test_X1_as_many_lines_come_out_as_go_in_of_a_trained_model(n: int, translator: Translator, figure: Figure) -> None:
    chance = random.Random(1)
    lines = 0
    for _ in range(n):
        content = b"".join(chance.choice(PIECES) for _ in range(chance.randint(0, 16)))
        found = list(translator.translate_stream(io.BytesIO(content), "x", beam_size=2))
        assert len(found) == count_lines(content)
        assert not any("\n" in translation.text for translation in found)
        lines += len(found)
    figure("X1", f"{n:,} generated files with a trained model: {lines:,} lines in, as many out, 0 lost")


# --- X2 ---------------------------------------------------------------------------------------------------------------


@amounts(60, 500)
def test_X2_a_translation_does_not_depend_on_what_is_beside_it(n: int, translator: Translator, figure: Figure) -> None:
    texts = sentences(n - n // 5, seed=5)
    texts += [". ".join(texts[i : i + 2 + i % 3]) for i in range(0, 4 * (n // 5), 4)]  # lines of several among them
    alone = [translator.translate([text])[0] for text in texts]
    # A few stay whole, where the text before the full stop reads like an initial or an abbreviation.
    assert n // 5 >= sum(one.n_parts > 1 for one in alone) >= 0.9 * (n // 5)
    compared, worst = 0, 0.0
    for size in (1, 2, 7, 64):
        order = random.Random(size).sample(range(n), n)
        for start in range(0, n, size):
            batch = order[start : start + size]
            options: dict[str, Any] = dict(batch_tokens=10**9)  # all of it is one batch
            for i, found in zip(batch, translator.translate([texts[i] for i in batch], **options), strict=True):
                assert found.text == alone[i].text
                worst = max(worst, abs(found.score - alone[i].score))
                compared += 1
    assert worst <= 1e-5
    exactly = [translator.translate([text], deterministic=True)[0] for text in texts]
    order = random.Random(0).sample(range(n), n)
    again = translator.translate([texts[i] for i in order], deterministic=True)
    assert [again[order.index(i)] for i in range(n)] == exactly  # to the last bit
    figure("X2", f"{n} sentences x batches of 1, 2, 7, 64, shuffled: 0 of {compared:,} texts differ, scores by at most "
                 f"{worst:.1e}; deterministic: 0 differ, bitwise")  # fmt: skip


# --- X3 ---------------------------------------------------------------------------------------------------------------


@pytest.fixture
def text_file(tmp_path: Path) -> Callable[[int], Path]:
    """A function that writes a file of so many lines, some of them odd."""

    def write(n_lines: int) -> Path:
        lines = [text.encode() for text in sentences(n_lines, seed=9, longest=8)]
        for i in range(0, n_lines, 1500):
            lines[i : i + 3] = [b"gr\xfcn", b"", b"the dog sees " * 200]
        path = tmp_path / "text.en"
        path.write_bytes(b"".join(line + b"\n" for line in lines[:n_lines]))
        return path

    return write


@amounts(2, 20)
def test_X3_a_killed_translation_goes_on_to_the_same_bytes(
    n: int, command: Command, tiny_run: Path, text_file: Callable[[int], Path], tmp_path: Path, figure: Figure
) -> None:
    src = text_file(2048 * n)
    whole = command("translate", tiny_run, src, "--beam-size", "1", "--no-guard")
    assert whole.status == 0, whole.err
    process = start_script(HERE / "kill_translations.py", tiny_run, src, tmp_path / "out", n)
    out, err = (said.decode() for said in process.communicate(timeout=300))
    assert process.returncode == 0, err
    found = json.loads(out)
    assert found["kills"] == n
    assert found["too_early"] == 0
    assert found["taken_over"] > 0, "no kill came in the middle"
    for path in found["files"]:
        assert Path(path).read_bytes() == whole.out
    warnings = [line for line in whole.err.split("\n") if line]
    assert warnings
    last = (tmp_path / "out.said").read_text(encoding="utf-8")
    assert found["last_from"] == 2048 * n  # all is done but the renaming, so each warning is one of before
    assert set(warnings) <= set(last.split("\n")), "those of lines that were done before are repeated"
    (tmp_path / "out.said").unlink()
    assert sorted(path.name for path in tmp_path.iterdir()) == [*map(str, range(len(found["files"]))), "text.en"]
    figure("X3", f"{n} kills (kill -9, {found['at_points']} of them right before a flush or renaming) in a file of "
                 f"{2048 * n:,} lines: {len(found['files'])} finished files, each byte for byte the uninterrupted one; "
                 "the final name never appeared early")  # fmt: skip


def test_X3_an_unfinished_file_goes_on_only_with_what_it_was_begun_with(
    command: Command, tiny_run: Path, text_file: Callable[[int], Path], tmp_path: Path, figure: Figure
) -> None:
    src, out = text_file(2100), tmp_path / "out"
    args = ["translate", tiny_run, src, "--beam-size", "1", "--no-guard", "--out", out]
    whole = command(*args[:-2]).out
    src.write_bytes(src.read_bytes() + b"x" * 9)  # a disk that fills after the first window
    script = "import resource, sys; from dragoman.cli import main; import signal; signal.signal(25, signal.SIG_IGN); "
    script += f"resource.setrlimit(resource.RLIMIT_FSIZE, ({len(whole) - 200}, -1)); main()"
    full = start_code(script, *args)
    assert full.wait() == 2, full.errors
    assert b"out: cannot be written" in full.errors.split(b"\n")[-2]
    partial = Path(f"{out}.partial")
    begun = (partial.read_bytes(), Path(f"{out}.journal").read_bytes())
    refused = 0

    def refuses(*args: Any, says: str) -> None:
        nonlocal refused
        done = command(*args)
        assert done.status == 2
        assert says in done.error, done.error
        assert "--restart" in done.error
        assert not out.exists()
        refused += 1

    content = src.read_bytes()
    src.write_bytes(content[:-1] + b"y")
    refuses(*args, says="was started with another input")
    src.write_bytes(content)
    refuses(*args, "--json", says="was started with another form")
    refuses(*args[:4], "2", *args[5:], says="was started with another beam_size")
    manifest = json.loads((tiny_run / "bundle/manifest.json").read_text(encoding="utf-8"))
    facts, *records = begun[1].split(b"\n")
    for journal, says in (
        (
            b"\n".join([facts.replace(manifest["sha256"].encode(), b"0" * 64), *records]),
            "was started with another model",
        ),
        (b"\n".join([facts.replace(b'"gnmt"', b'"power"'), *records]), "was started with another length_penalty_form"),
        (b"\n".join([facts, b"{", b""]), "has a damaged journal"),
        (b"", "has no journal"),
    ):
        Path(f"{out}.journal").write_bytes(journal)
        refuses(*args, says=says)
    Path(f"{out}.journal").write_bytes(begun[1])
    partial.write_bytes(begun[0].replace(b"d", b"D", 1))
    refuses(*args, says="was changed or is damaged")
    partial.write_bytes(begun[0])
    with Path(f"{out}.journal").open("rb") as journal_file:
        import fcntl

        fcntl.flock(journal_file, fcntl.LOCK_EX)
        done = command(*args)
        assert "another process is writing this file" in done.error
    going_on = command(*args)
    assert going_on.status == 0, going_on.err
    assert "resuming after line 2,048" in going_on.err
    assert out.read_bytes() == command(*args[:-2]).out
    partial.write_bytes(begun[0])
    Path(f"{out}.journal").write_bytes(begun[1])
    smaller = command(*args, "--batch-tokens", "500")  # where the machine killed one that took too much memory
    assert smaller.status == 0, smaller.err
    assert "resuming after line 2,048" in smaller.err
    assert out.read_bytes() == command(*args[:-2]).out
    assert command(*args, "--restart").status == 0
    assert not partial.exists()
    figure("X3", f"{refused} of {refused} unfinished files with another input, setting, model or content are refused")


# --- X4 ---------------------------------------------------------------------------------------------------------------


@amounts(1, 4)
def test_X4_a_batch_without_memory_is_halved_down_to_one_sentence(
    n: int, command: Command, tiny_run: Path, tmp_path: Path, figure: Figure
) -> None:
    texts = sentences(90, seed=6)
    texts[40] = " ".join(random.Random(0).choices(WORDS, k=60))  # long, and yet of one part
    src = tmp_path / "text"
    src.write_text("\n".join(texts) + "\n", encoding="utf-8")
    wanted = command("translate", tiny_run, src, "--no-guard").out.split(b"\n")
    without = [*wanted[:40], b"", *wanted[41:]]
    most_refused = 0
    for limit, whole in ((16, False), (40, False), (200, True), (1000, True))[:n]:
        process = start_script(HERE / "short_memory.py", limit, "translate", tiny_run, src, "--no-guard")
        out, err = process.communicate()
        said = err.decode().split("\n")
        refused, smallest = map(int, said[-2].replace(",", "").split(" ")[1::2])
        most_refused = max(most_refused, refused)
        assert out.split(b"\n") == (wanted if whole else without), limit
        assert process.returncode == (0 if whole else 2), said
        assert refused > 0 or limit == 1000, "no batch was refused"
        assert smallest == 1 or limit > 16
        if not whole:
            assert said[0].startswith(f"warning: {src}:41: out of memory, even alone")
            assert said[-3].startswith("error: ")
            assert "1 lines ran out of memory and are blank" in said[-3]
            assert len(said) == 4
    figure("X4", f"memory for {'16, 40, 200 and 1,000' if n > 1 else 16} tokens at once: batches are halved, down to "
                 f"one sentence ({most_refused} refusals), order and text as with enough; the one line that finds none "
                 "alone is blank and named, exit status 2")  # fmt: skip


def test_X4_a_shard_with_a_line_without_memory_is_not_finished_and_tried_again(
    command: Command, tiny_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The status was 0, and the shard counted as finished. By the code of Ray's actors; see ``cluster_here.py``."""
    monkeypatch.setattr("dragoman.bulk.translate.connected", cluster_here.connected)
    monkeypatch.setattr("torch.set_num_threads", lambda n: None)
    real = FastTransformer.start

    def start(self: Any, src: Any) -> Any:
        if src.numel() > 40:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB")
        return real(self, src)

    shards, out = tmp_path / "shards", tmp_path / "out"
    shards.mkdir()
    (shards / "a.txt").write_text("the dog\n", encoding="utf-8")
    (shards / "b.txt").write_text(f"the dog\n{' '.join(WORDS * 4)}\na cat\n", encoding="utf-8")
    words = ("translate", tiny_run, shards, "--ray", "local", "--out", out, "--no-guard")
    with monkeypatch.context() as patched:
        patched.setattr(FastTransformer, "start", start)
        lost = command(*words)
    assert lost.status == 2
    assert f"warning: {shards}/b.txt: 1 lines ran out of memory and are blank; free some memory" in lost.err
    assert lost.error.endswith("1 of 2 shards were not finished, see above; the same command tries them again")
    again = command(*words, "--batch-tokens", "500")
    assert again.status == 0, again.err
    assert "4 lines in 2 of 2 shards; 1 were done before" in again.err
    assert (out / "b.txt").read_bytes() == command("translate", tiny_run, shards / "b.txt", "--no-guard").out


# --- X5 ---------------------------------------------------------------------------------------------------------------


@amounts(20_000, 100_000)
def test_X5_a_line_of_a_hundred_thousand_tokens_is_split_and_named(
    n: int, command: Command, translator: Translator, tiny_run: Path, tmp_path: Path, figure: Figure
) -> None:
    n_words = n // len(translator.src_tokenizer.encode(["the dog sees"])[0]) * 3
    long = " ".join(random.Random(2).choices(WORDS, k=n_words))
    while (n_tokens := len(translator.src_tokenizer.encode([long])[0])) < n:
        long += " the dog sees" * 300
    around = sentences(40, seed=4)
    around[10] = ". ".join(around[:3]) + "."
    (tmp_path / "text").write_text("\n".join([*around[:20], long, *around[20:]]) + "\n", encoding="utf-8")
    (tmp_path / "around").write_text("\n".join(around) + "\n", encoding="utf-8")
    done = command("translate", tiny_run, "text", "--beam-size", "1", "--no-guard", cwd=tmp_path)
    assert done.status == 0, done.err
    assert done.err.startswith(
        f"warning: text:21: {n_tokens:,} tokens are more than {translator.usual_tokens}; split into "
    )
    assert done.err.count("\n") == 1
    lines = done.out.split(b"\n")
    assert lines[:20] + lines[21:] == command(
        "translate", tiny_run, tmp_path / "around", "--beam-size", "1", "--no-guard"
    ).out.split(b"\n")
    assert len(lines[20].split()) > 500
    figure("X5", f"a line of {n_tokens:,} tokens is split, its parts are translated, a warning names the line; "
                 "40 of 40 neighbours unchanged")  # fmt: skip


# --- X6 ---------------------------------------------------------------------------------------------------------------


@pytest.mark.faults
@pytest.mark.parametrize("n", [3])
def test_X6_a_full_disk_or_a_closed_pipe_is_an_error_and_no_traceback(
    n: int, tiny_run: Path, text_file: Callable[[int], Path], figure: Figure
) -> None:
    src = text_file(6000)
    arguments = ["translate", str(tiny_run), str(src), "--beam-size", "1", "--no-guard"]
    dragoman = shlex.join([sys.executable, "-m", "dragoman", *arguments])
    for _ in range(n):
        for script, status in (
            (f"{dragoman} > /dev/full", 2),
            (f"{dragoman} --out /dev/full", 2),
            (f"set -o pipefail; {dragoman} | head -1 > /dev/null", 1),
            (f"{dragoman} >&-", 2),
        ):
            done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=100)
            assert done.returncode == status, (script, done)
            assert "Traceback" not in done.stderr
            assert done.stderr.count("error:") == (status == 2), done.stderr
    figure("X6", f"/dev/full as stdout and as --out, a closed stdout, head -1: {4 * n} of {4 * n} end with a status "
                 "that is not 0, one line and no traceback")  # fmt: skip


FULL_STDERR = """
import os, sys
os.dup2(os.open("/dev/full", os.O_WRONLY), 2)
sys.stderr = open(2, "w", closefd=False)
from dragoman.cli import main
main()
"""


@pytest.mark.parametrize("apart", [False, pytest.param(True, marks=pytest.mark.faults)])
@pytest.mark.parametrize(("text", "status", "lines"), [(b"a dog\n\xff cat\n" * 300, 0, 600), (None, 2, 0)])
def test_X6_a_warning_that_cannot_be_written_ends_nothing(
    text: bytes | None, status: int, lines: int, apart: bool, tiny_run: Path, tmp_path: Path, figure: Figure
) -> None:
    src, out = tmp_path / "src", tmp_path / "out"
    if text is not None:
        src.write_bytes(text)
    arguments = ["translate", tiny_run, src, "--beam-size", "1", "--no-guard", "--out", out]
    if apart:
        command = shlex.join([sys.executable, "-m", "dragoman", *map(str, arguments)])
        ended = subprocess.run(["bash", "-c", f"{command} 2> /dev/full"]).returncode
    else:
        ended = start_code(FULL_STDERR, *arguments).wait(300)
    assert ended == status
    assert lines == (out.read_bytes().count(b"\n") if out.exists() else 0)
    figure("X6", f"stderr is /dev/full: exit code {status}, {lines} of {lines} lines")
