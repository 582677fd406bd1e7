"""The complete model: forward and backward of every variant, and training by itself."""

from typing import Any

import numpy as np
import pytest

from dragoman import reference as ref
from model_variants import FACTORS, fields_of, label, pairwise

SRC = np.array([[5, 12, 7, 3, 0], [9, 3, 0, 0, 0], [0, 0, 0, 0, 0]])  # the last row gives the decoder nothing to see
TGT_IN = np.array([[2, 4, 8, 4, 11, 6, 1], [2, 12, 5, 0, 0, 0, 0], [2, 7, 7, 10, 0, 0, 0]])
TGT_OUT = np.array([[4, 8, 4, 11, 6, 1, 3], [12, 5, 3, 0, 0, 0, 0], [7, 7, 10, 3, 0, 0, 0]])


def randomised(config: dict[str, Any], rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Parameters of which none is 0 or 1 by accident."""
    return {
        name: rng.normal(size=shape) * 0.5 + (len(shape) == 1 and name.endswith(".weight"))
        for name, shape in ref.parameter_shapes(config).items()
    }


def assert_slopes(f, params, grads, rng):
    """Hold each gradient to the slope of ``f(params)`` along one random direction of its parameter."""
    assert grads.keys() == params.keys()
    for name, param in params.items():
        assert grads[name].shape == param.shape
        direction = rng.normal(size=param.shape)
        if name.endswith("_embed.weight"):
            direction[0] = 0  # the row of padding is not trained through the look-up
        step = 1e-7  # so short that no rectifier turns on or off on the way
        up, down = f({**params, name: param + step * direction}), f({**params, name: param - step * direction})
        np.testing.assert_allclose((grads[name] * direction).sum(), (up - down) / (2 * step), rtol=2e-6, atol=1e-7)


ROWS = [fields_of(row) for row in pairwise(FACTORS)]
ROWS += [dict(n_encoder_layers=0, norm=norm, share_embeddings=share) for norm, share in
         [("post", "all"), ("pre", "decoder"), ("pre", "none")]]  # fmt: skip


@pytest.mark.parametrize("variant", ROWS, ids=label)
def test_backward_is_the_slope_of_the_loss(config, rng, variant):
    config |= variant  # d_model / n_heads is 2: even, as rotary positions want it
    params = randomised(config, rng)

    def loss(params):
        return ref.label_smoothed_loss(ref.forward(params, config, SRC, TGT_IN)[0], TGT_OUT, 0, 0.1)

    logits, cache = ref.forward(params, config, SRC, TGT_IN)
    assert logits.shape == (3, 7, config["tgt_vocab_size"])
    grads = ref.backward(params, config, cache, ref.label_smoothed_loss_backward(logits, TGT_OUT, 0, 0.1))
    assert_slopes(loss, params, grads, rng)


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_encode_backward_of_the_encoder_alone(config, rng, norm):
    config |= dict(n_decoder_layers=0, norm=norm, positions="learned")
    params, d_memory = randomised(config, rng), rng.normal(size=(3, 5, 6))
    assert not any(name.startswith(("tgt", "decoder", "generator")) for name in params)
    _, cache = ref.encode(params, config, SRC)
    grads = ref.encode_backward(params, config, cache, d_memory)
    assert_slopes(lambda params: (ref.encode(params, config, SRC)[0] * d_memory).sum(), params, grads, rng)


def test_parameters_stand_under_the_state_dict_s_names(config):
    names = set(ref.parameter_shapes(config | dict(norm="pre", activation="swiglu", n_encoder_layers=1)))
    linears = [f"{side}.layers.0.self_attn.w_{x}" for side in ("encoder", "decoder") for x in "qkvo"]
    linears += [f"decoder.layers.0.cross_attn.w_{x}" for x in "qkvo"]
    linears += [f"{side}.layers.0.feed_forward.w_{x}" for side in ("encoder", "decoder") for x in "123"]
    norms = ["encoder.norm", "decoder.norm", *(f"encoder.layers.0.norm{i}" for i in (1, 2))]
    norms += [f"decoder.layers.0.norm{i}" for i in (1, 2, 3)]
    want = {f"{name}.{part}" for name in linears + norms for part in ("weight", "bias")} | {"src_embed.weight"}
    assert {name for name in names if ".layers.1." not in name} == want


def test_the_base_model_has_the_paper_s_number_of_parameters(config):
    config |= dict(d_model=512, n_heads=8, d_ff=2048, n_encoder_layers=6, n_decoder_layers=6)
    config |= dict(src_vocab_size=37000, tgt_vocab_size=37000)
    assert sum(int(np.prod(shape)) for shape in ref.parameter_shapes(config).values()) == 63_082_496


def table_3(config: dict[str, Any], vocab_size: int, **row: int) -> int:
    """Return the parameters of a row of Table 3, in millions as it prints them."""
    base = dict(d_model=512, n_heads=8, d_ff=2048, n_encoder_layers=6, n_decoder_layers=6)
    config = {**config, **base, **row, "src_vocab_size": vocab_size, "tgt_vocab_size": vocab_size}
    return round(sum(int(np.prod(shape)) for shape in ref.parameter_shapes(config).values()) / 1e6)


def test_one_vocabulary_gives_every_count_of_table_3_but_that_of_big(config):
    """Rows base, B and C, in the order in which they are printed."""
    rows = [
        {}, dict(d_k=16, d_v=64), dict(d_k=32, d_v=64),
        *(dict(n_encoder_layers=n, n_decoder_layers=n) for n in (2, 4, 8)),
        dict(d_model=256, d_k=32, d_v=32), dict(d_model=1024, d_k=128, d_v=128), dict(d_ff=1024), dict(d_ff=4096),
    ]  # fmt: skip
    printed = [65, 58, 60, 36, 50, 80, 28, 168, 53, 90]
    counts = {size: [table_3(config, size, **row) for row in rows] for size in (40_931, 40_932, 41_160, 41_161)}
    assert [size for size, found in counts.items() if found == printed] == [40_932, 41_160]
    big = dict(d_model=1024, d_ff=4096, n_heads=16)
    fitting = [n for n in (35_295, 35_296, 36_272, 36_273) if table_3(config, n, **big) == 213]
    assert fitting == [35_296, 36_272]


def test_initialise_follows_the_plan(config, rng):
    config |= dict(d_model=64, n_heads=2, share_embeddings="none", src_vocab_size=1009, tgt_vocab_size=1009)
    params = ref.initialise(config, rng)
    assert not params["src_embed.weight"][0].any()
    assert params["tgt_embed.weight"][1:].std() == pytest.approx(64**-0.5, rel=0.02)
    w_1 = params["encoder.layers.0.feed_forward.w_1.weight"]  # (11, 64)
    assert 0.9 * (6 / 75) ** 0.5 < abs(w_1).max() < (6 / 75) ** 0.5
    assert not params["decoder.layers.1.cross_attn.w_q.bias"].any()
    assert (params["decoder.layers.1.norm3.weight"] == 1).all()


def test_changing_a_future_token_leaves_earlier_outputs_unchanged(config, rng):
    params, changed = randomised(config, rng), TGT_IN.copy()
    changed[:, 3] = 9
    before, _ = ref.forward(params, config, SRC, TGT_IN)
    after, _ = ref.forward(params, config, SRC, changed)
    np.testing.assert_array_equal(before[:, :3], after[:, :3])
    assert (before[:, 3:] != after[:, 3:]).any(-1)[0].all()


def test_more_padding_changes_nothing(config, rng):
    params = randomised(config, rng)
    logits, _ = ref.forward(params, config, SRC, TGT_IN)
    longer, _ = ref.forward(params, config, np.pad(SRC, ((0, 0), (0, 3))), np.pad(TGT_IN, ((0, 0), (0, 2))))
    np.testing.assert_allclose(longer[:, :7], logits, rtol=1e-12, atol=1e-12)


def test_tying_equals_untied_parameters_that_happen_to_be_equal(config, rng):
    tied = randomised(config, rng)
    untied = tied | {"tgt_embed.weight": tied["src_embed.weight"], "generator.weight": tied["src_embed.weight"]}
    free = config | dict(share_embeddings="none")
    d_logits = rng.normal(size=(3, 7, 13))
    logits, cache = ref.forward(tied, config, SRC, TGT_IN)
    free_logits, free_cache = ref.forward(untied, free, SRC, TGT_IN)
    np.testing.assert_array_equal(logits, free_logits)
    got, parts = ref.backward(tied, config, cache, d_logits), ref.backward(untied, free, free_cache, d_logits)
    want = parts["src_embed.weight"] + parts["tgt_embed.weight"] + parts["generator.weight"]
    np.testing.assert_allclose(got["src_embed.weight"], want)
    assert not parts["src_embed.weight"][0].any()
    assert want[0].any()  # the generator scores padding too, and so trains its row where they are tied


def test_forward_and_backward_change_nothing_in_place(config, rng):
    params = randomised(config, rng)
    for param in params.values():
        param.flags.writeable = False
    logits, cache = ref.forward(params, config, SRC, TGT_IN)
    d_logits = ref.label_smoothed_loss_backward(logits, TGT_OUT, 0)
    d_logits.flags.writeable = False
    grads = ref.backward(params, config, cache, d_logits)
    again = ref.backward(params, config, cache, d_logits)
    assert all((grads[name] == again[name]).all() for name in params)


def test_float32_stays_float32(config, rng):
    config |= dict(norm="pre", activation="gelu")
    params = {name: value.astype(np.float32) for name, value in randomised(config, rng).items()}
    logits, cache = ref.forward(params, config, SRC, TGT_IN)
    grads = ref.backward(params, config, cache, ref.label_smoothed_loss_backward(logits, TGT_OUT, 0))
    assert {logits.dtype, *(grad.dtype for grad in grads.values())} == {np.dtype(np.float32)}


def a_batch_to_copy(rng: np.random.Generator, rows: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Sentences of 1 to 5 out of 7 words: ``src``, ``tgt_in``, ``tgt_out``; pad, unk, bos, eos = 0, 1, 2, 3."""
    src, tgt_in, tgt_out = (np.zeros((rows, 6), int) for _ in range(3))
    for row in range(rows):
        n = rng.integers(1, 6)
        ids = rng.integers(4, 11, n)
        src[row, : n + 1] = tgt_out[row, : n + 1] = [*ids, 3]
        tgt_in[row, : n + 1] = [2, *ids]
    return src, tgt_in, tgt_out


@pytest.mark.parametrize(("norm", "positions"), [("post", "sinusoidal"), ("pre", "learned")])
def test_it_learns_to_copy_by_itself(config, norm, positions):
    rng = np.random.default_rng(1)
    config |= dict(d_model=32, n_heads=2, d_ff=64, n_encoder_layers=1, n_decoder_layers=1, norm=norm)
    config |= dict(positions=positions, src_vocab_size=11, tgt_vocab_size=11)
    params = ref.initialise(config, rng)
    state = ref.adam_start(params)
    for step in range(1, 501):
        src, tgt_in, tgt_out = a_batch_to_copy(rng, 32)
        logits, cache = ref.forward(params, config, src, tgt_in)
        grads = ref.backward(params, config, cache, ref.label_smoothed_loss_backward(logits, tgt_out, 0, 0.1))
        params, state = ref.adam_step(params, grads, state, ref.cosine(step, 5e-3, 50, 500))
    src, tgt_in, tgt_out = a_batch_to_copy(rng, 25)
    best = 1 / (0.9 + 0.1 / 11)  # a probability of 1 is more than smoothed targets ask for
    assert ref.perplexity(ref.forward(params, config, src, tgt_in)[0], tgt_out, 0) == pytest.approx(best, abs=0.01)
    sentences = [[int(i) for i in row if i > 3] for row in src]
    for beam_size in (1, 3):
        copies = [
            ref.translate(params, config, ids, ref.SearchSettings(0, 2, 3, None, beam_size))[0].ids for ids in sentences
        ]
        assert sum(copy == ids for copy, ids in zip(copies, sentences, strict=True)) >= 24
