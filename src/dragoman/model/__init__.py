"""The Transformer, as plain as the paper.

    model = Transformer(ModelConfig(src_vocab_size=8000, tgt_vocab_size=8000))
    logits = model(src, tgt_in)                           # (B, S), (B, T) int64 -> (B, T, V)

Read in this order:

1. ``masks``         who may attend to whom
2. ``attention``     Eq. 1; multi-head attention
3. ``feed_forward``  Eq. 2
4. ``embedding``     scaled tokens; sinusoidal, learned, rotary positions
5. ``layers``        encoder and decoder layer
6. ``transformer``   stacks; encode, decode, forward; start, step; initialisation
"""
