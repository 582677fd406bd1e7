"""Noise for training: typing errors and careless writing on the source side, sampled again in each epoch.

    noised("A dog runs.", "Ein Hund läuft.", NoiseConfig(case=0.5), lexicon, random.Random(1))

Noise changes the source and leaves the target, so that the model learns to translate a careless line like the careful
one (https://arxiv.org/abs/1711.02173, https://aclanthology.org/D19-5506). Two kinds change both sides: ``inserts`` adds
the same emoji, address or mask to both, to be copied; ``one_word`` reduces both to one word and its translation. A mask
such as ``[3]`` represents a text that no model can know: translation replaces addresses, placeholders and the like by
masks (``translation.carrying``).

All randomness comes from the ``random.Random`` that the caller passes. Only its ``random()`` is used, whose numbers
Python promises not to change.
"""

from __future__ import annotations

import hashlib
import json
import random
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice, product
from typing import TypeVar

from dragoman.config import NoiseConfig
from dragoman.languages.sentence_ends import ENDS
from dragoman.languages.words import cluster_end, cluster_start, core, count_word, divides_cluster, is_whole

Lexicon = Mapping[str, str]
"""Target word for each source word with a reliable translation; see ``sure_translations``."""

ROWS = "qwertyuiop", "asdfghjkl", "zxcvbnm"
NEIGHBOURS = {
    key: row[max(0, i - 1) : i] + row[i + 1 : i + 2] for row in ROWS for i, key in enumerate(row)
}  # keys to the left and to the right on a keyboard
EMOJI = ["😀", "😂", "😍", "😭", "🙏", "👍", "🎉", "🔥", "❤️", "🤔", "😎", "🐶", "⚽", "🎸", "🌈", "🚲"]
SYLLABLES = ["ba", "be", "di", "fo", "ga", "ha", "jo", "ku", "la", "mi", "ne", "pa", "ro", "sa", "ti", "wu"]
DOMAINS = ["com", "de", "org", "net", "eu", "info", "fr", "co.uk"]

MASK = "[{}]"
"""Form of a mask, which represents a text that must arrive unchanged."""

N_MASKS = 9
"""Number of different masks that a line may have."""

Item = TypeVar("Item")

MIN_COUNT = 5
MIN_DICE = 0.6
MAX_WORDS = 30
MAX_PAIRS = 50_000

FINAL_MARKS = ENDS + "…"


def noised(src: str, tgt: str, noise: NoiseConfig, lexicon: Lexicon, chance: random.Random) -> tuple[str, str]:
    """Return a pair with randomly drawn noise; most pairs stay as they are.

    The kinds of noise are drawn one by one, so a line may get several. An address is added last and keeps its case.
    """
    if chance.random() < noise.one_word:
        src, tgt = one_word(src, tgt, lexicon, chance)
    if chance.random() < noise.typos:
        src = with_typos(src, chance)
    if chance.random() < noise.punctuation:
        src = other_punctuation(src, chance)
    if chance.random() < noise.case:
        src = other_case(src, chance)
    if chance.random() < noise.inserts:
        if chance.random() < 0.5:
            src, tgt = with_masks(src, tgt, lexicon, chance)
        else:
            src, tgt = with_insert(src, tgt, chance)
    return src, tgt


def noised_pairs(
    pairs: Iterable[tuple[str, str]], noise: NoiseConfig, lexicon: Lexicon, seed: int
) -> Iterator[tuple[str, str]]:
    """Return an iterator over the pairs with noise; without changes if ``noise`` is off."""
    if not noise.is_on:
        return iter(pairs)
    chance = random.Random(seed)
    return (noised(src, tgt, noise, lexicon, chance) for src, tgt in pairs)


def fingerprint(noise: NoiseConfig, lexicon: Lexicon) -> str:
    """Return a hash of the settings and the word pairs, to notice if a resumed run has others."""
    return hashlib.sha256(json.dumps([noise.model_dump(), dict(lexicon)], sort_keys=True).encode()).hexdigest()[:16]


def other_case(text: str, chance: random.Random) -> str:
    """Change case at random: ALL CAPITALS, all lower case (a third each), Each Word A Capital, or the first letter."""
    change: Callable[[str], str] = _pick((str.upper, str.upper, str.lower, str.lower, titled, swapped_initial), chance)
    return change(text)


def titled(text: str) -> str:
    """Return text with a capital at each word: ``don't`` becomes ``Don't``, and not ``Don'T``."""
    return " ".join(word[:1].upper() + word[1:] for word in text.split(" "))


