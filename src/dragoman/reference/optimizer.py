"""Adam, section 5.3 of the paper."""

from typing import NamedTuple

import numpy as np

from .arrays import Array, Params


def adam(
    param: Array, grad: Array, m: Array, v: Array, step: int, lr: float, betas: tuple[float, float], eps: float
) -> tuple[Array, Array, Array]:
    """Update one array: Algorithm 1 of Kingma and Ba (https://arxiv.org/abs/1412.6980).

    Args:
        param: Any shape; ``grad``, ``m`` and ``v`` have the same.
        grad: The gradient.
        m: Running mean of the gradient.
        v: Running mean of its square.
        step: Number of this update, counted from 1; corrects the means for their start at zero.
        lr: Learning rate.
        betas: Decay of ``m`` and of ``v``.
        eps: Added to the square root of the second moment.

    Returns:
        ``param``, ``m`` and ``v`` after the update; the arguments are not changed.
    """
    beta_1, beta_2 = betas
    m = beta_1 * m + (1 - beta_1) * grad
    v = beta_2 * v + (1 - beta_2) * grad * grad
    m_hat = m / (1 - beta_1**step)
    v_hat = v / (1 - beta_2**step)
    return param - lr * m_hat / (np.sqrt(v_hat) + eps), m, v


class AdamState(NamedTuple):
    """Number of updates so far, and Adam's two moments by the names of the parameters."""

    step: int
    m: dict[str, Array]
    v: dict[str, Array]


def adam_start(params: Params) -> AdamState:
    """Return the state before the first update: all zeros."""
    return AdamState(
        0,
        {name: np.zeros_like(param) for name, param in params.items()},
        {name: np.zeros_like(param) for name, param in params.items()},
    )


def adam_step(
    params: Params,
    grads: Params,
    state: AdamState,
    lr: float,
    betas: tuple[float, float] = (0.9, 0.98),
    eps: float = 1e-9,
) -> tuple[dict[str, Array], AdamState]:
    """Update every parameter, by default with the paper's settings; return new parameters and the new state."""
    step = state.step + 1
    new = {
        name: adam(param, grads[name], state.m[name], state.v[name], step, lr, betas, eps)
        for name, param in params.items()
    }
    return (
        {name: param for name, (param, _, _) in new.items()},
        AdamState(step, {name: m for name, (_, m, _) in new.items()}, {name: v for name, (_, _, v) in new.items()}),
    )
