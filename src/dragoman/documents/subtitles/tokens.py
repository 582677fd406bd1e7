"""Tokens of a caption's text, in any format, and what stands around its words: tags, dashes, notes, brackets.

strip(tokens of "<i>[door opens]</i>")     # ("<i>[", tokens of "door opens", "]</i>")
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Literal

from dragoman.documents.tags.spaces import SPECIAL


@dataclass(frozen=True)
class Token:
    """Text, or what the format writes between two texts."""

    source: str
    kind: Literal["text", "open", "close", "point", "time", "break", "turn", "stop"] = "text"
    """``time``: the moment from which the next words are sung. ``turn``: the voice may change, to ``name``.
    ``stop``: no sentence continues after it, as after an empty line.
    """
    text: str = ""  # of a text: as a reader sees it
    name: str = ""  # the opening and the closing tag of an element share it
    implied: str = ""  # tag that ends an element elsewhere, where the source has none: the caption ends it


Tokenize = Callable[[str], list[Token]]
"""Cuts the source of a caption into tokens; joined, their sources are the caption again."""


def tokenized(source: str, pattern: re.Pattern[str], token: Callable[[re.Match[str]], Token]) -> list[Token]:
    """Return the tokens of a source: ``token`` makes those that ``pattern`` finds, and all between them is text.

    Several spaces that a player shows, such as ``&nbsp;``, are a space and a point beside it with the others.
    """
    tokens, at = [], 0
    for match in pattern.finditer(source):
        if at < match.start():
            tokens.append(Token(source[at : match.start()], text=source[at : match.start()]))
        tokens.append(token(match))
        at = match.end()
    if at < len(source):
        tokens.append(Token(source[at:], text=source[at:]))
    return _with_wide_spaces(tokens) if any(SPECIAL.search(token.text) for token in tokens) else tokens


def _with_wide_spaces(tokens: Sequence[Token]) -> list[Token]:
    """Return tokens with one of several spaces that a player shows as text, and the others as points."""
    result: list[Token] = []
    for is_text, own in groupby(tokens, lambda token: token.kind == "text"):
        if not is_text:
            result += own
            continue
        characters = [character for token in own for character in _characters(token)]
        for is_space, grouped in groupby(characters, lambda character: character.text.isspace()):
            run = list(grouped)
            result += _one_space(run) if is_space else run
    return _joined(result)


def _joined(tokens: Sequence[Token]) -> list[Token]:
    """Return tokens with neighbouring texts as one, in which a mark is known by what stands beside it."""
    joined: list[Token] = []
    for is_plain, grouped in groupby(tokens, lambda token: token.kind == "text" and token.source == token.text):
        own = list(grouped)
        joined += [Token(source_of(own), text=source_of(own))] if is_plain else own
    return joined


def _characters(token: Token) -> list[Token]:
    """Return the characters of a text; an entity is one."""
    return [Token(char, text=char) for char in token.text] if token.source == token.text else [token]


def _one_space(spaces: list[Token]) -> list[Token]:
    """Return a run of spaces as it is without special ones, else as one space with the others as points around it."""
    plain = [i for i, space in enumerate(spaces) if not SPECIAL.match(space.text)]
    if len(plain) == len(spaces) or len(spaces) < 2:
        return spaces
    i = plain[0] if plain else len(spaces) - 1
    before, behind = source_of(spaces[:i]), source_of(spaces[i + 1 :])
    return [token for token in (Token(before, "point"), spaces[i], Token(behind, "point")) if token.source]


def source_of(tokens: Sequence[Token]) -> str:
    """Return the source of tokens."""
    return "".join(token.source for token in tokens)


def text_of(tokens: Sequence[Token]) -> str:
    """Return the text of tokens, with a space for each line break."""
    if len(tokens) == 1 and tokens[0].kind == "text":  # the usual case
        return tokens[0].text
    return "".join(" " if token.kind == "break" else token.text for token in tokens)


def has_text(tokens: Sequence[Token]) -> bool:
    """True if the tokens show anything."""
    return any(token.text.strip() for token in tokens)


def split(tokens: Sequence[Token], places: Sequence[int]) -> list[list[Token]]:
    """Cut tokens at places of their text; a tag at such a place stands before the cut if it closes an element."""
    runs: list[list[Token]] = [[]]
    wanted = iter([*places, -1])
    at, place = 0, next(wanted)
    for token in tokens:
        behind = token
        while 0 <= place < at:
            place = next(wanted)
        if at == place and token.kind != "close":
            runs.append([])
            place = next(wanted)
        while at < place < at + len(behind.text):
            left, behind = _halves(behind, place - at)
            if left is None:  # an entity is never divided
                break
            runs[-1].append(left)
            runs.append([])
            at, place = place, next(wanted)
        runs[-1].append(behind)
        at += len(behind.text)
    return runs


def _halves(token: Token, place: int) -> tuple[Token | None, Token]:
    """Return the parts of a text token before and after a place; None and the token if its source says more."""
    if token.source != token.text:
        return None, token
    left, right = token.text[:place], token.text[place:]
    return Token(left, text=left), Token(right, text=right)


def pairs(tokens: Sequence[Token]) -> dict[int, int]:
    """Return for the index of each tag of an element that is opened and closed the index of the other tag."""
    by_name: dict[str, list[int]] = {}
    partner = {}
    for i, token in enumerate(tokens):
        if token.kind == "open":
            by_name.setdefault(token.name, []).append(i)
        elif token.kind == "close" and by_name.get(token.name):
            first = by_name[token.name].pop()
            partner[first], partner[i] = i, first
    return partner


_BRACKETS = {"[": "]", "(": ")", "（": "）", "【": "】", "［": "］", "〔": "〕", "｟": "｠"}
_BEFORE = re.compile(r"(?:[\s♪♫♬♩>]|[#*](?=[\s#*])|[-–—‐‑−]++(?![\d.,])|\u200e|\u200f|\ufeff)+")
_AFTER = re.compile(r"[\s♪♫♬♩\u200e\u200f]|(?<=\s)[#*]")

_COLONS = (":", "：")

Shell = tuple[str, list[Token], str]
"""Source before the words of a caption, the tokens with the words, and source after them."""


def strip(tokens: Sequence[Token]) -> Shell:
    """Return what encloses all words, and the tokens with the words.

    Tags around all words, dashes of a dialogue, notes of a song and brackets around a sound never reach the model.
    """
    return ("", list(tokens), "") if _is_bare(tokens) else strip_always(tokens)


_ENDS = frozenset(".,!?\u2026")


def _is_bare(tokens: Sequence[Token]) -> bool:
    """True if tokens are one text that begins with a letter or digit and ends with one, or with usual punctuation."""
    if len(tokens) != 1 or tokens[0].kind != "text" or tokens[0].source != tokens[0].text:
        return False
    text = tokens[0].text
    return text[:1].isalnum() and (text[-1].isalnum() or text[-1] in _ENDS)


def strip_always(tokens: Sequence[Token]) -> Shell:
    """Return what ``strip`` returns, for all tokens in the same way."""
    before, inner, after = "", list(tokens), ""
    for _ in range(4):  # <i>[♪ Song ♪]</i> has three shells
        size = len(before) + len(after)
        prefix, inner, suffix = _strip_tags(inner)
        before, after = before + prefix, suffix + after
        bracketed = _strip_brackets(inner)
        if bracketed is not None:
            before, after, inner = before + bracketed[0], bracketed[2] + after, bracketed[1]
        if inner and inner[-1].text[-1:] in _COLONS and inner[-1].source == inner[-1].text and _is_label(inner):
            after = inner[-1].text[-1] + after
            inner[-1] = Token(inner[-1].text[:-1], text=inner[-1].text[:-1])
        if len(before) + len(after) == size:
            break
    return before, inner, after


def _is_label(tokens: Sequence[Token]) -> bool:
    """True if tokens are the label of a speaker, such as ``JOHN:``, and nothing else."""
    text = text_of(tokens)
    return label_end(text) == len(text)


def _strip_tags(tokens: list[Token]) -> Shell:
    """Return tags, white space and marks around the words apart from the words."""
    partner = pairs(tokens)
    low, high = 0, len(tokens)
    tail = next((i + 1 for i in range(high - 1, -1, -1) if _inner_text(tokens[i])), 0)
    before: list[str] = []
    while low < high:
        token = tokens[low]
        if token.kind == "text":
            match = _BEFORE.match(token.text)
            n = match.end() if match else 0
            if n and token.source != token.text:  # an entity
                n = len(token.text) if n == len(token.text) else 0
            before.append(token.source if n == len(token.text) else token.text[:n])
            if n < len(token.text):
                tokens[low] = token if not n else Token(token.text[n:], text=token.text[n:])
                break
        elif token.kind == "open" and low in partner and partner[low] < tail:
            inside = tokens[low + 1 : partner[low]]
            if any(token.kind == "time" for token in inside) or not _BEFORE.fullmatch(text_of(inside)):
                break
            before.append(source_of(tokens[low : partner[low] + 1]))  # a dash in a style of its own
            low = partner[low]
        else:
            before.append(token.source)
        low += 1
    after: list[str] = []
    while high > low:
        token = tokens[high - 1]
        if token.kind == "text":
            n = len(token.text)
            while n and _AFTER.match(token.text, n - 1):
                n -= 1
            if token.source != token.text:
                n = 0 if n == 0 else len(token.text)
            after.append(token.source if n == 0 else token.text[n:])
            if n:
                tokens[high - 1] = token if n == len(token.text) else Token(token.text[:n], text=token.text[:n])
                break
        elif token.kind in ("open", "close") and partner.get(high - 1, -1) >= low:
            break
        else:
            after.append(token.source)
        high -= 1
    return "".join(before), tokens[low:high], "".join(reversed(after))


def _inner_text(token: Token) -> bool:
    """True if a token has text other than marks that may follow all words."""
    return bool(token.text) and not all(_AFTER.match(token.text, i) for i in range(len(token.text)))


def _strip_brackets(tokens: list[Token]) -> Shell | None:
    """Return the tokens inside brackets that enclose all words; None if there are no such brackets."""
    if not tokens or any(tokens[i].kind != "text" or tokens[i].source != tokens[i].text for i in (0, -1)):
        return None
    text = text_of(tokens)
    closing = _BRACKETS.get(text[:1])
    if closing is None or len(text) < 3 or text[-1] != closing:
        return None
    if text.count(text[0]) > 1 or text.count(closing) > 1:
        return None
    inner = list(tokens)
    inner[0] = replace(inner[0], source=inner[0].source[1:], text=inner[0].text[1:])
    inner[-1] = replace(inner[-1], source=inner[-1].source[:-1], text=inner[-1].text[:-1])
    return text[0], [token for token in inner if token.source], text[-1]


# --- where one line changes its speaker or sound ----------------------------------------------------------------------

MOST_OF_A_LABEL = 40
"""Largest number of characters in the label of a speaker, such as ``JOHN:``."""

_DASH = re.compile(r"\s[-–—](?=\s*[^\s\d])")
_SPACE = re.compile(r"\s*")


def turns_in(text: str, ends: tuple[str, ...]) -> list[int]:
    """Return the places in a line where another voice or a sound begins or ends: labels, sounds, dashes.

    Args:
        text: The line.
        ends: Marks that end a sentence.
    """
    places = {end for end in (label_end(text), *_sound_ends(text, ends)) if end}
    first = _BEFORE.match(text)
    two_speakers = first is not None and any(mark in "-–—" for mark in first[0])
    for match in _DASH.finditer(text, first.end() if first else 0):
        if has_ended_at(text, match.start(), ends) or (two_speakers and _is_no_small_letter(text[match.end() :][:8])):
            places.add(match.start() + 1)
    return sorted(place for place in places if 0 < place < len(text))


def has_ended_at(text: str, place: int, ends: tuple[str, ...]) -> bool:
    """True if a mark that ends a sentence stands before a place and the white space before it."""
    return text[max(0, place - 8) : place].rstrip().endswith(ends)


def _is_no_small_letter(text: str) -> bool:
    letter = text.lstrip()[:1]
    return letter != "" and letter.upper() == letter


def label_end(text: str) -> int:
    """Return the place of the words after the label of a speaker, as in ``JOHN: The dog``; 0 without a label."""
    first = _BEFORE.match(text)
    start = first.end() if first else 0
    end = next((i for i in range(start, min(len(text), start + MOST_OF_A_LABEL)) if text[i] in _COLONS), -1)
    if end < 0:
        return 0
    name = text[start:end].strip("[]()")
    follows = text[end + 1 : end + 2]
    is_parted = text[end] != ":" or not follows.strip() or (follows.isalpha() and name == name.upper() != name.lower())
    if not is_parted:
        return 0
    words = name.split()
    if not 1 <= len(words) <= 4 or not any(map(str.isalpha, name)) or any(mark in name for mark in ",;!?…。，"):
        return 0
    is_cased = name.lower() != name.upper()
    if is_cased and not all(word[0].isupper() or not word[0].isalpha() for word in words):
        return 0
    if not is_cased and (len(words) > 1 or len(name) > 8):
        return 0
    return end + 1 + _space_after(text, end + 1)


def _space_after(text: str, place: int) -> int:
    match = _SPACE.match(text, place)
    return match.end() - place if match else 0


def _sound_ends(text: str, ends: tuple[str, ...]) -> Iterator[int]:
    """Yield the end of a sound in brackets that begins a line, and the start of one that ends it."""
    first = _BEFORE.match(text)
    start = first.end() if first else 0
    closing = _BRACKETS.get(text[start : start + 1])
    if closing is not None:
        end = text.find(closing, start)
        if end > 0 and text[end + 1 :].strip() and any(map(str.isalpha, text[start:end])):
            yield end + 1 + _space_after(text, end + 1)
    trimmed = text.rstrip()
    opening = next((mark for mark, other in _BRACKETS.items() if trimmed.endswith(other)), None)
    if opening is not None:
        begin = trimmed.rfind(opening)
        spoken = text[:begin].rstrip() if begin > 0 else ""
        if spoken and (opening == "[" or spoken.endswith(ends)):
            yield begin
