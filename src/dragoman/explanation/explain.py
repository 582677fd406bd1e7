"""Explain one translation: run the model with a recorder, and keep what it attended to and considered.

explanation = explain("runs/x", "A dog runs.")    # or a loaded translator
explanation.alignment()                # (T, S)
explanation.save("explanation.html")
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from dragoman.arguments import at_least_1, checked
from dragoman.data.tokenizer import BOS_ID, EOS_ID, UNK_ID, Tokenizer
from dragoman.decoding.batched_search import search_all
from dragoman.decoding.constraints import Rules, Spelling
from dragoman.decoding.ensemble import Ensemble
from dragoman.decoding.request import SearchSettings, Segment
from dragoman.errors import ConfigError, DecodeError
from dragoman.explanation.outputs import write
from dragoman.explanation.page import page
from dragoman.explanation.trace import Side, Step, Trace
from dragoman.explanation.words import END, word_spans, written_words
from dragoman.pages.render import framed
from dragoman.parsing import trees
from dragoman.translation.segments import one_line
from dragoman.translation.translator import Translator


class Explanation(Trace):
    """A trace that can be saved, and that a notebook shows as a page."""

    def _repr_html_(self) -> str:
        """Return the page in a frame, which a notebook shows."""
        return framed(self.page(), 760)

    def page(self) -> str:
        """Return one HTML file to explore: point at a word, choose a head, see the candidates of each step."""
        return page(self)

    def save(self, out: Path | str, show: str = "alignment", subwords: bool = False) -> list[Path]:
        """Write the page (``.html``), one figure (``.svg``, ``.png``, ``.pdf``) or, into a folder, all of them.

        Args:
            show: The figure to draw: alignment, cross, encoder, decoder or candidates.
            subwords: Draw the model's subwords instead of words; the page shows both.

        Returns:
            The paths of the files written.

        Raises:
            ConfigError: The suffix or the figure is unknown; matplotlib or a font is missing; a file of the folder is
                another program's.
            DecodeError: The model has no such attention.
            DragomanError: A file cannot be written.
        """
        return write(self, Path(out), show, subwords)


@checked
@torch.inference_mode()
def explain(
    translator: Translator | Path | str, text: str, target: str | None = None, n_best: int = 5,
    prefix: Sequence[int] = (), to: str | None = None,
) -> Explanation:  # fmt: skip
    """Translate ``text`` with the run's own beam, then run the model once more on the result with a recorder.

    The search sees the text as it is: what ``translate`` does before and after it (spans that must arrive unchanged,
    capitals, the guard) is left out, so the translation may be another one than that of ``translate``.

    The result holds every attention as an array (``alignment()``, ``layers("cross")``; ``by_words()`` merges subwords),
    the candidates of each step (``steps``), and a page (``save("x.html")``; shown in a notebook).

    A parser's translation is the symbols of a tree, and its words are the tokens between spaces.

    Args:
        translator: A loaded translator, a run folder or a bundle.
        text: One sentence; for a parser, with spaces between its words.
        target: A translation to explain instead of the model's own; for a parser, a tree.
        n_best: Number of candidates to keep for each step.
        prefix: Token ids that the translation begins with; the rest is searched for. To follow another candidate of a
            step, give the ids of the steps before it and one of its ``Step.best_ids``. An eos at the end of the prefix
            leaves nothing to search for.
        to: The target language of a model with several.

    Returns:
        The explanation. ``weights`` holds for each attention, by its module path, an array (heads, queries, keys); row
        i of an attention of the target is the step that chose token i.

    Raises:
        ConfigError: The translator is an ensemble, which has no attention of its own; ``target`` and ``prefix`` are
            both given, an id of the prefix is not in the vocabulary, or the target language is unknown.
        DecodeError: A text is blank, or longer than the model was trained on.
        DataError: The ``target`` of a parser is not a tree, or ``text`` is not a text.
    """
    at_least_1("n_best", n_best)
    translator = translator if isinstance(translator, Translator) else Translator(translator)
    if isinstance(translator.model, Ensemble):
        raise ConfigError("an ensemble has no attention of its own: explain its members one by one")
    is_parser = translator.is_parser
    model_text = trees.sentence_of(trees.words_of(text)) if is_parser else text
    ids = _ids(translator, translator.src_tokenizer.towards(to), model_text, "the text")
    if target is None:
        tgt_ids = _searched(translator, ids, prefix, trees.words_of(text) if is_parser else ())
        target = one_line(translator.tgt_tokenizer.decode([tgt_ids])[0])
    elif prefix:
        raise ConfigError("target and prefix: give one of them")
    else:
        target = " ".join(trees.to_symbols(trees.tree_of(target))) if is_parser else target
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
        weights = {name: _without_src_eos(name, attention) for name, attention in weights.items()}
    return Explanation(
        source=text,
        translation=target,
        src=_side(translator.src_tokenizer, (model_text, ids), src_lang, is_parser, src_eos),
        tgt=_side(translator.tgt_tokenizer, (target, tgt_ids), tgt_lang, is_parser),
        weights=weights,
        steps=_steps(logits[0].float().cpu(), [*tgt_ids, EOS_ID], translator.tgt_tokenizer, n_best),
        model=_model_facts(translator),
        n_forced=len(prefix),
    )


def _searched(translator: Translator, ids: list[int], prefix: Sequence[int], words: Sequence[str]) -> list[int]:
    """Return the ids of the run's own translation of ``ids`` that begins with ``prefix``, without eos.

    Args:
        words: The words of a parser's sentence: as in ``translation.parser``, hypotheses that are trees come first.
    """
    tokenizer, is_complete = translator.tgt_tokenizer, list(prefix[-1:]) == [EOS_ID]
    beginning = list(prefix[: len(prefix) - is_complete])
    if wrong := [i for i in beginning if not EOS_ID < i < tokenizer.vocab_size]:
        raise ConfigError(f"prefix must hold ids from 4 to {tokenizer.vocab_size - 1}, got {wrong[0]}")
    if len(beginning) > translator.max_tokens:
        raise DecodeError(f"a prefix of {len(beginning):,} tokens is too long: at most {translator.max_tokens:,}")
    if is_complete:
        return beginning
    rules = Rules(Spelling(tokenizer.spelled), ids=tuple(beginning)) if beginning else None
    decode = translator.config.decode
    settings = SearchSettings(decode=decode, n_best=decode.beam_size if words else 1)
    result = search_all(translator.model, [Segment(ids=ids, rules=rules)], settings, translator.device)
    hypotheses = result.complete()[0]
    for hypothesis in hypotheses if words else ():
        if not trees.from_symbols(tokenizer.decode([hypothesis.ids])[0].split(" "), words)[1]:
            return list(hypothesis.ids)
    return list(hypotheses[0].ids)


def _model_facts(translator: Translator) -> dict[str, Any]:
    """Return the model's number of parameters, training step and validation BLEU, without those unknown."""
    known = translator.bundle.facts
    facts = {
        "parameters": sum(weight.numel() for weight in translator.model.parameters()),
        "step": known.step,
        "bleu": known.validation.get("bleu"),
    }
    return {name: value for name, value in facts.items() if value is not None}


