"""Functions of the product that say where words begin and end, asked about one word: the places where they cut it.

for name, cuts in FUNCTIONS.items():
    cuts("राजा")      # such as {2}: the function ends or begins a word after two characters
"""

from __future__ import annotations

import random
import unicodedata
from collections.abc import Callable, Iterable

import regex

from dragoman.data import noise
from dragoman.decoding import words as alignment_words
from dragoman.decoding.constraints import Spelling, completing
from dragoman.documents.units import AlignedText, Tag, Translations, Unit, write
from dragoman.explanation import words as explanation_words
from dragoman.languages import stopwords
from dragoman.languages.words import count_word, is_whole
from dragoman.translation import faults
from dragoman.translation.keeping.cutting import put_back, without
from dragoman.translation.keeping.glossary import Glossary
from dragoman.translation.keeping.protected import find
from dragoman.translation.segments import split_text
from script_texts import is_spaced


def _edges(word: str, parts: Iterable[str]) -> set[int]:
    """Return the places inside a word where one of its parts, in order, begins or ends."""
    edges, end = set[int](), 0
    for part in parts:
        start = word.find(part, end)
        if start < 0:
            return {1}  # no part of the word at all
        end = start + len(part)
        edges |= {start, end}
    return edges - {0, len(word)}


def _inner(word: str) -> range:
    return range(1, len(word))


def _parts(word: str, place: int) -> list[str]:
    """Return the beginning and the end of a word that a place parts, if it has them nowhere else."""
    return [part for part in (word[:place], word[place:]) if word.count(part) == 1]


def _is_whole(word: str) -> set[int]:
    return {place for place in _inner(word) if is_whole(word, 0, place) or is_whole(word, place, len(word))}


def _count_word(word: str) -> set[int]:
    return {place for place in _inner(word) if any(count_word(word, part) for part in _parts(word, place))}


def _loops(word: str) -> set[int]:
    """Ask the guard about a word said twice, which is no loop, and ten times, of which whole words stay."""
    twice = f"{word} {word}"
    if faults.without_loops("x", twice) != twice or faults.is_loop("x", twice):
        return {1}
    return _edges(word, faults.without_loops("x", " ".join([word] * 10)).split())


def _pairs(word: str) -> set[int]:
    """Ask the guard about two words that are said twice, such as kinship terms: they are no loop."""
    phrase = f"{word} {_other(word)} {word} {_other(word)}"
    is_asked = is_spaced(word) and _other(word) != word
    return {1} if is_asked and faults.without_loops("x", phrase) != phrase else set()


def _other(word: str) -> str:
    """Return another word of the same script: its clusters in the opposite order."""
    return "".join(reversed(regex.findall(r"\X", word)))


def _letters(word: str) -> set[int]:
    """Ask the guard about a word whose last characters come again and again, but not as one stack of consonants."""
    if unicodedata.combining(word[-1]) == 9:
        return set()
    text = faults.without_runs("x", word + word[-2:] * 12)
    return _edges(word, [text]) if len(text) < len(word) else set()


def _repetition(word: str) -> set[int]:
    """Ask for the repetition in a text with fewer words than are needed to tell."""
    return {1} if is_spaced(word) and faults.repetition(" ".join([word] * 23)) else set()


def _ordinary_words(word: str) -> set[int]:
    return _edges(word, faults.ordinary_words(word))


def _neighbours(word: str) -> set[int]:
    pairs = faults.neighbours(f"{word} {word}")
    return _edges(word, [part for pair in pairs for part in pair.split()][:1])


def _noise_words(word: str) -> set[int]:
    return _edges(word, noise.words_of(f"({word})।"))


def _lexicon(word: str) -> set[int]:
    pairs = [("king", f"{word}."), ("dog", "b")] * 6
    return _edges(word, [noise.sure_translations(pairs).get("king", word)])


def _one_word(word: str) -> set[int]:
    pair = noise.one_word("the king", f"{word}.", {"king": word}, random.Random(1))
    cut = noise.one_word("the king", f"{word}.", {"king": word[:-1]}, random.Random(1))
    return _edges(word, [pair[1].strip(".")]) if pair == cut else set() if cut[0] == "the king" else {len(word) - 1}


def _masks(word: str) -> set[int]:
    """Ask noise to put a mask in the place of a part of the word: it finds no such word."""
    cut = set()
    for place in (1, len(word) - 1):
        if word[:place] not in _parts(word, place):
            continue
        for seed in range(3):
            _, tgt = noise.with_masks("the king", word, {"king": word[:place]}, random.Random(seed))
            cut |= {place} if word not in tgt else set()
    return cut


def _typing_errors(word: str) -> set[int]:
    """Ask noise for a space inside the word, and for a letter too few: a cluster stays whole, or goes as a whole."""
    cut = set()
    for seed in range(25):
        text = noise.typo(f"{word} x", random.Random(seed))
        if text.replace(" ", "") == f"{word}x":
            cut |= _edges(word, text.strip().split(" ")[:1])
        elif len(text) < len(word) + 2 and text[0] != word[0] and unicodedata.category(text[0])[0] == "M":
            cut.add(1)
    return cut


