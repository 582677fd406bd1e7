"""``dragoman evaluate``."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Annotated

import typer


def evaluate(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A run folder, or its bundle.")],
    src: Annotated[Path, typer.Option(help="Source side of the test set.")],
    ref: Annotated[Path, typer.Option(help="References, line by line.")],
    beam_size: Annotated[int | None, typer.Option(help="1 is greedy [default: the run's].")] = None,
    length_penalty: Annotated[float | None, typer.Option(help="GNMT's alpha [default: the run's].")] = None,
    old_style: Annotated[
        bool, typer.Option("--old-style", help="Also the lower-cased, Moses-tokenised BLEU of older papers.")
    ] = False,
    out: Annotated[Path | None, typer.Option(help="Also write the translations to this file.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
) -> None:
    """Translate a test set and score it: sacreBLEU with signature and interval, chrF, TER."""
    from dragoman import api
    from dragoman.errors import ConfigError

    if out is not None and not os.access(out if out.exists() else out.parent, os.W_OK):
        raise ConfigError(f"{out}: cannot be written; choose another --out")
    found = api.evaluate(
        run,
        src=src,
        ref=ref,
        beam_size=beam_size,
        length_penalty=length_penalty,
        old_style=old_style,
        device=device,
    )
    lines = len(found.translations)
    if as_json:
        scores = [score._asdict() for score in found.scores]
        print(json.dumps({"lines": lines, "seconds": found.seconds, "scores": scores}, ensure_ascii=False, indent=2))
    else:
        for score in found.scores:
            print(score)
        print(f"{lines:,} lines in {found.seconds:.1f} s", file=sys.stderr)
    if out is not None:
        text = "".join(translation.text + "\n" for translation in found.translations)
        out.write_text(text, encoding="utf-8", newline="\n")
