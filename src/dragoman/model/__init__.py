"""The Transformer, as plain as the paper. Read in this order:

1. ``masks``         who may attend to whom
2. ``attention``     Eq. 1; multi-head attention
3. ``feed_forward``  Eq. 2
4. ``embedding``     scaled tokens; sinusoidal, learned, rotary positions
5. ``layers``        encoder and decoder layer
6. ``transformer``   stacks; encode, decode, forward; start, step; initialisation
"""
