"""Language pairs of a server: the codes that clients use for them, their names, and detection of the source."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from dragoman.errors import ConfigError
from dragoman.languages.codes import match, primary, tag_of, variety
from dragoman.languages.detection import Detected, detect, is_target, probabilities, surely
from dragoman.languages.known import known
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

    def sources_of(self, tgt: str) -> list[str]:
        """Return the source languages of a target language."""
        return [pair.src for pair in self if pair.tgt == tgt]

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
        """Return the most likely language of a text among all served ones, or as the source of a translation.

        For a translation (with the target ``tgt``) that is the target only if the text is surely written in it already.

        Raises:
            ConfigError: The package py3langid is missing.
        """
        if tgt is None:
            return detect(text, [*self.sources, *self.targets])
        target = match(tgt, self.targets)
        unchanged = None if target is None else is_target(text, self.sources_of(target), target)
        return unchanged or self.source_of(text, target)

    def source_of(self, text: str, tgt: str | None = None) -> Detected:
        """Return the most likely source language of a text, of those that are translated to ``tgt``.

        Its confidence is the probability that the text is in this language and in none of the others nor the target.

        Raises:
            ConfigError: The package py3langid is missing.
        """
        sources, target = self._possible(tgt)
        likely = probabilities(text, sources if target is None else [*sources, target])
        return max((language for language in likely if language.code in sources), key=lambda language: language[1])

    def chosen_source(self, text: str, tgt: str | None = None) -> str:
        """Return the code of ``source_of``, for which a single source language needs no detection.

        Raises:
            ConfigError: The package py3langid is missing.
        """
        sources, _ = self._possible(tgt)
        return sources[0] if len(sources) == 1 else self.source_of(text, tgt).code

    def own_source(self, text: str, usual: Pair) -> Pair:
        """Return the pair for a text among others, which are translated by ``usual``: another if it surely needs one.

        Raises:
            ConfigError: The package py3langid is missing.
        """
        sources = self.sources_of(usual.tgt)
        best = usual.src if len(sources) == 1 else self.source_of(text, usual.tgt).code
        others = [code for code in (*sources, usual.tgt) if code != best]
        return self.find(best, usual.tgt) if best != usual.src and surely(text, best, others) else usual

    def probability(self, text: str, src: str, tgt: str) -> Detected:
        """Return a source language with the probability that a text is in it, and in no other one nor the target.

        Raises:
            ConfigError: The package py3langid is missing.
        """
        likely = probabilities(text, [*self.sources_of(tgt), tgt])
        return next(language for language in likely if language.code == src)

    def _possible(self, tgt: str | None) -> tuple[list[str], str | None]:
        """Return the source languages of a translation into ``tgt``, and the target; of an unserved one all sources."""
        target = None if tgt is None else match(tgt, self.targets)
        return (self.sources if target is None else self.sources_of(target)), target
