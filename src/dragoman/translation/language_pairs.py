"""Languages that a model translates between, from its tags for target languages and its training pairs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from dragoman.bundle import Bundle
from dragoman.data.sides import Side, refuse_by_name, warnings_about
from dragoman.files import pinned
from dragoman.languages.codes import variety
from dragoman.languages.known import is_unspaced

Langs = tuple[str | None, str | None]


RENAME = "rename it if the name misleads"
"""Advice of a command that cannot be told the source language."""


def name_from(langs: Langs, from_lang: str | None) -> str | None:
    """Return the advice of a command that has ``--from``; None if it was given."""
    if from_lang is not None:
        return None
    return f"add --from {langs[0]} if the name is wrong" if langs[0] else ""


def check_sides(run: object, langs: Langs, advice: str | None, src: Path | str, *tgt: Path | str) -> list[str]:
    """Compare files with the languages of a translation; return warnings about their texts, the source's first.

    Args:
        run: Name of the run, for messages.
        langs: Languages that it translates from and into.
        advice: How to say that a name misleads; None: names of files are not compared.
        src: The file to translate.
        tgt: References or translations of it.

    Raises:
        ConfigError: The name of a file tells another language.
    """
    return warnings_about(check_names(run, langs, advice, src, *tgt))


def check_names(run: object, langs: Langs, advice: str | None, src: Path | str, *tgt: Path | str) -> list[Side]:
    """Return files with the languages that they should be in.

    Raises:
        ConfigError: The name of a file tells another language, and ``advice`` is not None.
    """
    sides = [
        Side(pinned(src), langs[0], f"{run} translates from"),
        *(Side(pinned(path), langs[1], f"{run} translates into") for path in tgt),
    ]
    if advice is not None:
        refuse_by_name(sides, advice)
    return sides


@dataclass(frozen=True)
class Direction:
    """Source and target language of a translation; None: unknown."""

    src: str | None
    tgt: str | None
    zero_shot: str | None = None  # a sentence for the reader, if the model was never trained on this pair

    @property
    def src_unspaced(self) -> bool:
        """True if the source language puts no spaces between words: each character is a word."""
        return is_unspaced(self.src)

    @property
    def tgt_unspaced(self) -> bool:
        """True if the target language puts no spaces between words."""
        return is_unspaced(self.tgt)


@dataclass(frozen=True)
class LanguagePairs:
    """Languages of one model."""

    src_lang: str | None  # of a model for one source language
    tgt_lang: str | None
    targets: tuple[str, ...]  # target languages to choose from with ``to``; empty if there is only one
    trained: tuple[Langs, ...]  # pairs that it was trained on; empty: not known

    @classmethod
    def of(cls, bundle: Bundle) -> LanguagePairs:
        """Read them from a bundle and the runs that it was fine-tuned from."""
        data, targets = bundle.config.data, bundle.src_tokenizer.targets
        several = tuple(targets) if len(targets) > 1 else ()
        return cls(data.src_lang, data.tgt_lang, several, trained_pairs(bundle))

    @property
    def sources(self) -> tuple[str, ...]:
        """Known source languages."""
        return tuple(dict.fromkeys(src for src, _ in (*self.trained, (self.src_lang, None)) if src is not None))

    def direction(self, to: str | None, from_lang: str | None) -> Langs:
        """Return source and target language of a translation; ``to`` is one of ``targets``."""
        return from_lang or self.src_lang, self.tgt_lang if to is None else to

    def zero_shot(self, src: str | None, tgt: str | None) -> str | None:
        """Return a warning if the model was never trained on a pair of languages; None if it was, or if unknown."""
        known = {(variety(one), variety(other)) for one, other in self.trained if one and other}
        if not known or src is None or tgt is None or (variety(src), variety(tgt)) in known:
            return None
        pairs = ", ".join(f"{one} to {other}" for one, other in self.trained if one and other)
        return f"zero-shot: {src} to {tgt} was never trained on (trained: {pairs}); expect a worse translation"

    def served(self) -> list[tuple[str, str, str | None]]:
        """Return source, target and ``to`` of each direction with known languages, trained directions first."""
        if not self.targets:
            return [(self.src_lang, self.tgt_lang, None)] if self.src_lang and self.tgt_lang else []
        every = [(src, tgt) for src in self.sources for tgt in self.targets if variety(src) != variety(tgt)]
        return [(src, tgt, tgt) for src, tgt in sorted(every, key=lambda pair: self.zero_shot(*pair) is not None)]


def trained_pairs(bundle: Bundle) -> tuple[Langs, ...]:
    """Return the pairs that a model of several target languages was trained on; empty for other or imported models."""
    if len(bundle.src_tokenizer.targets) < 2:
        return ()
    before = bundle.facts.parent.get("pairs", [])
    pairs = [*((src, tgt) for src, tgt in bundle.config.data.pairs), *((src, tgt) for src, tgt in before)]
    return tuple(dict.fromkeys(pair for pair in pairs if pair[1] in bundle.src_tokenizer.targets))
