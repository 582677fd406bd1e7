"""BLEU, chrF and TER by sacreBLEU, each with the signature that makes it comparable, BLEU with its interval.

``old_style_bleu`` is what older papers quote: both sides lower-cased and tokenised as Moses does, then BLEU on tokens
as they are. It is not comparable with sacreBLEU's; it is named as what it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.ter import TER
from sacrebleu.significance import _bootstrap_resample

from dragoman.errors import ConfigError, DataError, not_installed
from dragoman.languages.codes import primary
from dragoman.languages.known import is_unspaced, known

BOOTSTRAP_SAMPLES = 1000
OLD_STYLE = "old-style BLEU (lower-cased Moses tokens)"


class Score(NamedTuple):
    """One metric: higher is better, but for TER. ``low`` and ``high`` are the 95% bootstrap interval, if asked for."""

    name: str
    value: float  # per cent
    signature: str
    low: float | None = None
    high: float | None = None

    def __str__(self) -> str:
        interval = "" if self.low is None else f"  [{self.low:.2f}, {self.high:.2f}]"
        return f"{self.name} {self.value:.2f}{interval}  {self.signature}"


class _ChrF(CHRF):
    """sacreBLEU's chrF with one kind of number: its bootstrap breaks on Python's floats beside NumPy's."""

    def _compute_score_from_stats(self, statistics: list[int]) -> Any:
        score = super()._compute_score_from_stats(statistics)
        score.score = float(score.score)
        return score


def bleu_metric(tgt_lang: str | None, **options: Any) -> BLEU:
    """sacreBLEU's BLEU as ``bleu`` uses it."""
    return BLEU(**{"tokenize": bleu_tokenizer(tgt_lang), **options})


def chrf_metric() -> CHRF:
    """sacreBLEU's chrF2 as ``chrf`` uses it."""
    return _ChrF()


def ter_metric(tgt_lang: str | None) -> TER:
    """sacreBLEU's TER as ``ter`` uses it; it knows the characters of Chinese and Japanese, but not those of Thai."""
    by_characters = is_unspaced(tgt_lang)
    return TER(asian_support=by_characters, normalized=by_characters)


def token_metric() -> BLEU:
    """sacreBLEU's BLEU on text that is tokenised already."""
    return BLEU(tokenize="none", force=True)


def bleu_tokenizer(lang: str | None) -> str:
    """sacreBLEU's tokeniser for a target language.

    Chinese by characters but for what is written in Latin letters (``zh``); other languages without spaces, such as
    Japanese and Thai, by characters (``char``: 13a would make one word of a sentence); all others as WMT does (13a).
    """
    if known(lang).code == "zh":
        return "zh"
    return "char" if is_unspaced(lang) else "13a"


def bleu(
    hyps: Sequence[str], refs: Sequence[str], tgt_lang: str | None = None, interval: bool = False, **options: Any
) -> Score:
    """Corpus BLEU, cased and detokenised (https://aclanthology.org/W18-6319).

    Args:
        hyps: Translations, one a line.
        refs: References, as many.
        tgt_lang: Chooses the tokeniser, see ``bleu_tokenizer``.
        interval: Also bootstrap the 95% interval, from 1,000 samples with a fixed seed.
        options: For sacreBLEU, such as ``lowercase=True``.

    Raises:
        DataError: The counts differ or there are none.
    """
    _check(hyps, refs)
    return _score("BLEU", bleu_metric(tgt_lang, **options), hyps, refs, interval)


def chrf(hyps: Sequence[str], refs: Sequence[str], interval: bool = False) -> Score:
    """Corpus chrF2, on characters (https://aclanthology.org/W15-3049).

    Raises:
        DataError: The counts differ or there are none.
    """
    _check(hyps, refs)
    return _score("chrF2", chrf_metric(), hyps, refs, interval)


