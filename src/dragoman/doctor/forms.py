"""Faults of form: a line that is written as nobody would type it, and its repair.

    form = Form("de", ("latin",))
    form.faults("Der Hund bellt&nbsp;laut .")                  # ["entity"]
    form.repaired("Der kluge Leh@@ rer", {"subword-marks"})    # "Der kluge Lehrer"

A repair of one line needs nothing but the line and its language. What only a whole file shows, such as a column that
was left in, is in ``columns.py``.
"""

from __future__ import annotations

import functools
import itertools
import re
import unicodedata
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from dragoman.data.encodings import WESTERN, WRITTEN_IN
from dragoman.languages.codes import primary
from dragoman.languages.known import is_unspaced
from dragoman.languages.scripts import (
    alphabet,
    has_entity,
    has_foreign_letters,
    has_mojibake,
    lookalikes,
    plain_letters,
    without_entities,
    without_mojibake,
)

_BEHIND_ENTITIES = ("control", "normal-form", "no-break-words", "invisible")
"""Kinds of faults that may come to light where entities such as ``&nbsp;`` and ``&shy;`` are decoded."""

FULL_WIDTH = re.compile(r"[\uff21-\uff3a\uff41-\uff5a][\uff01-\uff5e\u3000]")
"""Two full-width characters, of which the first is a Latin letter."""
_WIDE = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)} | {0x3000: 0x20}

SUBWORD_MARKS = re.compile(r"(?:@@|\uffed)(?= |$)|(?<= )\uffed|(?:^|(?<= ))\u2581(?=\S)|(?<= )##(?=[^\W_])")
"""Marks of subwords: of subword-nmt, OpenNMT's tokenizer, SentencePiece and WordPiece."""
_JOINED = re.compile(r"(?:@@|\uffed) | \uffed| ##(?=[^\W_])|(?:@@|\uffed)$")

_LETTERS = re.compile(r"[^\W\d_]+")
_SPACE_BETWEEN = re.compile(r"(?<=[^\W\d_])[\u00a0\u2007\u202f](?=[^\W\d_])")
_SPACE_OF_WORDS = re.compile(r"(?<![\d«„])[\u00a0\u2007\u202f](?![\d;:!?»%‰°€$£])")
"""No-break spaces but those that typographers put beside numbers and French marks."""
_ALWAYS_UNSEEN, _BREAK = "\u00ad\u2060\ufeff", "\u200b"
_DIRECTIONS = "\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
"""Invisible characters: those of no writing, what divides words in Khmer and Thai, and direction marks."""
_SEPARATORS = re.compile(r"[\x0b-\x0d\x1c-\x1f\x85\u2028\u2029]+")
_CONTROLS = re.compile(r"[\x00-\x08\x0e-\x1b\x7f-\x9f]+")

ELEMENTS_IN_WORDS = "a b big code em font i img s small span strong sub sup tt u"
"""Elements that may stand within a word; the others divide a text."""
ELEMENTS = (
    f"{ELEMENTS_IN_WORDS} blockquote br center div h1 h2 h3 h4 h5 h6 hr li ol p pre table tbody td th thead tr ul"
)
TAG = re.compile(rf"</?({'|'.join(ELEMENTS.split())})(?:\s[^<>]{{0,300}})?/?>", re.IGNORECASE)
"""A tag of a web page; its group is the name."""

_CHINESE = r"\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
"""Chinese characters and kana, for a class."""
_WORD_BEFORE = r"(?<=[\w\u0300-\u1fff])"  # the vowel signs of Hindi and the like are no \w
_SPACED_REST = (
    rf"{_WORD_BEFORE} [،؛؟](?= |$)|(?<=[{_CHINESE}]) [。，？！；：、]|[(\[] (?=\w)|{_WORD_BEFORE} [)\]](?=\W|$)"
)
_SPACED = re.compile(rf"{_WORD_BEFORE} [.,;:!?](?= |$)|{_SPACED_REST}")
"""A mark with a space where no typist has one, as tokenizers leave it; before a danda or ۔ many typists have one."""
_SPACED_FRENCH = re.compile(rf"{_WORD_BEFORE} [.,](?= |$)|{_SPACED_REST}")
_MARKED = re.compile(rf"{_WORD_BEFORE}[.,;:!?)\]।۔،؛؟](?= |$)|(?<=[{_CHINESE}])[。，？！；：、]|[(\[](?=\w)")
"""The same marks as people type them."""
_APART = re.compile(rf"(?<=[{_CHINESE}]) (?=[{_CHINESE}])")
_TOGETHER = re.compile(rf"[{_CHINESE}](?=[{_CHINESE}])")
"""Chinese characters or kana with a space between them, and without."""


