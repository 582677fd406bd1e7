"""Translate one text and keep every attention weight, through the model's recorder argument."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from dragoman.data.tokenizer import BOS_ID, EOS_ID
from dragoman.decoding.batches import search_all
from dragoman.errors import DecodeError
from dragoman.translator import Translator, one_line


class Trace(NamedTuple):
    """One translation and what was attended to on the way."""

    source: str
    translation: str
    src_pieces: list[str]  # S, the last one eos
    tgt_pieces: list[str]  # T, the last one eos; row i of an attention is the step that chose piece i
    weights: dict[str, NDArray[np.float32]]  # module path -> (H, Q, K)

    def cross_attention(self) -> NDArray[np.float32]:
        """The mean over heads of the last decoder layer's attention to the source, ``(T, S)``; rows sum to 1."""
        last = max(
            (name for name in self.weights if name.endswith("cross_attn")), key=lambda name: int(name.split(".")[2])
        )
        mean: NDArray[np.float32] = self.weights[last].mean(axis=0)
        return mean


@torch.inference_mode()
def trace(translator: Translator, text: str) -> Trace:
    """Translate ``text`` with the run's own beam, then run the model once more on the result with a recorder.

    Raises:
        DecodeError: ``text`` is blank, or longer than the model was trained on.
    """
    ids = translator.src_tokenizer.encode([text])[0]
    if not text.strip():
        raise DecodeError("there is nothing to explain: the text is blank")
    if len(ids) > translator.max_tokens:
        raise DecodeError(
            f"{len(ids):,} tokens are too many to explain in one piece: at most {translator.max_tokens:,}"
        )
    best = search_all(translator.model, [ids], translator.config.decode, translator.device)[0][0]
    src = torch.tensor([[*ids, EOS_ID]], device=translator.device)
    tgt_in = torch.tensor([[BOS_ID, *best.ids]], device=translator.device)
    weights: dict[str, NDArray[np.float32]] = {}
    translator.model(src, tgt_in, record=lambda name, w: weights.update({name: w[0].float().cpu().numpy()}))
    return Trace(
        source=text,
        translation=one_line(translator.tgt_tokenizer.decode([best.ids])[0]),
        src_pieces=translator.src_tokenizer.pieces([*ids, EOS_ID]),
        tgt_pieces=translator.tgt_tokenizer.pieces([*best.ids, EOS_ID]),
        weights=weights,
    )
