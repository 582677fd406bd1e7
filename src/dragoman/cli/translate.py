"""``dragoman translate``."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any, BinaryIO

import typer

from dragoman.cli.environment import importing


def translate(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A run folder, or its bundle.")],
    file: Annotated[Path | None, typer.Argument(metavar="[FILE]", help="Text to translate (default: stdin).")] = None,
    interactive: Annotated[bool, typer.Option("-i", "--interactive", help="A prompt.")] = False,
    beam_size: Annotated[int | None, typer.Option(help="1 is greedy (default: the run's).")] = None,
    length_penalty: Annotated[float | None, typer.Option(help="GNMT's alpha (default: the run's).")] = None,
    patience: Annotated[float | None, typer.Option(help="Stop with so many times the beam finished, as 1.")] = None,
    n_best: Annotated[int, typer.Option(help="So many translations a line, each as NUMBER, SCORE, TEXT.")] = 1,
    ensemble: Annotated[list[Path] | None, typer.Option(help="Another run to average with; may be repeated.")] = None,
    sample: Annotated[bool, typer.Option("--sample", help="Draw by chance instead of searching.")] = False,
    temperature: Annotated[float | None, typer.Option(help="Of --sample: below 1 is sharper.")] = None,
    top_k: Annotated[int | None, typer.Option(help="Of --sample: only from so many tokens.")] = None,
    top_p: Annotated[float | None, typer.Option(help="Of --sample: only from tokens of so much probability.")] = None,
    seed: Annotated[int | None, typer.Option(help="Of --sample.")] = None,
    prefix: Annotated[str, typer.Option(help="What each translation begins with.")] = "",
    include: Annotated[list[str] | None, typer.Option(help="A word that must be there; may be repeated.")] = None,
    exclude: Annotated[list[str] | None, typer.Option(help="A word that must not be there; may be repeated.")] = None,
    glossary: Annotated[Path | None, typer.Option(help="Terms: source TAB target, or a source to copy.")] = None,
    no_repeat_ngram: Annotated[int, typer.Option(help="No so many subwords in a row twice.")] = 0,
    alignments: Annotated[Path | None, typer.Option(help="Write word alignments to this file, as 0-0 1-2.")] = None,
    precision: Annotated[str, typer.Option(help="fp32, bf16 or int8.")] = "fp32",
    batch_tokens: Annotated[
        int | None, typer.Option(help="Of one batch: rows times longest source (default: the run's).")
    ] = None,
    workers: Annotated[int, typer.Option(help="So many batches at a time, a core each.")] = 1,
    engine: Annotated[str, typer.Option(help="torch, ctranslate2 or auto.")] = "torch",
    deterministic: Annotated[bool, typer.Option("--deterministic", help="Decode each sentence alone.")] = False,
    no_guard: Annotated[bool, typer.Option("--no-guard", help="Leave loops, copies, empty output as found.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line, with the score.")] = False,
    out: Annotated[Path | None, typer.Option(help="File to write; after a kill the same command goes on.")] = None,
    restart: Annotated[bool, typer.Option("--restart", help="Begin --out anew.")] = False,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
) -> None:
    """Translate stdin or FILE to stdout, one line out for each line in."""
    with importing():
        from dragoman.data.corpus import open_corpus
        from dragoman.decoding.alignment import pharaoh
        from dragoman.errors import ConfigError
        from dragoman.files import check_output, refuse_an_input
        from dragoman.translation.glossary import Glossary
        from dragoman.translation.translator import Translation, Translator

    if interactive and file is not None:
        raise ConfigError(f"-i asks for text, and {file} was given too: leave out one of them")
    if out is not None and file is None:
        raise ConfigError("--out can go on after a kill only with a FILE to read again: give one, or redirect stdout")
    if restart and out is None:
        raise ConfigError("--restart begins the file of --out anew: give --out too")
    if alignments is not None and out is not None:
        raise ConfigError("--alignments cannot go on after a kill as --out does: leave out one, or redirect stdout")
    sampling = _sampling(sample, {"temperature": temperature, "top_k": top_k, "top_p": top_p, "seed": seed})
    if alignments is not None:
        check_output(alignments, file, glossary)
    if out is not None:
        refuse_an_input(out, glossary)
    terms = None if glossary is None else Glossary.load(glossary)
    translator = Translator.load([run, *(ensemble or ())], device)
    settings: dict[str, Any] = dict(
        beam_size=beam_size, length_penalty=length_penalty, patience=patience, n_best=n_best, sampling=sampling,
        prefix=prefix, include=tuple(include or ()), exclude=tuple(exclude or ()), glossary=terms,
        no_repeat_ngram=no_repeat_ngram, alignments=alignments is not None, precision=precision, engine=engine,
        batch_tokens=batch_tokens, workers=workers, deterministic=deterministic, guard=not no_guard,
    )  # fmt: skip

    def render(number: int, translation: Translation) -> str:
        if as_json:
            return json.dumps(_fields(translation, n_best), ensure_ascii=False)
        if n_best == 1:
            return translation.text
        return "\n".join(f"{number}\t{one.score:.6f}\t{one.text}" for one in (translation, *translation.alternatives))

    def warn(text: str) -> None:
        print(f"warning: {text}", file=sys.stderr, flush=True)

    if out is not None and file is not None:
        form = "json" if as_json else "text"
        translator.translate_file(file, out, restart=restart, warn=warn, render=render, form=form, **settings)
        return
    translator.translate([], **settings)  # what is impossible is refused before a file is opened
    stream = None if interactive else _stdin() if file is None else open_corpus(file)
    with contextlib.nullcontext() if alignments is None else alignments.open("wb") as links:

        def show(number: int, translation: Translation) -> None:
            sys.stdout.buffer.write(render(number, translation).encode() + b"\n")
            if links is not None:
                links.write(pharaoh(translation.alignment or ()).encode() + b"\n")

        if stream is None:
            prompt = f"{translator.config.data.src_lang or 'source'}> "
            for number, text in enumerate(_typed(prompt, warn)):
                found = translator.translate(
                    [text], warn=warn, failed=warn, label=f"line {number + 1}".format, first_number=number, **settings
                )
                show(number + 1, found[0])
                sys.stdout.flush()
            return
        name = "stdin" if file is None else str(file)
        translations = translator.translate_stream(stream, name, warn, flush=sys.stdout.flush, **settings)
        for number, translation in enumerate(translations, 1):
            show(number, translation)
    sys.stdout.flush()


def _sampling(sample: bool, given: dict[str, Any]) -> Any:
    """The options of --sample, None without it."""
    from dragoman.decoding.sampling import Sampling
    from dragoman.errors import ConfigError

    options = {name: value for name, value in given.items() if value is not None}
    if options and not sample:
        named = ", ".join(f"--{name.replace('_', '-')}" for name in options)
        raise ConfigError(f"{named}: only for sampling; give --sample too")
    return Sampling(**options).checked() if sample else None


def _fields(translation: Any, n_best: int) -> dict[str, Any]:
    """A translation as JSON shows it: beside its text, score and parts only what was asked for, or must be said."""
    fields = {"text": translation.text, "score": translation.score, "parts": translation.n_parts}
    if n_best > 1:
        fields["alternatives"] = [{"text": one.text, "score": one.score} for one in translation.alternatives]
    if translation.alignment is not None:
        fields["alignment"] = translation.alignment
    if translation.confidence is not None:
        fields["confidence"] = translation.confidence
    if translation.notes:
        fields["notes"] = translation.notes
    return fields


def _stdin() -> BinaryIO:
    """Standard input under a reader of its own: one that another thread still waits on would abort Python's exit.

    Raises:
        ConfigError: Who started us closed it.
    """
    if sys.stdin is None:
        from dragoman.errors import ConfigError

        raise ConfigError("stdin is closed: name a FILE, or redirect something to it")
    return open(0, "rb", closefd=False)


def _typed(prompt: str, warn: Callable[[str], None]) -> Iterator[str]:
    """Lines typed at a prompt; with a pipe the prompt goes to stderr, so that stdout holds translations alone."""
    if sys.stdin is not None and sys.stdin.isatty() and sys.stdout.isatty():
        with contextlib.suppress(ImportError):
            import readline  # noqa: F401  (gives input() a history and line editing, where it is there)
        sys.stdin.reconfigure(errors="replace")  # type: ignore[union-attr]
        with contextlib.suppress(EOFError):
            while True:
                yield input(prompt)
    else:
        from dragoman.data.corpus import read_lines_leniently

        print(prompt, end="", file=sys.stderr, flush=True)
        for line in read_lines_leniently(_stdin(), "stdin"):
            if line.warning:
                warn(line.warning)
            yield line.text
            print(prompt, end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