def swapped_initial(text: str) -> str:
    """Return text with the case of its first letter swapped."""
    return text[:1].swapcase() + text[1:]


def without_final_mark(text: str) -> str:
    """Return text without final full stops, exclamation and question marks; text with nothing else stays."""
    return _cut_final_mark(text)[0] or text


def _cut_final_mark(text: str) -> tuple[str, str]:
    """Return the text before its final marks, and the marks."""
    # Not by a regular expression, whose time grows with the square of the length.
    body = text.rstrip()
    core = body.rstrip(FINAL_MARKS)
    return (text, "") if core == body else (core.rstrip(), body[len(core) :])


def other_punctuation(text: str, chance: random.Random) -> str:
    """Remove the final mark (most often), set it off by a space or repeat it; add one to a line without."""
    core, mark = _cut_final_mark(text)
    if not mark:
        return text + _pick((".", "!", " .", "..."), chance)
    if chance.random() < 0.7:
        return without_final_mark(text)
    return core + _pick((f" {mark}", mark + mark[-1] * 2), chance)


LONGEST = 2000
"""Number of characters at the start of a line that may get typing errors; much longer lines are dropped in cleaning."""


def with_typos(text: str, chance: random.Random, rate: float = 0.05) -> str:
    """Return text with typing errors in about ``rate`` of the letters, at least one, and none in digits.

    A letter is doubled, left out, swapped with the next or replaced by its neighbour on the keyboard. A space is
    doubled, left out, or added inside a word or around the line. Only the first ``LONGEST`` characters are changed,
    because each error searches all of them.
    """
    text, unchanged = text[:LONGEST], text[LONGEST:]
    n_letters = sum(map(str.isalpha, text))
    for _ in range(max(1, round(2 * rate * n_letters * chance.random()))):
        text = typo(text, chance)
    return text + unchanged


def typo(text: str, chance: random.Random) -> str:
    """Return text with one typing error."""
    if chance.random() < 0.15:
        return _stray_space(text, chance)
    places = [i for i, character in enumerate(text) if character.isalpha()]
    if len(places) < 2:
        return text
    i = _pick(places, chance)
    before, letter, after = text[:i], text[i], text[i + 1 :]
    kind = int(chance.random() * 4)
    near = NEIGHBOURS.get(letter.lower())
    if kind == 0 and near:
        other = _pick(near, chance)
        return before + (other.upper() if letter.isupper() else other) + after
    if kind == 1 and after[:1].isalpha() and not divides_cluster(text, i + 1):
        return before + after[0] + letter + after[1:]
    if kind == 2:  # its marks go with it
        return before + text[cluster_end(text, i + 1) :]
    return before + letter + letter + after


def _stray_space(text: str, chance: random.Random) -> str:
    """Return text with one space too many or too few."""
    spaces = [i for i, character in enumerate(text) if character == " "]
    kind = int(chance.random() * 4)
    if kind == 0 or not spaces:
        return _pick((f" {text}", f"{text} "), chance)
    i = _pick(spaces, chance)
    if kind == 1:
        return text[:i] + text[i + 1 :]
    if kind == 2:
        return f"{text[:i]} {text[i:]}"
    i = cluster_start(text, int(chance.random() * len(text)))
    return f"{text[:i]} {text[i:]}"


def with_insert(src: str, tgt: str, chance: random.Random) -> tuple[str, str]:
    """Return both sides with the same emoji, e-mail or web address before or after them."""
    kind = int(chance.random() * 4)
    insert = _pick(EMOJI, chance) if kind < 2 else _address(web=kind == 2, chance=chance)
    if chance.random() < 0.25:
        return f"{insert} {src}", f"{insert} {tgt}"
    return f"{src} {insert}", f"{tgt} {insert}"


def with_masks(src: str, tgt: str, lexicon: Lexicon, chance: random.Random) -> tuple[str, str]:
    """Return both sides with one to three masks at corresponding places.

    A mask replaces a word and its translation, stands next to them, or stands at an end of the line. Only words that
    occur once on their side are used.
    """
    numbers = sorted(range(1, N_MASKS + 1), key=lambda number: chance.random())
    for number in numbers[: 1 + int(3 * chance.random() ** 2)]:
        mask, kind = MASK.format(number), chance.random()
        sure = [(word, lexicon[word]) for word in words_of(src) if word in lexicon]
        sure = [(word, other) for word, other in sure if count_word(src, word) == count_word(tgt, other) == 1]
        if sure and kind < 0.7:
            shape = "{1}" if kind < 0.35 else _pick(("{0} {1}", "{1} {0}"), chance)
            word, other = _pick(sure, chance)
            src, tgt = (_reshaped(text, part, shape, mask) for text, part in ((src, word), (tgt, other)))
        elif kind < 0.8:
            src, tgt = f"{mask} {src}", f"{mask} {tgt}"
        elif kind < 0.9:
            src, tgt = f"{src} {mask}", f"{tgt} {mask}"
        else:
            src, tgt = (f"{core} {mask}{mark}" for core, mark in map(_cut_final_mark, (src, tgt)))
    return src, tgt


