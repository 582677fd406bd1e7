"""Translate one text and keep what the model looked at and considered, through its recorder argument."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
import torch
from numpy.typing import NDArray

from dragoman.data.tokenizer import BOS_ID, EOS_ID, Tokenizer
from dragoman.decoding.batches import search_all
from dragoman.decoding.constraints import Rules, Spelling
from dragoman.decoding.ensemble import Ensemble
from dragoman.errors import ConfigError, DecodeError
from dragoman.explanation.words import END, START, Span, between_words, word_names, word_spans
from dragoman.pages.render import framed
from dragoman.parsing import trees
from dragoman.translation.segments import one_line
from dragoman.translation.translator import Translator

KINDS = ("cross", "encoder", "decoder")
"""Whose attention: the target's to the source, the source's to itself, the target's to itself."""


class Step(NamedTuple):
    """One step of the decoder: what it took, and what it thought likeliest."""

    chosen: str  # a subword; a space before it is ``·``
    probability: float
    rank: int  # 1: nothing was likelier; a search looks ahead, and may take another
    best: tuple[tuple[str, float], ...]  # the likeliest subwords with their probabilities, in order
    id: int = EOS_ID  # of the one chosen
    best_ids: tuple[int, ...] = ()  # of the likeliest: what ``explain`` takes as a prefix


class Side(NamedTuple):
    """One text as the model reads or writes it."""

    lang: str | None
    tokens: tuple[str, ...]  # subwords, spaces as ``·``, the last one the end of the sentence; or words
    spans: tuple[Span, ...]  # which tokens make up which word
    words: tuple[str, ...]

    def by_words(self) -> Self:
        """Words for tokens."""
        return self._replace(tokens=self.words, spans=tuple((i, i + 1) for i in range(len(self.words))))


