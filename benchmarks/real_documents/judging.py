"""What a judge reads in a document, and how a translation is compared with its source.

A judge is an independent parser of a format. It turns a file into blocks: stretches of text that belong together, such
as a paragraph. A block has pieces of text, each with the elements around it, and marks that must all arrive.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise

from benchmarks.real_documents.stand_ins import deciphered

WORD = re.compile(r"[^\W_]+")
LATIN_WORD = re.compile(r"(?<![\w./:@$#<{%&=?\\-])(?!https?://)[A-Za-z][a-z]+(?![\w/@=({}\\-]|[.:]\w|://)")
"""A plain word: no part of an address, a name of a file, a placeholder or an identifier."""
CODE_SPAN = re.compile(r"(`{1,3})[^`]+\1|</?\w[\w:-]*(?:\s[^<>]*=[^<>]*)?/?>|\{\"[^{}]*\}|\{#[^{}]*#\}")
"""Code as people write it in text, tags and data that are shown, and comments of templates."""
UNSPACED = re.compile(
    r"[\u2460-\u24ff\u0e00-\u0eff\u1780-\u17ff\u2e80-\u9fff\uf900-\ufaff\uff66-\uff9d\U00020000-\U0003ffff]"
)
"""A character of a script without spaces between words: each counts as a word."""
CYRILLIC = re.compile(r"[а-яА-Я]")


BY_MODEL = ("model", "careless")
"""Modes in which words may be missing anywhere: a judge cannot know which must arrive."""


class UnreadableError(Exception):
    """The judge cannot read the file: nothing is compared."""


@dataclass
class Block:
    """A stretch of text, as a judge reads it."""

    name: str
    """Where it stands: equal in source and translation."""
    pieces: list[tuple[str, str]] = field(default_factory=list)
    """The elements around each piece of text, outermost first (``inside``), and the text."""
    marks: list[str] = field(default_factory=list)
    """What must arrive as often as it was there: tags, code, placeholders."""
    is_text: bool = True
    """False for text that need not be translated, but must not be lost."""
    is_cue: bool = False
    """True for a caption, into which words of its neighbours may come where a language has another order."""

    def add(self, around: str, text: str) -> None:
        """Add text, joined to the last piece if the same elements are around it."""
        if self.pieces and self.pieces[-1][0] == around:
            self.pieces[-1] = around, self.pieces[-1][1] + text
        else:
            self.pieces.append((around, text))

    @property
    def text(self) -> str:
        """All its text, with single spaces."""
        return plain("".join(text for _, text in self.pieces))


Read = Callable[[bytes], list[Block]]
"""A judge. It raises ``UnreadableError`` for a file that its parser refuses."""


@dataclass(frozen=True)
class Fault:
    """Something lost or changed, and nobody told."""

    kind: str
    where: str
    detail: str

    def __str__(self) -> str:
        return f"{self.kind} at {self.where[-60:]}: {self.detail[:160]}"


def names(text: str) -> frozenset[str]:
    """Return the names in a text, which spaces part."""
    return frozenset(text.split())


def plain(text: str) -> str:
    """Return a text with single spaces and without soft hyphens."""
    return " ".join(text.replace("\u00ad", "").split())


_NUMBER = re.compile("\0\\d+")


def inside(around: str, name: str, number: int) -> str:
    """Return the elements around a piece of text, with one more.

    Args:
        around: The others.
        name: What it is called; alike in source and translation.
        number: Tells it from others of this name. Elements beside each other may change places.
    """
    return f"{around}/{name}\0{number}"


def words_of(text: str) -> list[str]:
    """Return the words of a text with the source's letters, sorted."""
    words: list[str] = []
    for word in WORD.findall(deciphered(text)):
        words += UNSPACED.sub(r" \g<0> ", word).split()
    return sorted(words)


def is_unspaced(blocks: Sequence[Block]) -> bool:
    """True if a fifth of the letters are of a script without spaces: the text is of no language like English."""
    text = "".join(block.text for block in blocks if block.is_text)
    return 5 * len(UNSPACED.findall(text)) > sum(map(str.isalpha, text))


def compare(source: Sequence[Block], result: Sequence[Block], mode: str, named: Sequence[str]) -> list[Fault]:
    """Return the faults of a translation.

    Args:
        source, result: Blocks of the document and of its translation.
        mode: Name of the stand-in.
        named: Texts that the report says were left untranslated.
    """
    names, translated_names = ([block.name for block in blocks] for blocks in (source, result))
    if names != translated_names:
        i = next((i for i, pair in enumerate(zip(names, translated_names, strict=False)) if pair[0] != pair[1]), -1)
        i = min(len(names), len(translated_names)) if i < 0 else i
        before = source[i].name if i < len(source) else "the end"
        after = result[i].name if i < len(result) else "the end"
        return [Fault("structure", before, f"{len(names)} blocks became {len(translated_names)}; there: {after}")]
    told = [plain(text) for text in named]
    faults = []
    for before, after in zip(source, result, strict=True):
        faults += _compared(before, after, mode, told)
    return faults


