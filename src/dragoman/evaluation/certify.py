"""How an export compares with the model it was made from: probabilities, translations, and scores on a test set.

    folder = dragoman.export("runs/x", "ctranslate2", quantization="int8")
    print(dragoman.certify("runs/x", folder, src="test.en", ref="test.de"))

Ours is float32 and searches with torch; the guard is left out on both sides. The certificate is written beside the
export as certificate.json.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

from dragoman import __version__
from dragoman.config import DecodeConfig
from dragoman.data.corpus import read_lines, read_pairs
from dragoman.errors import ConfigError, DataError, DragomanError
from dragoman.evaluation.metrics import select_metrics
from dragoman.evaluation.significance import Comparison, compare
from dragoman.files import check_sealed, write_text
from dragoman.model.weights import n_bytes, untied
from dragoman.options import takes
from dragoman.progress import Ticker
from dragoman.toolkits import TOOLKITS
from dragoman.toolkits.engine import ExportedSearcher
from dragoman.toolkits.export import CARD, CERTIFICATE
from dragoman.toolkits.toolkit import Comparer, Toolkit
from dragoman.translation.notes import Events
from dragoman.translation.options import TranslateOptions
from dragoman.translation.plan import Plan
from dragoman.translation.translator import Translator

LIMITS = ("nats", "identical")
"""What ``--require`` can name, and, with references, the usual metrics."""


class Certificate(NamedTuple):
    """An export (B) beside our model (A)."""

    export: str
    quantization: str
    computed_in: str  # may be another: not every processor computes in every precision
    n_lines: int
    beam_size: int
    length_penalty: float
    length_penalty_form: str
    n_tokens: int  # of our translations, eos counted: read by both
    most_nats: float  # the greatest difference of the log-probability of one of these tokens
    mean_nats: float  # the mean of these differences, each without its sign
    n_identical: int  # lines with the same translation
    n_cut_differently: int | None  # sentences that its own tokenizer cuts otherwise; None if it has no tokenizer
    why: tuple[str, ...]  # why translations may differ
    n_bytes: tuple[int, int]  # of the bundle's weights, of the export's files
    seconds: tuple[float, float]  # for translating the text, on this machine
    hashes: dict[str, str]  # SHA-256 of the bundle and of the export
    comparisons: tuple[Comparison, ...]  # of the usual metrics of both; none without references
    versions: dict[str, str]

    def __str__(self) -> str:
        said = [
            f"A: ours, float32, by torch; B: {self.export}, {self.quantization}, computed in {self.computed_in}",
            f"{self.n_lines:,} lines, beam {self.beam_size}, length penalty {self.length_penalty} "
            f"({self.length_penalty_form})",
            f"log-probability of a token of the same translation: they differ by {self.most_nats:.2g} nats at most, "
            f"{self.mean_nats:.2g} in the mean of {self.n_tokens:,}",
            f"identical translations: {self.n_identical:,} of {self.n_lines:,} ({self.n_identical / self.n_lines:.1%})",
            *([] if self.n_cut_differently is None else [f"cut into other subwords: {self.n_cut_differently:,}"]),
            *(f"why they may differ: {reason}" for reason in self.why),
            "",
            *aligned(self.rows()),
            *([""] if self.comparisons else []),
            *(comparison.verdict() for comparison in self.comparisons),
        ]
        return "\n".join(said)

    def rows(self) -> list[tuple[str, ...]]:
        """The figures of both as a table, its head first: intervals by bootstrap, p by approximate randomisation."""
        scores = [
            (one.metric, f"{one.a:.2f}", f"{one.b:.2f}", f"{one.difference:+.2f}",
             f"[{one.low:+.2f}, {one.high:+.2f}]", f"{one.p_randomisation:.2g}")
            for one in self.comparisons
        ]  # fmt: skip
        head = ("", "A", "B", *(("B - A", "95% interval", "p") if scores else ()))
        sizes = ("megabytes", *(f"{n / 1e6:.1f}" for n in self.n_bytes))
        times = ("seconds", *(f"{one:.1f}" for one in self.seconds))
        return [head, *scores, sizes, times]

    def markdown(self) -> str:
        """What a model card says of it."""
        *rows, _ = self.rows()  # how fast this machine is, no card need say
        width = len(rows[0])
        table = [[*row, *[""] * (width - len(row))] for row in rows]
        table.insert(1, ["---", *["--:"] * (width - 1)])
        return "\n".join([
            "## Compared with the original",
            "",
            f"A is the model in dragoman, B this one, in {self.quantization}; {self.n_lines:,} lines, beam "
            f"{self.beam_size}. {self.n_identical:,} translations ({self.n_identical / self.n_lines:.1%}) are "
            f"identical. The log-probability of a token of the same translation differs by {self.most_nats:.2g} nats "
            f"at most, by {self.mean_nats:.2g} in the mean. All of it is in `{CERTIFICATE}`.",
            "",
            *("| " + " | ".join(row) + " |" for row in table),
            "",
        ])  # fmt: skip

    def require(self, limits: Mapping[str, float]) -> None:
        """Refuse an export that does not come up to something.

        Args:
            limits: ``nats``: the greatest difference of a log-probability at most. ``identical``: the least share of
                identical translations. The key of a metric, such as ``bleu``: by how much it may be worse at most.

        Raises:
            DragomanError: It does not.
        """
        keys = {metric.name: metric.key for metric in select_metrics()}
        worse = {keys[one.metric]: (one.b - one.a) * (1 if one.lower_is_better else -1) for one in self.comparisons}
        failed = []
        for name, limit in limits.items():
            if name == "nats" and self.most_nats > limit:
                failed.append(f"nats is {self.most_nats:.2g}, at most {limit:g} was required")
            elif name == "identical" and self.n_identical < limit * self.n_lines:
                failed.append(f"identical is {self.n_identical / self.n_lines:.4f}, at least {limit:g} was required")
            elif name in worse and worse[name] > limit:
                failed.append(f"{name} is worse by {worse[name]:.2f}, at most {limit:g} was allowed")
        if failed:
            raise DragomanError(f"the export does not come up to --require: {'; '.join(failed)}")

    def to_json(self) -> str:
        """All of it as one JSON object."""
        comparisons = [{**one._asdict(), "verdict": one.verdict()} for one in self.comparisons]
        return json.dumps({**self._asdict(), "comparisons": comparisons}, indent=2, ensure_ascii=False)


class Opened(NamedTuple):
    """An export that is loaded."""

    toolkit: Toolkit
    comparer: Comparer
    searcher: ExportedSearcher
    computed_in: str  # precision
    facts: dict[str, Any]  # its manifest


class ComparedText(NamedTuple):
    """What is translated by both."""

    name: str  # of the file
    lines: list[str]
    references: list[str] | None


@takes(TranslateOptions)
def certify(
    run: Path | str,
    folder: Path | str,
    *,
    src: Path | str,
    ref: Path | str | None = None,
    options: TranslateOptions | None = None,
    device: str = "auto",
    quiet: bool = False,
    **changes: Any,
) -> Certificate:
    """Translate a text with a run and with its export, and compare.

    Args:
        run: The run or bundle that was exported.
        folder: The export; the certificate is written there, or beside it if it is one file.
        src: Text to translate.
        ref: References, line by line.
        options: How to translate, on both sides; ``changes`` are options by name. The guard is left out.
        quiet: No progress on stderr.

    Returns:
        What differs: ``most_nats`` and ``mean_nats`` between the log-probabilities of a token, how many lines are
        the same (``n_identical`` of ``n_lines``), the ``seconds`` and ``n_bytes`` of both, the run's first, and,
        with references, their ``comparisons``.

    Raises:
        BundleError: The export is damaged or of another model.
        ConfigError: CTranslate2 is not installed.
        DataError: There is nothing to compare.
        DragomanError: The certificate cannot be written.
    """
    text = compared_text(src, ref)
    return compare_export(
        Translator.load(run, device), folder, text, TranslateOptions.of(options, changes), quiet=quiet
    )


def compare_export(
    translator: Translator,
    folder: Path | str,
    text: ComparedText,
    options: TranslateOptions,
    *,
    quiet: bool = False,
) -> Certificate:
    """As ``certify``, of a run and a text that have been read already."""
    check_task(translator)
    folder, ticker = Path(folder), Ticker(quiet)
    export = opened(translator, folder)
    engine, facts = export.searcher, export.facts
    name, lines, references = text.name, text.lines, text.references
    ours = translator.plan(options, guard=False)
    theirs = translator.with_engine(ours, engine)
    texts, seconds = [], []
    for by, plan in (("dragoman", ours), (facts["export"], theirs)):
        begun = time.perf_counter()
        events = Events(progress=ticker.named(f"sentences translated by {by}"))
        texts.append([one.text for one in translator.translate_planned(lines, plan, events)])
        seconds.append(time.perf_counter() - begun)
    texts_a, texts_b = texts
    differences = token_differences(translator, ours, engine, lines, texts_a)
    if not differences:
        raise DataError(f"{name}: there is nothing to compare: {_why_nothing(lines, texts_a)}")
    comparisons: Sequence[Comparison] = ()
    if references is not None:
        with ticker.task("resampling"):
            comparisons = compare(texts_a, texts_b, references, ours.tgt_lang)
    decode = ours.search.decode
    program, program_version = export.comparer.program_version()
    result = Certificate(
        facts["export"],
        facts["quantization"],
        export.computed_in,
        len(lines),
        decode.beam_size,
        decode.length_penalty,
        decode.length_penalty_form,
        len(differences),
        max(differences),
        sum(differences) / len(differences),
        sum(a == b for a, b in zip(texts_a, texts_b, strict=True)),
        engine.n_cut_differently(lines, translator.src_tokenizer.encode(list(lines))),
        tuple(_why_different(export, decode)),
        (n_bytes(untied(translator.bundle.model)), sum(one["bytes"] for one in facts["files"].values())),
        (round(seconds[0], 3), round(seconds[1], 3)),
        {"bundle": str(facts["bundle"]), "export": str(facts.get("sha256"))},
        tuple(comparisons),
        {
            "dragoman": __version__,
            program: program_version,
            **{name: version(name) for name in ("torch", "sacrebleu")},
        },
    )
    beside = folder.with_suffix(f".{CERTIFICATE}") if folder.is_file() else folder / CERTIFICATE
    write_text(beside, result.to_json() + "\n")
    if export.toolkit.card is not None and CARD not in facts["files"]:
        write_text(folder / CARD, export.toolkit.card()(translator.bundle, facts["quantization"], result.markdown()))
    return result


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """The lines of a table: its first column to the left, the others to the right."""
    widths = [max(len(row[i]) for row in rows if len(row) > i) for i in range(max(map(len, rows)))]
    return [
        "  ".join(cell.rjust(widths[i]) if i else cell.ljust(widths[i]) for i, cell in enumerate(row)).rstrip()
        for row in rows
    ]


def compared_formats() -> list[str]:
    """Return the formats whose exports can be compared."""
    return [toolkit.name for toolkit in TOOLKITS if toolkit.comparer is not None]


def opened(translator: Translator, export: Path) -> Opened:
    """Load an export of this model with the program that it is for.

    Raises:
        BundleError: It is damaged.
        ConfigError: It is no export that can be compared, or of another bundle; or that program is not installed.
    """
    facts = _facts_of(export)
    toolkit = next((one for one in TOOLKITS if one.name == facts.get("export") and one.comparer is not None), None)
    if toolkit is None or toolkit.comparer is None:
        raise ConfigError(f"{export}: no export to {' or '.join(compared_formats())}, the formats that can be compared")
    if facts.get("bundle") != translator.bundle.facts.sha256:
        raise ConfigError(f"{export}: was not made from the bundle that the run holds now; export it again")
    searcher, computed_in = toolkit.comparer().open_export(
        export, facts["quantization"], translator.bundle, translator.device
    )
    return Opened(toolkit, toolkit.comparer(), searcher, computed_in, facts)


def _facts_of(export: Path) -> dict[str, Any]:
    """Return the manifest of an export, or what one that is a file says of itself."""
    if not export.is_file():
        return check_sealed(export, "conversion")
    for toolkit in TOOLKITS:
        if toolkit.one_file_facts is not None and toolkit.writer is not None and export.suffix == toolkit.writer().FILE:
            return toolkit.one_file_facts()(export)
    raise ConfigError(f"{export}: no export to {' or '.join(compared_formats())}, the formats that can be compared")


def check_installed(to: str, device: str) -> None:
    """Refuse a format that cannot be compared here, before anything is written.

    Raises:
        ConfigError: It cannot be compared at all, or its package is missing.
    """
    toolkit = next((one for one in TOOLKITS if one.name == to and one.comparer is not None), None)
    if toolkit is None or toolkit.comparer is None:
        raise ConfigError(f"--check compares exports to {', '.join(compared_formats())}, not to {to}: leave it out")
    toolkit.comparer().check_installed(device)


def required(given: Sequence[str], has_references: bool) -> dict[str, float]:
    """The limits of ``--require``, such as ``identical=0.99``.

    Raises:
        ConfigError: One is unknown or no number, or needs references.
    """
    limits = {}
    metrics = [metric.key for metric in select_metrics()]
    for one in given:
        name, _, value = one.partition("=")
        if name not in (*LIMITS, *metrics):
            known = ", ".join(f"{known}=NUMBER" for known in (*LIMITS, *metrics))
            raise ConfigError(f"--require {one}: use one of {known}")
        try:
            limits[name] = float(value)
        except ValueError:
            raise ConfigError(f"--require {one}: {value!r} is no number") from None
        if name in metrics and not has_references:
            raise ConfigError(f"--require {one} needs references: give them with --ref")
    return limits


def _why_different(export: Opened, decode: DecodeConfig) -> list[str]:
    """Return the reasons why the same weights may give other translations there."""
    rounded = export.facts["quantization"]
    return [
        *([] if rounded == "float32" else [f"B's numbers are rounded to {rounded}"]),
        *export.comparer.why_different(decode),
    ]


def check_task(translator: Translator) -> None:
    """Refuse a parser, which no other toolkit can search with.

    Raises:
        ConfigError: It is one.
    """
    if translator.is_parser:
        raise ConfigError("a parser cannot be compared, as no other toolkit can parse; export it without --check")


def compared_text(src: Path | str, ref: Path | str | None) -> ComparedText:
    """The lines to translate, and their references, each file read once: it may be a pipe.

    Raises:
        DataError: A file cannot be read, or they have not as many lines.
    """
    if ref is None:
        return ComparedText(str(src), list(read_lines(src)), None)
    pairs = list(read_pairs(src, ref))
    return ComparedText(str(src), [pair[0] for pair in pairs], [pair[1] for pair in pairs])


def _why_nothing(lines: Sequence[str], translations: Sequence[str]) -> str:
    """Why there is not one token to compare, and what to do."""
    if not any(line.strip() for line in lines):
        return "all lines are blank; give a text"
    if not any(text.strip() for text in translations):
        return "all translations are empty; the model is undertrained, train it longer"
    return "no line is translated in one piece; give shorter lines"


def token_differences(
    translator: Translator,
    plan: Plan,
    engine: ExportedSearcher,
    lines: Sequence[str],
    texts: Sequence[str],
) -> list[float]:
    """By how many nats the two differ, at each token of the same translations: those of lines in one piece."""
    ours = translator.score(lines, texts, to=plan.options.to)
    src_ids, tgt_ids = plan.src_tokenizer.encode(list(lines)), translator.tgt_tokenizer.encode(list(texts))
    most = translator.max_tokens
    read = [i for i, one in enumerate(ours) if one.n_tokens and max(len(src_ids[i]), len(tgt_ids[i])) <= most]
    theirs = engine.read([(src_ids[i], tgt_ids[i]) for i in read])
    return [
        abs(a - b)
        for i, other in zip(read, theirs, strict=True)
        for a, b in zip(ours[i].token_log_probs, other, strict=True)
    ]
