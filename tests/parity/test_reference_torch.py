"""The NumPy reference against torch itself: functions, optimiser, and torch.nn.Transformer. Nothing of our model."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from dragoman import reference as ref
from dragoman.config import TrainConfig
from dragoman.training.schedule import learning_rate
from model_variants import CHOICES, ELEMENTWISE

B, H, Q, K, D_K, D_V = 2, 3, 5, 7, 4, 11


def normal(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).normal(size=shape)


def of_torch(f: Callable[..., Tensor], *arrays: np.ndarray) -> tuple[np.ndarray, np.ndarray, list[np.ndarray]]:
    """``f``'s output, a gradient for it, and the gradients that autograd makes of it."""
    tensors = [torch.from_numpy(array).requires_grad_() for array in arrays]
    out = f(*tensors)
    d_out = np.random.default_rng(1).normal(size=out.shape)
    out.backward(torch.from_numpy(d_out))
    return out.detach().numpy(), d_out, [t.grad.numpy() for t in tensors]


def assert_close(got: Any, want: Any) -> None:
    np.testing.assert_allclose(got, want, rtol=1e-10, atol=1e-12)


def test_attention_equals_scaled_dot_product_attention() -> None:
    q, k, v = normal(B, H, Q, D_K), normal(B, H, K, D_K), normal(B, H, K, D_V)
    mask = np.random.default_rng(2).random((B, 1, Q, K)) < 0.6
    mask[..., 0] = True
    want, d_context, grads = of_torch(
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, torch.from_numpy(mask)), q, k, v
    )
    context, weights = ref.attend(q, k, v, mask)
    assert_close(context, want)
    for got, grad in zip(ref.attend_backward(q, k, v, weights, d_context), grads, strict=True):
        assert_close(got, grad)


TORCHS: dict[str, Callable[[Tensor], Tensor]] = {"relu": F.relu, "gelu": F.gelu, "swish": F.silu}


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_activations_equal_torch(name: str) -> None:
    x = 5 * normal(B, Q, K)
    want, d_y, (d_x,) = of_torch(TORCHS[name], x)
    assert_close(ref.activate(x, name), want)
    assert_close(ref.activate_backward(x, d_y, name), d_x)


def test_layer_norm_equals_torch() -> None:
    x, weight, bias = normal(B, Q, 7), normal(7), normal(7) + 1
    want, d_y, (d_x, d_weight, d_bias) = of_torch(lambda x, w, b: F.layer_norm(x, (7,), w, b, 1e-5), x, weight, bias)
    p = {"weight": weight, "bias": bias}
    y, cache = ref.layer_norm(p, x, 1e-5)
    got_x, grads = ref.layer_norm_backward(p, cache, d_y)
    assert_close(y, want)
    assert_close(got_x, d_x)
    assert_close(grads["weight"], d_weight)
    assert_close(grads["bias"], d_bias)


def test_embedding_equals_torch() -> None:
    weight, ids = normal(13, 6), np.array([[3, 5, 3, 0], [10, 3, 0, 0]])
    want, d_x, (d_weight,) = of_torch(lambda w: F.embedding(torch.from_numpy(ids), w, padding_idx=0) * 6**0.5, weight)
    assert_close(ref.embed(weight, ids), want)
    assert_close(ref.embed_backward(weight, ids, 0, d_x), d_weight)


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.5])
def test_loss_equals_cross_entropy(smoothing: float) -> None:
    logits, tgt_out = normal(2, 3, 7), np.array([[4, 2, 0], [5, 0, 0]])
    tensor = torch.from_numpy(logits).requires_grad_()
    want = F.cross_entropy(
        tensor.flatten(0, 1), torch.from_numpy(tgt_out).flatten(), ignore_index=0, label_smoothing=smoothing
    )
    want.backward()
    assert_close(ref.label_smoothed_loss(logits, tgt_out, 0, smoothing), want.item())
    assert_close(ref.label_smoothed_loss_backward(logits, tgt_out, 0, smoothing), tensor.grad.numpy())


def test_adam_equals_torch_optim_adam() -> None:
    start = {"w": normal(5, 3), "b": normal(5)}
    tensors = {name: torch.from_numpy(value.copy()).requires_grad_() for name, value in start.items()}
    optimizer = torch.optim.Adam(tensors.values(), lr=1.0, betas=(0.9, 0.98), eps=1e-9)
    params, state = start, ref.adam_start(start)
    for step in range(1, 30):
        lr = ref.noam(step, 512, 10)
        grads = {name: normal(*value.shape) * step - value for name, value in params.items()}
        for name, tensor in tensors.items():
            tensor.grad = torch.from_numpy(grads[name])
        optimizer.param_groups[0]["lr"] = lr
        optimizer.step()
        params, state = ref.adam_step(params, grads, state, lr)
    for name, tensor in tensors.items():
        assert_close(params[name], tensor.detach().numpy())