class Form(NamedTuple):
    """One side of a corpus: its language and its scripts."""

    lang: str | None
    scripts: tuple[str, ...]

    @property
    def has_wide_letters(self) -> bool:
        """True if full-width letters are part of the writing."""
        return bool({"han", "kana", "hangul"} & set(self.scripts))

    @property
    def is_latin(self) -> bool:
        """True if the language is written in Latin letters."""
        return self.scripts == ("latin",)

    @property
    def has_invisible_breaks(self) -> bool:
        """True if zero-width spaces are part of the writing: they divide the words of Khmer, Thai, Lao and Burmese."""
        return "thai" in self.scripts or (is_unspaced(self.lang) and not self.has_wide_letters)

    @property
    def has_directions(self) -> bool:
        """True if direction marks are part of the writing, as they are of one from right to left."""
        return bool({"arabic", "hebrew"} & set(self.scripts))

    @property
    def _unseen(self) -> dict[int, None]:
        return _unseen(self.has_invisible_breaks, self.has_directions)

    def has_unseen(self, text: str) -> bool:
        """True if a line has invisible characters that are no part of the writing."""
        return text.translate(self._unseen) != text

    def faults(self, text: str) -> Iterator[str]:
        """Yield the names of the faults of a line."""
        if SUBWORD_MARKS.search(text):
            yield "subword-marks"
        if has_entity(text):
            yield "entity"
        if text.isascii():
            return
        if has_mojibake(text) or self._as_decoded(text) is not None:
            yield "mojibake"
        elif not self.has_wide_letters and FULL_WIDTH.search(text):
            yield "full-width"
        if len(composed(text)) < len(text):
            yield "normal-form"
        if _SPACE_BETWEEN.search(text):
            yield "no-break-words"
        alone = self.is_latin and not has_foreign_letters(text)
        if any(_is_mixed(word, alone) for word in _LETTERS.findall(text)):
            yield "mixed-script"

    def repaired(self, text: str, names: Collection[str]) -> str:
        """Return a line without the faults of the named kinds."""
        if "mojibake" in names and not text.isascii():
            text = without_mojibake(text) if has_mojibake(text) else self._as_decoded(text) or text
        if "entity" in names and has_entity(text):
            text = without_entities(text).replace("\n", " ")
            names = {*names, *_BEHIND_ENTITIES}
        if "subword-marks" in names and SUBWORD_MARKS.search(text):
            text = without_subword_marks(text)
        if text.isascii() and "control" not in names:
            return text
        if "control" in names:
            text = _CONTROLS.sub("", _SEPARATORS.sub(" ", text))
        if "full-width" in names and not self.has_wide_letters and FULL_WIDTH.search(text):
            text = text.translate(_WIDE)
        if "normal-form" in names:
            text = composed(text)
        if "no-break-words" in names:
            text = _SPACE_OF_WORDS.sub(" ", text)
        if "invisible" in names:
            text = text.translate(self._unseen)
        if "mixed-script" in names:
            alone = self.is_latin and not has_foreign_letters(text)
            text = _LETTERS.sub(lambda match: self._of_one_script(match.group(), alone), text)
        return text

    def _of_one_script(self, word: str, alone: bool) -> str:
        return plain_letters(word, self.is_latin) if _is_mixed(word, alone) else word

    def _as_decoded(self, text: str) -> str | None:
        """Return a line of another script that was read as Latin letters, decoded rightly; None if it was not."""
        codecs = _codecs(primary(self.lang)) if "latin" not in self.scripts else ()
        letters = "".join(_LETTERS.findall(text))
        if not codecs or len(letters) < 4 or 2 * sum("\xa0" <= c <= "\xff" for c in letters) < len(letters):
            return None
        for codec in codecs:
            try:
                decoded = text.encode("latin-1").decode(codec)
            except UnicodeError:
                try:
                    decoded = text.encode("cp1252").decode(codec)
                except UnicodeError:
                    continue
            new = [c for c in decoded if c.isalpha() and ord(c) > 0x24F]
            if 2 * len(new) >= len(letters) and len({alphabet(c) for c in new}) == 1:
                return decoded
        return None


