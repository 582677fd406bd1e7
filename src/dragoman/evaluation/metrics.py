"""Table of metrics, ``METRICS``, which everything that scores translations reads.

    bleu(hyps, refs, "de", interval=True)        # one metric; refs: one text for each line, or several such lists
    scores(hyps, refs, "de", select_metrics(["ter"]))    # metrics of the table

A metric counts something in each sentence, and turns the sum of these counts into a score. So a test set can be
resampled from its sentences without counting again. A new metric is one more ``Metric`` at the end of the table. The
metrics here are sacreBLEU's, each with the signature that makes it comparable.

``old_style_bleu`` is the BLEU of older papers, on text that is lower-cased and tokenised as Moses does. It is not
comparable with sacreBLEU's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, cast

import numpy as np
from numpy.typing import NDArray
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.ter import TER

from dragoman.arguments import checked
from dragoman.errors import ConfigError, DataError, not_installed
from dragoman.evaluation.writing import Writing, split_characters, writing_of
from dragoman.languages.codes import primary

BOOTSTRAP_SAMPLES = 1000
BOOTSTRAP_SEED = 12345
CHUNK_CELLS = 2**24
"""Largest number of samples times sentences in memory at once."""
OLD_STYLE = "old-style BLEU (lower-cased Moses tokens)"

Texts = Sequence[str]
References = Sequence[str] | Sequence[Sequence[str]]
"""One reference for each line, or several such lists."""
Statistics = NDArray[np.float64]


class Scorer(Protocol):
    """Metric for one target language."""

    def statistics(self, hyps: Texts, references: Sequence[Texts]) -> Statistics:
        """Return the counts of each sentence, ``(sentences, counts)``.

        Args:
            references: One list or several, each with a reference for each sentence.
        """
        ...

    def score(self, sums: Statistics) -> float:
        """Return the score for the sum of these counts, ``(counts,)``; usually in per cent."""
        ...

    def signature(self, n_samples: int | None) -> str:
        """Return the settings of the metric, after ``statistics``; ``n_samples``: samples of its interval, if any."""
        ...


@dataclass(frozen=True)
class Metric:
    """Row of the table."""

    key: str
    """Name on a command line, such as chrf++."""
    name: str
    """Printed name, such as chrF2++."""
    scorer: Callable[[Writing], Scorer]
    """Makes the scorer for the writing of the references."""
    lower_is_better: bool = False
    by_default: bool = True
    """True if it is computed when no metrics are chosen."""


class Score(NamedTuple):
    """Score of a text by one metric; ``low`` and ``high`` are its 95% bootstrap interval."""

    name: str
    value: float  # per cent
    signature: str
    low: float | None = None
    high: float | None = None

    def interval(self) -> str:
        """Return the interval for a table; "" if there is none."""
        return "" if self.low is None else f"{self.low:.2f} to {self.high:.2f}"

    def __str__(self) -> str:
        interval = "" if self.low is None else f"  [{self.low:.2f}, {self.high:.2f}]"
        return f"{self.name} {self.value:.2f}{interval}  {self.signature}"


class SacreBleu:
    """Metric of sacreBLEU; no other code calls sacreBLEU's private methods."""

    def __init__(self, metric: BLEU | CHRF | TER, prepare: Callable[[Texts], Texts] = list, unit: str = "") -> None:
        """Take a metric; ``prepare`` is applied to hypotheses and references first, and ``unit`` names the result."""
        self._metric: Any = metric
        self._prepare, self._unit = prepare, unit

    def statistics(self, hyps: Texts, references: Sequence[Texts]) -> Statistics:
        """See ``Scorer``."""
        prepared = [list(self._prepare(texts)) for texts in references]
        counts = self._metric._extract_corpus_statistics(list(self._prepare(hyps)), prepared)
        return np.array(counts, dtype=np.float64)

    def score(self, sums: Statistics) -> float:
        """See ``Scorer``."""
        if isinstance(self._metric, BLEU) and not sums.any():
            return 100.0  # of blank lines alone, where sacreBLEU calls the right translation wrong
        value = self._of_sums(sums)
        return value if isinstance(self._metric, TER) else min(100.0, value)  # rounding takes 100 beyond 100

    def _of_sums(self, sums: Statistics) -> float:
        return float(self._metric._compute_score_from_stats(sums.tolist()).score)

    def signature(self, n_samples: int | None) -> str:
        """See ``Scorer``."""
        signature = self._metric.get_signature()
        if n_samples is not None:
            signature.update("bs", n_samples)
            signature.update("seed", BOOTSTRAP_SEED)
        return f"{signature}|unit:{self._unit}" if self._unit else str(signature)


