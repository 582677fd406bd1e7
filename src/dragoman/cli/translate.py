"""``dragoman translate``."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO, Literal

import typer

from dragoman.bulk.options import Machines
from dragoman.cli.completion import runs
from dragoman.cli.declared_options import with_options
from dragoman.cli.prompt import both_at_terminal, open_stdin, typed, warn
from dragoman.cli.signs import at_ctrl_c, loading
from dragoman.cli.tables import at_terminal
from dragoman.documents.options import FormatOptions
from dragoman.errors import ConfigError, DataError, DecodeError, as_command
from dragoman.files import STDIN, check_name, check_output, lies_in, refuse_an_input, refuse_twice
from dragoman.options import flags, option, option_group
from dragoman.progress import Ticker, clear, columns, has_live_line, say, wrapped
from dragoman.translation.note_report import NoteReport, WarningOptions, check_list
from dragoman.translation.options import TranslateOptions

if TYPE_CHECKING:
    from dragoman.data.sides import LanguageWatch
    from dragoman.translation.plan import Plan
    from dragoman.translation.quality import Quality
    from dragoman.translation.translator import Translation, Translator

MANY_LINES = 1000
"""Number of lines from which on a faster way is named."""

MOST_LISTED = 20
"""Largest number of untranslated segments that are listed."""


@option_group
class Output(FormatOptions):
    """Output of `translate`: files, and options of document formats."""

    alignments: Path | None = option(None, "Output", "Write word alignments to this file, in Pharaoh format (0-0 1-2).")
    as_json: bool = option(
        False, "Output", "Print one JSON object per line, with score, confidence and notes.", flag="--json"
    )
    out: Path | None = option(
        None, "Output", "Output file (default: stdout); after an interruption, the same command resumes."
    )
    column: tuple[str, ...] = option(
        (), "Output", "Column of a .csv, .tsv or (with --ray) .parquet to translate, by its heading; may be repeated."
    )
    read_as: Literal["lines"] | None = option(
        None, "Output", "Translate a FILE of any suffix line by line: --as lines.", flag="--as"
    )
    restart: bool = option(False, "Output", "Start the file of --out over instead of resuming it.")


@with_options(TranslateOptions, without=["alignments"])  # a file here, see Output
@with_options(Machines, into="machines")
@with_options(WarningOptions, into="warned")
@with_options(Output, into="output")
def translate(
    run: Annotated[Path, typer.Argument(autocompletion=runs, metavar="RUN", help="Run folder or bundle.")],
    options: TranslateOptions,
    machines: Machines,
    warned: WarningOptions,
    output: Output,
    file: Annotated[
        Path | None,
        typer.Argument(
            metavar="FILE", help="Text file, document or folder of documents to translate (default: stdin)."
        ),
    ] = None,
    interactive: Annotated[
        bool,
        typer.Option(
            "-i", "--interactive", help="Read sentences from an interactive prompt.", rich_help_panel="Output"
        ),
    ] = False,
    ensemble: Annotated[
        list[Path] | None,
        typer.Option(
            help="Another run to ensemble with (probabilities are averaged); may be repeated.", rich_help_panel="Search"
        ),
    ] = None,
) -> None:
    """``dragoman translate``; its help is in ``cli/commands.py``."""
    with loading():
        from dragoman.data.sides import LanguageWatch
        from dragoman.translation.keeping.glossary import glossary_file
        from dragoman.translation.translator import Translator

    members = [run, *(ensemble or ())]
    formats = FormatOptions(**output.of_group(FormatOptions)).changed()
    if machines.ray is not None:
        _check_ray(output, warned, formats, interactive)
        _folder(members, file, options, machines, output)
        return
    if machines.actors is not None:
        raise ConfigError("--actors needs a Ray cluster: give --ray too")
    inputs = (STDIN if file is None else file, glossary_file(options.glossary))
    if interactive and warned.warnings is not None:
        raise ConfigError("-i shows warnings at once: leave out --warnings")
    is_document = _check(run, file, options, output, interactive)
    _check_outputs(output, warned, inputs, is_document)
    _check_formats(file, output, formats, is_document)
    with loading(run):
        translator = Translator.load(members, machines.device)
        plan = translator.plan(dataclasses.replace(options, alignments=output.alignments is not None))
    _warn_of_languages(run, plan, file if file is not None and file.is_file() and not is_document else None, output.out)
    expected_by = f"{run} translates from"
    watch = LanguageWatch(str(file or "stdin"), plan.src_lang, expected_by, warn)
    check_list(warned, *inputs)
    report = NoteReport(warned, begins_list=True)
    if file is not None and output.out is not None:
        if is_document:
            terms = _document(translator, file, output, options, report)
        else:
            rendering = _Rendering(plan, output.as_json)
            terms = _into_file(translator, file, output, rendering, report)
    else:
        arriving = (
            typed(translator, plan, expected_by) if interactive else _streamed(translator, plan, file, report, watch)
        )
        terms = _to_stdout(arriving, plan, output, None if interactive else report)
    if not is_document and (report.n_lines or 0) >= MANY_LINES and (faster := translator.faster(plan)):
        say(f"--fast is faster here ({faster}); some translations differ then")
    if plan.glossary is not None:
        n_terms = len(plan.glossary)
        say(f"glossary: {n_terms:,} term{'s' * (n_terms != 1)} read, {len(terms):,} found in the text")


def _check(run: Path, file: Path | None, options: TranslateOptions, output: Output, interactive: bool) -> bool:
    """Refuse options that exclude each other; return True if ``file`` is a document or a folder of documents."""
    out, alignments = output.out, output.alignments
    if interactive and file is not None:
        raise ConfigError(f"-i reads from a prompt, but {file} was given too: leave out one of them")
    if file is not None and not file.exists():
        raise ConfigError(
            f"{file}: no such file; give the path of a text file. To translate a text: echo TEXT | "
            f"{as_command('dragoman', 'translate', run)}, or {as_command('dragoman', 'translate', run, '-i')}"
        )
    if output.read_as is not None and (file is None or file.is_dir()):
        raise ConfigError("--as lines reads a document as plain text: give such a FILE")
    is_document = file is not None and output.read_as is None and _is_document(file, out)
    if is_document and out is None:
        raise ConfigError(
            f"{file} is a document: give --out FILE for its translation; or --as lines to translate it line by line"
        )
    if is_document and (alignments is not None or output.as_json or output.restart or options.n_best > 1):
        raise ConfigError(
            "--json, --n-best, --alignments and --restart are for lines of text: leave them out for a document"
        )
    if out is not None and file is None:
        raise ConfigError("--out needs a FILE, which it can reread to resume: give one, or redirect stdout")
    if output.restart and out is None:
        raise ConfigError("--restart overwrites the file of --out: give --out too")
    if alignments is not None and out is not None:
        raise ConfigError("--alignments cannot be resumed, but --out can: leave out one of them, or redirect stdout")
    return is_document


def _check_ray(output: Output, warned: WarningOptions, formats: Mapping[str, Any], interactive: bool) -> None:
    """Refuse options that exclude a cluster."""
    if interactive or output.as_json or output.alignments is not None:
        raise ConfigError("--ray writes plain lines: leave out -i, --json and --alignments")
    if output.read_as is not None or warned != WarningOptions():
        raise ConfigError("--ray reads lines, and counts the notes on them: leave out --as, -v and --warnings")
    if formats:
        raise ConfigError(f"--ray writes plain lines: leave out {flags(*formats)}")


def _warn_of_languages(run: Path, plan: Plan, text: Path | None, out: Path | None) -> None:
    """Warn if the text to translate, or the name of a file to be made, seems to be of another language."""
    from dragoman.data.sides import Side, doubt_about_name
    from dragoman.translation.language_pairs import check_sides, name_from

    pair = (plan.src_lang, plan.tgt_lang)
    warnings = [] if text is None else check_sides(run, pair, name_from(pair, plan.options.from_lang), text)
    if out is not None and not out.exists():
        warnings += filter(None, [doubt_about_name(Side(out, plan.tgt_lang, f"{run} translates into"))])
    for warning in warnings:
        say(f"warning: {warning}")


def _check_outputs(output: Output, warned: WarningOptions, inputs: Sequence[Path | None], is_document: bool) -> None:
    """Refuse an output that is an input, lies in a folder that is read, is named twice, or cannot be as its name."""
    from dragoman.data.compression import compressor, refuse_compressed
    from dragoman.translation.resumable import written_for

    out, alignments, warnings = output.out, output.alignments, warned.warnings
    if alignments is not None:
        check_output(alignments, *inputs)
    if out is not None:
        refuse_an_input(out, *inputs[1:])  # the text itself is compared where it is read
        check_name(out)
    outs: Sequence[Path] = () if out is None else (out,)
    if out is not None and not is_document:
        compressor(out)
        if not out.is_dir():
            outs = written_for(out)
    refuse_twice(*outs, alignments, warnings)
    refuse_compressed(alignments, warnings)
    for folder in (path for path in (inputs[0], out) if path is not None and path.is_dir()):
        if warnings is not None and lies_in(warnings, folder.resolve()):
            raise ConfigError(f"{warnings}: lies in the folder {folder} of the documents; choose another place")


def _check_formats(file: Path | None, output: Output, formats: Mapping[str, Any], is_document: bool) -> None:
    """Refuse options of formats that have no effect on ``file``; those of a folder are checked when it is read."""
    if output.column and not is_document:
        raise ConfigError("--column names a column of a .csv or .tsv: give such a FILE")
    if formats and not is_document:
        raise ConfigError(f"{flags(*formats)}: only for documents, give such a FILE")
    if file is not None and is_document and not file.is_dir():
        from dragoman.documents.formats import check_options

        check_options([file.name], ["columns"] * bool(output.column) + list(formats))


def _to_stdout(
    translations: Iterator[Translation], plan: Plan, output: Output, report: NoteReport | None
) -> Collection[str]:
    """Print translations of a text, or of typed lines without a report; return the glossary's terms."""
    rendering, alignments, is_typed = _Rendering(plan, output.as_json), output.alignments, report is None
    number = 0
    with (
        contextlib.nullcontext() if is_typed else at_ctrl_c(lambda: f"after line {number:,}"),
        report or contextlib.nullcontext(),
        contextlib.ExitStack() as files,
    ):
        # What is refused at the first line is refused before the file of alignments is emptied.
        first = [] if alignments is None else list(islice(translations, 1))
        links = None if alignments is None else files.enter_context(alignments.open("wb"))
        for number, translation in enumerate(chain(first, translations), 1):
            clear()
            if is_typed and not output.as_json and not translation.text and both_at_terminal():
                say("(the translation is empty)")
            else:
                rendering.write(number, translation, links)
            if is_typed:
                sys.stdout.flush()
                if translation.quality is not None and not output.as_json:
                    say(f"({translation.quality})")
        sys.stdout.flush()
        if report is not None:
            report.n_lines = number
    if not is_typed:
        _say_quality(rendering.qualities)
    return rendering.terms


