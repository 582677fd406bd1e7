"""Mix-ups of languages, directions and files, handed to every command that reads text; and right inputs.

python -m benchmarks.mixups before|between|after DATA [BEGINNING OF A NAME...]    some calls again

DATA holds multi30k/ and tatoeba-en-zh/; the text in Hindi, Thai, Spanish, Portuguese, Finnish and Estonian is that of
Django's catalogues. Models are trained for two updates: what they translate does not matter here.
"""

from __future__ import annotations

import contextlib
import html
import io
import json
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.language_inputs import django_texts, english_texts, n_words
from benchmarks.record import RESULTS
from benchmarks.scripts_record import record

SEED, LINES = 42, 40
SMALL = [
    *("model.preset=tiny", "model.d_model=32", "model.d_ff=64", "model.n_encoder_layers=1", "model.n_decoder_layers=1"),
    *("train.max_steps=2", "train.validate_every=2", "train.save_every=2", "data.tokenizer.vocab_size=1500"),
]
PAIRS = {
    "cs-fr": ("cs", "fr"),
    "en-zh": ("en", "zh"),
    "en-hi": ("en", "hi"),
    "es-pt": ("es", "pt"),
    "fi-et": ("fi", "et"),
}
ELSEWHERE = {"cs": "de", "fr": "en", "en": "fr", "zh": "ja", "hi": "th", "es": "it", "pt": "es", "fi": "hu", "et": "fi"}
"""A language whose text is handed in for that of another."""


def text_of(data: Path, lang: str, n: int, seed: int = SEED) -> list[str]:
    """Return ``n`` lines of a language: lines of DATA where it has the language, else of Django's catalogues."""
    files = {
        **{code: data / f"multi30k/val.{code}" for code in ("cs", "fr", "de")}, "en": data / "tatoeba-en-zh/dev.en",
        "zh": data / "tatoeba-en-zh/dev.zh",
    }  # fmt: skip
    if lang in files:
        lines = files[lang].read_text(encoding="utf-8").split("\n")[:-1]
        start = random.Random(f"{seed} {lang if lang in ('cs', 'fr', 'de') else 'en-zh'}"[:4]).randrange(len(lines) - n)
        return lines[start : start + n]
    usable = usable_of(lang)
    random.Random(f"{seed} {lang}").shuffle(usable)
    return [usable[i % len(usable)] for i in range(n)]


def usable_of(lang: str) -> list[str]:
    """Return the texts of Django in a language that are sentences of three words or more."""
    texts = english_texts() if lang == "en" else django_texts(lang)
    return sorted(t for t in texts if n_words(t, lang) >= 3 and not set(t) & set("%{}<>\n|"))


@dataclass(frozen=True)
class Case:
    """One call, and the file whose mix-up it should name."""

    name: str
    arguments: Sequence[str]
    about: str
    stdin: str = ""
    """Name of the file that standard input is; "" for an empty one."""
    words: str = ""
    """Words that tell a line about a mix-up from one of the guard, where both name the same thing."""


class Done(NamedTuple):
    """A command that has ended."""

    returncode: int
    stdout: str
    stderr: str


class Bench:
    """A folder with text of every language, named and without telling names, and a run for each pair."""

    def __init__(self, data: Path, folder: Path) -> None:
        self.folder = folder
        for lang in {*ELSEWHERE, *ELSEWHERE.values()}:
            for stem, seed in (("train", 1), ("test", 2)):
                lines = text_of(data, lang, 4 * LINES if stem == "train" else LINES, seed)
                for name in (f"{stem}.{lang}", f"{stem}-{lang}.txt"):
                    (folder / name).write_text("".join(line + "\n" for line in lines), encoding="utf-8")
        for name, (src, tgt) in PAIRS.items():
            done = self.call("train", f"train.{src}", f"train.{tgt}", "--out", f"run-{name}", *self.small)
            if done.returncode:
                raise RuntimeError(f"run-{name} was not trained: {done.stderr[-500:]}")
        for lang in {*ELSEWHERE, *ELSEWHERE.values()}:
            write_documents(folder, lang, (folder / f"test.{lang}").read_text(encoding="utf-8").split("\n")[:12])

    @property
    def small(self) -> list[str]:
        return [word for setting in SMALL for word in ("--set", setting)]

    def call(self, *arguments: str, stdin: str = "") -> Done:
        """Run a command in this process, which need not load torch again, and return its status and output.

        Args:
            stdin: Name of the file that standard input is.
        """
        from dragoman.cli import run

        streams = [io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2)]
        with (
            contextlib.chdir(self.folder),
            standard_input(self.folder / stdin if stdin else Path("/dev/null")),
            contextlib.redirect_stdout(streams[0]),
            contextlib.redirect_stderr(streams[1]),
        ):
            status = run(arguments)
        out, err = (stream.buffer.getvalue().decode() for stream in streams)  # type: ignore[attr-defined]
        return Done(status, out, err)