def _glossary(word: str) -> set[int]:
    return {place for place in _inner(word) if any(Glossary([(part, "X")]).find(word) for part in _parts(word, place))}


def _exclude(word: str) -> set[int]:
    """Ask the search for the subwords that complete an excluded word: none that goes on with it."""
    cut = set()
    for place in _inner(word):
        head, tail = word[:place].encode(), word[place:].encode()
        spelling = Spelling([b" " + head + tail, head + tail, tail])
        if word.count(word[:place]) == 1:
            cut |= {place} if {0, 1} & {*completing(b"", head, spelling), *completing(b" ", head, spelling)} else set()
        cut |= {place} if completing(head, tail, spelling) else set()
    return cut


def _include(word: str) -> set[int]:
    """Ask the search for the subwords that may not follow an included word: those that would continue it."""
    tails = [word[place:].encode() for place in _inner(word)]
    cut = set()
    for place, tail in zip(_inner(word), tails, strict=True):
        cut |= set() if Spelling([tail]).gluing(word[:place].encode()) else {place}
    return cut


def _hashtag(word: str) -> set[int]:
    return _edges(word, [span.text.lstrip("#") for span in find(f"#{word} is") if span.text.startswith("#")])


def _characters(word: str) -> set[int]:
    """Ask for the words of a language without spaces, where a word is a character: its whole cluster."""
    return {start for start, _ in alignment_words.word_spans(word, True)} - {0}


def _spaced_words(word: str) -> set[int]:
    return _edges(word, [word[start:end] for start, end in alignment_words.word_spans(f"{word} {word}")[:1]])


def _doctor_words(word: str) -> set[int]:
    return _edges(word.lower(), stopwords.words_of(word))


def _explained_words(word: str) -> set[int]:
    pieces = [character.encode() for character in word]
    return {start for start, _ in explanation_words.word_spans(pieces)} - {0}


def _cut_out(word: str) -> set[int]:
    """Ask for a tag inside a word that the translation does not have: it is put at an end of a word."""
    spans = find(f"a<b>{word}")
    bare, cuts = without(f"a<b>{word}", spans)
    text = put_back(bare, cuts, word, ((0, 0),), (False, False), first=1)
    return _edges(word, text.replace(" ", "").split("<b>"))


def _tags(word: str) -> set[int]:
    """Ask for tags around a word with a mark behind: they enclose all of it."""
    unit = Unit("word!", [Tag(0, ("<b>",), "open", "b"), Tag(4, ("</b>",), "close", "b")], escape=str)
    text = write([unit], Translations({"word!": AlignedText(f"{word}!", ((0, 0),))}))
    return _edges(word, [text.partition("<b>")[2].partition("</b>")[0]])


def _styles(word: str) -> set[int]:
    unit = Unit("word!", escape=str, styles=(("", ""), ("<b>", "</b>"), ("<i>", "</i>")), styled=[(0, 4, 1), (4, 5, 2)])
    text = write([unit], Translations({"word!": AlignedText(f"{word}!", ((0, 0),))}))
    return _edges(word, [text.partition("<b>")[2].partition("</b>")[0]])


def _line_breaks(word: str) -> set[int]:
    unit = Unit("two lines", [Tag(4, ("\n",), share=0.5)], escape=str)
    text = write([unit], Translations({"two lines": AlignedText(word, ((0, 0),))}, tgt_unspaced=True))
    return _edges(word, text.split("\n"))


def _halves(word: str) -> set[int]:
    """Ask for the parts of a text that is too long for the model and has no space."""
    return _edges(word, split_text(word, 6, lambda texts: [len(text) for text in texts]))


CLUSTERS_ONLY = (
    "guard: a repeated letter", "noise: typing errors", "alignment: characters", "documents: line breaks", "long lines"
)  # fmt: skip
"""Functions that may cut a word, but none of its clusters."""

FUNCTIONS: dict[str, Callable[[str], set[int]]] = {
    "is_whole": _is_whole,
    "count_word": _count_word,
    "guard: a word said twice": _loops,
    "guard: two words said twice": _pairs,
    "guard: a repeated letter": _letters,
    "guard: repetition": _repetition,
    "guard: copies": _ordinary_words,
    "confidence: neighbours": _neighbours,
    "noise: words": _noise_words,
    "noise: lexicon": _lexicon,
    "noise: one word": _one_word,
    "noise: masks": _masks,
    "noise: typing errors": _typing_errors,
    "glossary": _glossary,
    "exclude": _exclude,
    "include": _include,
    "hashtags": _hashtag,
    "alignment: characters": _characters,
    "alignment: words": _spaced_words,
    "doctor: words": _doctor_words,
    "explain: words": _explained_words,
    "put back": _cut_out,
    "documents: tags": _tags,
    "documents: styles": _styles,
    "documents: line breaks": _line_breaks,
    "long lines": _halves,
}