def _say_quality(qualities: Mapping[Quality, int]) -> None:
    """Print how many of the texts that were translated now are good, doubtful and poor."""
    from dragoman.translation.quality import in_words

    if line := in_words(qualities):
        say(line)


def _into_file(
    translator: Translator, file: Path, output: Output, rendering: _Rendering, report: NoteReport
) -> Collection[str]:
    """Translate a file into another, or resume that; return the terms of the glossary found in lines translated now."""
    from dragoman.translation.assemble import LineFormat
    from dragoman.translation.resumable import lines_done

    out, restart = output.out, output.restart
    assert out is not None

    def state() -> str:
        n_lines = lines_done(out)
        where = f"after line {n_lines:,} of {out}" if n_lines else f"before the first lines of {out} were written"
        return f"{where}; the same command resumes"

    with at_ctrl_c(state), report:
        report.n_lines = translator.translate_file(
            file,
            out,
            rendering.plan,
            restart=restart,
            events=events_of(report, file),
            form=LineFormat(rendering.form, rendering),
        )
    if has_live_line():
        say(f"{out}: {report.n_lines:,} lines")
    _say_quality(rendering.qualities)
    return rendering.terms


def _is_document(file: Path, out: Path | None) -> bool:
    """Return True if the suffix is a document's, or for a folder; plain text is translated line by line.

    Raises:
        ConfigError: The file is neither.
    """
    from dragoman.data.text_names import COMPRESSED, is_plain_text

    if file.is_dir():
        return out is not None
    if is_plain_text(file.name):
        return False
    from dragoman.documents.formats import format_of, not_supported

    if format_of(file.name) is not None:
        return True
    if file.suffix.lower() in COMPRESSED and format_of(file.stem) is not None:
        raise ConfigError(f"{file}: a document must be unpacked first; --as lines translates it line by line")
    raise ConfigError(f"{not_supported(str(file))}; --as lines translates it line by line")