def _compared(before: Block, after: Block, mode: str, told: Sequence[str]) -> list[Fault]:
    if Counter(before.marks) != Counter(after.marks):
        lost, new = Counter(before.marks) - Counter(after.marks), Counter(after.marks) - Counter(before.marks)
        return [Fault("marks", before.name, f"lost {list(lost)[:3]}, new {list(new)[:3]} in {before.text[:60]!r}")]
    if not before.is_text:
        same_text = before.text == after.text
        return [] if same_text else [Fault("changed", before.name, f"{before.text[:70]!r} became {after.text[:70]!r}")]
    if mode in BY_MODEL:
        return _by_model(before, after, told)
    if mode == "same":
        texts = [
            [(_NUMBER.sub("", around), plain(text)) for around, text in block.pieces if text.strip()]
            for block in (before, after)
        ]
        if texts[0] != texts[1]:
            return [Fault("text", before.name, f"{before.text[:70]!r} became {after.text[:70]!r}")]
        return []
    if before.is_cue and mode == "reversed":
        emptied = words_of(before.text) and not words_of(after.text)
        return [Fault("emptied", before.name, repr(before.text[:80]))] if emptied else []
    faults = _pieces(before, after, _divided(before) if mode == "reversed" else Counter())
    words = CODE_SPAN.sub("", before.text)
    if not faults and LATIN_WORD.search(words) and not CYRILLIC.search(after.text) and not _is_told(before, told):
        faults.append(Fault("untranslated", before.name, repr(before.text[:100])))
    return faults


def _by_model(before: Block, after: Block, told: Sequence[str]) -> list[Fault]:
    """Return the faults that are seen without knowing the words: what is empty, and whole texts that stayed."""
    own, translated = _with_words(before), _with_words(after)
    if words_of(before.text) and not words_of(after.text):
        return [Fault("emptied", before.name, f"{before.text[:70]!r} became {after.text[:70]!r}")]
    for around, n in (own - translated).items():
        detail = f"{n} of {own[around]} inside {around[-50:]!r}; {before.text[:50]!r} became {after.text[:50]!r}"
        return [Fault("emptied", before.name, detail)]
    is_left = stayed(before.text, after.text, "model") and not _is_told(before, told)
    return [Fault("untranslated", before.name, repr(before.text[:100]))] if is_left else []


def stayed(before: str, after: str, mode: str) -> bool:
    """True if a text was not translated: a stand-in writes Cyrillic, and a model changes at least some words."""
    if mode in BY_MODEL:
        words = CODE_SPAN.sub(" ", before)
        return plain(before) == plain(after) and len(LATIN_WORD.findall(words)) >= LEAST_WORDS
    return mode != "same" and not CYRILLIC.search(after)


LEAST_WORDS = 4
"""Number of words from which a text that a model returned as it was counts as untranslated."""


def _with_words(block: Block) -> Counter[str]:
    """Return for each kind and place of elements how many of them have words, also in elements inside them."""
    around = {around for around, text in block.pieces if words_of(text)}
    elements = {place[: match.end()] for place in around for match in _NUMBER.finditer(place)}
    return Counter(_NUMBER.sub("", place) for place in elements)


_CODE = re.compile("\\]\\]|[\ue100-\uf100]")
_RUN = re.compile(r"\S+")


def _divided(block: Block) -> Counter[str]:
    """Return the words of a word that an element ends inside, as in ``[PEP 440](url)-compliant``, or that has code.

    When it moves, it moves whole: which side of the element's end its parts come to is not to be judged.
    """
    divided: Counter[str] = Counter()
    texts = [text for _, text in block.pieces if text]
    whole, edges = "".join(texts), {0, *accumulate(map(len, texts))}
    for match in _RUN.finditer(whole):
        if any(UNSPACED.match(char) for char in match[0] if char.isalnum()) or not WORD.search(match[0]):
            continue
        cuts = [at for at in range(match.start() + 1, match.end()) if at in edges]
        if not cuts and not _CODE.search(match[0]):
            continue
        ends = [match.start(), *cuts, match.end()]
        for part in [*(whole[start:end] for start, end in pairwise(ends)), match[0], _CODE.sub("", match[0])]:
            divided.update(words_of(part))
    return divided


def _pieces(before: Block, after: Block, divided: Counter[str]) -> list[Fault]:
    """Compare the words inside each element; those beside each other may have changed places."""
    own, translated = _by_element(before, divided), _by_element(after, divided)
    for around in own.keys() | translated.keys():
        keys = [Counter(_key(words, divided) for words in some[around]) for some in (own, translated)]
        if keys[0] == keys[1] and len(own[around]) == len(translated[around]):
            continue
        lost, new = (
            sum(a, Counter()) - sum(b, Counter())
            for a, b in ((own[around], translated[around]), (translated[around], own[around]))
        )
        is_emptied = len(translated[around]) < len(own[around])
        kind = "emptied" if is_emptied else "words lost" if lost and not new else "words moved"
        detail = f"inside {around[-50:]!r} lost {list(lost)[:4]}, new {list(new)[:4]}; {before.text[:50]!r} became "
        return [Fault(kind, before.name, detail + repr(after.text[:50]))]
    return []


def _key(words: Counter[str], divided: Collection[str]) -> frozenset[tuple[str, int]]:
    return frozenset((word, n) for word, n in words.items() if word not in divided)


def _by_element(block: Block, divided: Counter[str]) -> dict[str, list[Counter[str]]]:
    """Return the words of the elements of each kind and place but for divided ones, without those that have none."""
    elements: dict[str, Counter[str]] = defaultdict(Counter)
    for around, text in block.pieces:
        elements[around].update(word for word in words_of(text) if word not in divided)
    result: dict[str, list[Counter[str]]] = defaultdict(list)
    for around, words in elements.items():
        if words:
            result[_NUMBER.sub("", around)].append(words)
    return result


def _is_told(block: Block, told: Sequence[str]) -> bool:
    """True if the report names a text that has the block's words, or a part of the block's text."""
    text = block.text
    words = {word for _, piece in block.pieces for word in WORD.findall(re.sub(r"\{[^{}]*\}|\u00ad", "", piece))}
    others = [(other, set(WORD.findall(other))) for other in told]
    return any(
        words <= own or (own <= words and 2 * len(own) > len(words)) or (len(other) > 3 and other in text)
        for other, own in others
    )
