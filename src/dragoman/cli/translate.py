"""``dragoman translate``."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO, Literal

import typer

from dragoman.bulk.options import Machines
from dragoman.cli.completion import runs
from dragoman.cli.declared_options import with_options
from dragoman.cli.signs import at_ctrl_c, loading
from dragoman.documents.options import FormatOptions
from dragoman.errors import ConfigError, DataError
from dragoman.options import flags, option, option_group
from dragoman.progress import Ticker, clear, has_live_line, say, show
from dragoman.translation.note_report import NoteReport, WarningOptions, begin_list
from dragoman.translation.options import TranslateOptions

if TYPE_CHECKING:
    from dragoman.translation.notes import Note
    from dragoman.translation.plan import Plan
    from dragoman.translation.quality import Quality
    from dragoman.translation.translator import Translation, Translator

QUIT = (":q", "quit", "exit", ":quit", ":exit")
"""Lines that end the prompt of ``-i``."""
HELP = (":h", "help", "?", ":help")
"""Lines that ask for help at the prompt of ``-i``; a space before such a line translates it instead."""
PROMPT_HELP = f"""Each line is translated when you press Enter.
  Up and Down     earlier lines, to change and translate again
  Ctrl-C          leaves the line that you are typing, or stops its translation
  {QUIT[0]}, quit, exit  or Ctrl-D end the prompt
  {HELP[0]}, help, ?     this list
A space before one of these words translates it. Options such as --n-best 5 are given when the prompt is started."""

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
    restart: bool = option(False, "Output", "Overwrite the file of --out instead of resuming it.")


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
        from dragoman.translation.translator import Translator

    members = [run, *(ensemble or ())]
    formats = FormatOptions(**output.of_group(FormatOptions)).changed()
    if machines.ray is not None:
        if interactive or output.as_json or output.alignments is not None:
            raise ConfigError("--ray writes plain lines: leave out -i, --json and --alignments")
        if formats:
            raise ConfigError(f"--ray writes plain lines: leave out {flags(*formats)}")
        _folder(members, file, options, machines, output)
        return
    if machines.actors is not None:
        raise ConfigError("--actors needs a Ray cluster: give --ray too")
    is_document = _check(run, file, options, output, interactive)
    _check_formats(file, output, formats, is_document)
    with loading(run):
        translator = Translator.load(members, machines.device)
        plan = translator.plan(dataclasses.replace(options, alignments=output.alignments is not None))
    if file is not None and file.is_file() and not is_document:
        from dragoman.translation.language_pairs import check_sides

        for warning in check_sides(run, (plan.src_lang, plan.tgt_lang), options.from_lang, file):
            say(f"warning: {warning}")
    begin_list(warned, file, output.out, output.alignments)
    report = NoteReport(warned)
    if file is not None and output.out is not None:
        if is_document:
            terms = _document(translator, file, output, options, report)
        else:
            rendering = _Rendering(plan, output.as_json)
            terms = _into_file(translator, file, output, rendering, report)
    else:
        terms = _to_stdout(translator, plan, file, output, None if interactive else report)
    if plan.glossary is not None:
        say(f"glossary: {len(plan.glossary):,} terms read, {len(terms):,} found in the text")


def _check(run: Path, file: Path | None, options: TranslateOptions, output: Output, interactive: bool) -> bool:
    """Refuse options that exclude each other; return True if ``file`` is a document or a folder of documents."""
    from dragoman.files import check_output, refuse_an_input
    from dragoman.translation.keeping.glossary import glossary_file

    glossary = glossary_file(options.glossary)
    out, alignments = output.out, output.alignments
    if interactive and file is not None:
        raise ConfigError(f"-i reads from a prompt, but {file} was given too: leave out one of them")
    if file is not None and not file.exists():
        raise ConfigError(
            f"{file}: no such file; give the path of a text file. To translate a text: echo TEXT | dragoman translate "
            f"{run}, or dragoman translate {run} -i"
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
    if alignments is not None:
        check_output(alignments, file, glossary)
    if out is not None:
        refuse_an_input(out, glossary)
    return is_document


def _check_formats(file: Path | None, output: Output, formats: Mapping[str, Any], is_document: bool) -> None:
    """Refuse options of formats that have no effect on ``file``; those of a folder are checked when it is read."""
    from dragoman.documents.formats import check_options

    if output.column and not is_document:
        raise ConfigError("--column names a column of a .csv or .tsv: give such a FILE")
    if formats and not is_document:
        raise ConfigError(f"{flags(*formats)}: only for documents, give such a FILE")
    if file is not None and is_document and not file.is_dir():
        check_options([file.name], ["columns"] * bool(output.column) + list(formats))


def _to_stdout(
    translator: Translator, plan: Plan, file: Path | None, output: Output, report: NoteReport | None
) -> Collection[str]:
    """Print translations of a file or of stdin, or of typed lines without a report; return the glossary's terms."""
    rendering, alignments, is_typed = _Rendering(plan, output.as_json), output.alignments, report is None
    translations = _typed(translator, plan) if report is None else _streamed(translator, plan, file, report)
    number = 0
    with (
        contextlib.nullcontext() if alignments is None else alignments.open("wb") as links,
        contextlib.nullcontext() if is_typed else at_ctrl_c(lambda: f"after line {number:,}"),
        report or contextlib.nullcontext(),
    ):
        for number, translation in enumerate(translations, 1):
            clear()
            if is_typed and not output.as_json and not translation.text and _at_terminal():
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
    _say_quality(rendering, is_typed)
    return rendering.terms


