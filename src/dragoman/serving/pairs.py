"""Which languages are served: the pairs, the names and codes that clients use for them, and detection among them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from dragoman.errors import ConfigError
from dragoman.languages.codes import primary
from dragoman.languages.known import known
from dragoman.languages.stopwords import language_scores
from dragoman.serving.refusals import UnservedError

ALIASES: Mapping[str, str] = {
    "iw": "he", "in": "id", "ji": "yi", "nb": "no", "nn": "no", "no": "nb", "pb": "pt-br", "zt": "zh-hant", "cn": "zh"
}  # fmt: skip
"""What clients call a language otherwise: the old ISO codes, and those of LibreTranslate and Subtitle Edit."""


def name_of(code: str) -> str:
    """Return ``German`` for ``de``; the code itself where no name is known."""
    return known(code).name


class Detected(NamedTuple):
    """A language, and how sure that is."""

    code: str
    confidence: float  # 0 to 1


@dataclass(frozen=True)
class Pair:
    """A translator and the languages it is for."""

    src: str
    tgt: str
    translator: Any  # a Translator
    to: str | None = None  # what chooses the target language, of a translator with several

    @property
    def name(self) -> str:
        """``en-de``: what metrics and logs call it."""
        return f"{self.src}-{self.tgt}"


class Pairs:
    """All pairs that a server has, by language."""

    def __init__(self, translators: Iterable[Any]) -> None:
        """Take translators; each says its languages itself.

        Raises:
            ConfigError: One says none, is a parser, or two have the same languages.
        """
        self._pairs: dict[tuple[str, str], Pair] = {}
        for translator in translators:
            if translator.is_parser:
                raise ConfigError("a parser cannot be served: serve runs of translation")
            served = translator.languages.served()
            if not served:
                raise ConfigError(
                    "the run does not say its languages: set data.src_lang and data.tgt_lang when it is trained"
                )
            for src, tgt, to in served:
                if (src.lower(), tgt.lower()) in self._pairs:
                    raise ConfigError(f"two runs translate {src} to {tgt}: leave out one of them")
                self._pairs[src.lower(), tgt.lower()] = Pair(src, tgt, translator, to)
        if not self._pairs:
            raise ConfigError("no run to serve: name one or several")

    def __iter__(self) -> Any:
        return iter(self._pairs.values())

    def __len__(self) -> int:
        return len(self._pairs)

    @property
    def sources(self) -> list[str]:
        """Each source language once."""
        return list(dict.fromkeys(pair.src for pair in self))

    @property
    def targets(self) -> list[str]:
        """Each target language once."""
        return list(dict.fromkeys(pair.tgt for pair in self))

    def targets_of(self, src: str) -> list[str]:
        """The targets of one source language."""
        return [pair.tgt for pair in self if pair.src == src]

    def find(self, src: str, tgt: str) -> Pair:
        """The pair for two codes as a client writes them: ``EN``, ``de-AT``, ``zh_Hans``, ``pb``.

        Raises:
            UnservedError: There is none; what there is, is named.
        """
        source, target = match(src, self.sources), match(tgt, self.targets)
        if source is None:
            raise UnservedError(f"{src} is not a source language here: use {', '.join(self.sources)}")
        if target is None:
            raise UnservedError(f"{tgt} is not a target language here: use {', '.join(self.targets)}")
        pair = self._pairs.get((source.lower(), target.lower()))
        if pair is None:
            raise UnservedError(
                f"{source} to {target} is not served: from {source} there is {', '.join(self.targets_of(source))}"
            )
        return pair

    def detect(self, text: str, tgt: str | None = None) -> Detected:
        """The source language that a text most likely is in, among those served (that have the target ``tgt``).

        With one candidate it is that one, with the confidence that the text is in no other language known.
        """
        wanted = None if tgt is None else match(tgt, self.targets)
        among = [pair.src for pair in self if wanted is None or pair.tgt == wanted] or self.sources
        scores = language_scores(text)
        best = max(dict.fromkeys(among), key=lambda code: scores.get(primary(code), 0.0))
        total = sum(scores.values())
        return Detected(best, scores.get(primary(best), 0.0) / total if total else 0.0)


def match(code: str, among: Sequence[str]) -> str | None:
    """The one of ``among`` that a client means by ``code``: the same, an alias, or the same primary language."""
    asked = code.strip().lower().replace("_", "-")
    known = {each.lower().replace("_", "-"): each for each in among}
    for candidate in (asked, ALIASES.get(asked, asked)):
        if candidate in known:
            return known[candidate]
        for each, own in known.items():
            if primary(each) == primary(candidate):
                return own
    return None