@functools.cache
def _unseen(has_breaks: bool, has_directions: bool) -> dict[int, None]:
    """Return the invisible characters that are a fault, for ``str.translate``."""
    characters = _ALWAYS_UNSEEN + _BREAK * (not has_breaks) + _DIRECTIONS * (not has_directions)
    return dict.fromkeys(map(ord, characters))


def composed(text: str) -> str:
    """Return a line with its accents joined to their letters.

    Characters that Unicode's normal form C replaces even when they stand alone are kept as they were typed: some
    letters of Bengali and Hindi, the Greek question mark, compatibility forms of Chinese characters in names.
    """
    if unicodedata.is_normalized("NFC", text):
        return text
    runs = itertools.groupby(text, lambda character: unicodedata.is_normalized("NFC", character))
    return "".join(unicodedata.normalize("NFC", "".join(run)) if joins else "".join(run) for joins, run in runs)


@functools.cache
def _codecs(code: str) -> tuple[str, ...]:
    """Return the encodings of the time before Unicode in which a language was written, but not the Western ones."""
    names = next((codecs for codes, codecs in WRITTEN_IN.items() if code in codes.split()), WESTERN)
    return () if names == WESTERN else tuple(names.split())


@functools.lru_cache(maxsize=4096)
def _is_mixed(word: str, alone: bool) -> bool:
    """True if letters of another script stand in a word that only look like its own.

    Args:
        word: A run of letters.
        alone: True if a word of such letters alone is wrong too, as in a text without any other Cyrillic.
    """
    if word.isascii() or len(word) < 2:
        return False
    greek = [c for c in word if "\u0370" <= c < "\u0400"]
    if greek and (len(word) < 3 or _is_name_with_greek(word, greek)):
        return False  # two letters of Latin and Greek may be a quantity
    return lookalikes(word, frozenset()) and (alone or any(c.isascii() for c in word))


def _is_name_with_greek(word: str, greek: Sequence[str]) -> bool:
    """True if a Latin word has Greek letters as a name such as TNFα, NFκB or IκBα has them.

    They are in lower case, and one alone or among capitals. No name has an omicron: nobody could read it.

    Args:
        word: A run of letters.
        greek: Its Greek letters.
    """
    latin = [c for c in word if c < "\u0250"]
    if len(greek) + len(latin) < len(word) or "ο" in greek or not all(map(str.islower, greek)):
        return False
    return len(greek) == 1 or (len(greek) <= min(2, len(latin)) and not any(map(str.islower, latin)))


def without_subword_marks(text: str) -> str:
    """Return a line that was cut into subwords as it was before."""
    if "\u2581" in text:
        return text.replace(" ", "").replace("\u2581", " ").strip(" ")
    return _JOINED.sub("", text)


_BRACKETED = re.compile(r"\s*(?:<[^<>]{1,40}>|\[[^\[\]]{1,40}\]|\{[^{}]{1,40}\}|#[A-Z/]{1,12}[!?]?)\s*")
_REMARK = re.compile(r"\s*(?:<.{1,80}>|[\[{(（［【〔].{1,80}[\]})）］】〕])\s*")
"""A line that is in brackets as a whole, such as what subtitles say about sounds."""
_NOTHING = frozenset(
    ["n/a", "na", "n.a.", "null", "none", "nil", "nan", "todo", "tbd", "tba", "xxx", "untranslated", "missing", "empty"]
) | {"no translation", "not translated", "to be translated", "translation missing"}