class Trace(NamedTuple):
    """One translation and what was attended to on the way."""

    source: str
    translation: str
    src: Side  # S tokens
    tgt: Side  # T tokens; row i of an attention is the step that chose token i
    weights: dict[str, NDArray[np.float32]]  # module path -> (H, Q, K)
    steps: tuple[Step, ...]  # of each subword, also where tokens are words
    model: Mapping[str, Any] = {}  # what is known of it: parameters, step, BLEU in validation
    n_forced: int = 0  # how many tokens were given, not chosen

    def __repr__(self) -> str:
        heads = sum(len(weights) for weights in self.weights.values())
        return f"<Trace: {self.source!r} to {self.translation!r}, {heads} heads in {len(self.weights)} attentions>"

    def _repr_html_(self) -> str:
        """The page, in a notebook."""
        return framed(self.page(), 760)

    def layers(self, kind: str) -> list[NDArray[np.float32]]:
        """The attention of each layer, first to last: ``(H, Q, K)`` each; none where a model has none of the kind.

        Args:
            kind: One of ``KINDS``.

        Raises:
            ConfigError: It is another.
        """
        if kind not in KINDS:
            raise ConfigError(f"attention of kind {kind!r} is unknown: choose {', '.join(KINDS)}")
        start, end = {"cross": ("decoder.", "cross_attn")}.get(kind, (f"{kind}.", "self_attn"))
        return [weights for name, weights in self.weights.items() if name.startswith(start) and name.endswith(end)]

    def tokens(self, kind: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """What the rows and what the columns of an attention of this kind are called."""
        if kind == "encoder":
            return self.src.tokens, self.src.tokens
        return self.tgt.tokens, self.src.tokens if kind == "cross" else (START, *self.tgt.tokens[:-1])

    def alignment(self) -> NDArray[np.float32]:
        """Which source each target came from: the last layer but one's cross-attention, the mean of its heads.

        That layer follows the source most closely (Garg et al., 2019, https://arxiv.org/abs/1909.02074); a decoder of
        one layer has only that one.

        Returns:
            ``(T, S)``; each row sums to 1.

        Raises:
            DecodeError: The model attends to no source.
        """
        layers = self.layers("cross")
        if not layers:
            raise DecodeError("this model has no cross-attention, so there is no alignment to show")
        mean: NDArray[np.float32] = (layers[-2] if len(layers) > 1 else layers[0]).mean(axis=0)
        return mean

    def page(self) -> str:
        """One HTML file to explore: point at a word, choose a head, see what each step chose among."""
        from dragoman.explanation.page import page  # which shows traces, and so imports this module

        return page(self)

    def save(self, out: Path | str, show: str = "alignment", subwords: bool = False) -> list[Path]:
        """Write the page (``.html``), one figure (``.svg``, ``.png``, ``.pdf``) or, into a folder, all of them.

        Args:
            show: Which figure: alignment, cross, encoder, decoder or candidates.
            subwords: Draw tokens as the model has them; the page has both.

        Returns:
            What was written.

        Raises:
            ConfigError: The path ends in something else; there is no such figure; matplotlib or a font is missing.
            DecodeError: The model has no such attention.
            DragomanError: A file cannot be written.
        """
        from dragoman.explanation.outputs import write

        return write(self, Path(out), show, subwords)

    def by_words(self) -> Self:
        """The same trace with words for tokens; steps stay those of subwords."""
        so_far = ((0, 1), *((start + 1, stop + 1) for start, stop in self.tgt.spans[:-1]))  # behind the start
        merged = {}
        for name, weights in self.weights.items():
            queries = self.src.spans if name.startswith("encoder.") else self.tgt.spans
            keys = so_far if name.startswith("decoder.") and name.endswith("self_attn") else self.src.spans
            merged[name] = between_words(weights, queries, keys)
        return self._replace(src=self.src.by_words(), tgt=self.tgt.by_words(), weights=merged)


@torch.inference_mode()
def explain(
    translator: Translator, text: str, target: str | None = None, n_best: int = 5, prefix: Sequence[int] = (),
    to: str | None = None,
) -> Trace:  # fmt: skip
    """Translate ``text`` with the run's own beam, then run the model once more on the result with a recorder.

    What comes back holds every attention as an array (``alignment()``, ``layers("cross")``; ``by_words()`` merges
    subwords), what each step chose among (``steps``), and a page (``save("x.html")``; shown in a notebook).

    Of a parser the translation is the symbols of a tree, and words are what stands between spaces.

    Args:
        text: One sentence; a parser's, with spaces between its words.
        target: A translation to explain instead of the model's own; of a parser a tree.
        n_best: How many candidates of each step to keep.
        prefix: Tokens that the translation begins with, such as those of the steps before one and another candidate of
            that one (``Step.best_ids``); the rest is searched for. An eos at its end leaves nothing to search for.
        to: The target language, of a model with several.

    Returns:
        The trace. Of S source and T target tokens ``weights`` holds for each attention, by its module path, an
        array (heads, queries, keys); row i of the translation's is the step that chose token i.

    Raises:
        ConfigError: The translator is an ensemble, which has no attention of its own; ``target`` and ``prefix`` are
            both given, an id of the prefix is not in the vocabulary, or the target language is unknown.
        DecodeError: A text is blank, or longer than the model was trained on.
        DataError: Of a parser, ``target`` is no tree.
    """
    if isinstance(translator.model, Ensemble):
        raise ConfigError("an ensemble has no attention of its own: explain its members one by one")
    parses = translator.is_parser
    read = trees.sentence_of(trees.words_of(text)) if parses else text
    src_tokenizer = translator.src_tokenizer.towards(to)
    ids = _ids(translator, src_tokenizer, read, "the text")
    if target is None:
        tgt_ids = _searched(translator, ids, prefix)
        target = one_line(translator.tgt_tokenizer.decode([tgt_ids])[0])
    elif prefix:
        raise ConfigError("target and prefix: give one of them")
    else:
        target = " ".join(trees.to_symbols(trees.tree_of(target))) if parses else target
        tgt_ids = _ids(translator, translator.tgt_tokenizer, target, "the translation")
    src = torch.tensor([[*ids, EOS_ID]], device=translator.device)
    tgt_in = torch.tensor([[BOS_ID, *tgt_ids]], device=translator.device)
    weights: dict[str, NDArray[np.float32]] = {}
    logits = translator.model(src, tgt_in, record=lambda name, w: weights.update({name: w[0].float().cpu().numpy()}))
    src_lang, tgt_lang = translator.languages.direction(
        None if to is None else translator.src_tokenizer.target(to), None
    )
    src_eos = translator.config.model.src_eos
    if not src_eos:
        weights = {name: _without_end(name, one) for name, one in weights.items()}
    return Trace(
        source=text,
        translation=target,
        src=_side(translator.src_tokenizer, ids, src_lang, parses, src_eos),
        tgt=_side(translator.tgt_tokenizer, tgt_ids, tgt_lang, parses),
        weights=weights,
        steps=_steps(logits[0].float().cpu(), [*tgt_ids, EOS_ID], translator.tgt_tokenizer, n_best),
        model=_facts(translator),
        n_forced=len(prefix),
    )


def _searched(translator: Translator, ids: list[int], prefix: Sequence[int]) -> list[int]:
    """The run's own translation that begins with ``prefix``."""
    tokenizer, end = translator.tgt_tokenizer, list(prefix[-1:]) == [EOS_ID]
    begun = list(prefix[: len(prefix) - end])
    if wrong := [i for i in begun if not EOS_ID < i < tokenizer.vocab_size]:
        raise ConfigError(f"id {wrong[0]} in the prefix is no token of a text: 4 to {tokenizer.vocab_size - 1}")
    if len(begun) > translator.max_tokens:
        raise DecodeError(f"a prefix of {len(begun):,} tokens is too long: at most {translator.max_tokens:,}")
    if end:
        return begun
    rules = [Rules(Spelling(tokenizer.spelled), ids=tuple(begun))] if begun else None
    return list(search_all(translator.model, [ids], translator.config.decode, translator.device, rules=rules)[0][0].ids)


def _facts(translator: Translator) -> dict[str, Any]:
    """Which model it was: its size, and what its manifest says of its training."""
    manifest = translator.manifest
    found = {
        "parameters": sum(weight.numel() for weight in translator.model.parameters()),
        "step": manifest.get("step"),
        "bleu": (manifest.get("validation") or {}).get("bleu"),
    }
    return {name: value for name, value in found.items() if value is not None}


def rank_names(n: int) -> tuple[str, ...]:
    """What the first, second ... of the next subwords are called."""
    names = ("likeliest", "second", "third", "fourth", "fifth")
    return (*names, *(f"{rank}th" for rank in range(len(names) + 1, n + 1)))[:n]


def _side(tokenizer: Tokenizer, ids: Sequence[int], lang: str | None, by_spaces: bool, ends: bool = True) -> Side:
    """A text; ``ends``: eos is one of its tokens."""
    spelled = [tokenizer.spelled[i] for i in ids]
    spans = word_spans(spelled, by_spaces)
    words = word_names(spelled, spans)
    if not ends:
        return Side(lang, readable(tokenizer, ids), tuple(spans), tuple(words))
    return Side(lang, readable(tokenizer, [*ids, EOS_ID]), (*spans, (len(ids), len(ids) + 1)), (*words, END))


def _without_end(name: str, weights: NDArray[np.float32]) -> NDArray[np.float32]:
    """An attention ``(H, Q, K)`` without the eos of the source, which is not read: nothing attended to it."""
    if name.startswith("encoder."):
        return weights[:, :-1, :-1]
    return weights[:, :, :-1] if name.endswith("cross_attn") else weights


def readable(tokenizer: Tokenizer, ids: Sequence[int]) -> tuple[str, ...]:
    """Subwords as people read them: ``·`` stands for a space, and eos is the end of the sentence."""
    return tuple(
        END if i == EOS_ID else piece.replace("▁", "·") for i, piece in zip(ids, tokenizer.pieces(ids), strict=True)
    )


def _ids(translator: Translator, tokenizer: Tokenizer, text: str, what: str) -> list[int]:
    if not text.strip():
        raise DecodeError(f"there is nothing to explain: {what} is blank")
    ids = tokenizer.encode([text])[0]
    if len(ids) > translator.max_tokens:
        raise DecodeError(
            f"{len(ids):,} tokens are too many to explain in one piece: at most {translator.max_tokens:,}"
        )
    return ids


def _steps(logits: torch.Tensor, ids: Sequence[int], tokenizer: Tokenizer, n_best: int) -> tuple[Step, ...]:
    """What each step chose among what; ``logits`` is ``(T, V)``."""
    probabilities = logits.softmax(dim=-1)
    steps = []
    for row, chosen in zip(probabilities, ids, strict=True):
        best = row.topk(min(n_best, len(row)))
        names = readable(tokenizer, best.indices.tolist())
        best_ids = best.indices.tolist()
        steps.append(Step(
            readable(tokenizer, [chosen])[0], float(row[chosen]), 1 + int((row > row[chosen]).sum()),
            tuple(zip(names, best.values.tolist(), strict=True)), chosen, tuple(best_ids),
        ))  # fmt: skip
    return tuple(steps)
