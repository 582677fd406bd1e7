"""``dragoman score``."""

from __future__ import annotations

import contextlib
import json
import math
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO

import typer

from dragoman.cli.completion import runs
from dragoman.cli.declared_options import with_options
from dragoman.cli.environment import use_threads
from dragoman.cli.signs import at_ctrl_c, loading
from dragoman.errors import DecodeError
from dragoman.options import MachineOptions, option, option_group
from dragoman.progress import Ticker, clear, say
from dragoman.translation.note_report import NoteReport, WarningOptions, check_list
from dragoman.translation.options import TranslateOptions

if TYPE_CHECKING:
    from dragoman.translation.scoring import Scored

WINDOW = 2048
"""Number of lines scored together."""


@option_group
class ScoreOutput(WarningOptions):
    """Output of `score`."""

    alignments: Path | None = option(None, "Output", "Write word alignments to this file, in Pharaoh format (0-0 1-2).")
    as_json: bool = option(
        False, "Output", "Print one JSON object per line, with the log-probability of each token.", flag="--json"
    )


@with_options(
    TranslateOptions, "length_penalty", "length_penalty_form", "precision", "batch_tokens", "sentence_split", "to",
    "from_lang",
)  # fmt: skip
@with_options(MachineOptions, into="machine")
@with_options(ScoreOutput, into="output")
def score(
    run: Annotated[Path, typer.Argument(autocompletion=runs, metavar="RUN", help="Run folder or bundle.")],
    options: TranslateOptions,
    machine: MachineOptions,
    output: ScoreOutput,
    src: Annotated[Path, typer.Option(help="Source text.", rich_help_panel="Text")],
    ref: Annotated[
        Path, typer.Option(help="Translations to score, aligned with the source line by line.", rich_help_panel="Text")
    ],
    ensemble: Annotated[
        list[Path] | None, typer.Option(help="Another run to ensemble with; may be repeated.", rich_help_panel="Search")
    ] = None,
) -> None:
    """``dragoman score``; its help is in ``cli/commands.py``."""
    with loading():
        from dragoman.data.compression import refuse_compressed
        from dragoman.data.corpus import read_pairs
        from dragoman.files import check_output, refuse_twice
        from dragoman.translation.language_pairs import check_sides, name_from
        from dragoman.translation.translator import Translator

    use_threads(machine.threads)
    alignments = output.alignments
    if alignments is not None:
        check_output(alignments, src, ref)
    refuse_twice(alignments, output.warnings)
    refuse_compressed(alignments, output.warnings)
    pairs = list(read_pairs(src, ref))
    with loading(run):
        translator = Translator.load([run, *(ensemble or ())], machine.device)
    options = replace(options, alignments=alignments is not None)
    plan = translator.plan_scoring(options)  # refuses impossible options before the file of --alignments is opened
    langs = plan.reader.direction.src, plan.reader.direction.tgt
    for warning in check_sides(run, langs, name_from(langs, options.from_lang), src, ref):
        say(f"warning: {warning}")
    check_list(output, src, ref)
    ticker, report = Ticker(), NoteReport(output, begins_list=True)
    if not output.as_json and sys.stdout.isatty():
        print(HEADER)
    n_lines = n_tokens = n_lost = start = 0
    nats = 0.0
    with (
        contextlib.nullcontext() if alignments is None else alignments.open("wb") as links,
        at_ctrl_c(lambda: f"after line {start:,} of {len(pairs):,}"),
        report,
    ):
        for start in range(0, len(pairs), WINDOW):
            sources, targets = zip(*pairs[start : start + WINDOW], strict=True)
            scored = plan.score(sources, targets)
            for number, pair in enumerate(scored, start + 1):
                for note in pair.notes:
                    report.add(replace(note, where=f"{ref}:{number}"))
                _write(pair, number, output.as_json, links)
            not_empty = [pair for pair in scored if pair.n_tokens]
            n_lines, n_tokens = n_lines + len(not_empty), n_tokens + sum(pair.n_tokens for pair in not_empty)
            nats -= sum(pair.log_prob for pair in not_empty)
            n_lost += sum(note.kind == "memory" for pair in scored for note in pair.notes)
            ticker(min(start + WINDOW, len(pairs)), len(pairs), "lines scored")
        report.n_lines = len(pairs)
    perplexity = f"perplexity {math.exp(min(700, nats / n_tokens)):.4f}" if n_tokens else "nothing to score"
    say(f"{perplexity}; {n_lines:,} of {len(pairs):,} lines, {n_tokens:,} tokens")
    if n_lost:
        raise DecodeError(
            f"{ref}: {n_lost:,} lines ran out of memory and are not scored; free some memory, or lower --batch-tokens"
        )


def _write(pair: Scored, number: int, as_json: bool, links: BinaryIO | None) -> None:
    """Write the scores of pair ``number`` to stdout, and its alignment to ``links``."""
    from dragoman.decoding.words import pharaoh

    clear()
    if as_json:
        print(json.dumps(_fields(pair), ensure_ascii=False))
    else:
        print(_shown_row(pair, number) if sys.stdout.isatty() else _row(pair))
    if links is not None:
        links.write(pharaoh(pair.alignment or ()).encode() + b"\n")


def _per_token(pair: Scored) -> float:
    """Return the log-probability divided by the number of tokens; nan for a pair that is not scored."""
    return pair.log_prob / pair.n_tokens if pair.n_tokens else math.nan


def _row(pair: Scored) -> str:
    """Return the row of a pair for programs."""
    return f"{pair.log_prob:.6f}\t{_per_token(pair):.6f}\t{pair.score:.6f}"


HEADER = f"{'line':>7}{'log-probability':>17}{'per subword':>13}{'with length penalty':>21}"
"""Names of the columns of a terminal, in 58 cells."""


def _shown_row(pair: Scored, number: int) -> str:
    """Return the row of a pair for a terminal."""
    return f"{number:>7,}{pair.log_prob:>17.2f}{_per_token(pair):>13.3f}{pair.score:>21.2f}"


def _fields(pair: Scored) -> dict[str, Any]:
    """Return the JSON fields of a pair; scores of an empty pair are null, since JSON has no nan."""
    fields: dict[str, Any] = {
        "log_prob": pair.log_prob if pair.n_tokens else None,
        "per_token": _per_token(pair) if pair.n_tokens else None,
        "score": pair.score if pair.n_tokens else None,
        "tokens": list(zip(pair.tokens, pair.token_log_probs, strict=True)),
    }
    if pair.alignment is not None:
        fields["alignment"] = pair.alignment
    if pair.notes:
        fields["notes"] = [{"kind": note.kind, "text": note.text} for note in pair.notes]
    return fields
