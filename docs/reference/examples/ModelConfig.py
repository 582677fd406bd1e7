import torch

from dragoman import ModelConfig, Transformer

config = ModelConfig(preset="tiny", src_vocab_size=100, tgt_vocab_size=100, n_encoder_layers=0)
language_model = Transformer(config)
print(language_model(None, torch.tensor([[2, 11, 12]])).shape)  # (B, T, V)