@contextlib.contextmanager
def standard_input(path: Path) -> Iterator[None]:
    """Make a file the standard input of this process for a while."""
    before = os.dup(0)
    with path.open("rb") as file:
        os.dup2(file.fileno(), 0)
        try:
            yield
        finally:
            os.dup2(before, 0)
            os.close(before)


DOCUMENTS = ("srt", "md", "html", "po", "csv")
"""Suffixes of the documents of each language, ``letter-LANG.SUFFIX``."""


def write_documents(folder: Path, lang: str, lines: Sequence[str]) -> None:
    """Write some lines of a language as a document of each kind, and as a folder with one of them."""
    cues = [f"{i}\n00:00:{i:02},000 --> 00:00:{i:02},900\n{line}\n" for i, line in enumerate(lines, 1)]
    quoted = [json.dumps(line, ensure_ascii=False) for line in lines]
    paragraphs = "".join(f"<p>{html.escape(line)}</p>\n" for line in lines)
    rows = "".join(f'{i},"{line.replace(chr(34), chr(34) * 2)}"\n' for i, line in enumerate(lines, 1))
    texts = {
        "srt": "\n".join(cues),
        "md": "\n\n".join(lines) + "\n",
        "html": f"<html><body>{paragraphs}</body></html>",
        "po": 'msgid ""\nmsgstr "Content-Type: text/plain; charset=UTF-8\\n"\n'
        + "".join(f'\nmsgid {text}\nmsgstr ""\n' for text in dict.fromkeys(quoted)),
        "csv": f"id,text\n{rows}",
    }
    for suffix, text in texts.items():
        (folder / f"letter-{lang}.{suffix}").write_text(text, encoding="utf-8")
    (folder / f"letters-{lang}").mkdir()
    (folder / f"letters-{lang}/one.md").write_text(texts["md"], encoding="utf-8")


def document_call(run: str, lang: str, suffix: str) -> tuple[list[str], str]:
    """Return the words that translate a document, or a folder for the suffix "folder", and the name of the file."""
    file = f"letters-{lang}" if suffix == "folder" else f"letter-{lang}.{suffix}"
    more = ["--column", "text"] if suffix == "csv" else []
    out = "x" if suffix == "folder" else f"x.{suffix}"
    words = ["translate", run, file, "--out", out, "--beam-size", "1", *more]
    return words, f"{file}/one.md" if suffix == "folder" else file


def mixups() -> Iterator[Case]:
    """Yield the mix-ups: each kind in two pairs of languages in turn, one with telling file names, one without."""
    cases = list(mixups_of_languages())
    kinds = list(dict.fromkeys(kind_of(case) for case in cases))
    names = list(PAIRS)
    for case in cases:
        place = kinds.index(kind_of(case))
        if case.name.endswith((f"unnamed, {names[place % 5]}", f" named, {names[(place + 2) % 5]}")):
            yield case
    yield from mixups_of_files()
    yield from mixups_of_documents()


