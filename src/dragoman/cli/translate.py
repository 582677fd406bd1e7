"""``dragoman translate``."""

from __future__ import annotations

import contextlib
import json
import sys
from pathlib import Path
from typing import Annotated, Any

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
    from dragoman.translator import Translation, Translator

    translator = Translator.load(run, device)
    settings: dict[str, Any] = {"beam_size": beam_size, "length_penalty": length_penalty, "deterministic": deterministic}

    def show(translation: Translation) -> None:
        fields = {"text": translation.text, "score": translation.score, "parts": translation.n_parts}
        line = json.dumps(fields, ensure_ascii=False) if as_json else translation.text
        sys.stdout.buffer.write(line.encode() + b"\n")

    def warn(text: str) -> None:
        print(f"warning: {text}", file=sys.stderr, flush=True)

    if interactive:
        prompt = f"{translator.config.data.src_lang or 'source'}> "
        while (text := _ask(prompt)) is not None:
            for translation in translator.translate([text], warn=warn, **settings):
                show(translation)
            sys.stdout.flush()
        return
    stream = sys.stdin.buffer if file is None else open_corpus(file)
    name = "stdin" if file is None else str(file)
    for translation in translator.translate_stream(stream, name, warn, flush=sys.stdout.flush, **settings):
        show(translation)
    sys.stdout.flush()


def _ask(prompt: str) -> str | None:
    """One line typed at a prompt; None at its end."""
    with contextlib.suppress(ImportError):
        import readline  # noqa: F401  (gives input() a history and line editing, where it is there)
    try:
        return input(prompt)
    except EOFError:
        print(file=sys.stderr)
        return None
