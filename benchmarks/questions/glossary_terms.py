"""Draws terms for glossaries from real sentences by a rule, with the words that render them without a glossary."""

from __future__ import annotations

import itertools
import random
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.word_alignment import Aligned, align, span_of, words_of
from dragoman.data.corpus import read_lines
from dragoman.languages.known import known
from dragoman.languages.words import count_word
from dragoman.translation.translator import Translator

TERMS = 300
SEED = 40
READ = 60_000
"""Number of pairs of Tatoeba's training text that the aligner reads, besides all of Multi30k's."""

USUAL = 0.1  # least probability of a usual rendering of a word
ARTIFICIAL = ("Zorbel", "Quintar", "Blemosch", "Vrandik", "Ulpena", "Trofeng")
ENGLISH_ARTICLES = {"a", "an", "the"}
SMALL = (
    "in on at by of off up out down over under into onto through near from with without as its his her their my "
    "your our some two three four five six one other another there here now very too so no not i me him us them was "
    "were will in an am im um ins aus vor zwei drei vier fünf viele seine ihre ihr sein seinem seinen ihrem ihren "
    "seiner ihrer während hinter neben unter vorbei entlang dort hier jetzt sehr gerade"
)
"""Small words of English and German that the lists of stop words do not have."""

ARTICLES = {f"{stem}{end}" for stem in ("ein", "kein") for end in ("", "e", "en", "em", "er", "es")}
ARTICLES |= {"der", "die", "das", "den", "dem", "des"}
KINDS = ("noun", "article noun", "adjective noun", "article adjective noun", "compound", "verb")
SETS = {"multi30k": "test_2016_flickr", "tatoeba-en-de": "dev"}


@dataclass(frozen=True)
class Case:
    """A sentence with a term, and its translation without a glossary."""

    corpus: str
    src: str
    ref: str
    plain: str
    term: str
    gold: tuple[int, int]  # characters of ``plain`` that render the term
    replacement: str
    kind: str
    source: str  # of the replacement: artificial, other or reference

    @property
    def rendering(self) -> str:
        """Words that must go."""
        return self.plain[slice(*self.gold)]


@dataclass(frozen=True)
class Corpora:
    """All that the rule draws from: sentences to translate, and what the judge learned."""

    names: list[str]
    src: list[str]
    ref: list[str]
    plain: list[str]
    to_plain: list[set[tuple[int, int]]]
    to_ref: list[set[tuple[int, int]]]
    table: dict[str, dict[str, float]]
    train: list[tuple[list[str], list[str], set[tuple[int, int]]]]
    with_word: dict[str, list[int]]  # pairs of ``train`` with this source word
    unspaced: bool
    function_words: frozenset[str]

    def renders(self, term: Sequence[str], rendering: str) -> bool:
        """True if the training text translates the term like this at least twice, and in 1 of 20 cases."""
        wanted, low = [word.lower() for word in term], rendering.lower()
        n, seen, same = len(wanted), 0, 0
        rarest = min(wanted, key=lambda word: len(self.with_word.get(word, ())))
        for src, tgt, links in (self.train[i] for i in self.with_word.get(rarest, ())):
            for start in range(len(src) - n + 1):
                if src[start : start + n] == wanted:
                    span = span_of(links, start, start + n)
                    seen += span is not None
                    joined = ("" if self.unspaced else " ").join(tgt[slice(*span)]) if span else ""
                    same += joined == low
        return same >= 2 and same >= 0.05 * seen


def words(text: str, unspaced: bool = False) -> list[str]:
    """Return the words of a text as the judge cuts it."""
    return [text[start:end] for start, end in words_of(text, unspaced)]


