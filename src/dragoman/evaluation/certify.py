"""Compare an export with its model: probabilities, translations, and scores on a test set.

    folder = dragoman.export("runs/x", "ctranslate2", quantization="int8")
    print(dragoman.certify("runs/x", folder, src="test.en", ref="test.de"))

Our model is float32 and searches with torch; the guard is off on both sides. The certificate is written into the export
as certificate.json.
"""

from __future__ import annotations

import hashlib
import json
import logging
import math
import os
import time
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

from dragoman import __version__
from dragoman.config import DecodeConfig
from dragoman.data.corpus import read_lines, read_pairs
from dragoman.errors import BYTES_OF_NAMES, ConfigError, DataError, DragomanError
from dragoman.evaluation.metrics import aligned, select_metrics
from dragoman.evaluation.odd_text import CHANGES
from dragoman.evaluation.significance import Comparison, compare
from dragoman.evaluation.test_set import language_of_side
from dragoman.files import check_sealed, pinned, write_text
from dragoman.options import DeviceOptions, QuietOptions, either, takes
from dragoman.progress import Ticker
from dragoman.ready import pinned_run
from dragoman.toolkits import OURS, TOOLKITS
from dragoman.toolkits.engine import ExportedSearcher
from dragoman.toolkits.export import (
    CARD,
    CERTIFICATE,
    COMPARED,
    certificate_beside,
    certificate_of,
    comparison_in,
    may_replace_card,
)
from dragoman.toolkits.toolkit import Comparer, Toolkit
from dragoman.translation.notes import Events
from dragoman.translation.options import TranslateOptions
from dragoman.translation.plan import Plan
from dragoman.translation.translator import Translator

logger = logging.getLogger(__name__)

ODD_LINES = 100
"""Number of lines that are tried with odd white space and invisible characters."""
LIMITS = ("nats", "identical")
"""Figures that ``--require`` can limit, besides the usual metrics."""


