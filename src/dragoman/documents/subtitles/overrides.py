"""Override blocks of Advanced SubStation Alpha, which other formats have too, and ends that captions leave out.

override("{\\i1}")                     # a token that begins a style
with_ends(tokens of "{\\i1}never")     # and one that ends it, which is written where the words move
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from dragoman.documents.subtitles.tokens import Token, pairs

_STYLE = (
    r"\\((?>fn|fscx|fscy|fsp|fs|frx|fry|frz|fr|fax|fay|blur|be|[xy]?bord|b|[xy]?shad|s|i|u|[1-4]?c|[1-4]a|alpha))"
    r"([^\\{}()]*+)"
)
_STYLES = re.compile(rf"\{{(?:{_STYLE})++\}}")
_ONE_STYLE = re.compile(_STYLE)
_RESET = "{\\r}"
_SWITCHES = ("i", "b", "u", "s")


def override(source: str) -> Token:
    """Return the token of a block: it begins a style, ends one, or stands at a place, such as ``{\\pos(1,2)}``."""
    if source == _RESET:
        return Token(source, "close")
    if not _STYLES.fullmatch(source):
        return Token(source, "point")
    styles = _ONE_STYLE.findall(source)
    names = "".join(sorted({f"\\{'1c' if name == 'c' else name}" for name, _ in styles}))
    n_ended = sum(value == "" or (name in _SWITCHES and value == "0") for name, value in styles)
    if 0 < n_ended < len(styles):
        return Token(source, "point", name=names)
    return Token(source, "close" if n_ended else "open", name=names)


def with_ends(tokens: Sequence[Token]) -> list[Token]:
    """Return the tokens of a caption with the ends of its styles and elements that only its own end ends.

    A style also ends where a block of its kind begins another one, and at ``{\\r}``. A second block of a kind ends the
    style if words stand before the first, as in ``a {\\c&HFF&}b{\\c&H0&} c``.
    """
    tokens = _with_ends_of_styles(tokens)
    partner, n = pairs(tokens), _up_to_last_words(tokens)
    opened, depth = list[str](), 0
    for i, token in enumerate(tokens[:n]):
        if i in partner:
            depth += 1 if partner[i] > i else -1
        elif token.kind == "open" and not depth:  # inside another element its end would be that of both
            opened.append(token.name)
    return [*tokens[:n], *map(_end, reversed(opened)), *tokens[n:]]


def _with_ends_of_styles(tokens: Sequence[Token]) -> list[Token]:
    """Return the tokens with the ends of the styles that a block of their kind or ``{\\r}`` ends."""
    ended: list[Token] = []
    opened: dict[str, bool] = {}  # for the name of a style that lasts: it begins behind words
    has_words = False
    for token in tokens:
        if token.source == _RESET and opened:
            outermost, *inner = opened
            ended += map(_end, reversed(inner))
            opened.clear()
            token = replace(token, name=outermost)
        elif token.source.startswith("{") and token.kind in ("open", "close"):
            is_behind_words = opened.pop(token.name, None)
            if token.kind == "open" and is_behind_words:
                token = replace(token, kind="close")
            elif token.kind == "open":
                ended += [] if is_behind_words is None else [_end(token.name)]
                opened[token.name] = has_words
        has_words = has_words or bool(token.text.strip())
        ended.append(token)
    return ended


def _end(name: str) -> Token:
    """Return the end of a style or an element, which its caption leaves out."""
    first, *styles = name.split("\\")
    if first:
        return Token("", "close", name=name, implied=f"</{name}>")
    switches = "".join(f"\\{own}0" if own in _SWITCHES else f"\\{own}" for own in styles)
    return Token("", "close", name=name, implied=f"{{{switches}}}")


def _up_to_last_words(tokens: Sequence[Token]) -> int:
    """Return the number of tokens up to the last one that shows something."""
    return next((i + 1 for i in range(len(tokens) - 1, -1, -1) if tokens[i].text.strip()), 0)
