"""Dropout (section 5.4) as the model uses it."""

from __future__ import annotations

from torch import Tensor, nn

from dragoman.fast.dropout import dropout


class Dropout(nn.Dropout):
    """``torch.nn.Dropout`` by cheaper random bits: see ``dragoman.fast.dropout``."""

    def forward(self, x: Tensor) -> Tensor:
        """Drop elements of ``x`` in training; elsewhere return it as it is."""
        return dropout(x, self.p) if self.training else x
