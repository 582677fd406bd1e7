"""Hugging Face's Transformers at our sizes: Marian, which is post-norm, and M2M100, which is pre-norm."""

from __future__ import annotations

from typing import Any

from transformers import M2M100Config, M2M100ForConditionalGeneration, MarianConfig, MarianMTModel


def build(sizes: dict[str, Any], vocab_size: int, dropout: float, max_positions: int, attention: str) -> Any:
    """ReLU, one embedding; pad, unk, bos, eos = 0, 1, 2, 3; dropout where ours has it.

    Args:
        sizes: With ``norm``, where that is not ``post``.
        attention: ``eager`` or ``sdpa``.
    """
    settings: dict[str, Any] = dict(
        vocab_size=vocab_size, d_model=sizes["d_model"], encoder_layers=sizes["n_encoder_layers"],
        decoder_layers=sizes["n_decoder_layers"], encoder_attention_heads=sizes["n_heads"],
        decoder_attention_heads=sizes["n_heads"], encoder_ffn_dim=sizes["d_ff"], decoder_ffn_dim=sizes["d_ff"],
        activation_function="relu", dropout=dropout, attention_dropout=0.0, activation_dropout=0.0, pad_token_id=0,
        bos_token_id=2, eos_token_id=3, decoder_start_token_id=2, max_position_embeddings=max_positions,
        scale_embedding=True, attn_implementation=attention,
    )  # fmt: skip
    if sizes.get("norm") == "pre":
        return M2M100ForConditionalGeneration(
            M2M100Config(**settings, encoder_layerdrop=0.0, decoder_layerdrop=0.0, tie_word_embeddings=True)
        )
    return MarianMTModel(MarianConfig(**settings, forced_eos_token_id=None, share_encoder_decoder_embeddings=True))