def _document(
    translator: Translator, file: Path, output: Output, options: TranslateOptions, report: NoteReport
) -> Collection[str]:
    """Translate a document or a folder, and list the segments left; return the terms of the glossary found in it."""
    from dragoman.documents.translate import translate_document
    from dragoman.translation.notes import Events

    out, formats = output.out, FormatOptions(**output.of_group(FormatOptions)).changed()
    assert out is not None
    formats = {"columns": output.column, **formats}
    ticker = Ticker() if sys.stderr.isatty() else None
    report.unit = "segments"
    with at_ctrl_c(lambda: f"before {out} was written"), report:
        done = translate_document(
            translator, file, out, options, events=Events(warn=report.add, progress=ticker), **formats
        )
        report.n_lines = done.found
        clear()
    for segment in done.left[:MOST_LISTED]:
        warn(f"not translated ({segment.why}): {segment.text}")
    if len(done.left) > MOST_LISTED:
        warn(f"{len(done.left) - MOST_LISTED:,} more segments were not translated")
    for path, of_file in done.files.items():
        say(f"{out / path}: {of_file}")
    say(f"{out}: {done}")
    _say_quality(done.qualities)
    if n_lost := sum(note.kind == "memory" for note in done.notes):
        raise DecodeError(
            f"{out}: {n_lost:,} texts ran out of memory and are not translated; free some memory, lower "
            "--batch-tokens, or use a smaller --beam-size"
        )
    return done.terms


