"""Every equation against what is known of it, every backward pass against finite differences, in float64."""

import math

import numpy as np
import pytest

from dragoman import reference as ref
from dragoman.config import TrainConfig
from dragoman.training.schedule import learning_rate
from model_variants import CHOICES, ELEMENTWISE

B, H, Q, K, D_K, D_V, D_MODEL, D_FF = 2, 3, 5, 7, 4, 11, 6, 13


# masks


def test_causal_mask_lets_each_position_see_itself_and_the_past():
    assert ref.causal_mask(3)[0, 0].astype(int).tolist() == [[1, 0, 0], [1, 1, 0], [1, 1, 1]]


def test_padding_mask_hides_padding_keys_from_every_query():
    mask = ref.padding_mask(np.array([[5, 6, 0], [7, 0, 0]]), pad_id=0)
    assert mask.shape == (2, 1, 1, 3)
    assert mask.astype(int).tolist() == [[[[1, 1, 0]]], [[[1, 0, 0]]]]


def test_target_mask_is_the_past_without_padding():
    mask = ref.target_mask(np.array([[2, 0, 9]]), pad_id=0)
    assert mask.dtype == np.bool_
    assert mask[0, 0].astype(int).tolist() == [[1, 0, 0], [1, 0, 0], [1, 0, 1]]


def test_the_padding_id_is_not_a_literal():
    assert ref.target_mask(np.array([[0, 4]]), pad_id=4)[0, 0].astype(int).tolist() == [[1, 0], [1, 0]]


# linear


@pytest.mark.parametrize("bias", [True, False])
def test_linear_and_its_backward_pass(rng, assert_gradient, bias):
    p = {"weight": rng.normal(size=(5, 7))} | ({"bias": rng.normal(size=5)} if bias else {})
    x, d_y = rng.normal(size=(2, 3, 7)), rng.normal(size=(2, 3, 5))
    np.testing.assert_allclose(ref.linear(p, x), np.einsum("oi,bli->blo", p["weight"], x) + p.get("bias", 0))
    d_x, grads = ref.linear_backward(p, x, d_y)
    assert grads.keys() == p.keys()
    assert_gradient(lambda x: ref.linear(p, x), x, d_y, d_x)
    for name in p:
        assert_gradient(lambda w, name=name: ref.linear({**p, name: w}, x), p[name], d_y, grads[name])


# attention


def a_mask(rng) -> np.ndarray:
    mask = rng.random((B, 1, Q, K)) < 0.6
    mask[0, 0, 1] = False  # this query may attend nowhere
    mask[1, 0, 2] = np.arange(K) == 3  # this one to one key
    return mask


def test_attention_weights_sum_to_one_and_obey_the_mask(rng):
    q, k, v = rng.normal(size=(B, H, Q, D_K)), rng.normal(size=(B, H, K, D_K)), rng.normal(size=(B, H, K, D_V))
    mask = a_mask(rng)
    context, weights = ref.attend(q, k, v, mask)
    assert context.shape == (B, H, Q, D_V)
    assert weights.shape == (B, H, Q, K)
    assert not weights[~np.broadcast_to(mask, weights.shape)].any()
    sees = np.broadcast_to(mask.any(-1), (B, H, Q))
    np.testing.assert_allclose(weights.sum(-1), sees.astype(float), atol=1e-15)
    np.testing.assert_allclose(context[1, :, 2], v[1, :, 3])  # who sees one key receives its value


def test_attention_is_the_equation(rng):
    q, k, v = rng.normal(size=(1, 1, 1, 2)), rng.normal(size=(1, 1, 2, 2)), rng.normal(size=(1, 1, 2, 1))
    e = [math.exp(float(q[0, 0, 0] @ k[0, 0, j]) / math.sqrt(2)) for j in range(2)]
    want = (e[0] * v[0, 0, 0, 0] + e[1] * v[0, 0, 1, 0]) / sum(e)
    context, _ = ref.attend(q, k, v, np.ones((1, 1, 1, 1), bool))
    np.testing.assert_allclose(context[0, 0, 0, 0], want)


def test_a_query_that_may_attend_nowhere_gives_zeros_and_takes_no_gradient(rng):
    q, k, v = rng.normal(size=(B, H, Q, D_K)), rng.normal(size=(B, H, K, D_K)), rng.normal(size=(B, H, K, D_V))
    context, weights = ref.attend(q, k, v, np.zeros((B, 1, 1, K), bool))
    assert not context.any()
    assert not weights.any()
    grads = ref.attend_backward(q, k, v, weights, rng.normal(size=context.shape))
    assert not any(grad.any() for grad in grads)