def is_placeholder(text: str, other: str, words: Sequence[str], other_words: Sequence[str]) -> bool:
    """True if a line stands for a translation that is not there: a tag, "N/A", marks without a word.

    Args:
        text: The line.
        other: The other side. Where both are in brackets, as "[door opens]" in subtitles, the line may be meant.
        words: The lower-case words of the line.
        other_words: Those of the other side. With fewer than two of them, or with the same ones, the line may be meant.
    """
    if len(other_words) < 2 or len(words) > 6:
        return False
    if not words:
        return True
    if not set(words) & set(other_words) and _BRACKETED.fullmatch(text) and not _are_remarks(text, other):
        return len(other_words) >= 3
    return text.strip(" []<>{}").lower() in _NOTHING and len(other_words) >= 3 and not set(words) <= set(other_words)


def _are_remarks(text: str, other: str) -> bool:
    """True if both sides are in brackets as a whole: of tags both are, or neither."""
    both = _REMARK.fullmatch(text) and _REMARK.fullmatch(other)
    return bool(both) and text.strip().startswith("<") == other.strip().startswith("<")


def tags_of(text: str) -> list[str]:
    """Return the tags of a line, in order, in lower case and without attributes."""
    if "<" not in text:
        return []
    return [match.group(1).lower() for match in TAG.finditer(text)]


def has_other_tags(src: str, tgt: str) -> tuple[bool, bool]:
    """Return for source and target if it has tags that the other side lacks."""
    tags = tags_of(src), tags_of(tgt)
    return tuple(bool(set(own) - set(other)) for own, other in (tags, tags[::-1]))  # type: ignore[return-value]


def without_tags(text: str, other: str) -> str:
    """Return a line without the tags of a web page that the other side lacks.

    A tag that divides a text, such as a line break, becomes a space; one that may stand in a word, as in
    ``H<sub>2</sub>O``, becomes nothing.
    """
    tags_of_other = set(tags_of(other))
    tags = [match for match in TAG.finditer(text) if match.group(1).lower() not in tags_of_other]
    if not tags:
        return text
    result, at, is_apart = "", 0, False
    ends = [(match.start(), match.end(), match.group(1).lower() not in ELEMENTS_IN_WORDS.split()) for match in tags]
    for start, end, divides in [*ends, (len(text), len(text), False)]:
        piece = text[at:start]
        if words := piece.strip(" "):
            result += " " * (result != "" and (is_apart or piece.startswith(" "))) + words
            is_apart = False
        is_apart |= piece.endswith(" ") or divides
        at = end
    return result


# --- tokenised text ---------------------------------------------------------------------------------------------------


_WITH_CHINESE = frozenset(["zh", "yue", "wuu", "lzh", "ja"])
"""Languages that are written in Chinese characters or kana, without spaces."""

LEAST_BOUNDARIES = 3
"""Boundaries between Chinese characters or kana of a line, below which its spaces tell nothing."""


def spaced_marks(text: str, code: str) -> tuple[int, int]:
    """Return the number of marks that stand apart, as tokenizers leave them, and of those that people typed.

    A line of Chinese or Japanese counts as one more mark: spaces between every few characters are those of a tokenizer,
    while one or two stand for commas.

    Args:
        text: A line.
        code: Its language, such as "fr": French has spaces before some marks.
    """
    spaced, marked = len((_SPACED_FRENCH if code == "fr" else _SPACED).findall(text)), len(_MARKED.findall(text))
    if code in _WITH_CHINESE and not text.isascii():
        apart, together = len(_APART.findall(text)), len(_TOGETHER.findall(text))
        if apart + together >= LEAST_BOUNDARIES:
            spaced, marked = (spaced + 1, marked) if 2 * apart > together else (spaced, marked + 1)
    return spaced, marked


