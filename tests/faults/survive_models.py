"""Load mutated SentencePiece models until the end, and print how many were refused.

python survive_models.py MODEL COUNT
"""

import random
import sys
from pathlib import Path

from hostile import mutated_model

from dragoman.data.tokenizer import Tokenizer
from dragoman.errors import DragomanError

TEXTS = ["Hello wörld, 日本 12 <0x41>", "a" * 3000, "\u2581 \u2581", "odd" * 50, "the dog sees a cat"]

path, count = sys.argv[1:]
whole = Path(path).read_bytes()
chance = random.Random(4)
refused = 0
for _ in range(int(count)):
    try:
        tokenizer = Tokenizer(mutated_model(whole, chance), "x")
        tokenizer.decode(tokenizer.encode(TEXTS))
        tokenizer.sample(TEXTS, 0.1, 1)
        tokenizer.pieces(range(tokenizer.vocab_size))
    except DragomanError:
        refused += 1
print(refused)
