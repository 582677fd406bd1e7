"""The linear map, of which every projection consists."""

from .arrays import Array, Grads, Params


def linear(p: Params, x: Array) -> Array:
    """Return ``x W^T + b`` on the last axis: ``(..., n_in)`` -> ``(..., n_out)``.

    Args:
        p: ``weight (n_out, n_in)`` and optionally ``bias (n_out)``.
        x: ``(..., n_in)``.
    """
    y = x @ p["weight"].T
    return y + p["bias"] if "bias" in p else y


def linear_backward(p: Params, x: Array, d_y: Array) -> tuple[Array, Grads]:
    """Return ``d_x = d_y W``, and ``d_W = d_y^T x`` and ``d_b = sum d_y``, summed over all positions."""
    rows_x = x.reshape(-1, x.shape[-1])  # (N, n_in)
    rows_d_y = d_y.reshape(-1, d_y.shape[-1])  # (N, n_out)
    grads: Grads = {"weight": rows_d_y.T @ rows_x}
    if "bias" in p:
        grads["bias"] = rows_d_y.sum(axis=0)
    return d_y @ p["weight"], grads