def _say_quality(rendering: _Rendering, is_typed: bool = False) -> None:
    """Print how many of the lines that were translated now are good, doubtful and poor."""
    from dragoman.translation.quality import in_words

    if not is_typed and (line := in_words(rendering.qualities)):
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
    _say_quality(rendering)
    return rendering.terms


def _is_document(file: Path, out: Path | None) -> bool:
    """Return True if the suffix is a document's, or for a folder; plain text is translated line by line.

    Raises:
        ConfigError: The file is neither.
    """
    from dragoman.data.text_names import COMPRESSED, is_plain_text
    from dragoman.documents import plain
    from dragoman.documents.formats import format_of, not_supported

    if file.is_dir():
        return out is not None
    chosen = format_of(file.name)
    if chosen is not None:
        return chosen is not plain
    if is_plain_text(file.name):
        return False
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
        _warn(f"not translated ({segment.why}): {segment.text}")
    if len(done.left) > MOST_LISTED:
        _warn(f"{len(done.left) - MOST_LISTED:,} more segments were not translated")
    for path, of_file in done.files.items():
        say(f"{out / path}: {of_file}")
    say(f"{out}: {done}")
    return done.terms


def _folder(runs: list[Path], src: Path | None, options: TranslateOptions, machines: Machines, output: Output) -> None:
    """Translate a folder of shards on a Ray cluster, or resume that."""
    from dragoman.bulk.translate import translate_folder
    from dragoman.translation.notes import Events

    out, columns = output.out, output.column
    if src is None or out is None:
        raise ConfigError("--ray translates a folder of shards into another: give FILE as a folder, and --out DIR")
    if len(columns) > 1:
        raise ConfigError(f"--ray translates one column of a .parquet file: give one --column, not {len(columns)}")
    say(f"connecting to Ray ({machines.ray}) ...")
    with at_ctrl_c(lambda: f"with the finished shards in {out}; the same command resumes"):
        report = translate_folder(
            runs, src, out, options, machines=machines, column=next(iter(columns), None), restart=output.restart,
            events=Events(progress=Ticker()), failed=lambda shard: _warn(shard.why),
        )  # fmt: skip
    say(f"{out}: {report}")
    if report.failed:
        raise DataError(
            f"{len(report.failed):,} of {report.shards:,} shards were not translated, see above; the same command "
            "tries them again"
        )


def _streamed(translator: Translator, plan: Plan, file: Path | None, report: NoteReport) -> Iterator[Translation]:
    """Return the translations of a file, or of stdin as its lines come; the file is opened at once."""
    from dragoman.data.corpus import open_corpus

    stream, name = (_stdin(), "stdin") if file is None else (open_corpus(file), str(file))
    translations = translator.translate_stream(
        stream, name, plan, events=events_of(report, file), flush=sys.stdout.flush
    )
    return translations if file is None else _and_close(stream, translations)


def _and_close(stream: BinaryIO, translations: Iterator[Translation]) -> Iterator[Translation]:
    with stream:
        yield from translations


def _typed(translator: Translator, plan: Plan) -> Iterator[Translation]:
    """Yield the translation of each typed line."""
    from dragoman.translation.notes import Events

    prompt = f"{plan.src_lang or 'source'}> "
    for number, text in enumerate(_lines_typed(prompt), 1):
        of_line = Events(warn=_warn, failed=_warn, label=_named(f"line {number}"))
        try:
            translation = translator.translate_planned([text], plan, of_line, number - 1)[0]
        except KeyboardInterrupt:
            if not _at_terminal():
                raise
            show("")  # over the echo of Ctrl-C
            say("stopped before it was translated")
            continue
        yield translation


def _named(name: str) -> Callable[[int], str]:
    """Return a function that gives every text the same name."""
    return lambda _: name


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


def _warn(note: Note | str) -> None:
    say(f"warning: {note}")


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
        from dragoman.decoding.alignment import pharaoh

        sys.stdout.buffer.write(self(number, translation).encode() + b"\n")
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
        fields["notes"] = [{"kind": note.kind, "text": note.text} for note in translation.notes]
    return fields


def _stdin() -> BinaryIO:
    """Open standard input again, with a reader of its own.

    Raises:
        ConfigError: The caller closed stdin.
    """
    # A thread may still wait for input when the program ends. If it waited on ``sys.stdin``, Python's exit would abort.
    if sys.stdin is None:
        raise ConfigError("stdin is closed: give a FILE, or redirect input to stdin")
    return open(0, "rb", closefd=False)


def _at_terminal() -> bool:
    """Return True if stdin and stdout are both a terminal."""
    return sys.stdin is not None and sys.stdin.isatty() and sys.stdout.isatty()


def _lines_typed(prompt: str) -> Iterator[str]:
    """Yield lines typed at a prompt; with a pipe the prompt goes to stderr, so that stdout has translations only."""
    if _at_terminal():
        with contextlib.suppress(ImportError):
            import readline  # noqa: F401  (gives input() history and line editing)
        sys.stdin.reconfigure(errors="replace")  # type: ignore[union-attr]
        say(f"Type a sentence and Enter; {QUIT[0]} or Ctrl-D ends, {HELP[0]} helps.")
        while True:
            try:
                text = input(prompt)
            except EOFError:
                break
            except KeyboardInterrupt:
                print(file=sys.stderr)  # the line that was typed so far stays above
                continue
            if text.rstrip() in QUIT:
                return
            if text.rstrip() in HELP:
                say(PROMPT_HELP)
            else:
                yield text
    else:
        from dragoman.data.corpus import read_lines_leniently

        print(prompt, end="", file=sys.stderr, flush=True)
        for line in read_lines_leniently(_stdin(), "stdin"):
            if line.warning:
                _warn(line.warning)
            yield line.text
            print(prompt, end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