def mixups_of_documents() -> Iterator[Case]:
    """Yield documents and standard input in the target language and in another one, in each pair in turn."""
    names = list(PAIRS)
    for i, suffix in enumerate((*DOCUMENTS, "folder")):
        for what in ("target language", "another language"):
            name = names[(i + (what == "another language")) % 5]
            lang = PAIRS[name][1] if what == "target language" else ELSEWHERE[PAIRS[name][0]]
            words, file = document_call(f"run-{name}", lang, suffix)
            yield Case(f"translate a {suffix}: {what}, {name}", words, file, words="looks like")
    for name, (src, tgt) in PAIRS.items():
        for what, lang in (("target language", tgt), ("another language", ELSEWHERE[src])):
            words = ["translate", f"run-{name}", "--beam-size", "1"]
            yield Case(f"translate stdin: {what}, {name}", words, "stdin", f"test.{lang}", "looks like")
        yield Case(f"translate -i: target language, {name}", [*words, "-i"], "line ", f"test.{tgt}", "looks like")


def kind_of(case: Case) -> str:
    """Return the kind of a mix-up, whatever its names and languages are."""
    return case.name.rpartition(",")[0].rpartition(",")[0]


def mixups_of_languages() -> Iterator[Case]:
    """Yield every mix-up of two languages, in every pair."""
    for name, (src, tgt) in PAIRS.items():
        run = f"run-{name}"
        for kind, form in (("named", "{0}.{1}"), ("unnamed", "{0}-{1}.txt")):

            def file(stem: str, lang: str, form: str = form) -> str:
                return form.format(stem, lang)

            other = ELSEWHERE[src]
            for what, one, two in (("swapped", tgt, src), ("source of another language", other, tgt)):
                words = [file("train", one), file("train", two)]
                yield Case(
                    f"train --from: {what}, {kind}, {name}",
                    ["train", *words, "--from-run", run, "--out", "x"],
                    words[0],
                )
            for what, lang in (("target language", tgt), ("another language", other)):
                words = [run, file("test", lang)]
                yield Case(f"translate: {what}, {kind}, {name}", ["translate", *words, "--beam-size", "1"], words[1])
            for what, one, two in (("swapped", tgt, src), ("reference of another language", src, ELSEWHERE[tgt])):
                about = file("test", one if what == "swapped" else two)
                sides = file("test", one), file("test", two)
                pair = ["--src", sides[0], "--ref", sides[1], "--beam-size", "1"]
                yield Case(f"evaluate: {what}, {kind}, {name}", ["evaluate", run, *pair], about)
                yield Case(
                    f"score: {what}, {kind}, {name}", ["score", run, "--src", sides[0], "--ref", sides[1]], about
                )
            words = ["--src", file("test", tgt), "--out", "x", *("--minutes", "0.01")]
            yield Case(f"distill: target language, {kind}, {name}", ["distill", run, *words], file("test", tgt))
            for what, one, two in (("swapped", tgt, src), ("reference of another language", src, ELSEWHERE[tgt])):
                about = file("test", one if what == "swapped" else two)
                sides = file("test", one), file("test", two)
                pair = ["--src", sides[0], "--ref", sides[1]]
                valid = ["--valid-src", sides[0], "--valid-ref", sides[1]]
                out = ["--out", "x", "--minutes", "0.01"]
                yield Case(f"distill --ref: {what}, {kind}, {name}", ["distill", run, *pair, *out], about)
                words = ["distill", run, "--src", file("train", src), *valid, *out]
                yield Case(f"distill --valid: {what}, {kind}, {name}", words, about)
                words = ["export", run, "--format", "ctranslate2", "--out", "x", "--check", *pair[1:]]
                yield Case(f"export --check: {what}, {kind}, {name}", words, about)
                pair = ["--src", sides[0].replace("test", "train"), "--ref", sides[1].replace("test", "train")]
                words = ["calibrate", run, *pair]
                yield Case(f"calibrate: {what}, {kind}, {name}", words, about.replace("test", "train"))
            words = ["--forward", run, "--src", file("test", other), "--out", "x", "--beam-size", "1"]
            yield Case(f"augment: another language, {kind}, {name}", ["augment", *words], file("test", other))


