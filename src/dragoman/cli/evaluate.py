"""``dragoman evaluate``."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dragoman.cli.completion import runs
from dragoman.cli.declared_options import with_options
from dragoman.cli.signs import at_ctrl_c, loading
from dragoman.cli.tables import WIDE, at_terminal, broken_after, print_line, print_table
from dragoman.errors import ConfigError, as_command
from dragoman.evaluation.options import ScoreOptions
from dragoman.options import DeviceOptions, option, option_group
from dragoman.progress import columns, say
from dragoman.translation.note_report import WarningOptions
from dragoman.translation.options import TranslateOptions

if TYPE_CHECKING:
    from dragoman.evaluation.evaluate import Compared, Evaluation
    from dragoman.evaluation.metrics import Score
    from dragoman.evaluation.significance import Comparison
    from dragoman.evaluation.stress import Stressed


@option_group
class TestSet(ScoreOptions):
    """Test set of `evaluate`, its scores, and their output."""

    ref: tuple[Path, ...] = option(
        (), "Text", "References, aligned with the source line by line; may be repeated. For a parser: gold trees."
    )
    src: Path | None = option(None, "Text", "Source side of the test set; required to evaluate a run.")
    stress: bool = option(
        False, "Scores", "Also evaluate robustness on perturbed sources: capitals, typos, long lines, ..."
    )
    segment_scores: tuple[Path, Path] | None = option(
        None,
        "Scores",
        "Compare two systems by sentence scores of any metric: one number per line, higher is better.",
        metavar="FILE FILE",
    )
    out: Path | None = option(None, "Output", "Also write the translations to this file.")
    as_json: bool = option(False, "Output", "Print the scores as one JSON object.", flag="--json")


@with_options(
    TranslateOptions, "beam_size", "length_penalty", "length_penalty_form", "patience", "guard", "engine", "precision",
    "batch_tokens", "threads", "fast", "to", "from_lang",
)  # fmt: skip
@with_options(WarningOptions, into="warned")
@with_options(TestSet, into="test")
def evaluate(
    systems: Annotated[
        list[Path],
        typer.Argument(
            autocompletion=runs,
            metavar="RUN",
            help="Run folder, bundle, or text file of translations; give two to compare them.",
        ),
    ],
    options: TranslateOptions,
    warned: WarningOptions,
    test: TestSet,
) -> None:
    """``dragoman evaluate``; its help is in ``cli/commands.py``."""
    with loading():
        import dragoman.evaluation.evaluate  # noqa: F401  (takes seconds)
        from dragoman.data.compression import refuse_compressed
        from dragoman.files import check_output, refuse_twice

    names, out = [str(system) for system in systems], test.out
    if test.segment_scores is not None:
        if len(systems) != 2 or test.ref or test.src is not None:
            raise ConfigError("--segment-scores needs two names and two files of scores: leave out --src and --ref")
        if test.metrics or test.old_style or test.stress or out is not None or warned != WarningOptions():
            raise ConfigError(
                "--segment-scores compares numbers: leave out --metric, --old-style, --stress, --out, -v and --warnings"
            )
        from dragoman.evaluation.evaluate import compare_segment_scores

        options.refuse_others((), "scores of sentences")
        if test.device != DeviceOptions().device:
            raise ConfigError("--segment-scores compares numbers: leave out --device")
        _print_comparison(compare_segment_scores(*test.segment_scores), names, test.as_json)
        return
    if not test.ref:
        if len(systems) == 3 and test.src is None:
            command = as_command("dragoman", "evaluate", systems[0], "--src", systems[1], "--ref", systems[2])
            raise ConfigError(f"the two sides of the test set need their options: {command}")
        raise ConfigError("Missing option '--ref': name the references (see dragoman evaluate --help)")
    if len(systems) > 2:
        raise ConfigError(f"evaluate takes one or two systems, got {len(systems)}")
    if (len(systems) == 2 or test.stress) and out is not None:
        raise ConfigError("--out is for the translations of one run: leave it out with two systems and with --stress")
    if out is not None:
        check_output(out, test.src, *test.ref, *systems)
    refuse_twice(out, warned.warnings)
    refuse_compressed(warned.warnings)
    with at_ctrl_c(
        lambda: "before the scores were computed: nothing is saved; the same command starts from the beginning"
    ):
        _evaluate(systems, options, warned, test)


def _evaluate(systems: Sequence[Path], options: TranslateOptions, warned: WarningOptions, test: TestSet) -> None:
    """Evaluate one run, stress it, or compare two."""
    from dragoman.data.compression import compressor
    from dragoman.evaluation import evaluate as api
    from dragoman.files import write_output

    compressed = compressor(test.out or "")  # refuses now what is not installed
    settings: dict[str, Any] = dict(src=test.src, options=options, device=test.device)
    if test.stress:
        if len(systems) == 2 or test.old_style or test.metrics or test.src is None or len(test.ref) > 1:
            raise ConfigError("--stress needs one run, --src and one --ref: leave out --metric and --old-style")
        if warned != WarningOptions():
            raise ConfigError("--stress lists no warnings: leave out -v and --warnings")
        _print_stress(api.stress(systems[0], ref=test.ref[0], **settings), test.as_json)
        return
    settings |= dict(
        ref=test.ref, metrics=test.metrics, old_style=test.old_style, verbose=warned.verbose, warnings=warned.warnings
    )
    if len(systems) == 2:
        compared = api.compare(*systems, **settings)
        _print_compared(compared, [str(system) for system in systems], test.as_json)
    else:
        evaluation = api.evaluate(systems[0], **settings)
        _print_evaluation(evaluation, test.as_json)
        if test.out is not None:
            text = "".join(translation.text + "\n" for translation in evaluation.translations)
            write_output(test.out, compressed(text.encode()))


def _print_evaluation(evaluation: Evaluation, as_json: bool) -> None:
    lines = len(evaluation.translations)
    if as_json:
        _print_json({"lines": lines, "seconds": evaluation.seconds, "scores": _mappings(evaluation.scores)})
        return
    if at_terminal():
        _show_scores(evaluation.scores)
    else:
        for score in evaluation.scores:
            print(score)
    if evaluation.seconds:
        say(f"{lines:,} lines in {evaluation.seconds:.1f} s")


def _show_scores(scores: Sequence[Score]) -> None:
    """Print scores as a table; what their signatures share stands below it if they do not fit into their lines."""
    rows = [(score.name, f"{score.value:.2f}", score.interval()) for score in scores]
    names, room = ["metric", "score", "95% interval"], columns(sys.stdout)
    if room < WIDE:
        names[2], rows = "95%", [(name, value, interval.replace(" to ", "-")) for name, value, interval in rows]
    gap = 2 if room >= WIDE else 1
    texts, shared = [score.signature for score in scores], ""
    left = room - sum(max(map(len, column)) + gap for column in zip(names, *rows, strict=True)) - (gap == 1)
    if max(map(len, texts)) > left:
        texts, shared = _short_signatures(texts)
    signatures = ["\n".join(broken_after(text, "|", left)) for text in texts]
    cells = [(*row, signature) for row, signature in zip(rows, signatures, strict=True)]
    print_table([*names, "signature"], cells, right=["score"], fixed=[names[2]])
    if shared:
        print_line("\n".join(broken_after(f"all: {shared}", "|", room)))


_SHORT = {"case": "c", "eff": "e", "smooth": "s", "space": "s", "norm": "nr", "punct": "pn", "asian": "as"}
"""sacreBLEU's short names of the settings in its signatures (``--short``)."""


