"""Our own search: greedy and beam search in torch, with every option."""