def _folder(runs: list[Path], src: Path | None, options: TranslateOptions, machines: Machines, output: Output) -> None:
    """Translate a folder of shards on a Ray cluster, or resume that."""
    from dragoman.bulk.shards import is_parquet, shard_names
    from dragoman.bulk.translate import translate_folder
    from dragoman.data.sides import doubt_about
    from dragoman.translation.language_pairs import check_names, name_from
    from dragoman.translation.notes import Events
    from dragoman.translation.translator import Translator

    out, columns = output.out, output.column
    if src is None or out is None:
        raise ConfigError("--ray translates a folder of shards into another: give FILE as a folder, and --out DIR")
    if len(columns) > 1:
        raise ConfigError(f"--ray translates one column of a .parquet file: give one --column, not {len(columns)}")
    with loading(runs[0]):
        plan = Translator.load(runs, "cpu").plan(to=options.to, from_lang=options.from_lang)
    langs, folder = (plan.src_lang, plan.tgt_lang), src.parent if src.is_file() else src
    texts = [folder / name for name in shard_names(src) if not is_parquet(name)]
    advice = name_from(langs, options.from_lang)
    sides = [side for text in texts for side in check_names(runs[0], langs, advice, text)]
    for side in sides:
        with contextlib.suppress(DataError):  # a damaged shard does not stop the others
            if warning := doubt_about(side):
                say(f"warning: {warning}")
    say(f"connecting to Ray ({machines.ray}) ...")
    with at_ctrl_c(lambda: f"with the finished shards in {out}; the same command resumes"):
        report = translate_folder(
            runs, src, out, options, machines=machines, column=next(iter(columns), None), restart=output.restart,
            events=Events(progress=Ticker()), failed=lambda shard: warn(shard.why),
        )  # fmt: skip
    say(f"{out}: {report}")
    if report.failed:
        raise DataError(
            f"{len(report.failed):,} of {report.shards:,} shards were not finished, see above; the same command tries "
            "them again"
        )


