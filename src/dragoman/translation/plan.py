"""All that is decided before a text is touched: engine, precision, settings. What is impossible was refused by then."""

from __future__ import annotations

from dataclasses import dataclass

from dragoman.data.tokenizer import Tokenizer
from dragoman.toolkits.engine import Needs, Searcher, SearchSettings
from dragoman.translation.confidence import Confidence
from dragoman.translation.keeping.glossary import Glossary
from dragoman.translation.options import TranslateOptions
from dragoman.translation.scoring import PairReader
from dragoman.translation.word_constraints import ConstraintEncoder


@dataclass(frozen=True, kw_only=True)
class Plan:
    """How some texts will be translated; made by ``Translator.plan``."""

    options: TranslateOptions
    needs: Needs  # what it asks of the engine
    engine: Searcher
    search: SearchSettings
    second_engine: Searcher  # what the guard searches with under constraints: itself if it can, else torch
    second_search: SearchSettings
    reader: PairReader  # reads translations for their alignments
    src_tokenizer: Tokenizer
    tgt_tokenizer: Tokenizer
    src_lang: str | None
    tgt_lang: str | None
    zero_shot: str | None  # what is to be known of a pair of languages that the model was never trained on
    unspaced: bool  # the target language has no spaces between sentences
    usual_sentences: int  # a text of more is translated in parts
    usual_tokens: int  # a longer text is split
    longest_sentence: int  # but a single sentence only where it is longer than this
    least_ratio: float  # subwords of a translation for each of its source: fewer are suspicious; 0: not known
    max_tokens: int  # the longest source that the model was trained on
    longest: int | None  # the most tokens that the model has positions for
    encoder: ConstraintEncoder
    glossary: Glossary | None
    confidence: Confidence | None
    masks: str | None  # the form of the masks that the model has learned, such as [{}]
    trees: bool  # a parser's: a sentence to a tree