def _short_signatures(signatures: Sequence[str]) -> tuple[list[str], str]:
    """Return what each signature has alone, with sacreBLEU's short names, and what all of them share."""
    parts = [signature.split("|") for signature in signatures]
    shared = [part for part in parts[0] if all(part in other for other in parts)] if len(parts) > 1 else []
    own = [[part for part in every if part not in shared] for every in parts]
    pairs = [[part.partition(":") for part in every] for every in own]
    return ["|".join(f"{_SHORT.get(name, name)}{sep}{setting}" for name, sep, setting in every) for every in pairs], (
        "|".join(shared)
    )


def _print_compared(compared: Compared, names: Sequence[str], as_json: bool) -> None:
    a, b, comparisons = compared.a, compared.b, compared.comparisons
    both = list(zip(names, (a, b), strict=True))
    if as_json:
        systems = [{"name": name, "seconds": own.seconds, "scores": _mappings(own.scores)} for name, own in both]
        verdicts = [{**comparison._asdict(), "verdict": comparison.verdict()} for comparison in comparisons]
        _print_json({"lines": len(a.translations), "systems": systems, "comparisons": verdicts})
        return
    if at_terminal():
        _show_names(names)
        _show_comparisons(comparisons)
        for score in a.scores:
            print_line("\n".join(broken_after(f"{score.name}: {score.signature}", "|", columns(sys.stdout))))
        return
    for letter, (name, own) in zip("AB", both, strict=True):
        print(f"{letter}: {name}")
        for score in own.scores:
            print(f"   {score}")
    for rows in (comparisons, [comparison.verdict() for comparison in comparisons]):
        print()
        for row in rows:
            print(row)


def _show_names(names: Sequence[str]) -> None:
    """Print which system is A, and which B."""
    for letter, name in zip("AB", names, strict=True):
        print_line(f"{letter}: {name}")


def _show_comparisons(comparisons: Sequence[Comparison]) -> None:
    """Print comparisons as a table, and a verdict in words for each."""
    rows = [
        (
            *(comparison.metric, *(f"{score:.{comparison.digits}f}" for score in (comparison.a, comparison.b))),
            f"{comparison.difference:+.{comparison.digits}f}",
            f"{comparison.low:+.{comparison.digits}f} to {comparison.high:+.{comparison.digits}f}",
            f"{comparison.p_randomisation:.4f}",
        )
        for comparison in comparisons
    ]
    names = ["metric", "A", "B", "B - A", "95% interval", "p"]
    print_table(names, rows, right=["A", "B", "B - A", "p"], fixed=["95% interval"])
    for comparison in comparisons:
        print_line(comparison.verdict())


def _print_comparison(comparison: Comparison, names: Sequence[str], as_json: bool) -> None:
    verdict = comparison.verdict(*names)
    if as_json:
        _print_json({"systems": names, "comparisons": [{**comparison._asdict(), "verdict": verdict}]})
    elif at_terminal():
        _show_names(names)
        _show_comparisons([comparison])
    else:
        print(f"{comparison}\n{verdict}")


def _print_stress(results: Sequence[Stressed], as_json: bool) -> None:
    from dragoman.evaluation.stress import table

    if as_json:
        _print_json({"variants": _mappings(results)})
    else:
        print("\n".join(table(results)))


def _mappings(rows: Sequence[Any]) -> list[dict[str, Any]]:
    return [row._asdict() for row in rows]


def _print_json(value: Any) -> None:
    print(json.dumps(value, ensure_ascii=False, indent=2))