def mixups_of_files() -> Iterator[Case]:
    """Yield the mix-ups of which the languages alone say nothing, or where a name lies."""
    out = ["--out", "x", *(word for setting in SMALL for word in ("--set", setting))]
    train = ["train", "train.cs", "train.fr", *out]
    yield Case("train: validation = training", [*train, "--valid", "train.cs", "--valid", "train.fr"], "train.cs")
    copies = ["--valid", "train-cs.txt", "--valid", "train-fr.txt"]
    yield Case("train: validation = copies of training", [*train, *copies], "train-cs.txt")
    swapped = ["--valid", "test-fr.txt", "--valid", "test-cs.txt"]
    yield Case("train: validation swapped", [*train, *swapped], "test-fr.txt")
    yield Case("train: both sides are one text", ["train", "train.cs", "train-cs.txt", *out], "train-cs.txt")
    yield Case("train: the name lies", ["train", "lie.cs", "train.fr", *out], "lie.cs")
    evaluate = ["evaluate", "run-cs-fr", "--beam-size", "1", "--src"]
    yield Case("evaluate: reference = source, one file", [*evaluate, "test.cs", "--ref", "test.cs"], "test.cs")
    yield Case("evaluate: reference = source, a copy", [*evaluate, "test.cs", "--ref", "test-cs.txt"], "test-cs.txt")
    yield Case("evaluate: references are the output", [*evaluate, "test.cs", "--ref", "output.txt"], "output.txt")
    yield Case("evaluate: a file against itself", ["evaluate", "test.fr", "--ref", "test-fr.txt"], "test-fr.txt")
    yield Case("score: target = source", ["score", "run-cs-fr", "--src", "test.cs", "--ref", "test.cs"], "test.cs")


def right_calls() -> Iterator[Case]:
    """Yield right calls of every command, which must say nothing about languages."""
    for place, (name, (src, tgt)) in enumerate(PAIRS.items()):
        run = f"run-{name}"
        for form in ("{0}.{1}", "{0}-{1}.txt"):
            one, two = form.format("test", src), form.format("test", tgt)
            train = form.format("train", src), form.format("train", tgt)
            out = ["--out", "x"]
            yield Case(
                f"train --from {name}", ["train", *train, "--from-run", run, *out, "--set", "train.max_steps=2"], one
            )
            yield Case(f"translate {name}", ["translate", run, one, "--beam-size", "1"], one)
            yield Case(f"evaluate {name}", ["evaluate", run, "--src", one, "--ref", two, "--beam-size", "1"], one)
            yield Case(f"score {name}", ["score", run, "--src", one, "--ref", two], one)
            if form.endswith("txt") and place < 2:
                words = ["distill", run, "--src", one, "--ref", two, "--valid-src", one, "--valid-ref", two]
                yield Case(f"distill {name}", [*words, *out, "--minutes", "0.01"], one)
                words = ["export", run, "--format", "ctranslate2", *out, "--check", one, "--ref", two]
                yield Case(f"export --check {name}", words, one)
                yield Case(f"calibrate {name}", ["calibrate", run, "--src", train[0], "--ref", train[1]], train[0])
        for suffix in (*DOCUMENTS, "folder")[place % 3 :: 3]:
            words, file = document_call(run, src, suffix)
            yield Case(f"translate a {suffix} {name}", words, file, words="looks like")
        words = ["translate", run, "--beam-size", "1"]
        yield Case(f"translate stdin {name}", words, "stdin", f"test.{src}", "looks like")
        yield Case(f"translate -i {name}", [*words, "-i"], "line", f"test.{src}", "looks like")


def outcome(bench: Bench, case: Case) -> str:
    """Return "refused", "warned" or "silent": whether a line about the file tells of a mix-up, and of only one."""
    out = bench.folder / "x"
    subprocess.run(["rm", "-rf", *map(str, [out, *bench.folder.glob("x.*")])], check=True)
    done = bench.call(*case.arguments, stdin=case.stdin)
    lines = [line for line in done.stderr.split("\n") if case.about in line and case.words in line]
    lines = [line for line in lines if is_about_mixups(line, case.about)]
    if done.returncode == 2 and done.stderr.strip().split("\n")[-1] in lines:
        return "refused"
    if done.returncode not in (0, 2) or (done.returncode == 2 and not lines):
        return f"failed: {done.stderr[-300:]}"
    return "warned" if len(lines) == 1 else "silent" if not lines else f"warned {len(lines)} times"


def is_chosen(case: Case) -> bool:
    """Return True for all cases, or for those whose name begins with a word behind DATA."""
    return len(sys.argv) < 4 or case.name.startswith(tuple(sys.argv[3:]))


