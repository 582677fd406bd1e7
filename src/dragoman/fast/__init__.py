"""Optimised implementations of the plain model, each compared with its plain version by a test.

from dragoman.fast.step import FastTransformer

engine = FastTransformer(model)                       # decoding: prepare the weights once
state = engine.start(src)                             # src (B, S) int64
logits, state = engine.step(state, last_ids)          # (B,) -> (B, V)
"""
