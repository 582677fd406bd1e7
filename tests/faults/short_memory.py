"""Run ``dragoman`` with a model that runs out of memory for a batch above some tokens.

python short_memory.py TOKENS ARGUMENTS...

Said at the end on stderr: how often it found none, and the rows of the smallest batch that it took.
"""

import sys

import torch

from dragoman.cli import run
from dragoman.fast.step import FastTransformer

limit, *arguments = sys.argv[1:]
real, refused, smallest = FastTransformer.start, 0, 10**9


def start(self, src):
    global refused, smallest
    if src.numel() > int(limit):
        refused += 1
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB")
    smallest = min(smallest, len(src))
    return real(self, src)


FastTransformer.start = start
status = run(arguments)
print(f"refused {refused}, smallest {smallest}", file=sys.stderr)
sys.exit(status)
