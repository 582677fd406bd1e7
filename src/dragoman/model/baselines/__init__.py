"""The paper's baselines, with the interface of the Transformer, built to be a fair comparison.

1. ``cells``          the plain recurrent cell, GRU, LSTM: one step, and a sequence of them
2. ``additive_attention``  additive attention (Bahdanau et al., 2015)
3. ``recurrent``      encoder-decoder of these cells, chosen by ``model.architecture = rnn | gru | lstm``
4. ``convolutional``  gated convolutions with attention in each decoder layer (``conv``)
5. ``embeddings``     embeddings and generator, shared by all

Each has ``forward``, ``features``, ``start`` and ``step`` like ``Transformer``, and a state with ``select``: that is
all that training, search and scoring use of a model. ``record`` receives the weights of cross-attention.
"""
