"""The position-wise feed-forward network (Eq. 2) and its later variants."""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn import functional as F

from dragoman.config import ModelConfig, unknown
from dragoman.model.dropout import Dropout


class FeedForward(nn.Module):
    """``FFN(x) = max(0, x W_1 + b_1) W_2 + b_2``, Eq. (2), at every position alike.

    ``gelu`` (exact, https://arxiv.org/abs/1606.08415) and ``swish`` (https://arxiv.org/abs/1710.05941) replace the
    maximum; ``swiglu`` (https://arxiv.org/abs/2002.05202) multiplies by a third, gating projection:
    ``(swish(x W_3 + b_3) * (x W_1 + b_1)) W_2 + b_2``.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.activation = config.activation
        self.w_1 = nn.Linear(config.d_model, config.d_ff)
        self.w_2 = nn.Linear(config.d_ff, config.d_model)
        self.w_3 = nn.Linear(config.d_model, config.d_ff) if config.activation == "swiglu" else None
        self.dropout = Dropout(config.activation_dropout)

    def forward(self, x: Tensor) -> Tensor:
        """Map ``(B, L, d_model)`` to ``(B, L, d_model)``."""
        hidden = self.w_1(x)  # (B, L, d_ff)
        if self.w_3 is not None:
            hidden = F.silu(self.w_3(x)) * hidden
        elif self.activation == "relu":
            hidden = F.relu(hidden)
        elif self.activation == "gelu":
            hidden = F.gelu(hidden)
        elif self.activation == "swish":
            hidden = F.silu(hidden)
        else:
            raise unknown("model.activation", self.activation)
        return self.w_2(self.dropout(hidden))
