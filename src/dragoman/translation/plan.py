"""Decisions made before any text is translated: engine, precision, settings. Impossible options are refused here.

plan = translator.plan(beam_size=5, engine="auto")
translator.translate(texts, plan)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from dragoman.config import DecodeConfig
from dragoman.data.seen_words import SeenWords
from dragoman.data.tokenizer import Tokenizer
from dragoman.decoding.constraints import Rules
from dragoman.decoding.request import Progress, SearchSettings
from dragoman.toolkits.engine import Attend, Models, Needs, Searcher
from dragoman.translation.aligner import Aligner
from dragoman.translation.confidence import Confidence
from dragoman.translation.keeping.glossary import Glossary
from dragoman.translation.language_pairs import Direction
from dragoman.translation.options import TranslateOptions
from dragoman.translation.scoring import Scored
from dragoman.translation.word_constraints import ConstraintEncoder

if TYPE_CHECKING:
    from dragoman.translation.pair_reader import PairReader


@dataclass(frozen=True)
class ConstrainedSearch:
    """The search under the guard's constraints: the plan's engine if it can, else torch."""

    load: Callable[[], Searcher]
    settings: SearchSettings

    @cached_property
    def engine(self) -> Searcher:
        """The engine, loaded when it is first needed; see ``Engine.load`` for the errors."""
        return self.load()


@dataclass(frozen=True, kw_only=True)
class PlannedModel:
    """The model of a plan, whose weights are read when something needs them."""

    models: Models
    src_tokenizer: Tokenizer
    tgt_tokenizer: Tokenizer
    attend: Attend | None  # reads attention with the engine; None: the reader does
    open_reader: Callable[[], PairReader]

    @cached_property
    def reader(self) -> PairReader:
        """See ``Plan.reader``."""
        return self.open_reader()


@dataclass(frozen=True, kw_only=True)
class ModelFacts:
    """Facts of the model's training text that translating depends on; of an ensemble the smallest of its members'."""

    max_tokens: int  # longest source that is translated in one piece, in subwords
    usual_tokens: int  # a longer text is split
    usual_sentences: int  # a text of more sentences is translated in parts
    least_ratio: float  # target subwords for each source subword; fewer are suspicious; 0: not known
    masks: str | None  # form of the masks that the model has learned, such as [{}]
    seen_words: SeenWords | None = None  # words of the training sources; None: not known

    @property
    def longest_sentence(self) -> int:
        """Longest sentence, in subwords, that is not split although a text of this length would be."""
        return min(self.max_tokens, 2 * self.usual_tokens)


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Decisions on how to translate; made by ``Translator.plan``."""

    # request
    options: TranslateOptions
    needs: Needs  # what the options need of an engine
    # search
    engine: Searcher
    search: SearchSettings
    constrained: ConstrainedSearch
    # model and languages
    model: PlannedModel
    direction: Direction
    facts: ModelFacts
    encoder: ConstraintEncoder
    confidence: Confidence | None

    @property
    def src_tokenizer(self) -> Tokenizer:
        """Tokenizer of the sources, with the mark of the target language if there are several."""
        return self.model.src_tokenizer

    @property
    def tgt_tokenizer(self) -> Tokenizer:
        """Tokenizer of the translations."""
        return self.model.tgt_tokenizer

    def can_search(self, rules: Rules) -> bool:
        """Return True if the engine itself can search under some rules; one that does not say so cannot."""
        engine: Any = self.engine
        return hasattr(engine, "can_search") and engine.can_search(rules)

    @property
    def reader(self) -> PairReader:
        """Reads given translations; the weights are read now if they were not yet."""
        return self.model.reader

    @cached_property
    def aligner(self) -> Aligner:
        """Aligns translations with their sources."""
        return Aligner(
            attend=self.model.attend or self.reader.attend, src_tokenizer=self.src_tokenizer,
            tgt_tokenizer=self.tgt_tokenizer, direction=self.direction, longest=self.search.longest,
        )  # fmt: skip

    @property
    def src_lang(self) -> str | None:
        """Code of the source language; None: not known."""
        return self.direction.src

    @property
    def tgt_lang(self) -> str | None:
        """Code of the target language; None: not known."""
        return self.direction.tgt

    @property
    def glossary(self) -> Glossary | None:
        """Terms and their translations."""
        glossary: Glossary | None = self.options.glossary
        return glossary

    @property
    def trees(self) -> bool:
        """True if the model is a parser: it turns a sentence into a tree."""
        return self.needs.trees


@dataclass(frozen=True)
class ScoringPlan:
    """Decisions on how to score given translations; made by ``Translator.plan_scoring``."""

    reader: PairReader
    options: TranslateOptions
    decode: DecodeConfig

    def score(self, sources: Sequence[str], targets: Sequence[str], progress: Progress | None = None) -> list[Scored]:
        """Score each target as the translation of its source; see ``Translator.score``."""
        return self.reader.score(sources, targets, self.options, self.decode, progress)