def test_scores_as_large_as_floats_allow_do_not_overflow():
    weights = ref.masked_softmax(np.array([8e307, -8e307, 8e307]), np.array([True, True, False]))
    assert weights.tolist() == [1, 0, 0]


def test_attention_backward(rng, assert_gradient):
    q, k, v = rng.normal(size=(B, H, Q, D_K)), rng.normal(size=(B, H, K, D_K)), rng.normal(size=(B, H, K, D_V))
    mask, d_context = a_mask(rng), rng.normal(size=(B, H, Q, D_V))
    _, weights = ref.attend(q, k, v, mask)
    d_q, d_k, d_v = ref.attend_backward(q, k, v, weights, d_context)
    assert_gradient(lambda q: ref.attend(q, k, v, mask)[0], q, d_context, d_q)
    assert_gradient(lambda k: ref.attend(q, k, v, mask)[0], k, d_context, d_k)
    assert_gradient(lambda v: ref.attend(q, k, v, mask)[0], v, d_context, d_v)


def test_merging_heads_undoes_splitting_them(rng):
    x = rng.normal(size=(2, 5, 3 * 7))
    heads = ref.split_heads(x, 3)
    assert heads.shape == (2, 3, 5, 7)
    np.testing.assert_array_equal(heads[1, 2, 4], x[1, 4, 14:21])
    np.testing.assert_array_equal(ref.merge_heads(heads), x)


def attention_parameters(rng, bias=True) -> dict[str, np.ndarray]:
    sizes = {"w_q": (H * D_K, D_MODEL), "w_k": (H * D_K, D_MODEL), "w_v": (H * D_V, D_MODEL), "w_o": (D_MODEL, H * D_V)}
    p = {f"{name}.weight": rng.normal(size=size) / 2 for name, size in sizes.items()}
    return p | ({f"{name}.bias": rng.normal(size=size[0]) for name, size in sizes.items()} if bias else {})


@pytest.mark.parametrize("rotary", [False, True])
@pytest.mark.parametrize("bias", [False, True])
def test_multi_head_attention_backward(rng, assert_gradient, rotary, bias):
    p = attention_parameters(rng, bias)
    x, memory = rng.normal(size=(B, Q, D_MODEL)), rng.normal(size=(B, K, D_MODEL))
    mask, d_out = a_mask(rng), rng.normal(size=(B, Q, D_MODEL))

    def f(p, x, memory):
        return ref.multi_head_attention(p, x, memory, mask, H, rotary)[0]

    _, cache = ref.multi_head_attention(p, x, memory, mask, H, rotary)
    d_x, d_memory, grads = ref.multi_head_attention_backward(p, cache, d_out, rotary)
    assert_gradient(lambda x: f(p, x, memory), x, d_out, d_x)
    assert_gradient(lambda memory: f(p, x, memory), memory, d_out, d_memory)
    assert grads.keys() == p.keys()
    for name in p if bias else ["w_q.weight", "w_v.weight"]:
        assert_gradient(lambda w, name=name: f({**p, name: w}, x, memory), p[name], d_out, grads[name])


def test_the_bias_of_keys_has_no_gradient_because_softmax_ignores_a_common_shift(rng):
    p = attention_parameters(rng)
    x = rng.normal(size=(B, Q, D_MODEL))
    _, cache = ref.self_attention(p, x, ref.causal_mask(Q), H)
    _, grads = ref.self_attention_backward(p, cache, rng.normal(size=x.shape))
    np.testing.assert_allclose(grads["w_k.bias"], 0, atol=1e-13)


def test_self_attention_backward_sums_what_a_position_asks_and_answers(rng, assert_gradient):
    p, x, d_out = attention_parameters(rng), rng.normal(size=(B, Q, D_MODEL)), rng.normal(size=(B, Q, D_MODEL))
    mask = ref.causal_mask(Q)
    _, cache = ref.self_attention(p, x, mask, H, True)
    d_x, _ = ref.self_attention_backward(p, cache, d_out, True)
    assert_gradient(lambda x: ref.self_attention(p, x, mask, H, True)[0], x, d_out, d_x)


# feed-forward


@pytest.mark.parametrize(
    ("activation", "at_one"),
    [("relu", 1.0), ("gelu", 0.5 * (1 + math.erf(math.sqrt(0.5)))), ("swish", 1 / (1 + math.exp(-1)))],
)
def test_activations_at_zero_one_and_far_out(activation, at_one):
    y = ref.activate(np.array([-800.0, 0.0, 1.0, 800.0]), activation)
    np.testing.assert_allclose(y, [0, 0, at_one, 800], atol=1e-15)


