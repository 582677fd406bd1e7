"""``dragoman translate``."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any, BinaryIO

import typer


def translate(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A run folder, or its bundle.")],
    file: Annotated[Path | None, typer.Argument(metavar="[FILE]", help="Text to translate [default: stdin].")] = None,
    interactive: Annotated[bool, typer.Option("-i", "--interactive", help="A prompt.")] = False,
    beam_size: Annotated[int | None, typer.Option(help="1 is greedy [default: the run's].")] = None,
    length_penalty: Annotated[float | None, typer.Option(help="GNMT's alpha [default: the run's].")] = None,
    deterministic: Annotated[bool, typer.Option("--deterministic", help="Decode each sentence alone.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line, with the score.")] = False,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
) -> None:
    """Translate stdin or FILE to stdout, one line out for each line in."""
    from dragoman.data.corpus import open_corpus
    from dragoman.errors import ConfigError
    from dragoman.translator import Translation, Translator

    if interactive and file is not None:
        raise ConfigError(f"-i asks for text, and {file} was given too: leave out one of them")
    translator = Translator.load(run, device)
    settings: dict[str, Any] = dict(beam_size=beam_size, length_penalty=length_penalty, deterministic=deterministic)

    def show(translation: Translation) -> None:
        fields = {"text": translation.text, "score": translation.score, "parts": translation.n_parts}
        line = json.dumps(fields, ensure_ascii=False) if as_json else translation.text
        sys.stdout.buffer.write(line.encode() + b"\n")

    def warn(text: str) -> None:
        print(f"warning: {text}", file=sys.stderr, flush=True)

    if interactive:
        for text in _typed(f"{translator.config.data.src_lang or 'source'}> ", warn):
            for translation in translator.translate([text], warn=warn, **settings):
                show(translation)
            sys.stdout.flush()
        return
    stream = _stdin() if file is None else open_corpus(file)
    name = "stdin" if file is None else str(file)
    for translation in translator.translate_stream(stream, name, warn, flush=sys.stdout.flush, **settings):
        show(translation)
    sys.stdout.flush()


def _stdin() -> BinaryIO:
    """Standard input under a reader of its own: one that another thread still waits on would abort Python's exit."""
    return open(0, "rb", closefd=False)


def _typed(prompt: str, warn: Callable[[str], None]) -> Iterator[str]:
    """Lines typed at a prompt; with a pipe the prompt goes to stderr, so that stdout holds translations alone."""
    if sys.stdin.isatty() and sys.stdout.isatty():
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
