"""Language pairs of a server: the codes that clients use for them, their names, and detection of the source."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

from dragoman.errors import ConfigError
from dragoman.languages.codes import match, primary, tag_of, variety
from dragoman.languages.known import known
from dragoman.languages.stopwords import language_scores
from dragoman.serving.refusals import UnservedError

_SCRIPTS = {"Hant": "traditional", "Latn": "Latin script", "Cyrl": "Cyrillic", "Arab": "Arabic script"}


def name_of(code: str) -> str:
    """Return the English name of a language, such as ``German`` for ``de``; the code itself if none is known.

    That of another script than the usual one names it: ``Chinese (traditional)``.
    """
    return known(code).name + (f" ({_SCRIPTS.get(script, script)})" if (script := _named_script(code)) else "")


def _named_script(code: str) -> str:
    """Return the script of a language tag, if it is not the one that the language is usually written in."""
    return "" if variety(code) == variety(primary(code)) else tag_of(code).script


class Detected(NamedTuple):
    """Detected language of a text."""

    code: str
    confidence: float  # 0 to 1


@dataclass(frozen=True)
class Pair:
    """Translator of one language pair."""

    src: str
    tgt: str
    translator: Any  # a Translator
    to: str | None = None  # option ``to``, if the translator has several target languages

    @property
    def name(self) -> str:
        """Name of the pair in metrics and logs, such as ``en-de``."""
        return f"{self.src}-{self.tgt}"


class Pairs:
    """Language pairs of a server."""

    def __init__(self, translators: Iterable[Any]) -> None:
        """Collect the pairs of ``translators``.

        Raises:
            ConfigError: A translator has no languages or is a parser, or two have the same pair.
        """
        self._pairs: dict[tuple[str, str], Pair] = {}
        for translator in translators:
            if translator.is_parser:
                raise ConfigError("a parser cannot be served: give runs that translate")
            served = translator.languages.served()
            if not served:
                raise ConfigError(
                    "the languages of the run are not known: set data.src_lang and data.tgt_lang when you train it"
                )
            for src, tgt, to in served:
                if (src.lower(), tgt.lower()) in self._pairs:
                    raise ConfigError(f"two runs translate {src} to {tgt}: leave out one of them")
                self._pairs[src.lower(), tgt.lower()] = Pair(src, tgt, translator, to)
        if not self._pairs:
            raise ConfigError("no run to serve: give one or several")

    def __iter__(self) -> Any:
        return iter(self._pairs.values())

    def __len__(self) -> int:
        return len(self._pairs)

    @property
    def sources(self) -> list[str]:
        """Source languages, each once."""
        return list(dict.fromkeys(pair.src for pair in self))

    @property
    def targets(self) -> list[str]:
        """Target languages, each once."""
        return list(dict.fromkeys(pair.tgt for pair in self))

    def targets_of(self, src: str) -> list[str]:
        """Return the target languages of a source language."""
        return [pair.tgt for pair in self if pair.src == src]

    def find(self, src: str, tgt: str) -> Pair:
        """Return the pair for two codes as clients write them: ``EN``, ``de-AT``, ``zh_Hans``, ``pb``.

        Raises:
            UnservedError: The pair is not served; the message names those that are.
        """
        source, target = match(src, self.sources), match(tgt, self.targets)
        if source is None:
            raise UnservedError(f"{src} is not a source language here: use {', '.join(self.sources)}")
        if target is None:
            raise UnservedError(f"{tgt} is not a target language here: use {', '.join(self.targets)}")
        pair = self._pairs.get((source.lower(), target.lower()))
        if pair is None:
            raise UnservedError(
                f"{source} to {target} is not served: from {source} use {', '.join(self.targets_of(source))}"
            )
        return pair

    def detect(self, text: str, tgt: str | None = None) -> Detected:
        """Return the most likely source language of a text, among those served (with the target ``tgt``).

        A single candidate is returned for any text; its confidence shows how well the text fits.
        """
        target = None if tgt is None else match(tgt, self.targets)
        among = [pair.src for pair in self if target is None or pair.tgt == target] or self.sources
        scores = language_scores(text)
        best = max(dict.fromkeys(among), key=lambda code: scores.get(primary(code), 0.0))
        total = sum(scores.values())
        return Detected(best, scores.get(primary(best), 0.0) / total if total else 0.0)
