"""Training throughput: our Transformer and ``torch.nn.Transformer`` in the same loop, taking turns.

Both train on the same batches by the same ``train_step`` (same optimiser, dropout, clipping), with the same embeddings,
positions and tied generator. The systems differ in the encoder-decoder in the middle and, where the row says so, in
the loss: ``plain`` is a log-softmax over all logits, ``chunked`` is ours.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from benchmarks.record import save, spread
from dragoman import environment
from dragoman.config import ModelConfig, TokenizerConfig, TrainConfig
from dragoman.data import phrasebook
from dragoman.data.batching import Batch, collate, epoch_batches
from dragoman.data.tokenizer import Tokenizer, learn_tokenizers
from dragoman.model.transformer import Transformer
from dragoman.training import loop
from dragoman.training.loss import label_smoothed_loss, loss_from_features

ROUNDS = 3


class TorchTransformer(nn.Module):
    """``torch.nn.Transformer`` between our embeddings and our tied generator."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.shell = Transformer(config)
        self.generator = self.shell.generator
        self.core = nn.Transformer(
            config.d_model, config.n_heads, config.n_encoder_layers, config.n_decoder_layers, config.d_ff,
            config.dropout, batch_first=True,
        )  # fmt: skip
        self.shell.encoder = self.shell.decoder = nn.Identity()  # type: ignore[assignment]

    def features(self, src: Tensor, tgt_in: Tensor) -> Tensor:
        """As ``Transformer.features``; torch's masks say what may NOT be attended to."""
        length = tgt_in.size(1)
        future = torch.ones(length, length, dtype=torch.bool).triu(1)
        x, _ = self.shell._place(self.shell.src_embed(src), None, 0)
        y, _ = self.shell._place(self.shell.tgt_embed(tgt_in), None, 0)
        return self.core(
            x, y, tgt_mask=future, src_key_padding_mask=src == 0, memory_key_padding_mask=src == 0,
            tgt_key_padding_mask=tgt_in == 0, tgt_is_causal=True,
        )  # fmt: skip


def batches_of(data: Path | None, count: int, batch_tokens: int) -> tuple[list[Batch], int]:
    """Length-sorted batches of a corpus (``train.en``, ``train.de``), or of the embedded one."""
    if data is None:
        pairs = list(phrasebook.pairs(30_000))
    else:
        sides = [(data / f"train.{lang}").read_text(encoding="utf-8").split("\n")[:-1] for lang in ("en", "de")]
        pairs = list(zip(*sides, strict=True))
    tokenizer: Tokenizer = learn_tokenizers(lambda: pairs, TokenizerConfig(vocab_size=8000))[0]
    src, tgt = tokenizer.encode([p[0] for p in pairs]), tokenizer.encode([p[1] for p in pairs])
    lengths = [np.array([len(ids) for ids in side], dtype=np.int32) for side in (src, tgt)]
    chosen = list(epoch_batches(*lengths, batch_tokens, seed=1, epoch=0))[:count]
    return [collate([src[i] for i in ids], [tgt[i] for i in ids], ids) for ids in chosen], tokenizer.vocab_size


def throughput(model: Any, batches: list[Batch], config: TrainConfig, plain_loss: bool) -> float:
    """Target tokens a second, padding not counted."""
    optimizer = torch.optim.Adam(model.parameters(), betas=config.adam_betas, eps=config.adam_eps, fused=True)

    def plain(features: Tensor, generator: nn.Linear, tgt_out: Tensor, pad_id: int, smoothing: float) -> Any:
        return label_smoothed_loss(generator(features), tgt_out, pad_id, smoothing)

    loop.loss_from_features = plain if plain_loss else loss_from_features  # type: ignore[assignment]
    for batch in batches[:2]:
        loop.train_step(model, [batch], optimizer, 1e-4, config, 0)
    started = time.perf_counter()
    tokens = sum(loop.train_step(model, [batch], optimizer, 1e-4, config, 0).tokens for batch in batches[2:])
    return tokens / (time.perf_counter() - started)


def over(a: list[float], b: list[float]) -> dict[str, float]:
    """The ratio of neighbouring runs, which drifts of the machine's speed leave alone."""
    return spread([x / y for x, y in zip(a, b, strict=True)])


def main() -> None:
    """Let the systems take turns and write the ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="a folder with train.en and train.de (default: the embedded corpus)")
    parser.add_argument("--preset", default="small")
    parser.add_argument("--batches", type=int, default=16)
    parser.add_argument("--batch-tokens", type=int, default=4096)
    args = parser.parse_args()
    environment.set_defaults()
    batches, vocab_size = batches_of(args.data, args.batches + 2, args.batch_tokens)
    config = ModelConfig(preset=args.preset, src_vocab_size=vocab_size, tgt_vocab_size=vocab_size, dropout=0.1)
    systems: dict[str, tuple[Callable[[ModelConfig], nn.Module], str, bool]] = {
        "torch.nn.Transformer fp32, plain loss": (TorchTransformer, "fp32", True),
        "ours fp32, plain loss": (Transformer, "fp32", True),
        "torch.nn.Transformer bf16, chunked loss": (TorchTransformer, "bf16", False),
        "ours bf16, chunked loss": (Transformer, "bf16", False),
    }
    found: dict[str, list[float]] = {name: [] for name in systems}
    for _ in range(ROUNDS):
        for name, (build, precision, plain_loss) in systems.items():
            torch.manual_seed(0)
            train = TrainConfig(precision=precision, clip_norm=1.0)
            found[name].append(throughput(build(config), batches, train, plain_loss))
            print(f"{name}: {found[name][-1]:,.0f} target tokens/s", flush=True)
    torch_fp32, ours_fp32, torch_bf16, ours_bf16 = found.values()
    ratios = {
        "ours / torch.nn.Transformer, fp32, plain loss": over(ours_fp32, torch_fp32),
        "ours / torch.nn.Transformer, bf16, chunked loss": over(ours_bf16, torch_bf16),
        "ours bf16, chunked loss / torch.nn.Transformer fp32, plain loss": over(ours_bf16, torch_fp32),
    }
    save(
        f"training_throughput_{args.preset}",
        {
            "what": f"{args.preset}, batches of {args.batch_tokens} tokens, {vocab_size} joint subwords, dropout 0.1",
            "corpus": "embedded" if args.data is None else args.data.name,
            "target_tokens_per_s": {name: spread(values) for name, values in found.items()},
            "ratios": ratios,
        },
        f"python -m benchmarks.training_throughput --preset {args.preset}"
        + ("" if args.data is None else f" --data DATA/{args.data.name}"),
    )


if __name__ == "__main__":
    main()