@pytest.mark.parametrize("step", [1, 2, 99, 100, 101, 150, 299, 300, 301, 5000])
def test_schedules_equal_those_of_training(step: int) -> None:
    common = dict(warmup_steps=100, max_steps=300)
    want = {
        learning_rate(step, TrainConfig(schedule="noam", **common), 512): ref.noam(step, 512, 100),
        learning_rate(step, TrainConfig(schedule="noam", lr=2.0, **common), 64): ref.noam(step, 64, 100, factor=2.0),
        learning_rate(step, TrainConfig(schedule="inverse_sqrt", lr=3e-4, **common), 512): ref.inverse_sqrt(
            step, 3e-4, 100
        ),
        learning_rate(step, TrainConfig(schedule="cosine", lr=3e-4, **common), 512): ref.cosine(step, 3e-4, 100, 300),
    }
    for got, expected in want.items():
        assert got == pytest.approx(expected, rel=1e-12, abs=1e-18)


CONFIG = dict(
    d_model=6, n_heads=3, d_ff=11, n_encoder_layers=2, n_decoder_layers=2, share_embeddings="none",
    positions="sinusoidal", scale_embeddings=True, attention_bias=True, generator_bias=False, norm_eps=1e-5,
    max_len=17, pad_id=0, src_vocab_size=13, tgt_vocab_size=13,
)  # fmt: skip


def torch_transformer(config: dict[str, Any], params: dict[str, np.ndarray]) -> nn.Transformer:
    """torch.nn.Transformer with our parameters; its post-norm stacks lose the final norm that the paper has not."""
    pre = config["norm"] == "pre"
    model = nn.Transformer(
        6, 3, 2, 2, 11, 0.0, config["activation"], batch_first=True, norm_first=pre, dtype=torch.float64
    )
    if not pre:
        model.encoder.norm = model.decoder.norm = None
    state = {}
    for name in model.state_dict():
        ours = name.replace("multihead_attn", "cross_attn").replace("linear", "feed_forward.w_")
        if "in_proj" in ours:
            parts = [ours.replace("in_proj_", f"w_{x}.") for x in "qkv"]
            state[name] = torch.from_numpy(np.concatenate([params[part] for part in parts]))
        else:
            state[name] = torch.from_numpy(params[ours.replace("out_proj", "w_o")])
    model.load_state_dict(state)
    return model


@pytest.mark.filterwarnings("ignore:enable_nested_tensor")
@pytest.mark.parametrize("norm", CHOICES["norm"])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_the_complete_model_equals_torch_nn_transformer(norm: str, activation: str) -> None:
    config = {**CONFIG, "norm": norm, "activation": activation}
    rng = np.random.default_rng(5)
    params = {n: rng.normal(size=s) / 2 + (len(s) == 1) for n, s in ref.parameter_shapes(config).items()}
    src = np.array([[5, 12, 7, 3, 0], [9, 3, 0, 0, 0]])
    tgt_in = np.array([[2, 4, 8, 4, 11, 6, 1], [2, 12, 5, 0, 0, 0, 0]])
    logits, cache = ref.forward(params, config, src, tgt_in)
    d_logits = rng.normal(size=logits.shape)
    grads = ref.backward(params, config, cache, d_logits)

    model = torch_transformer(config, params)
    generator = torch.from_numpy(params["generator.weight"]).requires_grad_()
    src_x, tgt_x = (
        torch.from_numpy(ref.embed_sequence(params, config, side, ids)).requires_grad_()
        for side, ids in (("src", src), ("tgt", tgt_in))
    )
    hidden = torch.from_numpy(src == 0)  # torch's masks say who is hidden
    want = (
        generator
        @ model(
            src_x,
            tgt_x,
            tgt_mask=torch.ones(7, 7, dtype=torch.bool).triu(1),
            src_key_padding_mask=hidden,
            memory_key_padding_mask=hidden,
            tgt_key_padding_mask=torch.from_numpy(tgt_in == 0),
        ).mT
    )  # (B, V, T)
    assert_close(logits, want.mT.detach().numpy())
    want.mT.backward(torch.from_numpy(d_logits))
    assert_close(grads["generator.weight"], generator.grad.numpy())
    assert_close(grads["src_embed.weight"], ref.embed_backward(params["src_embed.weight"], src, 0, src_x.grad.numpy()))
    w_v = model.encoder.layers[0].self_attn.in_proj_weight.grad[12:].numpy()
    assert_close(grads["encoder.layers.0.self_attn.w_v.weight"], w_v)