def _bleu(writing: Writing, **options: Any) -> SacreBleu:
    return SacreBleu(BLEU(**{"tokenize": writing.bleu_tokenizer, **options}))


def _chrf(_: Writing, **options: Any) -> SacreBleu:
    return SacreBleu(CHRF(**options))


def _ter(writing: Writing) -> SacreBleu:
    """Return TER; sacreBLEU splits Chinese characters, and here the characters of other scripts without spaces."""
    if not writing.unspaced:
        return SacreBleu(TER())
    if writing.has_han:
        return SacreBleu(TER(asian_support=True, normalized=True))
    return SacreBleu(TER(normalized=True), lambda texts: [split_characters(text) for text in texts], "characters")


def _old_style_bleu(writing: Writing) -> SacreBleu:
    moses_tokens([], "en")  # fail before anything is translated if it is not installed
    return SacreBleu(BLEU(tokenize="none", force=True), lambda texts: moses_tokens(texts, writing.lang or "en"))


METRICS = [
    Metric("bleu", "BLEU", _bleu),
    Metric("chrf", "chrF2", _chrf),
    Metric("ter", "TER", _ter, lower_is_better=True),
    Metric("chrf++", "chrF2++", lambda writing: _chrf(writing, word_order=2), by_default=False),
    Metric("old-style-bleu", OLD_STYLE, _old_style_bleu, by_default=False),
]


def select_metrics(keys: Sequence[str] = ()) -> list[Metric]:
    """Return the metrics with these keys in the order of the table; without keys the usual ones.

    Raises:
        ConfigError: There is no such metric.
    """
    all_keys = [metric.key for metric in METRICS]
    for key in keys:
        if key not in all_keys:
            raise ConfigError(f"metric must be one of {', '.join(all_keys)}, got {key[:40]!r}")
    return [metric for metric in METRICS if (metric.key in keys if keys else metric.by_default)]


@checked
def scores(
    hyps: Texts, refs: References, tgt_lang: str | None, metrics: Sequence[Metric], interval: bool = True
) -> list[Score]:
    """Return the scores of translations by some metrics.

    Args:
        hyps: Translations, one a line.
        refs: References, one for each line; or several such lists.
        interval: Also bootstrap the 95% intervals, from 1,000 samples with a fixed seed.

    Raises:
        DataError: The counts differ or there are none.
    """
    writing = writing_of(tgt_lang, refs)
    return [_score(metric.name, metric.scorer(writing), hyps, refs, interval) for metric in metrics]


@checked
def bleu(hyps: Texts, refs: References, tgt_lang: str | None = None, interval: bool = False, **options: Any) -> Score:
    """Return corpus BLEU, cased and detokenised (https://aclanthology.org/W18-6319).

    Args:
        hyps: Translations, one a line.
        refs: References, one for each line; or several such lists.
        tgt_lang: Chooses the tokeniser, with the script of the references; see ``writing.Writing``.
        interval: See ``scores``.
        options: For sacreBLEU, such as ``lowercase=True``.

    Raises:
        DataError: The counts differ or there are none.
    """
    return _score("BLEU", _bleu(writing_of(tgt_lang, refs), **options), hyps, refs, interval)


@checked
def chrf(hyps: Texts, refs: References, interval: bool = False, **options: Any) -> Score:
    """Return corpus chrF2, on characters (https://aclanthology.org/W15-3049).

    Args:
        options: For sacreBLEU, such as ``lowercase=True``.

    Raises:
        DataError: The counts differ or there are none.
    """
    return _score("chrF2", _chrf(writing_of(None, ()), **options), hyps, refs, interval)


@checked
def sentence_chrf(hyps: Texts, refs: Texts) -> list[float]:
    """Return chrF2 of each sentence in per cent; 100 where translation and reference are blank: nothing is wrong.

    Raises:
        DataError: The counts differ or there are none.
    """
    check_parallel(hyps, refs)
    metric = SacreBleu(CHRF())
    rows = zip(hyps, refs, metric.statistics(hyps, [refs]), strict=True)
    return [metric.score(counts) if hyp.strip() or ref.strip() else 100.0 for hyp, ref, counts in rows]


@checked
def ter(hyps: Texts, refs: References, tgt_lang: str | None = None, interval: bool = False) -> Score:
    """Return the translation edit rate, which ignores case; lower is better. See ``writing.Writing`` for its words.

    Raises:
        DataError: The counts differ or there are none.
    """
    return _score("TER", _ter(writing_of(tgt_lang, refs)), hyps, refs, interval)