def sentence_chrf(hyps: Sequence[str], refs: Sequence[str]) -> list[float]:
    """chrF2 of each sentence by itself, in per cent.

    Raises:
        DataError: The counts differ or there are none.
    """
    _check(hyps, refs)
    metric = chrf_metric()
    return [float(metric.sentence_score(hyp, [ref]).score) for hyp, ref in zip(hyps, refs, strict=True)]


def ter(hyps: Sequence[str], refs: Sequence[str], tgt_lang: str | None = None, interval: bool = False) -> Score:
    """Translation edit rate; lower is better.

    Raises:
        DataError: The counts differ or there are none.
    """
    _check(hyps, refs)
    return _score("TER", ter_metric(tgt_lang), hyps, refs, interval)


def old_style_bleu(hyps: Sequence[str], refs: Sequence[str], tgt_lang: str) -> Score:
    """Lower-cased BLEU on Moses tokens, as older papers quote; not comparable with ``bleu``.

    Both sides are lower-cased, their punctuation is normalised, and they are cut and escaped as ``tokenizer.perl``
    does; on the 1,000 references of Multi30k's test_2016_flickr that gives the published tokenised file exactly.

    Raises:
        ConfigError: sacremoses is not installed.
        DataError: The counts differ or there are none.
    """
    _check(hyps, refs)
    hyps, refs = moses_tokens(hyps, tgt_lang), moses_tokens(refs, tgt_lang)
    return tokenized_bleu(hyps, refs)


def tokenized_bleu(hyps: Sequence[str], refs: Sequence[str]) -> Score:
    """BLEU on text that is already tokenised: spaces part tokens, nothing else is done."""
    _check(hyps, refs)
    return _score(OLD_STYLE, token_metric(), hyps, refs, False)


def signatures(tgt_lang: str | None) -> dict[str, str]:
    """What sacreBLEU says of BLEU and chrF, by their names in a validation: with which settings they are computed."""
    metrics = {"bleu": bleu_metric(tgt_lang), "chrf": chrf_metric()}
    return {name: _score(name, metric, ["a"], ["a"], interval=False).signature for name, metric in metrics.items()}


def moses_tokens(texts: Sequence[str], lang: str) -> list[str]:
    """Normalise punctuation, tokenise as Moses does, lower-case.

    Raises:
        ConfigError: sacremoses is not installed.
    """
    try:
        from sacremoses import MosesPunctNormalizer, MosesTokenizer
    except ImportError:
        raise ConfigError(not_installed("the old-style BLEU", "sacremoses")) from None
    lang = primary(lang)  # to Moses de-DE is unknown, and what is unknown is English
    normalizer, tokenizer = MosesPunctNormalizer(lang), MosesTokenizer(lang)
    return [tokenizer.tokenize(normalizer.normalize(text.lower()), escape=True, return_str=True) for text in texts]


def _check(hyps: Sequence[str], refs: Sequence[str]) -> None:
    if len(hyps) != len(refs):
        raise DataError(f"{len(hyps):,} translations but {len(refs):,} references: they must be parallel")
    if not hyps:
        raise DataError("there is nothing to score: no lines")


def _score(name: str, metric: Any, hyps: Sequence[str], refs: Sequence[str], interval: bool) -> Score:
    if not interval:
        found = metric.corpus_score(list(hyps), [list(refs)])
        return Score(name, float(found.score), str(metric.get_signature()))
    statistics = metric._extract_corpus_statistics(list(hyps), [list(refs)])
    metric.n_bootstrap = BOOTSTRAP_SAMPLES  # for the signature, as is the seed
    metric.seed, resampled = _bootstrap_resample(statistics, metric, BOOTSTRAP_SAMPLES)
    # percentiles of what sacreBLEU resamples; its own interval, mean ± half, may lie above what a score can be
    low, high = np.percentile([one.score for one in resampled], [2.5, 97.5]).tolist()
    value = float(metric._aggregate_and_compute(statistics).score)
    return Score(name, value, str(metric.get_signature()), low, high)
