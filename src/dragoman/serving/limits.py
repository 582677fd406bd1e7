"""How much one request may ask for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dragoman.errors import ConfigError
from dragoman.serving.refusals import TooMuchError
from dragoman.translation.options import TranslateOptions

EXPLAINED = 400
"""Characters of a text whose attention is shown: more would not fit on a page."""

EXPLAINED_TOKENS = 256
"""Its subwords: odd characters are several each, and the weights grow with their square, to 250 MB for 400 emoji."""


SHORT = 10
"""Characters of a short sentence: a request may have as many sentences as there is room for such, or texts."""


MOST_INCLUDED = 400
"""Bytes of words that a translation must have: odd ones are a subword each, and the search takes a step for each."""


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What a server takes of one request."""

    chars: int  # in all its texts
    texts: int
    body: int  # bytes
    beam: int  # hypotheses, and translations of a line

    def check_texts(self, texts: Sequence[str]) -> None:
        """Refuse texts that are too many or too long.

        Raises:
            TooMuchError: They are.
        """
        if len(texts) > self.texts:
            raise TooMuchError(f"{len(texts):,} texts are more than the {self.texts:,} that one request may have")
        n_chars = sum(map(len, texts))
        if n_chars > self.chars:
            raise TooMuchError(f"{n_chars:,} characters are more than the {self.chars:,} that one request may have")

    def check_sentences(self, n: int) -> None:
        """Refuse texts of too many sentences: each is searched for, so very short ones cost more than their characters.

        Raises:
            TooMuchError: They have.
        """
        most = max(self.texts, self.chars // SHORT)
        if n > most:
            raise TooMuchError(f"{n:,} lines and sentences are more than the {most:,} that one request may have")

    def check_options(self, options: TranslateOptions) -> None:
        """Refuse a search that is too wide.

        Raises:
            ConfigError: It is.
        """
        for name in ("beam_size", "n_best"):
            if (getattr(options, name) or 0) > self.beam:
                raise ConfigError(f"{name} must be at most {self.beam} on this server, got {getattr(options, name)}")
        n_words = len(options.include) + len(options.exclude)
        if n_words > 100:
            raise ConfigError(f"{n_words} words to include and exclude: at most 100 on this server")
        n_bytes = sum(len(word.encode()) for word in options.include)
        if n_bytes > MOST_INCLUDED:
            raise ConfigError(f"the words to include have {n_bytes:,} bytes: at most {MOST_INCLUDED} on this server")
