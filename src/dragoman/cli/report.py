"""``dragoman report``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dragoman.cli import completion
from dragoman.cli.declared_options import if_default, with_options
from dragoman.cli.environment import use_threads
from dragoman.cli.signs import at_ctrl_c, loading
from dragoman.errors import ConfigError, DataError
from dragoman.options import MachineOptions, option, option_group
from dragoman.progress import say

if TYPE_CHECKING:
    from dragoman.history.translations import Outputs


@option_group
class TestText(MachineOptions):
    """Test set of `report`, and translations of it."""

    ref: Path | None = option(None, "Text", "References of a test set: also compare translations, line by line.")
    src: Path | None = option(None, "Text", "With --ref: its source side, which each run translates.")
    to: str | None = option(None, "Text", "With --ref: target language, for runs of several and for --outputs.")
    outputs: tuple[str, ...] = option(
        (), "Text", "With --ref: text file of translations to compare instead; may be repeated.", metavar="PATH"
    )


def _refuse_other_page(out: Path) -> None:
    from dragoman.history.report import refuse_other_report

    refuse_other_report(out)


@with_options(TestText, into="test")
def report(
    test: TestText,
    runs: Annotated[
        list[Path],
        typer.Argument(
            autocompletion=completion.runs, metavar="RUN...", help="Run folders; several are laid over each other."
        ),
    ],
    out: Annotated[
        Path,
        typer.Option(
            help="Page to write; its CSV files get the same name.",
            rich_help_panel="Output",
            callback=if_default(_refuse_other_page),
        ),
    ] = Path("report.html"),
) -> None:
    """``dragoman report``; its help is in ``cli/commands.py``."""
    with loading():
        from dragoman.files import check_output
        from dragoman.history.report import files_beside, read_runs, refuse_other_tables, write_report

    use_threads(test.threads)
    if out.suffix.lower() not in (".html", ".htm"):
        raise ConfigError(f"--out must end in .html, got {out}")
    if test.ref is None and (test.src is not None or test.outputs):
        raise ConfigError("--src and --outputs need the references: give --ref too")
    if test.to is not None and test.ref is None:
        raise ConfigError("--to is the language of the translations: give --ref and --src too, or --ref and --outputs")
    if test.ref is not None and test.src is None and not test.outputs:
        raise ConfigError("--ref needs something to compare: give --src, or translations with --outputs")
    if (test.device != TestText().device or test.threads is not None) and (test.ref is None or test.outputs):
        raise ConfigError(
            "--device and --threads are for runs that translate: give --ref and --src without --outputs, or leave them "
            "out"
        )
    inputs = [test.ref, test.src, *map(Path, test.outputs)]
    for path in (out, *files_beside(out, test.ref)):
        check_output(path, *inputs)
    refuse_other_tables(out)
    records = read_runs(runs)  # refuses what cannot be read before anything is translated
    outputs = None
    if test.ref is not None:
        with at_ctrl_c(lambda: "before the page was written"):
            outputs = _outputs(runs, test, {record.config.data.tgt_lang for record in records})
    for path in write_report(runs, out, outputs):
        print(path)


def _outputs(runs: list[Path], test: TestText, tgt_langs: set[str | None]) -> Outputs:
    """Return the translations of the test set by each run, or those of files, compared.

    Args:
        tgt_langs: Target languages of the runs.
    """
    with loading():
        from dragoman.data.corpus import read_lines
        from dragoman.data.sides import Side, doubt, refuse_by_name
        from dragoman.evaluation.evaluate import evaluate
        from dragoman.evaluation.writing import writing_of
        from dragoman.history.translations import compare_outputs
        from dragoman.languages.codes import language_of, variety
        from dragoman.translation.language_pairs import RENAME, check_names
        from dragoman.translation.translator import Translator

    assert test.ref is not None
    refs = list(read_lines(test.ref))
    srcs = [] if test.src is None else list(read_lines(test.src))
    lang = test.to or language_of(test.ref)
    if test.outputs:
        outputs = [(name, list(read_lines(name))) for name in test.outputs]
        of_runs = next(iter(tgt_langs)) if len(tgt_langs) == 1 else None
        expected_by = "--to says" if test.to else "the target language is"
        sides = [Side(path, test.to or of_runs, expected_by) for path in (test.ref, *map(Path, test.outputs))]
        refuse_by_name(sides[:1], RENAME if test.to else lambda lang: f"add --to {lang} if it is meant, or {RENAME}")
        if test.to is None:
            refuse_by_name(sides[1:], f"add --to {of_runs} if the name misleads")
        for side, lines in zip(sides, [refs, *(lines for _, lines in outputs)], strict=True):
            if warning := doubt(side.path, lines, side.lang, side.expected_by):
                say(f"warning: {warning}")
        lang = lang or of_runs or next(filter(None, map(language_of, map(Path, test.outputs))), None)
        if note := writing_of(lang, refs).note:
            say(f"note: {note}")
    else:
        outputs = []
        translators = [Translator.load(run, test.device) for run in runs]
        plans = {str(run): one.plan(to=test.to) for run, one in zip(runs, translators, strict=True)}
        langs = {run: plan.tgt_lang for run, plan in plans.items()}
        if len({variety(own) for own in langs.values() if own}) > 1:
            into = ", ".join(f"{run} into {own}" for run, own in langs.items())
            raise ConfigError(f"the runs translate into several languages ({into}): report those of one language")
        assert test.src is not None
        for name, plan in plans.items():
            check_names(name, (plan.src_lang, plan.tgt_lang), RENAME, test.src, test.ref)
        lang = next(filter(None, langs.values()), lang)
        for run, translator in zip(runs, translators, strict=True):
            if len(runs) > 1:
                say(f"{run}:")
            done = evaluate(translator, src=test.src, ref=test.ref, to=test.to)
            outputs.append((str(run), [translation.text for translation in done.translations]))
    for name, lines in [*outputs, *([(str(test.src), srcs)] if srcs else [])]:
        if len(lines) != len(refs):
            raise DataError(f"{test.ref} has {len(refs):,} lines but {name} has {len(lines):,}: they must be parallel")
    return compare_outputs(outputs, refs, srcs, lang)