def read(data: Path, translator: Translator, corpora: dict[str, str], tgt: str) -> Corpora:
    """Translate the sentences without a glossary, and align everything."""
    unspaced = tgt in ("zh", "ja", "th")
    train, names, src, ref = [], [], [], []
    for corpus, test in corpora.items():
        texts = [list(read_lines(data / corpus / f"train.{lang}")) for lang in ("en", tgt)]
        pairs = list(zip(*texts, strict=True))
        train += pairs if len(pairs) <= READ else random.Random(SEED).sample(pairs, READ)
        some, others = ([*read_lines(data / corpus / f"{test}.{lang}")] for lang in ("en", tgt))
        src, ref, names = src + some, ref + others, names + [corpus] * len(some)
    plain = [translation.text for translation in translator.translate(src)]
    every = [*train, *zip(src, plain, strict=True), *zip(src, ref, strict=True)]
    left = [words(text) for text, _ in every]
    right = [words(text, unspaced) for _, text in every]
    aligned: Aligned = align(left, right)
    n, m = len(train), len(src)
    lowered = [([w.lower() for w in a], [w.lower() for w in b]) for a, b in zip(left[:n], right[:n], strict=True)]
    with_word: dict[str, list[int]] = {}
    for i, (own, _) in enumerate(lowered):
        for word in set(own):
            with_word.setdefault(word, []).append(i)
    language = known(tgt)
    return Corpora(
        names, src, ref, plain, aligned.links[n : n + m], aligned.links[n + m :], aligned.table,
        [(*pair, links) for pair, links in zip(lowered, aligned.links[:n], strict=True)], with_word,
        unspaced, frozenset(language.stop_words.split() if language else ()) | ARTICLES | {*SMALL.split()},
    )  # fmt: skip