def _streamed(
    translator: Translator, plan: Plan, file: Path | None, report: NoteReport, watch: LanguageWatch
) -> Iterator[Translation]:
    """Return the translations of a file, which is opened at once, or of stdin as its lines come.

    Args:
        watch: Looks at the lines of what can be read only once; files were compared before.
    """
    from dragoman.data.corpus import open_corpus

    def translations(opened: Callable[[], AbstractContextManager[BinaryIO]]) -> Iterator[Translation]:
        with opened() as stream:
            yield from translator.translate_stream(
                stream, str(file or "stdin"), plan, events=events_of(report, file), flush=sys.stdout.flush,
                look=None if file is not None and file.is_file() else watch,
            )  # fmt: skip

    if file is None:
        # It waits for its first bytes, and stays open: a thread may wait for more when the program ends.
        return translations(lambda: contextlib.nullcontext(open_stdin()))
    stream = open_corpus(file)
    return translations(lambda: stream)


def events_of(report: NoteReport, file: Path | None = None) -> Any:
    """Return events that report warnings and, for a file at a terminal, progress."""
    from dragoman.translation.notes import Events

    if file is None or not sys.stderr.isatty():
        return Events(warn=report.add)
    ticker, n_lines = Ticker(), _n_lines(file)
    ticker(0, n_lines, "lines translated")

    def progress(done: int, read: int, what: str) -> None:
        if done != n_lines:
            ticker(done, n_lines, what)

    return Events(warn=report.add, progress=progress)


def _n_lines(file: Path) -> int | None:
    """Return the number of lines of a file; None if it can be read only once, such as a pipe."""
    from dragoman.data.corpus import open_corpus

    if not file.is_file():
        return None
    with open_corpus(file) as stream:
        n_lines, last = 0, b"\n"
        while block := stream.read(2**20):
            n_lines, last = n_lines + block.count(b"\n"), block[-1:]
    return n_lines + (last != b"\n")


@dataclasses.dataclass(frozen=True)
class _Rendering:
    """Output format of translations: plain text, n-best lists or JSON."""

    plan: Plan
    as_json: bool
    terms: set[str] = dataclasses.field(default_factory=set)  # of the glossary, found so far
    qualities: Counter[Quality] = dataclasses.field(default_factory=Counter)  # numbers of lines so far

    @property
    def form(self) -> str:
        return "json" if self.as_json else "text"

    def __call__(self, number: int, translation: Translation) -> str:
        n_best = self.plan.options.n_best
        self.terms.update(translation.terms)
        if translation.quality is not None:
            self.qualities[translation.quality] += 1
        if self.as_json:
            return json.dumps(_fields(translation, n_best), ensure_ascii=False)
        if n_best == 1:
            return translation.text
        return "\n".join(
            f"{number}\t{best.score:.6f}\t{best.text}" for best in (translation, *translation.alternatives)
        )

    def write(self, number: int, translation: Translation, links: BinaryIO | None) -> None:
        """Write a translation to stdout, and its alignment to ``links``."""
        from dragoman.decoding.words import pharaoh

        text = self(number, translation)
        if at_terminal() and not self.as_json:
            text = wrapped(text, columns(sys.stdout))
        sys.stdout.buffer.write(text.encode() + b"\n")
        if links is not None:
            links.write(pharaoh(translation.alignment or ()).encode() + b"\n")


def _fields(translation: Translation, n_best: int) -> dict[str, Any]:
    """Return the JSON fields of a translation: text, score and parts, then those that were requested or not empty."""
    fields: dict[str, Any] = {
        "text": translation.text, "score": translation.score, "parts": translation.n_parts
    }  # fmt: skip
    if n_best > 1:
        fields["alternatives"] = [{"text": other.text, "score": other.score} for other in translation.alternatives]
    if translation.alignment is not None:
        fields["alignment"] = translation.alignment
    if translation.confidence is not None:
        fields["confidence"] = translation.confidence
        fields["quality"] = translation.quality
    if translation.terms:
        fields["terms"] = translation.terms
    if translation.notes:
        fields["notes"] = [
            {"kind": note.kind, "text": note.text, **({"words": note.words} if note.words else {})}
            for note in translation.notes
        ]
    return fields
