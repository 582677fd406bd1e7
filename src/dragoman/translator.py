"""Text to text: N lines in, N lines out, in order.

A blank line stays blank and the model is not asked. A line longer than the model was trained on is split at sentence
ends (or, failing that, at spaces, or anywhere), its parts are translated and joined, and a warning says so.
"""

from __future__ import annotations

import queue
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, Self

from pydantic import ValidationError

from dragoman import environment
from dragoman.bundle import Bundle, load_bundle
from dragoman.config import DecodeConfig
from dragoman.data.corpus import Line, read_lines_leniently
from dragoman.decoding.batches import search_all
from dragoman.decoding.search import Hypothesis, length_penalty
from dragoman.device import resolve_device
from dragoman.errors import ConfigError, DecodeError
from dragoman.languages import UNSPACED, primary

READ_AHEAD = 2048
"""How many lines are read before they are sorted by length and translated."""


class Translation(NamedTuple):
    """One translated line."""

    text: str
    score: float  # log-probability (nats, eos included) over the length penalty; 0 for a blank line
    n_parts: int = 1  # more than 1 where the line was too long and was split; 0 for a blank line


class Translator:
    """A trained model that translates text."""

    def __init__(self, bundle: Bundle) -> None:
        self.config, self.model, self.src_tokenizer, self.tgt_tokenizer, self.manifest = bundle
        self.device = next(self.model.parameters()).device

    @classmethod
    def load(cls, path: Path | str, device: str = "auto") -> Self:
        """Load a run folder or a bundle.

        Raises:
            BundleError: There is none, or it is damaged.
            ConfigError: The device is not here.
        """
        environment.set_defaults()
        return cls(load_bundle(path, resolve_device(device)))

    def translate(
        self,
        texts: Sequence[str],
        *,
        beam_size: int | None = None,
        length_penalty: float | None = None,
        batch_tokens: int | None = None,
        deterministic: bool = False,
        warn: Callable[[str], None] | None = None,
        label: Callable[[int], str] = lambda i: f"line {i + 1}",
        progress: Callable[[int, int, str], object] = lambda done, total, what: None,
    ) -> list[Translation]:
        """Translate ``texts``, one translation for each, in order.

        Args:
            texts: One sentence each, as raw text.
            beam_size: 1 is greedy; None takes the run's setting, as with the others.
            length_penalty: GNMT's alpha.
            batch_tokens: Rows x longest source of one batch.
            deterministic: Decode each sentence alone, so that nothing beside it can touch its last bits.
            warn: Called with one line for each text that had to be split.
            label: What a warning calls text number ``i``.
            progress: Told after each batch how many sentences are done, of how many.

        Raises:
            ConfigError: A setting is impossible.
            DecodeError: ``texts`` is a string instead of a sequence of strings.
        """
        if isinstance(texts, str):
            raise DecodeError("translate takes a list of texts: write translate([text])")
        config = self._decode_config(beam_size, length_penalty, 1 if deterministic else batch_tokens)
        parts, owners = [], []
        for number, ids in enumerate(self.src_tokenizer.encode(list(texts))):
            if not texts[number].strip():
                continue
            split = self._split(texts[number], ids)
            if len(split) > 1 and warn is not None:
                warn(f"{label(number)}: {len(ids):,} tokens are more than {self.max_tokens:,}; split into {len(split)}")
            parts += split
            owners += [number] * len(split)
        found = search_all(self.model, parts, config, self.device, progress=progress)
        grouped: list[list[Hypothesis]] = [[] for _ in texts]
        for owner, hypotheses in zip(owners, found, strict=True):
            grouped[owner].append(hypotheses[0])
        return self._join(grouped, config.length_penalty)

    @property
    def max_tokens(self) -> int:
        """The longest source, in subwords, that is translated in one piece: the longest the model was trained on."""
        longest = self.config.data.max_tokens
        if self.model.config.positions == "learned":
            extra = self.config.decode.max_extra_tokens
            longest = max(1, min(longest, self.model.config.max_len - extra - 1))
        return longest

    def _decode_config(self, *given: Any) -> DecodeConfig:
        names = ("beam_size", "length_penalty", "batch_tokens")
        update = {name: value for name, value in zip(names, given, strict=True) if value is not None}
        try:
            return DecodeConfig(**{**self.config.decode.model_dump(), **update})
        except ValidationError as error:
            wrong = (
                f"decode.{problem['loc'][0]} = {problem['input']!r}: {problem['msg']}" for problem in error.errors()
            )
            raise ConfigError("; ".join(wrong)) from None

    def _split(self, text: str, ids: list[int]) -> list[list[int]]:
        """The ids of a text, or of its parts where it is too long."""
        if len(ids) <= self.max_tokens:
            return [ids]
        pieces = self.src_tokenizer.encode(split_text(text, self.max_tokens, self._n_tokens))
        return [piece for piece in pieces if piece]

    def _n_tokens(self, texts: Sequence[str]) -> list[int]:
        return [len(ids) for ids in self.src_tokenizer.encode(texts)]

    def _join(self, grouped: list[list[Hypothesis]], alpha: float) -> list[Translation]:
        between = "" if primary(self.config.data.tgt_lang) in UNSPACED else " "
        texts = iter(self.tgt_tokenizer.decode([h.ids for group in grouped for h in group]))
        result = []
        for group in grouped:
            text = between.join(one_line(next(texts)) for _ in group)
            log_prob, n = sum(h.log_prob for h in group), sum(len(h.ids) + 1 for h in group)
            result.append(Translation(text, log_prob / length_penalty(n, alpha) if group else 0.0, len(group)))
        return result

    def translate_stream(
        self,
        stream: BinaryIO,
        name: str,
        warn: Callable[[str], None],
        flush: Callable[[], None] = lambda: None,
        read_ahead: int = READ_AHEAD,
        **settings: Any,
    ) -> Iterator[Translation]:
        """Translate line by line as text arrives; yields one translation for each line, in order.

        Up to ``read_ahead`` lines are sorted by length and translated together; when the input pauses, what has
        come so far is translated at once. Bad bytes become U+FFFD, with a warning that names the line.

        Args:
            stream: Raw bytes, such as ``sys.stdin.buffer``.
            name: What warnings call it.
            warn: Called with one line of text for each oddity.
            flush: Called when all lines that have arrived are translated.
            settings: As for ``translate``.
        """
        done = 0
        for lines in windows(read_lines_leniently(stream, name), read_ahead):
            for line in lines:
                if line.warning:
                    warn(line.warning)

            def label(i: int, before: int = done) -> str:
                return f"{name}:{before + i + 1}"

            yield from self.translate([line.text for line in lines], warn=warn, label=label, **settings)
            flush()
            done += len(lines)


