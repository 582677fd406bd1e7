"""``dragoman evaluate``."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dragoman.cli.completion import runs
from dragoman.cli.declared_options import with_options
from dragoman.cli.signs import at_ctrl_c, loading
from dragoman.errors import ConfigError
from dragoman.evaluation.options import ScoreOptions
from dragoman.options import option, option_group
from dragoman.progress import say
from dragoman.translation.options import TranslateOptions

if TYPE_CHECKING:
    from dragoman.evaluation.evaluate import Compared, Evaluation
    from dragoman.evaluation.significance import Comparison
    from dragoman.evaluation.stress import Stressed


@option_group
class TestSet(ScoreOptions):
    """What is scored, by what, and where the scores go."""

    ref: tuple[Path, ...] = option(
        (), "Text", "References, aligned with the source line by line; may be repeated. Gold trees for a parser."
    )
    src: Path | None = option(None, "Text", "Source side of the test set; required to evaluate a run.")
    stress: bool = option(
        False, "Scores", "Also evaluate robustness on perturbed sources: capitals, typing errors, long lines, ..."
    )
    segment_scores: tuple[Path, Path] | None = option(
        None,
        "Scores",
        "Compare the two by any metric's scores of their sentences, one number a line, higher is better.",
        metavar="FILE FILE",
    )
    out: Path | None = option(None, "Output", "Also write the translations to this file.")
    as_json: bool = option(False, "Output", "Print the scores as one JSON object.", flag="--json")


@with_options(
    TranslateOptions, "beam_size", "length_penalty", "length_penalty_form", "patience", "guard", "engine", "precision",
    "batch_tokens", "workers", "fast", "to", "from_lang",
)  # fmt: skip
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
    test: TestSet,
) -> None:
    """``dragoman evaluate``; its help is in ``cli/commands.py``."""
    with loading():
        import dragoman.evaluation.evaluate  # noqa: F401  (which takes long)
        from dragoman.files import check_output

    names, out = [str(system) for system in systems], test.out
    if test.segment_scores is not None:
        if len(systems) != 2 or test.ref or test.src is not None:
            raise ConfigError("--segment-scores takes two names and two files of numbers, and no --src and --ref")
        from dragoman.evaluation.evaluate import compare_segment_scores

        _print_comparison(compare_segment_scores(*test.segment_scores), names, test.as_json)
        return
    if not test.ref:
        raise ConfigError("Missing option '--ref': name the references (see dragoman evaluate --help)")
    if len(systems) > 2:
        raise ConfigError(f"{len(systems)} systems: compare two at a time")
    if (len(systems) == 2 or test.stress) and out is not None:
        raise ConfigError("--out is for the translations of one run; leave it out here")
    if out is not None:
        check_output(out, test.src, *test.ref, *systems)
    with at_ctrl_c(lambda: "before the scores were there: nothing is kept, and the same command begins again"):
        _evaluate(systems, options, test)


def _evaluate(systems: Sequence[Path], options: TranslateOptions, test: TestSet) -> None:
    """One run or two, plainly or under stress."""
    from dragoman.evaluation import evaluate as api

    how: dict[str, Any] = dict(src=test.src, options=options, device=test.device)
    if test.stress:
        if len(systems) == 2 or test.old_style or test.metrics or test.src is None or len(test.ref) > 1:
            raise ConfigError("--stress takes one run, with --src and one --ref, and no --metric and --old-style")
        _print_stress(api.stress(systems[0], ref=test.ref[0], **how), test.as_json)
        return
    how |= dict(ref=test.ref, metrics=test.metrics, old_style=test.old_style)
    if len(systems) == 2:
        compared = api.compare(*systems, **how)
        _print_compared(compared, [str(system) for system in systems], test.as_json)
    else:
        found = api.evaluate(systems[0], **how)
        _print_evaluation(found, test.as_json)
        if test.out is not None:
            text = "".join(translation.text + "\n" for translation in found.translations)
            test.out.write_text(text, encoding="utf-8", newline="\n")


def _print_evaluation(found: Evaluation, as_json: bool) -> None:
    lines = len(found.translations)
    if as_json:
        _print_json({"lines": lines, "seconds": found.seconds, "scores": _mappings(found.scores)})
        return
    for score in found.scores:
        print(score)
    if found.seconds:
        say(f"{lines:,} lines in {found.seconds:.1f} s")


def _print_compared(found: Compared, names: Sequence[str], as_json: bool) -> None:
    both = list(zip(names, (found.a, found.b), strict=True))
    if as_json:
        systems = [{"name": name, "seconds": one.seconds, "scores": _mappings(one.scores)} for name, one in both]
        comparisons = [{**one._asdict(), "verdict": one.verdict()} for one in found.comparisons]
        _print_json({"lines": len(found.a.translations), "systems": systems, "comparisons": comparisons})
        return
    for letter, (name, one) in zip("AB", both, strict=True):
        print(f"{letter}: {name}")
        for score in one.scores:
            print(f"   {score}")
    print()
    for comparison in found.comparisons:
        print(comparison)
    print()
    for comparison in found.comparisons:
        print(comparison.verdict())


def _print_comparison(found: Comparison, names: Sequence[str], as_json: bool) -> None:
    if as_json:
        _print_json({"systems": names, "comparisons": [{**found._asdict(), "verdict": found.verdict(*names)}]})
    else:
        print(f"{found}\n{found.verdict(*names)}")


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
