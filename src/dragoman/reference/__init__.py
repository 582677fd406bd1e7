"""The reference implementation: the whole Transformer in NumPy, forward and backward, a small function an equation.

    params = initialise(config, np.random.default_rng(0))
    logits, cache = forward(params, config, src, tgt_in)  # (B, S), (B, T) -> (B, T, V)
    grads = backward(params, config, cache, label_smoothed_loss_backward(logits, tgt_out, pad_id))

It imports nothing else of dragoman, and only tests, docs and the laboratory import it: a comparison with it is worth
something because it is independent. It is written to be read, not to be fast. Read in this order: ``masks``,
``linear``, ``attention``, ``feed_forward``, ``embedding``, ``layers``, ``transformer``; then ``loss``, ``schedule``,
``optimizer``, ``search``.

The rules throughout:

- ``f(p, x)`` returns its output, and a cache if the backward pass needs more than the arguments.
- ``f_backward(p, cache, d_out)`` returns the gradients of the inputs, then those of the parameters by name.
- ``d_x`` is the gradient of the loss with respect to ``x`` and has its shape.
- Shapes: ``B`` batch, ``S`` source length, ``T`` target length, ``L`` either, ``Q``/``K`` query/key length, ``H``
  heads, ``V`` vocabulary; widths keep their names.
- Results have the dtype of the arguments; nothing is changed in place.
"""

from .arrays import Array, Config, Grads, Ids, Mask, Params, child, summed, under
from .attention import (
    AttentionCache,
    attend,
    attend_backward,
    masked_softmax,
    masked_softmax_backward,
    merge_heads,
    multi_head_attention,
    multi_head_attention_backward,
    self_attention,
    self_attention_backward,
    split_heads,
)
from .embedding import (
    embed,
    embed_backward,
    learned_positions,
    learned_positions_backward,
    position_angles,
    rotate,
    rotate_backward,
    sinusoidal_positions,
)
from .feed_forward import (
    activate,
    activate_backward,
    feed_forward,
    feed_forward_backward,
    gelu,
    gelu_backward,
    relu,
    relu_backward,
    swish,
    swish_backward,
)
from .layers import (
    decoder_layer,
    decoder_layer_backward,
    encoder_layer,
    encoder_layer_backward,
    layer_norm,
    layer_norm_backward,
    residual,
    residual_backward,
)
from .linear import linear, linear_backward
from .loss import (
    label_smoothed_loss,
    label_smoothed_loss_backward,
    log_softmax,
    perplexity,
    smoothed_targets,
)
from .masks import causal_mask, padding_mask, target_mask
from .optimizer import AdamState, adam, adam_start, adam_step
from .schedule import cosine, inverse_sqrt, noam
from .search import Hypothesis, SearchSettings, beam_search, greedy_search, length_penalty, translate
from .transformer import (
    backward,
    decode,
    decode_backward,
    embed_sequence,
    embed_sequence_backward,
    embedding_names,
    encode,
    encode_backward,
    forward,
    initialise,
    parameter_shapes,
)
