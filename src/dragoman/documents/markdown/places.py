"""markdown-it-py's parser of the text inside a paragraph, told to note where each token stands in its source."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from markdown_it.parser_inline import ParserInline
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token


class PlacedInline(ParserInline):
    """Parser of inline Markdown whose tokens hold their first place and the one behind their last as ``meta["at"]``.

    Texts next to each other stay apart. A delimiter of strong text is two tokens, of which one is empty.
    """

    def tokenize(self, state: StateInline) -> None:
        """Parse from the state's place to its end; links call this for the text inside them."""
        rules = self.ruler.getRules("")
        end, most = state.posMax, state.md.options["maxNesting"]
        pending_start = state.pos
        while state.pos < end:
            start, n_tokens, had_pending = state.pos, len(state.tokens), bool(state.pending)
            if not had_pending:
                pending_start = start
            if not (state.level < most and any(rule(state, False) for rule in rules)):
                state.pending += state.src[state.pos]
                state.pos += 1
            _note_places(state, n_tokens, start, pending_start if had_pending else None)
        if state.pending:
            token = state.pushPending()
            token.meta = {"at": (pending_start, pending_start + len(token.content))}

    def parse(self, src: str, md: Any, env: Any, tokens: list[Token]) -> list[Token]:
        """Parse a source; the text of an image is parsed apart, with places counted from its first character."""
        state = StateInline(src, md, env, tokens)
        self.tokenize(state)
        for rule in self.ruler2.getRules(""):
            rule(state)
        return state.tokens


def _note_places(state: StateInline, first: int, start: int, pending_start: int | None) -> None:
    """Note the places of the tokens from number ``first`` on, which one rule added.

    Args:
        start: Place where the rule began.
        pending_start: Place of the text before it, which became a token; None if there was none.
    """
    tokens, at = state.tokens, start
    for i in range(first, len(tokens)):
        token = tokens[i]
        if "at" in token.meta:
            at = token.meta["at"][1]
            continue
        if i == first and pending_start is not None and token.type == "text":
            end = pending_start + len(token.content)
            token.meta = {"at": (pending_start, end)}
            at = end if i + 1 < len(tokens) and tokens[i + 1].type in ("softbreak", "hardbreak") else start
        elif token.markup == "autolink" or (i and tokens[i - 1].markup == "autolink" and token.type == "text"):
            token.meta = {**token.meta, "at": (start, state.pos)}
        elif token.type == "text" or token.type == "link_open":
            size = len(token.content) or 1
            token.meta = {"at": (at, at + size)}
            at += size
        else:
            token.meta = {**token.meta, "at": (at, state.pos)}
            at = state.pos if token.type == "link_close" else at


def merged(tokens: Sequence[Token]) -> list[Token]:
    """Return tokens with each empty delimiter of strong text joined to the one that it belongs to."""
    joined: list[Token] = []
    waiting: tuple[int, int] | None = None
    for token in tokens:
        start, end = token.meta["at"]
        if token.type == "text" and not token.content and end > start:
            if joined and joined[-1].type == "strong_close" and joined[-1].meta["at"][1] == start:
                joined[-1].meta = {"at": (joined[-1].meta["at"][0], end)}
            else:
                waiting = (start, end)
            continue
        if waiting is not None:
            start = waiting[0] if waiting[1] == start else start
            token.meta = {**token.meta, "at": (start, end)}
            waiting = None
        joined.append(token)
    return joined
