"""Lines grouped as they arrive; a line that is too long cut into parts."""

from __future__ import annotations

import contextlib
import queue
import re
import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence

from dragoman.data.corpus import Line


def windows(lines: Iterable[Line], size: int, pause_s: float = 0.05) -> Generator[list[Line]]:
    """Group lines as they come: up to ``size`` of them, fewer when none arrives for ``pause_s`` seconds.

    A thread reads ahead; it ends with the lines, or after the next line when the generator is closed.
    """
    arrived: queue.Queue[Line | BaseException | None] = queue.Queue(maxsize=2 * size)
    closed = threading.Event()

    def put(item: Line | BaseException | None) -> None:
        while not closed.is_set():
            with contextlib.suppress(queue.Full):
                arrived.put(item, timeout=1)
                return

    def read() -> None:
        try:
            for line in lines:
                put(line)
                if closed.is_set():
                    return
            put(None)
        except BaseException as error:
            put(error)

    threading.Thread(target=read, daemon=True, name="read-ahead").start()
    try:
        yield from _grouped(arrived, size, pause_s)
    finally:
        closed.set()


def _grouped(arrived: queue.Queue[Line | BaseException | None], size: int, pause_s: float) -> Iterator[list[Line]]:
    """What arrives, in windows."""
    window: list[Line] = []
    while True:
        try:
            item = arrived.get(timeout=pause_s if window else None)
        except queue.Empty:
            yield window
            window = []
            continue
        if isinstance(item, Line):
            window.append(item)
        if window and (len(window) == size or not isinstance(item, Line)):
            yield window
            window = []
        if isinstance(item, BaseException):
            raise item
        if item is None:
            return


_SENTENCE_END = re.compile(r"(?<=[.!?;:…])\s+|(?<=[。！？；])")
_SPACE = re.compile(r"\s+")


def split_text(
    text: str, max_tokens: int, n_tokens: Callable[[Sequence[str]], list[int]], bearable: int = 0
) -> list[str]:
    """Cut ``text`` into parts of at most ``max_tokens``: at sentence ends, else at spaces, else anywhere.

    Neighbouring pieces are packed together as long as they fit. ``n_tokens`` counts the tokens of each of some texts.
    A single sentence of up to ``bearable`` tokens stays whole.
    """
    text = text.strip()
    size = n_tokens([text])[0]
    if size <= max_tokens or len(text) < 2:
        return [text]
    for boundary in (_SENTENCE_END, _SPACE):
        if boundary is _SPACE and size <= bearable:
            return [text]
        edges = [0, *(edge for match in boundary.finditer(text) for edge in match.span()), len(text)]
        pieces = [(start, end) for start, end in zip(edges[::2], edges[1::2], strict=True) if start < end]
        if len(pieces) > 1:
            packed = pack(text, pieces, max_tokens, n_tokens)
            if packed == [text]:  # its parts fit, and yet the whole does not: cut elsewhere
                continue
            return [part for piece in packed for part in split_text(piece, max_tokens, n_tokens, bearable)]
    middle = len(text) // 2
    halves = text[:middle], text[middle:]
    return [part for half in halves for part in split_text(half, max_tokens, n_tokens, bearable)]


def pack(
    text: str, pieces: Sequence[tuple[int, int]], max_tokens: int, n_tokens: Callable[[Sequence[str]], list[int]]
) -> list[str]:
    """Parts of ``text`` from one piece to another, whose tokens (and one for what is between) stay in ``max_tokens``.

    Args:
        pieces: Where each begins and ends, in their order.
    """
    packed: list[tuple[int, int]] = []
    size = 0
    for (start, end), n in zip(pieces, n_tokens([text[start:end] for start, end in pieces]), strict=True):
        more = n + 1
        if packed and size + more <= max_tokens:
            packed[-1] = packed[-1][0], end
            size += more
        else:
            packed.append((start, end))
            size = more
    return [text[start:end] for start, end in packed]
