import torch

from dragoman import ModelConfig, Transformer

config = ModelConfig(preset="small", src_vocab_size=8000, tgt_vocab_size=8000, norm="pre", positions="rotary")
model = Transformer(config).eval()
src = torch.tensor([[17, 42, 5, 3], [9, 3, 0, 0]])  # (B, S); 0 is padding, 3 is eos
tgt_in = torch.tensor([[2, 11, 12], [2, 8, 0]])  # (B, T); 2 is bos
logits = model(src, tgt_in)  # (B, T, V); both masks come from the padding
memory = model.encode(src)  # (B, S, d_model)
weights = {}
model(src, tgt_in, record=weights.__setitem__)  # each attention's weights (B, H, Q, K), by module path

state = model.start(src)  # what a search needs: one token at a time, keys and values kept
logits, state = model.step(state, torch.tensor([2, 2]))  # (B, V)
state = state.select(torch.tensor([1, 1, 0]))  # keep rows, repeats allowed
