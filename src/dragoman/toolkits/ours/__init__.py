"""Our own search: greedy and beam search in torch, with every option."""

from __future__ import annotations

from dragoman.toolkits.toolkit import Toolkit, lazily

TOOLKIT = Toolkit(name="ours", engine="torch", engine_class=lazily(__name__, "search:Torch"))