class Certificate(NamedTuple):
    """Comparison of an export (B) with our model (A)."""

    export: str
    quantization: str
    computed_in: str  # precision; not every processor has the export's own
    n_lines: int
    beam_size: int
    length_penalty: float
    length_penalty_form: str
    n_tokens: int  # tokens of our translations, eos counted, that both score
    most_nats: float  # largest difference of the log-probability of a token
    mean_nats: float  # mean of the absolute differences
    n_identical: int  # lines with the same translation
    n_cut_differently: int | None  # lines that its own tokenizer splits differently; None: no tokenizer
    odd_text_cut_differently: dict[str, int] | None  # the same for each kind of odd white space, of the first lines
    why: tuple[str, ...]  # reasons why translations may differ
    n_bytes: tuple[int, int]  # size of the bundle's weights, of the export's files
    seconds: tuple[float, float]  # time for translating the text with each
    hashes: dict[str, str]  # SHA-256 of the bundle and of the export
    comparisons: tuple[Comparison, ...]  # by the usual metrics; none without references
    versions: dict[str, str]
    card: str | None = None  # SHA-256 of the model card that holds this comparison; None: no card holds it

    def __str__(self) -> str:
        lines = [
            f"A: our model, float32, torch; B: {self.export}, {self.quantization}, computed in {self.computed_in}",
            f"{self.n_lines:,} lines, beam {self.beam_size}, length penalty {self.length_penalty} "
            f"({self.length_penalty_form})",
            f"log-probability of a token of the same translation: differs by at most {self.most_nats:.2g} nats, "
            f"on average by {self.mean_nats:.2g} (over {self.n_tokens:,} tokens)",
            f"identical translations: {self.n_identical:,} of {self.n_lines:,} ({self.n_identical / self.n_lines:.1%})",
            *(f"lines split into other subwords: {n:,}" for n in [self.n_cut_differently] if n is not None),
            *(_about_odd_text(counts) for counts in [self.odd_text_cut_differently] if counts is not None),
            *(f"reason for differences: {reason}" for reason in self.why),
            "",
            *aligned(self.rows()),
            *([""] if self.comparisons else []),
            *(comparison.verdict() for comparison in self.comparisons),
        ]
        return "\n".join(lines)

    def rows(self) -> list[tuple[str, ...]]:
        """Return the figures of both as a table with a head: intervals by bootstrap, p by approximate randomisation."""
        scores = [
            (row.metric, f"{row.a:.2f}", f"{row.b:.2f}", f"{row.difference:+.2f}",
             f"[{row.low:+.2f}, {row.high:+.2f}]", f"{row.p_randomisation:.2g}")
            for row in self.comparisons
        ]  # fmt: skip
        head = ("", "A", "B", *(("B - A", "95% interval", "p") if scores else ()))
        sizes = ("megabytes", *(f"{n / 1e6:.1f}" for n in self.n_bytes))
        times = ("seconds", *(f"{duration:.1f}" for duration in self.seconds))
        return [head, *scores, sizes, times]

    def markdown(self) -> str:
        """Return the section of a model card in Markdown."""
        *rows, _ = self.rows()  # without the times, which depend on this machine
        width = len(rows[0])
        table = [[*row, *[""] * (width - len(row))] for row in rows]
        table.insert(1, ["---", *["--:"] * (width - 1)])
        return "\n".join([
            f"## {COMPARED}",
            "",
            f"A is the model in dragoman, B this one, in {self.quantization}; {self.n_lines:,} lines, beam "
            f"{self.beam_size}. {self.n_identical:,} translations ({self.n_identical / self.n_lines:.1%}) are "
            f"identical. The log-probability of a token of the same translation differs by at most "
            f"{self.most_nats:.2g} nats, on average by {self.mean_nats:.2g}. All figures are in `{CERTIFICATE}`.",
            "",
            *("| " + " | ".join(row) + " |" for row in table),
            "",
        ])  # fmt: skip

    def require(self, limits: Mapping[str, float]) -> None:
        """Check that the export keeps some limits.

        Args:
            limits: ``nats``: largest difference of a log-probability. ``identical``: smallest fraction of identical
                translations. The key of a metric, such as ``bleu``: largest loss of that score.

        Raises:
            DragomanError: It does not keep them.
        """
        keys = {metric.name: metric.key for metric in select_metrics()}
        worse = {keys[row.metric]: (row.b - row.a) * (1 if row.lower_is_better else -1) for row in self.comparisons}
        failed = []
        for name, limit in limits.items():
            if name == "nats" and not self.most_nats <= limit:  # nor is it without a number
                failed.append(f"nats must be at most {limit:g}, got {self.most_nats:.2g}")
            elif name == "identical" and self.n_identical < limit * self.n_lines:
                failed.append(f"identical must be at least {limit:g}, got {self.n_identical / self.n_lines:.4f}")
            elif name in worse and worse[name] > limit:
                failed.append(f"{name} must be worse by at most {limit:g}, got {worse[name]:.2f}")
        if failed:
            raise DragomanError(f"the export does not satisfy --require: {'; '.join(failed)}")

    def to_json(self) -> str:
        """Return all figures as one JSON object."""
        comparisons = [{**row._asdict(), "verdict": row.verdict()} for row in self.comparisons]
        return json.dumps({**self._asdict(), "comparisons": comparisons}, indent=2, ensure_ascii=False)


class Opened(NamedTuple):
    """Loaded export."""

    toolkit: Toolkit
    comparer: Comparer
    searcher: ExportedSearcher
    computed_in: str  # precision
    facts: dict[str, Any]  # manifest


class ComparedText(NamedTuple):
    """Text that both models translate."""

    name: str  # file name
    lines: list[str]
    references: list[str] | None
    ref_lang: str | None = None  # by the name of the file of references