def windows(lines: Iterable[Line], size: int, pause_s: float = 0.05) -> Iterator[list[Line]]:
    """Group lines as they come: up to ``size`` of them, fewer when none arrives for ``pause_s`` seconds."""
    arrived: queue.Queue[Line | BaseException | None] = queue.Queue(maxsize=2 * size)

    def read() -> None:
        try:
            for line in lines:
                arrived.put(line)
            arrived.put(None)
        except BaseException as error:
            arrived.put(error)

    threading.Thread(target=read, daemon=True, name="read-ahead").start()
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


def one_line(text: str) -> str:
    """A translation on one line: a model can make an LF out of bytes, and would add a line that never came in."""
    return " ".join(text.split("\n"))


_SENTENCE_END = re.compile(r"(?<=[.!?;:…])\s+|(?<=[。！？；])")
_UNSPACED_END = re.compile(r"[。！？；](?!\s)")
_SPACE = re.compile(r"\s+")


def split_text(text: str, max_tokens: int, n_tokens: Callable[[Sequence[str]], list[int]]) -> list[str]:
    """Cut ``text`` into parts of at most ``max_tokens``: at sentence ends, else at spaces, else anywhere.

    Neighbouring pieces are packed together as long as they fit. ``n_tokens`` counts the tokens of each of some texts.
    """
    text = text.strip()
    if n_tokens([text])[0] <= max_tokens or len(text) < 2:
        return [text]
    for boundary in (_SENTENCE_END, _SPACE):
        pieces = [piece for piece in boundary.split(text) if piece]
        if len(pieces) > 1:
            between = "" if boundary is _SENTENCE_END and _UNSPACED_END.search(text) else " "
            packed = pack(pieces, between, max_tokens, n_tokens)
            if packed == [text]:  # its parts fit, and yet the whole does not: cut elsewhere
                continue
            return [part for piece in packed for part in split_text(piece, max_tokens, n_tokens)]
    middle = len(text) // 2
    halves = text[:middle], text[middle:]
    return [part for half in halves for part in split_text(half, max_tokens, n_tokens)]


def pack(
    pieces: Sequence[str], between: str, max_tokens: int, n_tokens: Callable[[Sequence[str]], list[int]]
) -> list[str]:
    """Join neighbouring pieces while their tokens (and one for what is put between) stay within ``max_tokens``."""
    packed: list[list[str]] = [[]]
    size = 0
    for piece, n in zip(pieces, n_tokens(pieces), strict=True):
        more = n + 1
        if size and size + more > max_tokens:
            packed.append([])
            size = 0
        packed[-1].append(piece)
        size += more
    return [between.join(group) for group in packed]
