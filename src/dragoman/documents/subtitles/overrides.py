"""Override blocks, as Advanced SubStation Alpha writes them and other formats too: ``{\\i1}never{\\i0}``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from dragoman.documents.subtitles.tokens import Token, end_of_words

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
    """Return the tokens of a caption with the ends of styles: each lasts to the next block of its kind, or to the end.

    A second block of a kind ends the style if words stand before the first, as in ``a {\\c&HFF&}b{\\c&H0&} c``.
    """
    ended: list[Token] = []
    opened: dict[str, bool] = {}  # for the name of a style that lasts: words stand before its first block
    has_words = False

    def end(name: str) -> None:
        del opened[name]
        switches = "".join(f"\\{own}0" if own in _SWITCHES else f"\\{own}" for own in name.split("\\")[1:])
        ended.append(Token("", "close", name=name, implied=f"{{{switches}}}"))

    last = end_of_words(tokens)
    behind = {token.name for token in tokens[last:] if token.kind == "close"}
    for i, token in enumerate(tokens):
        if i == last and "" not in behind:
            for name in [name for name in reversed(opened) if name not in behind]:
                end(name)
        if token.source == _RESET and opened:
            outermost, *inner = opened
            for name in reversed(inner):
                end(name)
            del opened[outermost]
            token = replace(token, name=outermost)
        elif not token.source.startswith("{") or (i >= last and token.kind != "close"):
            pass
        elif token.kind == "open" and opened.get(token.name):
            del opened[token.name]
            token = replace(token, kind="close")
        elif token.kind == "open":
            if token.name in opened:
                end(token.name)
            opened[token.name] = has_words
        elif token.kind == "close":
            opened.pop(token.name, None)
        has_words = has_words or bool(token.text.strip())
        ended.append(token)
    if last == len(tokens):
        for name in [*reversed(opened)]:
            end(name)
    return ended