@takes(DeviceOptions, QuietOptions, TranslateOptions)
def certify(
    run: Path | str,
    folder: Path | str,
    *,
    src: Path | str,
    ref: Path | str | None = None,
    options: TranslateOptions | None = None,
    **changes: Any,
) -> Certificate:
    """Translate a text with a run and with its export, and compare the results.

    Args:
        run: The run or bundle that was exported.
        folder: The export; the certificate is written into it, or next to it if it is one file.
        src: Text to translate.
        ref: References, line by line.
        options: Settings of both translations, without the guard. ``changes`` are options by name; also ``device`` and
            ``quiet``.

    Returns:
        The differences: ``most_nats`` and ``mean_nats`` between the log-probabilities of a token, the number of equal
        lines (``n_identical`` of ``n_lines``), ``seconds`` and ``n_bytes`` of both, the run's first, and, with
        references, their ``comparisons``.

    Raises:
        BundleError: The export is damaged.
        ConfigError: The export is of another model, or its program is not installed; an option names another engine or
            precision for our model; or the certificate would replace another file.
        DataError: There is nothing to compare.
        DragomanError: The certificate cannot be written.
    """
    run, folder = pinned_run(run), pinned(folder)
    device, quiet = DeviceOptions.taken_from(changes).device, QuietOptions.taken_from(changes).quiet
    text, options = compared_text(src, ref), TranslateOptions.of(options, changes)
    if options.fast or options.engine not in (None, OURS.engine) or options.precision != "fp32":
        raise ConfigError("our model is compared in float32 and by torch: leave out fast, engine and precision")
    return compare_export(Translator.load(run, device), folder, text, options, quiet=quiet)


def compare_export(
    translator: Translator,
    folder: Path | str,
    text: ComparedText,
    options: TranslateOptions,
    *,
    quiet: bool = False,
) -> Certificate:
    """Compare a loaded run with its export on a text; see ``certify``."""
    check_task(translator)
    folder, ticker = pinned(folder), Ticker(quiet)
    export = opened(translator, folder)
    engine, facts = export.searcher, export.facts
    if folder.is_file():
        refuse_other_certificate(folder)
    name, lines, references = text.name, text.lines, text.references
    plan = translator.plan(options, guard=False)
    texts, seconds = [], []
    for by, own_plan in (("dragoman", plan), (facts["export"], translator.with_engine(plan, engine))):
        begun = time.perf_counter()
        events = Events(progress=ticker.named(f"sentences translated by {by}"))
        texts.append([translation.text for translation in translator.translate_planned(lines, own_plan, events)])
        seconds.append(time.perf_counter() - begun)
    texts_a, texts_b = texts
    # Both models score the same translations, ours, so that a difference in the search does not count here.
    differences = token_differences(translator, plan, engine, lines, texts_a)
    if not differences:
        raise DataError(f"{name}: there is nothing to compare: {_why_nothing(lines, texts_a)}")
    comparisons: Sequence[Comparison] = ()
    if references is not None:
        with ticker.task("resampling"):
            comparisons = compare(texts_a, texts_b, references, plan.tgt_lang or text.ref_lang)
    decode = plan.search.decode
    program, program_version = export.comparer.program_version()
    result = Certificate(
        export=facts["export"],
        quantization=facts["quantization"],
        computed_in=export.computed_in,
        n_lines=len(lines),
        beam_size=decode.beam_size,
        length_penalty=decode.length_penalty,
        length_penalty_form=decode.length_penalty_form,
        n_tokens=len(differences),
        most_nats=max(differences),
        mean_nats=sum(differences) / len(differences),
        n_identical=sum(a == b for a, b in zip(texts_a, texts_b, strict=True)),
        **_cut_differently(engine, translator, lines),
        why=tuple(_why_different(export, decode)),
        n_bytes=(translator.bundle.n_bytes, sum(file["bytes"] for file in facts["files"].values())),
        seconds=(round(seconds[0], 3), round(seconds[1], 3)),
        hashes={"bundle": str(facts["bundle"]), "export": str(facts.get("sha256"))},
        comparisons=tuple(comparisons),
        versions={"dragoman": __version__, program: program_version, **{p: version(p) for p in ("torch", "sacrebleu")}},
    )
    card = _card(export, folder, translator, result)
    if card is not None:
        result = result._replace(card=hashlib.sha256(card.encode(errors=BYTES_OF_NAMES)).hexdigest())
    write_text(certificate_of(folder), result.to_json() + "\n")
    if card is not None:
        write_text(folder / CARD, card)
    return result