def old_style_bleu(hyps: Texts, refs: References, tgt_lang: str) -> Score:
    """Return lower-cased BLEU on Moses tokens, the BLEU of older papers; not comparable with ``bleu``.

    Both sides are lower-cased, their punctuation is normalised, and they are tokenised and escaped as by
    ``tokenizer.perl``. For the references of Multi30k's test_2016_flickr this gives the published tokenised file.

    Raises:
        ConfigError: sacremoses is not installed.
        DataError: The counts differ or there are none.
    """
    return _score(OLD_STYLE, _old_style_bleu(writing_of(tgt_lang, refs)), hyps, refs, False)


def tokenized_bleu(hyps: Texts, refs: References) -> Score:
    """Return BLEU on tokenised text, whose tokens are separated by spaces."""
    return _score(OLD_STYLE, SacreBleu(BLEU(tokenize="none", force=True)), hyps, refs, False)


def signatures(references: Mapping[str | None, Texts]) -> dict[str, str]:
    """Return the signatures of the metrics of a validation, BLEU and chrF, by name.

    Args:
        references: By target language. Of several languages the scores are means, and each names its signature.
    """
    own = {lang: bleu(refs, refs, lang).signature for lang, refs in references.items()}
    each = "; ".join(f"{lang}: {signature}" for lang, signature in own.items())
    return {
        "bleu": each if len(set(own.values())) > 1 else next(iter(own.values())),
        "chrf": chrf(["a"], ["a"]).signature,
    }


def moses_tokens(texts: Sequence[str], lang: str) -> list[str]:
    """Lower-case texts, normalise their punctuation and tokenise them as Moses does.

    Raises:
        ConfigError: sacremoses is not installed.
    """
    try:
        from sacremoses import MosesPunctNormalizer, MosesTokenizer
    except ImportError:
        raise ConfigError(not_installed("the old-style BLEU", "sacremoses")) from None
    lang = primary(lang)  # Moses takes de-DE for an unknown language, and tokenises it as English
    normalizer, tokenizer = MosesPunctNormalizer(lang), MosesTokenizer(lang)
    return [tokenizer.tokenize(normalizer.normalize(text.lower()), escape=True, return_str=True) for text in texts]


def sets_of(refs: References) -> list[Texts]:
    """Return references as lists that have one for each line."""
    if all(isinstance(ref, str) for ref in refs):
        return [cast(Texts, refs)]
    return list(refs)


def check_parallel(hyps: Texts, refs: References) -> None:
    """Check that there are translations, and a reference for each.

    Raises:
        DataError: The counts differ or there are none.
    """
    for references in sets_of(refs):
        if len(hyps) != len(references):
            raise DataError(f"{len(hyps):,} translations but {len(references):,} references: they must be parallel")
    if not hyps:
        raise DataError("there is nothing to score: no lines")


def resamples(n: int, n_samples: int, seed: int) -> Iterator[Statistics]:
    """Draw test sets of ``n`` sentences with replacement; yield the count of each sentence in each, ``(samples, n)``.

    They come in chunks; the same seed draws the same test sets whatever the size of a chunk.
    """
    rng = np.random.default_rng(seed)
    for size in chunks(n_samples, n):
        drawn = rng.integers(n, size=(size, n))
        yield np.stack([np.bincount(row, minlength=n) for row in drawn]).astype(np.float64)


def chunks(n_samples: int, n: int) -> list[int]:
    """Return the sizes of chunks of samples of ``n`` sentences that fit in memory."""
    size = max(1, CHUNK_CELLS // n)
    return [min(size, n_samples - start) for start in range(0, n_samples, size)]


def scores_of(score: Callable[[Statistics], float], sums: Statistics) -> Statistics:
    """Return the score of each row of summed counts, ``(rows, counts)``."""
    return np.array([score(row) for row in sums])


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the lines of a printed table: its first column aligned left, the others right."""
    widths = [max(len(row[i]) for row in rows if len(row) > i) for i in range(max(map(len, rows)))]
    return [
        "  ".join(cell.rjust(widths[i]) if i else cell.ljust(widths[i]) for i, cell in enumerate(row)).rstrip()
        for row in rows
    ]


def _score(name: str, scorer: Scorer, hyps: Texts, refs: References, interval: bool) -> Score:
    check_parallel(hyps, refs)
    statistics = scorer.statistics(hyps, sets_of(refs))
    value = scorer.score(statistics.sum(0))
    if not interval:
        return Score(name, value, scorer.signature(None))
    drawn = [
        scores_of(scorer.score, counts @ statistics)
        for counts in resamples(len(statistics), BOOTSTRAP_SAMPLES, BOOTSTRAP_SEED)
    ]
    # The interval has percentiles as its ends. sacreBLEU's, mean plus and minus half a width, may exceed 100%.
    low, high = np.percentile(np.concatenate(drawn), [2.5, 97.5]).tolist()
    return Score(name, value, scorer.signature(BOOTSTRAP_SAMPLES), low, high)
