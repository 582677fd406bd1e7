"""Embeddings and generator, which all baselines share."""

from __future__ import annotations

import torch
from torch import nn

from dragoman.config import ModelConfig
from dragoman.model.embedding import TokenEmbedding


@torch.no_grad()
def ends(config: ModelConfig) -> tuple[TokenEmbedding, TokenEmbedding, nn.Linear]:
    """Return source embedding, target embedding and generator, tied and initialised like those of ``Transformer``."""
    src_embed = TokenEmbedding(config.src_vocab_size, config)
    tgt_embed = TokenEmbedding(config.tgt_vocab_size, config)
    generator = nn.Linear(config.d_model, config.tgt_vocab_size, bias=config.generator_bias)
    nn.init.xavier_uniform_(generator.weight)
    if config.generator_bias:
        nn.init.zeros_(generator.bias)
    if config.share_embeddings == "all":
        tgt_embed.weight = src_embed.weight
    if config.share_embeddings != "none":
        generator.weight = tgt_embed.weight
    for embedding in (src_embed, tgt_embed):
        nn.init.normal_(embedding.weight, std=config.d_model**-0.5)
        embedding.weight[config.pad_id] = 0.0
    return src_embed, tgt_embed, generator
