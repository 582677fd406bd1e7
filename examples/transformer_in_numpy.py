"""The Transformer of the paper in one file that needs NumPy alone: the equations of sections 3.1 to 3.5, with shapes.

``python examples/transformer_in_numpy.py`` draws fresh weights, prints the shape of each step of one small batch, tries
what must hold, and, where dragoman is installed, compares the logits with its reference implementation.
"""

import importlib.util

import numpy as np

D_MODEL, N_HEADS, D_FF, VOCAB, PAD = 16, 2, 64, 11, 0
ATTENTIONS = {"encoder.layers.0": ["self_attn"], "decoder.layers.0": ["self_attn", "cross_attn"]}


def fresh(rng):
    """Weights by name, as torch draws them: (out, in) for a linear map, 1 and 0 for a layer norm."""
    weights = {"src_embed.weight": rng.normal(0, D_MODEL**-0.5, (VOCAB, D_MODEL))}

    def linear_map(name, n_in, n_out):
        weights[f"{name}.weight"] = rng.uniform(-(n_in**-0.5), n_in**-0.5, (n_out, n_in))
        weights[f"{name}.bias"] = rng.uniform(-(n_in**-0.5), n_in**-0.5, n_out)

    for layer, attentions in ATTENTIONS.items():
        for attention in attentions:
            for name in ("w_q", "w_k", "w_v", "w_o"):
                linear_map(f"{layer}.{attention}.{name}", D_MODEL, D_MODEL)
        linear_map(f"{layer}.feed_forward.w_1", D_MODEL, D_FF)
        linear_map(f"{layer}.feed_forward.w_2", D_FF, D_MODEL)
        for number in range(1, len(attentions) + 2):
            weights[f"{layer}.norm{number}.weight"] = np.ones(D_MODEL)
            weights[f"{layer}.norm{number}.bias"] = np.zeros(D_MODEL)
    return weights


def linear(p, name, x):
    """x W^T + b: (..., in) -> (..., out)."""
    return x @ p[f"{name}.weight"].T + p[f"{name}.bias"]


def softmax(scores):
    """Positive, and 1 in each row; the greatest score becomes e^0, so that nothing overflows."""
    exps = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return exps / exps.sum(axis=-1, keepdims=True)


def attend(q, k, v, mask):
    """Eq. (1), softmax(q k^T / sqrt(d_k)) v: (B, H, Q, d_k), (B, H, K, d_k), (B, H, K, d_v) -> (B, H, Q, d_v)."""
    scores = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])  # (B, H, Q, K)
    return softmax(np.where(mask, scores, -np.inf)) @ v


def multi_head(p, name, x, memory, mask):
    """Section 3.2.2, concat(head_1, ..., head_H) W_o: queries of x (B, Q, d), keys and values of memory (B, K, d)."""

    def heads(y):  # (B, L, d) -> (B, H, L, d / H)
        return y.reshape(*y.shape[:2], N_HEADS, -1).swapaxes(1, 2)

    q = heads(linear(p, f"{name}.w_q", x))
    k, v = (heads(linear(p, f"{name}.{w}", memory)) for w in ("w_k", "w_v"))
    context = attend(q, k, v, mask)  # (B, H, Q, d_v)
    return linear(p, f"{name}.w_o", context.swapaxes(1, 2).reshape(x.shape))


def feed_forward(p, name, x):
    """Eq. (2), max(0, x W_1 + b_1) W_2 + b_2, at each position by itself."""
    return linear(p, f"{name}.w_2", np.maximum(0, linear(p, f"{name}.w_1", x)))


def layer_norm(p, name, x, eps=1e-5):
    """Mean 0 and variance 1 (divided by n) over the channels of each position; then times the gain, plus the shift."""
    normed = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + eps)
    return normed * p[f"{name}.weight"] + p[f"{name}.bias"]


def positions(length):
    """Section 3.5: sin and cos of pos / 10000^(2i / d), by turns; 10000^(-2i/d) is e^(-log(10000) 2i/d)."""
    angles = np.arange(length)[:, None] * np.exp(-np.log(10000) * np.arange(0, D_MODEL, 2) / D_MODEL)
    return np.stack([np.sin(angles), np.cos(angles)], axis=-1).reshape(length, D_MODEL)


def embed(p, ids):
    """Sections 3.4 and 3.5: rows of the table times sqrt(d), plus positions: (B, L) -> (B, L, d)."""
    return p["src_embed.weight"][ids] * np.sqrt(D_MODEL) + positions(ids.shape[1])


def encode(p, src):
    """Section 3.1: attention and feed-forward, each inside LayerNorm(x + sub-layer(x)): (B, S) -> (B, S, d)."""
    x, mask, layer = embed(p, src), (src != PAD)[:, None, None, :], "encoder.layers.0"
    x = layer_norm(p, f"{layer}.norm1", x + multi_head(p, f"{layer}.self_attn", x, x, mask))
    return layer_norm(p, f"{layer}.norm2", x + feed_forward(p, f"{layer}.feed_forward", x))


def decode(p, memory, src, tgt):
    """The decoder, and logits by the tied table: (B, S, d), (B, T) -> (B, T, V)."""
    causal = np.tri(tgt.shape[1], dtype=bool)  # (T, T): the diagonal and below
    own = (tgt != PAD)[:, None, None, :] & causal
    x, layer = embed(p, tgt), "decoder.layers.0"
    x = layer_norm(p, f"{layer}.norm1", x + multi_head(p, f"{layer}.self_attn", x, x, own))
    seen = (src != PAD)[:, None, None, :]
    x = layer_norm(p, f"{layer}.norm2", x + multi_head(p, f"{layer}.cross_attn", x, memory, seen))
    x = layer_norm(p, f"{layer}.norm3", x + feed_forward(p, f"{layer}.feed_forward", x))
    return x @ p["src_embed.weight"].T


if __name__ == "__main__":
    p = fresh(np.random.default_rng(0))
    src = np.array([[5, 6, 7, 8, 3], [9, 4, 3, PAD, PAD]])  # 3 ends a sentence
    tgt = np.array([[2, 6, 5, 7], [2, 9, 4, PAD]])  # 2 begins one
    memory = encode(p, src)
    logits = decode(p, memory, src, tgt)
    for name, array in (("source", src), ("embedded", embed(p, src)), ("memory", memory), ("logits", logits)):
        print(f"{name:<9}{array.shape}")

    later = tgt.copy()
    later[:, 3] = 10
    assert np.allclose(decode(p, memory, src, later)[:, :3], logits[:, :3]), "the decoder sees later words"
    longer = np.pad(src, ((0, 0), (0, 2)))
    assert np.allclose(decode(p, encode(p, longer), longer, tgt), logits), "padding changes the output"
    print("no position sees a later one, and padding changes nothing")

    if importlib.util.find_spec("dragoman"):
        from dragoman import ModelConfig, reference

        sizes = {"d_model": D_MODEL, "n_heads": N_HEADS, "d_ff": D_FF, "n_encoder_layers": 1, "n_decoder_layers": 1}
        config = ModelConfig(src_vocab_size=VOCAB, tgt_vocab_size=VOCAB, **sizes).model_dump()
        theirs, _ = reference.forward(p, config, src, tgt)
        print(f"largest difference from dragoman.reference: {np.abs(theirs - logits).max():.0e}")
        assert np.allclose(theirs, logits)
