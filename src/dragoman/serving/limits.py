"""Limits of one request, and each key's share of what all keys may store or keep waiting."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from dragoman.decoding.batches import MOST_CONSTRAINED_BEAM
from dragoman.decoding.constraints import Rules
from dragoman.errors import ConfigError
from dragoman.serving.refusals import TooMuchError
from dragoman.translation.options import TranslateOptions

EXPLAINED = 400
"""Largest text to explain, in characters: more would not fit on a page."""

EXPLAINED_TOKENS = 256
"""Largest text to explain, in subwords. Attention grows with their square: 400 emoji would give 250 MB."""

SHORT = 10
"""Length of a short sentence in characters: a request may have ``chars / SHORT`` sentences, or ``texts`` if more."""

MOST_INCLUDED = 200
"""Largest size of the words to include, in bytes: each byte can be a subword, and a step of the search."""

MOST_PREFIX = 1000
"""Largest size of a prefix in bytes; each can be a step of the search too."""

MOST_EXCLUDED = 4000
"""Largest size of the words to exclude, in bytes: each step looks for every beginning of every word."""

MOST_TERM = 1024
"""Largest size of a term of a glossary and of its translation in bytes, as DeepL has it."""


@dataclass(frozen=True)
class Shares:
    """Shares of a limit: half of it is divided among the keys, the other half is for whoever comes first."""

    names: tuple[str, ...]
    """Names of the keys; "" alone for a server without keys."""

    @cached_property
    def _known(self) -> frozenset[str]:
        return frozenset(self.names)

    def includes(self, owner: str) -> bool:
        """Return True if ``owner`` has a share of its own."""
        return owner in self._known

    def of(self, most: int) -> int:
        """Return how much of ``most`` is each key's own: at least one, if there is any."""
        return min(most, max(1, most // 2 // len(self.names)))

    def has_room(self, most: int, used: Mapping[str, int], owner: str) -> bool:
        """Return True if ``owner`` may have one more.

        Args:
            most: Limit for all keys together.
            used: Number in use by each owner; one that is not among ``names`` has no share of its own.
        """
        share = self.of(most)
        if self.includes(owner) and used.get(owner, 0) < share:
            return True
        shared = sum(max(0, n - (share if self.includes(name) else 0)) for name, n in used.items())
        return shared < most - share * len(self.names)


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Limits of one request to a server."""

    chars: int  # in all its texts
    texts: int
    document: int = 20_000_000  # bytes of an uploaded document
    body: int  # bytes
    beam: int  # beam size, and translations of a line

    def check_texts(self, texts: Sequence[str]) -> None:
        """Refuse texts that are too many or too long.

        Raises:
            TooMuchError: A limit is exceeded.
        """
        if len(texts) > self.texts:
            raise TooMuchError(f"a request may have at most {self.texts:,} texts, got {len(texts):,}")
        n_chars = sum(map(len, texts))
        if n_chars > self.chars:
            raise TooMuchError(f"a request may have at most {self.chars:,} characters, got {n_chars:,}")

    def check_sentences(self, n: int) -> None:
        """Refuse too many sentences: each is searched, so very short ones cost more than their characters.

        Raises:
            TooMuchError: The limit is exceeded.
        """
        if n > self.sentences:
            raise TooMuchError(f"a request may have at most {self.sentences:,} lines and sentences, got {n:,}")

    def check_prefixes(self, n: int) -> None:
        """Refuse more prefixes than a request may have lines, before each of them is read.

        Raises:
            TooMuchError: The limit is exceeded.
        """
        if n > self.sentences:
            raise TooMuchError(f"a request may have at most {self.sentences:,} prefixes, got {n:,}")

    @property
    def sentences(self) -> int:
        """Number of lines and sentences that a request may have."""
        return max(self.texts, self.chars // SHORT)

    def check_options(self, options: TranslateOptions) -> None:
        """Refuse a search that is too expensive.

        Raises:
            ConfigError: A limit is exceeded.
        """
        for name in ("beam_size", "n_best"):
            if (getattr(options, name) or 0) > self.beam:
                raise ConfigError(f"{name} must be at most {self.beam} on this server, got {getattr(options, name)}")
        n_words = len(options.include) + len(options.exclude)
        if n_words > 100:
            raise ConfigError(f"include and exclude may have at most 100 words on this server, got {n_words}")
        sizes = (
            ("include", sum(len(word.encode()) for word in options.include), MOST_INCLUDED),
            ("exclude", sum(len(word.encode()) for word in options.exclude), MOST_EXCLUDED),
            ("a prefix", max((len(prefix.encode()) for prefix in options.prefixes), default=0), MOST_PREFIX),
            ("a term of the glossary", _longest_term(options.glossary), MOST_TERM),
        )
        for name, n_bytes, most in sizes:
            if n_bytes > most:
                raise ConfigError(f"{name} may have at most {most:,} bytes on this server, got {n_bytes:,}")

    def check_forced(self, all_rules: Iterable[Rules]) -> None:
        """Refuse too many forced tokens: a prefix and words to include are searched for in every text.

        Raises:
            TooMuchError: The limit is exceeded.
        """
        steps = 0
        for rules in all_rules:
            n_included = sum(map(len, rules.include))
            steps += rules.room + n_included * min(n_included, MOST_CONSTRAINED_BEAM)
        if steps > self.chars:
            raise TooMuchError("prefixes and words to include are too long for so many texts: send fewer at a time")


def _longest_term(glossary: object) -> int:
    """Return the number of bytes of the longest term in a glossary, or of its translation."""
    terms = glossary.items() if isinstance(glossary, Mapping) else ()
    return max((len(text.encode("utf-8", "surrogatepass")) for pair in terms for text in pair if text), default=0)