def _side(
    tokenizer: Tokenizer, encoded: tuple[str, Sequence[int]], lang: str | None, by_spaces: bool, has_eos: bool = True
) -> Side:
    """Return a text as tokens and words.

    Args:
        encoded: The text, and its ids.
        by_spaces: Words are separated by spaces only, as a parser's are.
        has_eos: The end of the sentence is one of the tokens.
    """
    text, ids = encoded
    # An unknown subword is decoded between two spaces; these are not in the text.
    spelled = [tokenizer.spelled[i].strip() if i == UNK_ID else tokenizer.spelled[i] for i in ids]
    spans, tokens = word_spans(spelled, by_spaces), _readable(tokenizer, ids)
    written = written_words(text, tokenizer.normalised(text), spelled, spans)
    words = [word if spelled[start] else tokens[start] for (start, _), word in zip(spans, written, strict=True)]
    if not has_eos:
        return Side(lang, tokens, tuple(spans), tuple(words))
    return Side(lang, (*tokens, END), (*spans, (len(ids), len(ids) + 1)), (*words, END))


def _without_src_eos(name: str, weights: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return an attention ``(H, Q, K)`` without the source's eos, for a model that does not read it."""
    if name.startswith("encoder."):
        return weights[:, :-1, :-1]
    return weights[:, :, :-1] if name.endswith("cross_attn") else weights


def _readable(tokenizer: Tokenizer, ids: Sequence[int]) -> tuple[str, ...]:
    """Return subwords for people to read: spaces as ``·``, eos as the end of the sentence."""
    return tuple(
        END if i == EOS_ID else piece.replace("▁", "·") for i, piece in zip(ids, tokenizer.pieces(ids), strict=True)
    )


def _ids(translator: Translator, tokenizer: Tokenizer, text: str, what: str) -> list[int]:
    """Encode one text; messages call it ``what``."""
    if not text.strip():
        raise DecodeError(f"there is nothing to explain: {what} is blank")
    ids = tokenizer.encode([text])[0]
    if not ids:
        raise DecodeError(f"there is nothing to explain: {what} holds only characters that nobody sees")
    if len(ids) > translator.max_tokens:
        raise DecodeError(
            f"{len(ids):,} tokens are too many to explain in one piece: at most {translator.max_tokens:,}"
        )
    return ids


def _steps(logits: torch.Tensor, ids: Sequence[int], tokenizer: Tokenizer, n_best: int) -> tuple[Step, ...]:
    """Return the choice and the ``n_best`` candidates of each step; ``logits`` is ``(T, V)``.

    Pad, unk and bos, which no translation holds, are no candidates.
    """
    steps = []
    for row, chosen in zip(logits.softmax(dim=-1), ids, strict=True):
        offered = row.clone()
        offered[:EOS_ID] = -1
        best = offered.topk(min(n_best, len(row) - EOS_ID))
        best_ids = best.indices.tolist()
        steps.append(Step(
            _readable(tokenizer, [chosen])[0], float(row[chosen]), 1 + int((offered > row[chosen]).sum()),
            tuple(zip(_readable(tokenizer, best_ids), best.values.tolist(), strict=True)), chosen, tuple(best_ids),
        ))  # fmt: skip
    return tuple(steps)