@pytest.mark.parametrize("activation", ELEMENTWISE)
def test_activation_backward(rng, assert_gradient, activation):
    x, d_y = rng.normal(size=(3, 7)) * 2, rng.normal(size=(3, 7))
    d_x = ref.activate_backward(x, d_y, activation)
    assert_gradient(lambda x: ref.activate(x, activation), x, d_y, d_x)


@pytest.mark.parametrize("activation", CHOICES["activation"])
def test_feed_forward_backward(rng, assert_gradient, activation):
    p = {}
    for name, (n_out, n_in) in {"w_1": (D_FF, D_MODEL), "w_3": (D_FF, D_MODEL), "w_2": (D_MODEL, D_FF)}.items():
        if name != "w_3" or activation == "swiglu":
            p |= {f"{name}.weight": rng.normal(size=(n_out, n_in)), f"{name}.bias": rng.normal(size=n_out)}
    x, d_y = rng.normal(size=(B, Q, D_MODEL)), rng.normal(size=(B, Q, D_MODEL))
    _, cache = ref.feed_forward(p, x, activation)
    d_x, grads = ref.feed_forward_backward(p, cache, d_y, activation)
    assert_gradient(lambda x: ref.feed_forward(p, x, activation)[0], x, d_y, d_x)
    assert grads.keys() == p.keys()
    for name in p:
        assert_gradient(
            lambda w, name=name: ref.feed_forward({**p, name: w}, x, activation)[0], p[name], d_y, grads[name]
        )


def test_swiglu_gates_with_the_third_matrix():
    p = {"w_1.weight": [[2.0]], "w_1.bias": [0.0], "w_3.weight": [[1.0]], "w_3.bias": [0.0]}
    p = {name: np.array(value) for name, value in (p | {"w_2.weight": [[1.0]], "w_2.bias": [0.0]}).items()}
    y, _ = ref.feed_forward(p, np.array([[[3.0]]]), "swiglu")
    np.testing.assert_allclose(y, 3 / (1 + math.exp(-3)) * 6)


# embedding and positions


@pytest.mark.parametrize("scale", [True, False])
def test_embedding_backward_leaves_the_row_of_padding_alone(rng, assert_gradient, scale):
    weight, ids = rng.normal(size=(11, D_MODEL)), np.array([[3, 5, 3, 0], [10, 3, 0, 0]])
    d_x = rng.normal(size=(2, 4, D_MODEL))
    factor = math.sqrt(D_MODEL) if scale else 1
    np.testing.assert_allclose(ref.embed(weight, ids, scale)[0, 1], weight[5] * factor)
    d_weight = ref.embed_backward(weight, ids, 0, d_x, scale)
    assert not d_weight[0].any()
    np.testing.assert_allclose(d_weight[3], (d_x[0, 0] + d_x[0, 2] + d_x[1, 1]) * factor)
    assert_gradient(lambda w: ref.embed(np.vstack([weight[:1], w]), ids, scale), weight[1:], d_x, d_weight[1:])


