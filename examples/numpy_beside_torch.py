"""The two models side by side: one sentence through PyTorch and through the NumPy reference, with the same weights.

Run it with ``python examples/numpy_beside_torch.py``; it takes a few seconds.
"""

import numpy as np
import torch

from dragoman import ModelConfig, Transformer, reference

SRC = [[17, 42, 5, 9, 3]]  # a source sentence as ids, 3 is eos
TGT_IN = [[2, 11, 12, 8]]  # a target as the decoder reads it, 2 is bos
TGT_OUT = [[11, 12, 8, 3]]  # and as it should say it


def largest_difference(**variant: str) -> tuple[float, float]:
    """The largest absolute difference between the two: of the logits, and of the gradient of any parameter."""
    torch.manual_seed(0)
    config = ModelConfig(preset="tiny", src_vocab_size=50, tgt_vocab_size=50, dropout=0.0, **variant)
    model = Transformer(config).double()  # float64, as the reference works in the dtype it is given

    logits = model(torch.tensor(SRC), torch.tensor(TGT_IN))  # (B, T, V)
    torch.nn.functional.cross_entropy(logits[0], torch.tensor(TGT_OUT[0])).backward()

    params = {name: parameter.detach().numpy() for name, parameter in model.named_parameters()}
    same_logits, cache = reference.forward(params, config.model_dump(), np.array(SRC), np.array(TGT_IN))
    d_logits = reference.label_smoothed_loss_backward(same_logits, np.array(TGT_OUT), config.pad_id, smoothing=0.0)
    grads = reference.backward(params, config.model_dump(), cache, d_logits)  # by hand, no autograd

    return (
        float(np.abs(logits.detach().numpy() - same_logits).max()),
        max(float(np.abs(p.grad.numpy() - grads[name]).max()) for name, p in model.named_parameters()),
    )


if __name__ == "__main__":
    print("largest difference between PyTorch and NumPy:")
    for variant in (
        {},
        {"norm": "pre", "activation": "gelu"},
        {"positions": "rotary", "activation": "swiglu"},
        {"positions": "learned", "share_embeddings": "none"},
    ):
        in_logits, in_gradients = largest_difference(**variant)
        name = ", ".join(variant.values()) or "the paper's model"
        print(f"  {name:<20} logits {in_logits:.1e}   gradients {in_gradients:.1e}")