def refuse_other_certificate(file: Path) -> None:
    """Check that the certificate of an export that is one file, written already or not, replaces no other file.

    Raises:
        ConfigError: It would.
    """
    path = certificate_beside(file)
    if os.path.lexists(path) and not comparison_in(path):
        raise ConfigError(
            f"{path}: the comparison would replace this file, which is not one of dragoman; move it away, or choose "
            "another name"
        )


def _card(export: Opened, folder: Path, translator: Translator, result: Certificate) -> str | None:
    """Return the model card of an export with its comparison; None if it has none, or one that a user has changed."""
    if export.toolkit.card is None or CARD in export.facts["files"]:
        return None
    if not may_replace_card(folder, export.facts):
        card = f"{folder / CARD}"
        logger.warning("%s: was changed and stays as it is: the comparison is in %s alone", card, CERTIFICATE)
        return None
    return export.toolkit.card()(translator.bundle, export.facts["quantization"], result.markdown())


def _cut_differently(engine: ExportedSearcher, translator: Translator, lines: Sequence[str]) -> dict[str, Any]:
    """Return how many lines the export's own tokenizer splits differently: as they are, and after each odd change."""
    first = [line for line in lines if line.strip()][:ODD_LINES]
    texts = [*lines, *(change(line) for change in CHANGES.values() for line in first)]
    differ = engine.cut_differently(texts, translator.src_tokenizer.encode(texts))
    if differ is None:
        return {"n_cut_differently": None, "odd_text_cut_differently": None}
    starts = range(len(lines), len(texts), len(first) or 1)
    odd = {name: sum(differ[start : start + len(first)]) for name, start in zip(CHANGES, starts, strict=False)}
    return {"n_cut_differently": sum(differ[: len(lines)]), "odd_text_cut_differently": odd}


def _about_odd_text(counts: Mapping[str, int]) -> str:
    """Return in one line whether odd white space and invisible characters are read alike."""
    differing = [f"{name} ({n:,} lines)" for name, n in counts.items() if n]
    what = f"odd white space, invisible characters, letters in other forms ({len(counts)} kinds)"
    return f"{what}: {'split into other subwords: ' + ', '.join(differing) if differing else 'the same subwords'}"


def compared_formats() -> list[str]:
    """Return the formats whose exports can be compared."""
    return [toolkit.name for toolkit in TOOLKITS if toolkit.comparer is not None]


def opened(translator: Translator, export: Path) -> Opened:
    """Load an export of this model.

    Raises:
        BundleError: The export is damaged.
        ConfigError: It is of a format that cannot be compared, or of another bundle; or its program is not installed.
    """
    facts = _facts_of(export)
    toolkit, comparer = _comparing(facts.get("export"))
    if toolkit is None or comparer is None:
        raise _not_comparable(export)
    if facts.get("bundle") != translator.bundle.facts.sha256:
        raise ConfigError(f"{export}: was not made from the bundle that the run holds now; export it again")
    searcher, computed_in = comparer.open_export(export, facts["quantization"], translator.bundle, translator.device)
    return Opened(toolkit, comparer, searcher, computed_in, facts)


def _comparing(name: str | None) -> tuple[Toolkit, Comparer] | tuple[None, None]:
    """Return the toolkit of a format that can be compared, and its module that does so."""
    for toolkit in TOOLKITS:
        if toolkit.name == name and toolkit.comparer is not None:
            return toolkit, toolkit.comparer()
    return None, None


def _not_comparable(export: Path) -> ConfigError:
    return ConfigError(f"{export} must be an export to {either(compared_formats())}, the formats that can be compared")


def _facts_of(export: Path) -> dict[str, Any]:
    """Return the manifest of an export; for an export that is one file, the same facts from the file."""
    if not export.is_file():
        return check_sealed(export, "conversion")
    for toolkit in TOOLKITS:
        if toolkit.one_file_facts is not None and toolkit.writer is not None and export.suffix == toolkit.writer().FILE:
            return toolkit.one_file_facts()(export)
    raise _not_comparable(export)