def test_sinusoidal_positions_are_the_paper_s_formula():
    table = ref.sinusoidal_positions(7, D_MODEL)
    for pos in range(7):
        for i in range(D_MODEL // 2):
            angle = pos / 10000 ** (2 * i / D_MODEL)
            assert table[pos, 2 * i] == pytest.approx(math.sin(angle), abs=1e-15)
            assert table[pos, 2 * i + 1] == pytest.approx(math.cos(angle), abs=1e-15)


def test_sinusoidal_positions_move_on_by_a_rotation_that_does_not_depend_on_where():
    table = ref.sinusoidal_positions(40, 10)  # the claim of section 3.5
    move, *_ = np.linalg.lstsq(table[:-5], table[5:], rcond=None)
    np.testing.assert_allclose(table[:-5] @ move, table[5:], atol=1e-12)


def test_learned_positions_and_their_backward_pass(rng):
    weight, d_x = rng.normal(size=(7, D_MODEL)), rng.normal(size=(B, 5, D_MODEL))
    np.testing.assert_array_equal(ref.learned_positions(weight, 5), weight[:5])
    d_weight = ref.learned_positions_backward(weight, d_x)
    np.testing.assert_allclose(d_weight, np.vstack([d_x[0] + d_x[1], np.zeros((2, D_MODEL))]))
    with pytest.raises(ValueError, match="8 positions"):
        ref.learned_positions(weight, 8)


def test_rotary_turns_each_pair_of_channels_by_its_angle():
    x = np.tile([1.0, 0.0, 0.0, 1.0], (1, 1, 3, 1))
    y = ref.rotate(x)[0, 0, 2]
    np.testing.assert_allclose(y, [math.cos(2), math.sin(2), -math.sin(0.02), math.cos(0.02)])


def test_rotary_keeps_lengths_and_makes_products_depend_on_distance_alone(rng):
    q, k = np.broadcast_to(rng.normal(size=10), (1, 1, 13, 10)), np.broadcast_to(rng.normal(size=10), (1, 1, 13, 10))
    np.testing.assert_allclose(np.linalg.norm(ref.rotate(q), axis=-1), np.linalg.norm(q, axis=-1))
    scores = (ref.rotate(q) @ ref.rotate(k).swapaxes(-1, -2))[0, 0]  # (13, 13)
    for distance in range(-12, 13):
        diagonal = np.diagonal(scores, distance)
        np.testing.assert_allclose(diagonal, diagonal[0])


def test_rotary_backward(rng, assert_gradient):
    x, d_y = rng.normal(size=(B, H, 5, 4)), rng.normal(size=(B, H, 5, 4))
    assert_gradient(ref.rotate, x, d_y, ref.rotate_backward(d_y))


# layer norm


def test_layer_norm_gives_mean_zero_and_biased_variance_one(rng):
    x = rng.normal(3.0, 5.0, size=(2, 3, 7))
    y, _ = ref.layer_norm({"weight": np.ones(7), "bias": np.zeros(7)}, x, eps=0.0)
    np.testing.assert_allclose(y.mean(-1), 0, atol=1e-14)
    np.testing.assert_allclose((y * y).mean(-1), 1)


def test_layer_norm_adds_eps_to_the_variance():
    y, _ = ref.layer_norm({"weight": np.full(2, 3.0), "bias": np.full(2, 5.0)}, np.array([-1.0, 1.0]), eps=0.5)
    np.testing.assert_allclose(y, [5 - 3 / math.sqrt(1.5), 5 + 3 / math.sqrt(1.5)])


def test_layer_norm_backward(rng, assert_gradient):
    p = {"weight": rng.normal(size=7), "bias": rng.normal(size=7)}
    x, d_y = rng.normal(size=(2, 3, 7)), rng.normal(size=(2, 3, 7))
    _, cache = ref.layer_norm(p, x, 1e-2)
    d_x, grads = ref.layer_norm_backward(p, cache, d_y)
    assert_gradient(lambda x: ref.layer_norm(p, x, 1e-2)[0], x, d_y, d_x)
    for name in p:
        assert_gradient(lambda w, name=name: ref.layer_norm({**p, name: w}, x, 1e-2)[0], p[name], d_y, grads[name])


# loss


def test_loss_without_smoothing_is_the_mean_negative_log_probability_of_real_tokens(rng):
    logits, tgt_out = rng.normal(size=(2, 3, 7)), np.array([[4, 2, 0], [5, 0, 0]])
    probs = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    want = -(math.log(probs[0, 0, 4]) + math.log(probs[0, 1, 2]) + math.log(probs[1, 0, 5])) / 3
    assert ref.label_smoothed_loss(logits, tgt_out, 0, 0.0) == pytest.approx(want, rel=1e-14)
    assert ref.perplexity(logits, tgt_out, 0) == pytest.approx(math.exp(want), rel=1e-14)


def test_smoothed_targets_sum_to_one_and_spread_over_the_whole_vocabulary():
    np.testing.assert_allclose(ref.smoothed_targets(np.array([[2]]), 5, 0.1), [[[0.02, 0.02, 0.92, 0.02, 0.02]]])


def test_a_model_that_knows_nothing_has_the_vocabulary_as_perplexity():
    assert ref.perplexity(np.zeros((2, 3, 7)), np.full((2, 3), 5), 0) == pytest.approx(7)


def test_loss_falls_to_the_entropy_of_the_smoothed_targets_and_no_further():
    targets = ref.smoothed_targets(np.array([[2, 3]]), 5, 0.1)
    entropy = -(targets * np.log(targets)).sum(-1).mean()
    assert ref.label_smoothed_loss(np.log(targets), np.array([[2, 3]]), 0, 0.1) == pytest.approx(entropy)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_loss_backward(rng, assert_gradient, smoothing):
    logits, tgt_out = rng.normal(size=(2, 3, 7)), np.array([[4, 2, 0], [5, 0, 0]])
    d_logits = ref.label_smoothed_loss_backward(logits, tgt_out, 0, smoothing)
    assert not d_logits[tgt_out == 0].any()
    assert_gradient(
        lambda x: np.array(ref.label_smoothed_loss(x, tgt_out, 0, smoothing)), logits, np.array(1.0), d_logits
    )


def test_a_batch_of_padding_alone_has_no_loss_and_no_gradient():
    logits, tgt_out = np.ones((2, 3, 7)), np.zeros((2, 3), int)
    assert ref.label_smoothed_loss(logits, tgt_out, 0, 0.1) == 0
    assert not ref.label_smoothed_loss_backward(logits, tgt_out, 0, 0.1).any()


# schedule and optimiser


def test_noam_is_the_paper_s_equation_and_peaks_at_the_end_of_warm_up():
    rates = [ref.noam(step, 512, 4000) for step in range(1, 10001)]
    assert rates[0] == pytest.approx(512**-0.5 * 4000**-1.5)
    assert rates[3999] == pytest.approx(7.0e-4, rel=0.01) == max(rates)
    assert rates[9999] == pytest.approx(512**-0.5 / 100)
    assert ref.noam(17, 512, 4000, factor=2.0) == pytest.approx(2 * rates[16])


def test_inverse_sqrt_has_the_shape_of_noam():
    for step in (1, 50, 100, 101, 12345):
        same = ref.noam(step, 512, 100) / ref.noam(100, 512, 100)
        assert ref.inverse_sqrt(step, 3e-4, 100) == pytest.approx(3e-4 * same)


@pytest.mark.parametrize(("warmup", "steps"), [(1, 1), (1, 2), (2, 9), (5, 6)])
def test_cosine_is_the_rate_of_training_at_each_step(warmup: int, steps: int):
    config = TrainConfig(schedule="cosine", lr=2.0, warmup_steps=warmup, max_steps=steps)
    for step in range(1, steps + 1):
        assert ref.cosine(step, 2.0, warmup, steps) == pytest.approx(learning_rate(step, config, 512), abs=1e-12)


def test_cosine_rises_in_a_line_and_falls_to_zero():
    rates = {step: ref.cosine(step, 2.0, 100, 300) for step in (1, 50, 100, 150, 200, 300, 301)}
    want = {1: 0.02, 50: 1.0, 100: 2.0, 150: 1 + math.sqrt(0.5), 200: 1.0, 300: 0.0, 301: 0.0}
    assert rates == pytest.approx(want)


def test_adam_first_moves_each_weight_by_the_learning_rate_whatever_the_gradient():
    param, grad = np.array([1.0, 1.0, 1.0]), np.array([1e3, -1e-3, 7.0])
    new, m, v = ref.adam(param, grad, np.zeros(3), np.zeros(3), 1, 0.1, (0.9, 0.98), 1e-12)
    np.testing.assert_allclose(new, [0.9, 1.1, 0.9])
    np.testing.assert_allclose(m, 0.1 * grad)
    np.testing.assert_allclose(v, 0.02 * grad**2)


def test_adam_leaves_its_arguments_as_they_are_and_finds_a_minimum():
    params, state = {"x": np.array([5.0, -3.0])}, ref.adam_start({"x": np.zeros(2)})
    first, first_state = params, state
    for _ in range(300):
        params, state = ref.adam_step(params, {"x": 2 * params["x"]}, state, lr=0.1)
    np.testing.assert_allclose(params["x"], 0, atol=1e-2)
    assert first["x"].tolist() == [5, -3]
    assert not first_state.m["x"].any()
    assert state.step == 300


# the package


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_everything_stays_in_the_dtype_it_is_given(rng, dtype):
    x = rng.normal(size=(B, Q, D_MODEL)).astype(dtype)
    p = {name: value.astype(dtype) for name, value in attention_parameters(rng).items()}
    norm = {"weight": np.ones(D_MODEL, dtype), "bias": np.zeros(D_MODEL, dtype)}
    out, cache = ref.self_attention(p, x, ref.causal_mask(Q), H, True)
    d_x, grads = ref.self_attention_backward(p, cache, x, True)
    results = [out, d_x, *grads.values(), ref.sinusoidal_positions(Q, D_MODEL, dtype), ref.layer_norm(norm, x)[0]]
    results += [ref.activate(x, name) for name in ELEMENTWISE]
    results += [ref.activate_backward(x, x, name) for name in ELEMENTWISE]
    results += [ref.label_smoothed_loss_backward(x, np.ones((B, Q), int), 0), ref.log_softmax(x)]
    assert {result.dtype for result in results} == {np.dtype(dtype)}