def noted(bench: Bench, case: Case) -> str:
    """Return the outcome of a case, and print it."""
    seen = outcome(bench, case)
    print(f"{case.name}: {seen}", file=sys.stderr, flush=True)
    return seen


def is_about_mixups(line: str, about: str) -> bool:
    """Return True for an error or a warning that is about a whole file, and is not the guard's."""
    line = line.rpartition("> ")[2] if "> warning:" in line else line  # behind the prompt of -i
    return line.startswith(("error:", "warning:")) and f"{about}:" + "1" not in line and "short" not in line


def false_alarms(judge: Callable[[Sequence[str], str], str | None]) -> dict[str, Any]:
    """Return how often right text of each language of Django is taken for another language, by the number of lines."""
    from benchmarks.language_inputs import SENTENCE_LANGUAGES

    counts: dict[str, Any] = {}
    for size in (1, 2, 5, 20, 100):
        alarms, n, hits, n_wrong = [], 0, 0, 0
        for lang in sorted({*SENTENCE_LANGUAGES, "th", "nb", "vi", "id", "ms", "sq"}):
            texts = usable_of(lang)
            if len(texts) < max(20, size):
                continue
            for seed in range(10):
                lines = random.Random(f"{seed} {lang} {size}").sample(texts, size)
                verdict = judge(lines, lang)
                n += 1
                if verdict is not None:
                    alarms.append(f"{lang} taken for {verdict}: {lines[0][:60]}")
                expected = random.Random(f"{seed} {lang} other").choice(["en", "de", "ru", "zh", "fi", "hi", "pt"])
                if expected != lang:
                    n_wrong += 1
                    hits += judge(lines, expected) is not None
        counts[f"{size} lines"] = {
            "right texts": n, "false alarms": len(alarms), "of these": alarms[:12], "wrong texts": n_wrong,
            "noticed": hits,
        }  # fmt: skip
    return counts


def measure(data: Path) -> dict[str, Any]:
    """Return what became of every call."""
    with tempfile.TemporaryDirectory() as name:
        bench = Bench(data, Path(name))
        (bench.folder / "lie.cs").write_bytes((bench.folder / "train.de").read_bytes())
        out = bench.call("translate", "run-cs-fr", "test.cs", "--beam-size", "1").stdout
        (bench.folder / "output.txt").write_text(out, encoding="utf-8")
        wrong = {case.name: noted(bench, case) for case in mixups() if is_chosen(case)}
        right = {case.name: noted(bench, case) for case in right_calls() if is_chosen(case)}
    return counted(wrong, right)


def counted(wrong: Mapping[str, str], right: Mapping[str, str]) -> dict[str, Any]:
    """Return the outcomes of all calls with their numbers."""
    return {
        "mix-ups": len(wrong), "silent": sum(not said.startswith(("refused", "warned")) for said in wrong.values()),
        "right calls": len(right), "false alarms": sum(said != "silent" for said in right.values()),
        "by call": dict(wrong), "right": {name: said for name, said in right.items() if said != "silent"},
        "right by call": dict(right),
    }  # fmt: skip


def renewed(earlier: Mapping[str, Any], figures: Mapping[str, Any]) -> dict[str, Any]:
    """Return the figures of all calls, after some of them were made again."""
    both = [{**earlier.get(name, {}), **figures[name]} for name in ("by call", "right by call")]
    return {**counted(*both), "by number of lines": earlier.get("by number of lines", {})}


def main() -> None:
    """Measure, and write the record."""
    when, data = sys.argv[1], Path(sys.argv[2])
    figures = measure(data)
    if len(sys.argv) > 3:
        path = RESULTS / "newcomer/mixups.json"
        figures = renewed(json.loads(path.read_text(encoding="utf-8")).get(when, {}), figures)
    else:
        from dragoman.languages.mixups import written_in

        figures["by number of lines"] = false_alarms(written_in)
    inputs = {"rule": "each pair x each command x each kind of mix-up x names that tell or do not", "seed": SEED}
    record("mixups", when, figures, inputs, folder="newcomer", packages=("torch", "django", "py3langid"))
    print(json.dumps({key: value for key, value in figures.items() if isinstance(value, int)}))


if __name__ == "__main__":
    main()