_BEHIND_MARKS = r"[)\]}\"'’”»]*+(?!\S)"  # else the mark begins a word: ".NET", ".05", "%s", ";-)"
_NO_SMILEY = r"(?<![:;=]\()(?<![:;]-\()"
_FRENCH = re.compile(rf"(?<!\s)\s++(?=[)\]}}]|[.,%…]++{_BEHIND_MARKS})|(?<=[(\[{{]){_NO_SMILEY}\s++")
_OTHERS = re.compile(
    rf"(?<!\s)\s++(?=[)\]}}]|(?![:;][)\]])[.,;:!?%…”।۔،؛؟]++{_BEHIND_MARKS})|(?<=[(\[{{„¿¡]){_NO_SMILEY}\s++"
)
_GUILLEMETS = re.compile(r"(?<!\s)\s++(?=»)|(?<=«)\s++")
_GUILLEMETS_INWARD = re.compile(r"(?<!\s)\s++(?=«)|(?<=»)\s++")
"""Spaces within «quotes», and within »quotes« of German and Danish."""
_WIDE_MARKS = "。，？！；：、（）「」『』《》〈〉【】"
_CHINESE_TEXT = rf"[{_CHINESE}{_WIDE_MARKS}“”‘’\"]"
_SPACE_OF_CHINESE = re.compile(
    rf"(?<! )(?:(?<={_CHINESE_TEXT}) ++(?={_CHINESE_TEXT})|(?<=[{_WIDE_MARKS}]) ++| ++(?=[{_WIDE_MARKS}]))"
)
"""Spaces that Chinese and Japanese do not have; beside Latin words there may be some."""

_APOSTROPHE = re.compile(
    r"(?<=[^\W\d_]) ?(['’]) ?(?=(?:s|m|re|ve|d|ll)\b(?!['’]))|(?<=n) ?(['’]) ?(?=t\b(?!['’]))| (?=n['’]t\b)"
    r"|(?<=\b[oO]) ?(['’]) ?(?=clock\b)|(?<=\b[OD]) ?(['’]) ?(?=[^\W\d_a-z])"
)
"""The apostrophes of English contractions and names; any other may be a plural's, or a quotation mark, as of 's'."""
_APOSTROPHE_IN_WORDS = re.compile(
    r"((?<!\S)['’][^\W\d_]++['’](?![^\W\d_]))"
    r"|(?<=[^\W\d_]) (['’])(?![^\W\d_]++['’](?![^\W\d_])) ?(?=[^\W\d_])|(?<=[^\W\d_])(['’]) (?=[^\W\d_])"
)
"""A word in quotation marks, which stays as it is, or an apostrophe that stands apart in a word."""
_JOINS_WORDS = frozenset(["fr", "it", "ca", "oc", "uk", "be", "tr"])
"""Languages whose apostrophes stand between two letters, as in French l'homme or Ukrainian п'ять."""
_HYPHEN = re.compile(r" @(\S)@ ")


def detokenised(text: str, lang: str | None) -> str:
    """Return tokenised text as people type it."""
    code = primary(lang)
    text = _HYPHEN.sub(r"\1", text)
    text = (_FRENCH if code == "fr" else _OTHERS).sub("", text)
    if code != "fr":
        first = re.search("[«»]", text)
        is_inward = code in ("de", "da") and first is not None and first[0] == "»"
        text = (_GUILLEMETS_INWARD if is_inward else _GUILLEMETS).sub("", text)
    if code in ("de", "cs", "sk", "sl", "hr", "bg"):
        text = re.sub(r"(?<!\s)\s++(?=“)", "", text)
    elif code != "fr":
        text = re.sub(r"(?<=“)\s+", "", text)
    if code in _JOINS_WORDS:
        text = _APOSTROPHE_IN_WORDS.sub(r"\1\2\3", text)
    elif code != "nl":  # in Dutch, 's and 't are words
        text = _APOSTROPHE.sub(lambda match: match[match.lastindex] if match.lastindex else "", text)
    text = _with_quotes(text)
    return _SPACE_OF_CHINESE.sub("", text) if code in _WITH_CHINESE else text


def _with_quotes(text: str) -> str:
    """Return a line whose straight quotes stand next to what they enclose; of an odd number nothing is moved."""
    first, *others = text.split('"')
    parts = [first.rstrip(), *(part.strip() for part in others[:-1]), *(part.lstrip() for part in others[-1:])]
    if len(parts) < 3 or len(parts) % 2 == 0:
        return text
    joined = parts[0]
    for i, part in enumerate(parts[1:], start=1):
        opening = i % 2
        before = " " if opening and joined and joined[-1] not in "([{" else ""
        after = " " if not opening and part and part[0] not in ".,;:!?)]}" else ""
        joined += f'{before}"{after}{part}'
    return joined