def check_installed(to: str, device: str) -> None:
    """Check that exports to a format can be compared on this machine.

    Raises:
        ConfigError: The format cannot be compared at all, or its package is missing.
    """
    _, comparer = _comparing(to)
    if comparer is None:
        raise ConfigError(f"--check needs an export to {either(compared_formats())}, got {to}: leave it out")
    comparer.check_installed(device)


def required(texts: Sequence[str], has_references: bool) -> dict[str, float]:
    """Parse the limits of ``--require``, such as ``identical=0.99``.

    Raises:
        ConfigError: A name is unknown, a value is no number, or a metric has no references.
    """
    limits = {}
    metrics = [metric.key for metric in select_metrics()]
    for text in texts:
        name, _, value = text.partition("=")
        if name not in (*LIMITS, *metrics):
            known = ", ".join(f"{known}=NUMBER" for known in (*LIMITS, *metrics))
            raise ConfigError(f"--require {text}: use one of {known}")
        try:
            limits[name] = float(value)
        except ValueError:
            raise ConfigError(f"--require {text}: {value!r} is no number") from None
        if not math.isfinite(limits[name]):
            raise ConfigError(f"--require {text}: must be a finite number")
        if name in metrics and not has_references:
            raise ConfigError(f"--require {text} needs references: give them with --ref")
    return limits


def _why_different(export: Opened, decode: DecodeConfig) -> list[str]:
    """Return the reasons why the export may translate differently."""
    form = export.facts["quantization"]
    rounding = [] if form == "float32" else [f"B's numbers are rounded to {form}"]
    return [*rounding, *export.comparer.why_different(decode)]


def check_task(translator: Translator) -> None:
    """Check that a model is no parser, which no other toolkit can run.

    Raises:
        ConfigError: It is one.
    """
    if translator.is_parser:
        raise ConfigError("a parser cannot be compared, as no other toolkit can parse; export it without --check")


def compared_text(src: Path | str, ref: Path | str | None) -> ComparedText:
    """Read the lines to translate, and their references; each file is read once, as it may be a pipe.

    Raises:
        DataError: A file cannot be read, or the numbers of lines differ.
    """
    if ref is None:
        return ComparedText(f"{src}", list(read_lines(src)), None)
    pairs = list(read_pairs(src, ref))
    return ComparedText(f"{src}", [pair[0] for pair in pairs], [pair[1] for pair in pairs], language_of_side(ref))


def _why_nothing(lines: Sequence[str], translations: Sequence[str]) -> str:
    """Return the reason why there is no token to compare, and advice."""
    if not any(line.strip() for line in lines):
        return "all lines are blank; give a text"
    if not any(text.strip() for text in translations):
        return "all translations are empty; the model is undertrained, train it longer"
    return "all lines are longer than those that the model was trained on; give shorter lines"


def token_differences(
    translator: Translator,
    plan: Plan,
    engine: ExportedSearcher,
    lines: Sequence[str],
    texts: Sequence[str],
) -> list[float]:
    """Return the difference of both log-probabilities in nats for each token of some translations.

    A line of several sentences is read in one piece by both. Longer lines than the model was trained on are left out.
    """
    scores = translator.score(lines, texts, to=plan.options.to, sentence_split=False)
    src_ids, tgt_ids = plan.src_tokenizer.encode(list(lines)), translator.tgt_tokenizer.encode(list(texts))
    most = translator.max_tokens
    whole = [i for i, score in enumerate(scores) if score.n_tokens and max(len(src_ids[i]), len(tgt_ids[i])) <= most]
    their_log_probs = engine.read([(src_ids[i], tgt_ids[i]) for i in whole])
    return [
        abs(a - b)
        for i, log_probs in zip(whole, their_log_probs, strict=True)
        for a, b in zip(scores[i].token_log_probs, log_probs, strict=True)
    ]
