"""Which languages a model translates between: by its tags for target languages, and by what it was trained on."""

from __future__ import annotations

from dataclasses import dataclass

from dragoman.bundle import Bundle
from dragoman.languages.codes import primary

Langs = tuple[str | None, str | None]


@dataclass(frozen=True)
class Direction:
    """The languages of a translation; None where one is not known."""

    src: str | None
    tgt: str | None
    zero_shot: str | None = None  # a sentence for the reader, if the model was never trained on this pair


@dataclass(frozen=True)
class LanguagePairs:
    """The languages of one model."""

    src_lang: str | None  # of a model for one source language
    tgt_lang: str | None
    targets: tuple[str, ...]  # those to choose from with ``to``; nothing where there is one
    trained: tuple[Langs, ...]  # pairs that it was trained on, as far as that is known; nothing: not known

    @classmethod
    def of(cls, bundle: Bundle) -> LanguagePairs:
        """Those of a bundle, and of the runs it was fine-tuned from."""
        data, targets = bundle.config.data, bundle.src_tokenizer.targets
        several = tuple(targets) if len(targets) > 1 else ()
        return cls(data.src_lang, data.tgt_lang, several, trained_pairs(bundle))

    @property
    def sources(self) -> tuple[str, ...]:
        """Source languages, as far as they are known."""
        return tuple(dict.fromkeys(src for src, _ in (*self.trained, (self.src_lang, None)) if src is not None))

    def direction(self, to: str | None, from_lang: str | None) -> Langs:
        """Source and target language of a translation; ``to`` is one of ``targets``."""
        return from_lang or self.src_lang, self.tgt_lang if to is None else to

    def zero_shot(self, src: str | None, tgt: str | None) -> str | None:
        """A sentence about a pair of languages that the model was never trained on; None: it was, or nobody knows."""
        known = {(primary(one), primary(other)) for one, other in self.trained if one and other}
        if not known or src is None or tgt is None or (primary(src), primary(tgt)) in known:
            return None
        pairs = ", ".join(f"{one} to {other}" for one, other in self.trained if one and other)
        return f"zero-shot: {src} to {tgt} was never trained on (trained: {pairs}); expect a worse translation"

    def served(self) -> list[tuple[str, str, str | None]]:
        """Source, target and ``to`` of each direction with known languages; those that were trained on come first."""
        if not self.targets:
            return [(self.src_lang, self.tgt_lang, None)] if self.src_lang and self.tgt_lang else []
        every = [(src, tgt) for src in self.sources for tgt in self.targets if primary(src) != primary(tgt)]
        return [(src, tgt, tgt) for src, tgt in sorted(every, key=lambda pair: self.zero_shot(*pair) is not None)]


def trained_pairs(bundle: Bundle) -> tuple[Langs, ...]:
    """The pairs of languages that a model of several targets was trained on; an imported one does not say."""
    if len(bundle.src_tokenizer.targets) < 2:
        return ()
    before = bundle.facts.parent.get("pairs", [])
    pairs = [*((src, tgt) for src, tgt in bundle.config.data.pairs), *((src, tgt) for src, tgt in before)]
    return tuple(dict.fromkeys(pair for pair in pairs if pair[1] in bundle.src_tokenizer.targets))