def cases(corpora: Corpora, count: int = TERMS) -> list[Case]:
    """Draw terms: equally many of each corpus, kind and source of replacement, as far as there are any."""
    order = list(range(len(corpora.src)))
    rng = random.Random(SEED)
    rng.shuffle(order)
    others = _others(corpora)
    taken: Counter[tuple[str, str, str]] = Counter()
    most = -(-count // (len(KINDS) * 3 * len(set(corpora.names))))
    chosen: list[Case] = []
    for rounds in (1, 2, 8):  # kinds that are rare leave room to others
        for i in order:
            if len(chosen) >= count:
                return chosen
            if any(case.src == corpora.src[i] for case in chosen):
                continue
            options = sorted(
                _drawn(corpora, i, others, rng), key=lambda case: taken[case.corpus, case.kind, case.source]
            )
            for case in options:
                key = case.corpus, case.kind, case.source
                if taken[key] < rounds * most and corpora.renders(words(case.term), _spelled(case, corpora)):
                    taken[key] += 1
                    chosen.append(case)
                    break
    return chosen


def _spelled(case: Case, corpora: Corpora) -> str:
    return ("" if corpora.unspaced else " ").join(words(case.rendering, corpora.unspaced))


def _others(corpora: Corpora) -> dict[str, list[str]]:
    """Return words of the corpus by the article that they follow most often, and verbs by their ending."""
    before: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for text in corpora.ref:
        own = words(text, corpora.unspaced)
        for left, word in itertools.pairwise(own):
            if word[0].isupper() and left.lower() in ARTICLES:
                before[word][left.lower()] += 1
            elif word.islower() and len(word) > 4 and word.endswith("t"):
                before[word]["t"] += 1
    groups: dict[str, list[str]] = defaultdict(list)
    for word, articles in sorted(before.items()):
        if articles.total() >= 3:
            groups[articles.most_common(1)[0][0]].append(word)
    return groups


def _drawn(corpora: Corpora, i: int, others: dict[str, list[str]], rng: random.Random) -> Iterator[Case]:
    """Yield the terms of one sentence that the rule allows, each with one replacement."""
    src, plain = corpora.src[i], corpora.plain[i]
    src_spans, spans = words_of(src), words_of(plain, corpora.unspaced)
    for n in (1, 2, 3, 4):
        for first in range(len(src_spans) - n + 1):
            start, end = src_spans[first][0], src_spans[first + n - 1][1]
            term = src[start:end]
            span = span_of(corpora.to_plain[i], first, first + n)
            if span is None or count_word(src, term) != 1 or (first == 0 and n == 1) or not _is_tidy(term):
                continue
            linked = {t for _, t in corpora.to_plain[i]}
            if any(t not in linked for t in (span[0] - 1, span[1]) if 0 <= t < len(spans)):
                continue  # it might belong to the rendering
            gold = spans[span[0]][0], spans[span[1] - 1][1]
            rendering = plain[slice(*gold)]
            kind = _kind(words(term), words(rendering, corpora.unspaced), corpora, first == 0)
            if kind is None or count_word(plain, rendering) != 1:
                continue
            for source in ("artificial", "other", "reference"):
                replacement = _replacement(source, corpora, i, (first, first + n), rendering, others, rng)
                if replacement is not None and not count_word(plain, replacement):
                    yield Case(corpora.names[i], src, corpora.ref[i], plain, term, gold, replacement, kind, source)


def _is_tidy(text: str) -> bool:
    return all(character.isalpha() or character in " -'" for character in text)


def _kind(term: list[str], rendering: list[str], corpora: Corpora, at_start: bool) -> str | None:
    """Return the kind of a term by the shape of both sides; None if it is none of them."""
    has_article = term[0].lower() in ENGLISH_ARTICLES
    bare = [word.lower() for word in term[has_article:]]
    stop_words = english_stop_words()
    if not bare or any(word in stop_words for word in bare[:-1] if word not in ("is", "are")):
        return None
    is_verb = bare[-1].endswith("ing") or (len(bare) == 1 and bare[0].endswith("s"))
    if corpora.unspaced:
        if bare[-1] in stop_words or len(bare) > 2:
            return None
        return ("article " if has_article else "") + ("adjective noun" if len(bare) > 1 else "noun")
    if has_article != (rendering[0].lower() in ARTICLES):
        return None
    out = rendering[has_article:]
    if not out or bare[-1] in stop_words:
        return None
    if not has_article and out[-1].islower() and len(out) == 1 and is_verb and out[0] not in corpora.function_words:
        return "verb"
    if bare[0] in ("is", "are") or not out[-1][0].isupper() or (at_start and not has_article):
        return None
    if len(out) == 1 and len(bare) > 1:
        return "compound"
    if len(out) == 1 and len(bare) == 1:
        return "article noun" if has_article else "noun"
    if len(bare) >= 2 and all(word.islower() and word not in corpora.function_words for word in out[:-1]):
        return "article adjective noun" if has_article else "adjective noun"
    return None


def english_stop_words() -> frozenset[str]:
    language = known("en")
    return frozenset(language.stop_words.split() if language else ()) | ENGLISH_ARTICLES | {*SMALL.split()}


def _replacement(
    source: str, corpora: Corpora, i: int, term: tuple[int, int], rendering: str, others: dict[str, list[str]],
    rng: random.Random,
) -> str | None:  # fmt: skip
    """Return what the glossary shall say: with the same article if the rendering has one."""
    own = words(rendering, corpora.unspaced)
    article = own[0] + " " if own[0].lower() in ARTICLES and not corpora.unspaced else ""
    is_verb = own[-1].islower() and not corpora.unspaced
    if source == "artificial":
        word = rng.choice(ARTIFICIAL)
        return article + (word.lower() + "t" if is_verb else word)
    if source == "other":
        if corpora.unspaced:
            return None
        group = next((name for name, some in sorted(others.items()) if own[-1] in some), None)
        some = [word for word in others.get(group or "", ()) if word != own[-1] and word not in corpora.ref[i]]
        return article + rng.choice(some) if some else None
    span = span_of(corpora.to_ref[i], *term)
    if span is None:
        return None
    spans = words_of(corpora.ref[i], corpora.unspaced)
    text = corpora.ref[i][spans[span[0]][0] : spans[span[1] - 1][1]]
    content = [word for word in words(text, corpora.unspaced) if word.lower() not in corpora.function_words]
    if not content or not _is_tidy(text) or any(word in words(corpora.plain[i], corpora.unspaced) for word in content):
        return None
    has_article = words(text)[0].lower() in ARTICLES if words(text) else False
    return None if not corpora.unspaced and has_article != bool(article) else text
