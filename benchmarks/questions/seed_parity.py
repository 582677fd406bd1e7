"""The Transformers of two articles, run as they were published, against ours with the same weights.

    python -m benchmarks.questions.seed_parity --seeds DIR

``DIR`` holds the articles ``000_*.txt`` (post-norm) and ``002_*.txt`` (pre-norm, GELU, unscaled embeddings; its last
code block is the complete model). Their Python blocks are taken out and executed, so give it only files you trust.
Both articles keep their table of positions in float32; in float64 the models are therefore compared twice, with the
table as it is and with the same formula in float64. ``tests/parity/test_seed_documents.py`` needs no articles.
"""

from __future__ import annotations

import argparse
import math
import re
import sys
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from benchmarks.record import save
from dragoman.config import ModelConfig
from dragoman.errors import DataError, DragomanError
from dragoman.model.transformer import Transformer

SIZES: dict[str, Any] = dict(
    d_model=512, n_heads=8, d_ff=2048, n_encoder_layers=6, n_decoder_layers=6
)  # the base model
V_SRC, V_TGT, MAX_LEN = 997, 1009, 128
ROWS, S, T = 5, 23, 29
RENAMES_000 = {
    r"^encoder\.embedding": "src_embed",
    r"^decoder\.embedding": "tgt_embed",
    r"^decoder\.fc_out": "generator",
    r"_attn\.fc_out": "_attn.w_o",
}
RENAMES_002 = {
    r"^encoder\.embed\b": "src_embed",
    r"^decoder\.embed\b": "tgt_embed",
    r"\bln(\d)": r"norm\1",
    r"\bmha\b": "self_attn",
    r"\bself_mha\b": "self_attn",
    r"\bcross_mha\b": "cross_attn",
    r"\bout_proj\b": "w_o",
    r"\bffn\.net\.0": "feed_forward.w_1",
    r"\bffn\.net\.3": "feed_forward.w_2",
}


def python_blocks(article: str) -> list[str]:
    """The fenced Python blocks of a Markdown text, in their order."""
    return re.findall(r"^```python[ \t]*\n(.*?)^```", article, flags=re.MULTILINE | re.DOTALL)


def transformer_class(seeds: Path, number: str, blocks: slice) -> type[nn.Module]:
    """Execute ``blocks`` of one article in one namespace and return the last ``Transformer`` they define."""
    found = sorted(seeds.glob(f"{number}_*.txt"))
    if len(found) != 1:
        raise DataError(f"{seeds}: {len(found)} files are named {number}_*.txt, and it must be one: check --seeds")
    namespace: dict[str, Any] = {"__name__": f"article_{number}"}  # not __main__: their trials do not run
    for block in python_blocks(found[0].read_text(encoding="utf-8"))[blocks]:
        exec(compile(block, str(found[0]), "exec"), namespace)
    if "Transformer" not in namespace:
        raise DataError(f"{found[0]}: its Python blocks define no Transformer: this is not the article that was meant")
    transformer: type[nn.Module] = namespace["Transformer"]
    return transformer


def carried_over(article: nn.Module, renames: dict[str, str]) -> dict[str, Tensor]:
    """The article's weights under our names, without its table of positions."""
    state = {}
    for name, tensor in article.state_dict().items():
        for pattern, replacement in renames.items():
            name = re.sub(pattern, replacement, name)
        if not name.endswith(".pe"):
            state[name] = tensor
    return state


def a_batch() -> tuple[Tensor, Tensor]:
    """Random source and target ids with padding (0) at the end of some rows."""
    gen = torch.Generator().manual_seed(3)
    src, tgt_in = torch.randint(4, V_SRC, (ROWS, S), generator=gen), torch.randint(4, V_TGT, (ROWS, T), generator=gen)
    for row, (n_src, n_tgt) in enumerate([(S, T), (1, 17), (11, 1), (19, 7), (2, 28)]):
        src[row, n_src:], tgt_in[row, n_tgt:] = 0, 0
    return src, tgt_in


@torch.no_grad()
def compare(article: nn.Module, ours: Transformer) -> dict[str, float]:
    """Largest difference of logits at positions that are no padding, and the largest logit to measure it by."""
    src, tgt_in = a_batch()
    want, got = article(src, tgt_in), ours(src, tgt_in)
    real = tgt_in != 0
    return {
        "max_abs_difference": (got - want)[real].abs().max().item(),
        "max_abs_logit": want[real].abs().max().item(),
    }


def exact_positions(article: nn.Module) -> None:
    """Compute the article's tables of positions anew, in float64, by its own formula."""
    for name, table in article.named_buffers():
        if name.endswith(".pe"):
            d_model = table.size(-1)
            rates = torch.exp(torch.arange(0, d_model, 2).double() * (-math.log(10000.0) / d_model))
            angles = torch.arange(table.size(1)).double()[:, None] * rates
            table.copy_(torch.stack((angles.sin(), angles.cos()), dim=-1).flatten(1))


def measure(article: nn.Module, renames: dict[str, str], extra: dict[str, Tensor], **variant: Any) -> dict[str, Any]:
    """Load the article's weights into ours and compare in float32, and in float64 with either table of positions."""
    article.eval()
    config = ModelConfig(
        src_vocab_size=V_SRC, tgt_vocab_size=V_TGT, share_embeddings="none", generator_bias=True, **SIZES, **variant
    )
    ours = Transformer(config).eval()
    ours.load_state_dict({**carried_over(article, renames), **extra})
    results = {
        "n_parameters": sum(p.numel() for p in article.parameters()),
        "variant": variant,
        "float32": compare(article, ours),
        "float64": compare(article.double(), ours.double()),
    }
    exact_positions(article)
    return {**results, "float64, positions in float64": compare(article, ours)}


def article_000(seeds: Path) -> dict[str, Any]:
    """The post-norm article; all its blocks together are its model."""
    n_layers = SIZES["n_encoder_layers"]
    article = transformer_class(seeds, "000", slice(None))(
        V_SRC, V_TGT, SIZES["d_model"], SIZES["n_heads"], SIZES["d_ff"], n_layers, MAX_LEN
    )
    return measure(article, RENAMES_000, {})


def article_002(seeds: Path) -> dict[str, Any]:
    """The pre-norm article; the last of its blocks is the second complete model."""
    article = transformer_class(seeds, "002", slice(-1, None))(
        0, 0, V_SRC, V_TGT, SIZES["d_model"], SIZES["n_heads"], SIZES["d_ff"], SIZES["n_encoder_layers"], MAX_LEN
    )
    final_norm = {  # it has none after the encoder; at its initial norms ours at one and zero is the same
        "encoder.norm.weight": torch.ones(SIZES["d_model"]),
        "encoder.norm.bias": torch.zeros(SIZES["d_model"]),
    }
    return measure(article, RENAMES_002, final_norm, norm="pre", activation="gelu", scale_embeddings=False)


def main() -> int:
    """Compare, print, and write ``benchmarks/results/seed_parity.json``."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.questions.seed_parity", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--seeds", type=Path, required=True, help="folder with the articles 000_*.txt and 002_*.txt")
    seeds = parser.parse_args().seeds
    torch.manual_seed(0)
    try:
        figures = {"000": article_000(seeds), "002": article_002(seeds)}
    except DragomanError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    sizes = {**SIZES, "src_vocab_size": V_SRC, "tgt_vocab_size": V_TGT, "rows": ROWS, "src": S, "tgt": T}
    save(
        "seed_parity",
        {"sizes": sizes, **figures},
        "python -m benchmarks.questions.seed_parity --seeds SEEDS",
        ("torch",),
    )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