def _reshaped(text: str, word: str, shape: str, mask: str) -> str:
    """Return ``text`` with its only ``word`` replaced by ``shape``, a format of {0} the word and {1} the mask."""
    starts = (match.start() for match in re.finditer(re.escape(word), text))
    start = next(start for start in starts if is_whole(text, start, start + len(word)))
    return text[:start] + shape.format(word, mask) + text[start + len(word) :]


def _address(web: bool, chance: random.Random) -> str:
    """Return a random web or e-mail address."""
    name, place = ("".join(_pick(SYLLABLES, chance) for _ in range(2 + int(2 * chance.random()))) for _ in "ab")
    host = f"{place}.{_pick(DOMAINS, chance)}"
    if web:
        return _pick((f"https://www.{host}/{name}", f"http://{host}", f"www.{host}"), chance)
    return f"{name}{_pick(('', str(int(chance.random() * 100))), chance)}@{host}"


def words_of(text: str) -> list[str]:
    """Return the words between spaces, without the marks around them."""
    return [word for piece in text.split() if (word := _without_marks(piece))]


def _without_marks(piece: str) -> str:
    """Return a word without the characters at its ends that are not letters, digits, their marks or ``_``."""
    start, end = core(piece)
    start, end = len(piece[:start].rstrip("_")), len(piece) - len(piece[end:].lstrip("_"))
    return piece[start:end]


def one_word(src: str, tgt: str, lexicon: Lexicon, chance: random.Random) -> tuple[str, str]:
    """Return a random word of the source and its translation in the target; the pair itself if there is none."""
    tgt_words = set(words_of(tgt))
    candidates = [word for word in words_of(src) if lexicon.get(word) in tgt_words]
    if not candidates:
        return src, tgt
    word = _pick(candidates, chance)
    return word, lexicon[word]


def sure_translations(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return the words of a corpus that nearly always translate each other: ``{source word: target word}``.

    The association of two words is the Dice coefficient 2 c(s, t) / (c(s) + c(t)), where c counts pairs that hold the
    words (https://aclanthology.org/J96-1001). A source word gets the target word of the highest coefficient if this is
    at least ``MIN_DICE``, both words occur in ``MIN_COUNT`` pairs, and the source word is also the best for the target
    word. Words whose translation depends on the sentence, such as articles, get none. Only the first ``MAX_PAIRS``
    pairs with at most ``MAX_WORDS`` words on a side are counted.
    """
    short = ((set(src), set(tgt)) for src, tgt in ((words_of(s), words_of(t)) for s, t in pairs)
             if max(len(src), len(tgt)) <= MAX_WORDS)  # fmt: skip
    counted = list(islice(short, MAX_PAIRS))
    src_counts = Counter(word for src, _ in counted for word in src)
    tgt_counts = Counter(word for _, tgt in counted for word in tgt)
    together: Counter[tuple[str, str]] = Counter()
    for src, tgt in counted:
        together.update(product((word for word in src if src_counts[word] >= MIN_COUNT),
                                (word for word in tgt if tgt_counts[word] >= MIN_COUNT)))  # fmt: skip
    best_of_src: dict[str, tuple[float, str]] = {}
    best_of_tgt: dict[str, tuple[float, str]] = {}
    for (src_word, tgt_word), count in together.items():
        dice = 2 * count / (src_counts[src_word] + tgt_counts[tgt_word])
        best_of_src[src_word] = max(best_of_src.get(src_word, (0.0, "")), (dice, tgt_word))
        best_of_tgt[tgt_word] = max(best_of_tgt.get(tgt_word, (0.0, "")), (dice, src_word))
    return {
        src_word: tgt_word
        for src_word, (dice, tgt_word) in sorted(best_of_src.items())
        if dice >= MIN_DICE and best_of_tgt[tgt_word][1] == src_word
    }


def _pick(items: Sequence[Item], chance: random.Random) -> Item:
    """Return a random item."""
    return items[int(chance.random() * len(items))]
