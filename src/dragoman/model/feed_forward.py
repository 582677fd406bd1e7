"""The position-wise feed-forward network (Eq. 2) and its later variants."""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn import functional as F

from dragoman.config import ModelConfig, unknown
from dragoman.model.dropout import Dropout


def activate(x: Tensor, activation: str) -> Tensor:
    """Apply the activation function of that name elementwise; for ``swiglu`` it is the one of the gate."""
    if activation == "relu":
        return F.relu(x)
    if activation == "gelu":
        return F.gelu(x)
    if activation in ("swish", "swiglu"):
        return F.silu(x)
    raise unknown("model.activation", activation)


class FeedForward(nn.Module):
    """``FFN(x) = max(0, x W_1 + b_1) W_2 + b_2``, Eq. (2), applied to each position separately.

    Differs from the paper: ``gelu`` (exact, https://arxiv.org/abs/1606.08415) and ``swish``
    (https://arxiv.org/abs/1710.05941) replace the maximum if configured. ``swiglu`` (https://arxiv.org/abs/2002.05202)
    multiplies by a third, gating projection: ``(swish(x W_3 + b_3) * (x W_1 + b_1)) W_2 + b_2``.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.activation = config.activation
        self.w_1 = nn.Linear(config.d_model, config.d_ff)
        self.w_2 = nn.Linear(config.d_ff, config.d_model)
        self.w_3 = nn.Linear(config.d_model, config.d_ff) if config.is_gated else None
        self.dropout = Dropout(config.activation_dropout)

    def forward(self, x: Tensor) -> Tensor:
        """Map ``(B, L, d_model)`` to ``(B, L, d_model)``."""
        hidden = self.w_1(x)  # (B, L, d_ff)
        if self.w_3 is None:
            hidden = activate(hidden, self.activation)
        else:
            hidden = activate(self.w_3(x), self.activation) * hidden
        return self.w_2(self.dropout(hidden))
