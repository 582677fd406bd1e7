"""What trainings and bulk translation cost: operations over speed over price, every assumption in sight.

    python -m benchmarks.costs --price "H100=2.5" --price "AMX=0.1"      prints the tables
    python -m benchmarks.costs --page docs/results/costs.md                          writes the page

Operations are counted by ``dragoman.training.flops``. A machine's speed is what was measured on it (``results``), or
the peak that its maker states times a share that somebody has published. A price is whatever you pay for an hour.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.harness.markdown import table
from benchmarks.record import RESULTS
from dragoman.config import PRESETS, ModelConfig
from dragoman.training.flops import training_flops

VOCABULARY = 37_000  # of the paper's English-German
TOKENS = 25  # of each side of a line, on average; only attention's small square depends on it
BILLION = 1_000_000_000


@dataclass(frozen=True)
class Job:
    """A training, counted."""

    name: str
    preset: str
    tokens: float  # target tokens; as many source tokens

    def flops(self, tokens_a_line: int) -> float:
        """Operations of all updates, padding left out."""
        config = ModelConfig(**PRESETS[self.preset], src_vocab_size=VOCABULARY, tgt_vocab_size=VOCABULARY)
        return training_flops(config, 1, tokens_a_line, tokens_a_line) * self.tokens / tokens_a_line


@dataclass(frozen=True)
class Machine:
    """What an hour is paid for. ``low`` and ``high`` are operations a second of a training, of base and of big."""

    name: str
    low: float
    high: float
    why: str
    price: float  # an hour; an example and no quotation


def jobs(tokens_a_line: int) -> list[Job]:
    """The paper's two trainings, and one pass over a billion pairs."""
    return [
        Job("base, WMT14 en-de: 100,000 updates of 25,000 tokens", "base", 100_000 * 25_000),
        Job("big, WMT14 en-de: 300,000 updates of 25,000 tokens", "big", 300_000 * 25_000),
        Job("base, a billion pairs once", "base", BILLION * tokens_a_line),
        Job("big, a billion pairs once", "big", BILLION * tokens_a_line),
    ]


def measured(*path: str, file: str) -> float:
    """A figure of ``results/FILE``."""
    found: Any = json.loads((RESULTS / file).read_text(encoding="utf-8"))["figures"]
    for name in path:
        found = found[name]
    return float(found["median"])


def paper_share(job: Job, tokens_a_line: int, hours: float) -> float:
    """Of 8 P100's peak (9.5 TFLOP/s each, the figure of the paper's footnote), in the hours that the paper states."""
    return job.flops(tokens_a_line) / (hours * 3600 * 8 * 9.5e12)


def machines(prices: Mapping[str, float], own: Mapping[str, float] | None = None) -> list[Machine]:
    """Those whose speed can be said on some evidence, and those whose TFLOP/s somebody gives.

    Raises:
        ValueError: A price is for none of them.
    """
    amx = measured("presets", "base", "systems", "dragoman bf16", "gflop_per_s", file="training.json") * 1e9
    found = [
        Machine("AMX", amx, amx, "2 cores of Intel Xeon with AMX: base in bf16, measured (training.json)", 0.10),
        Machine("8 x P100", 8 * 9.5e12 * 0.29, 8 * 9.5e12 * 0.42, "the paper's machine; share from its hours", 8.0),
        Machine("A100", 0.15 * 312e12, 0.40 * 312e12, "one; 312 TFLOP/s in bf16, 15 to 40% of it", 1.5),
        Machine("H100", 0.15 * 989e12, 0.40 * 989e12, "one; 989 TFLOP/s in bf16, 15 to 40% of it", 2.5),
        Machine("8 x H100", 8 * 0.15 * 0.9 * 989e12, 8 * 0.40 * 0.9 * 989e12, "as H100, a tenth lost to sums", 20.0),
    ]
    found += [Machine(name, tflops * 1e12, tflops * 1e12, "given", 1.0) for name, tflops in (own or {}).items()]
    unknown = set(prices) - {machine.name for machine in found}
    if unknown:
        raise ValueError(f"no machine {', '.join(sorted(unknown))}; there are {', '.join(one.name for one in found)}")
    return [Machine(one.name, one.low, one.high, one.why, prices.get(one.name, one.price)) for one in found]


def span(least: float, most: float, form: str = "") -> str:
    """``3 to 8``, or one figure where they are the same."""
    texts = [_rounded(each) for each in (least, most)]
    return form + (texts[0] if texts[0] == texts[1] else f"{texts[0]} to {texts[1]}")


def _rounded(value: float) -> str:
    """Two significant digits: no more is known."""
    return f"{float(f'{value:.2g}'):,g}" if value < 1e15 else f"{value:.1e}"


def training_rows(tokens_a_line: int, here: Sequence[Machine]) -> list[list[str]]:
    """Each training on each machine: hours, and what they cost."""
    rows = []
    for job in jobs(tokens_a_line):
        flops = job.flops(tokens_a_line)
        row = [job.name, f"{flops:.1e}"]
        for one in here:
            least, most = flops / one.high / 3600, flops / one.low / 3600
            row.append(f"{span(least, most)} h, {span(least * one.price, most * one.price)}")
        rows.append(row)
    return rows


def other_rows(price: float) -> list[list[str]]:
    """What else a billion lines cost on two cores with AMX; the preparation was measured on two cores of AMD Zen 5."""
    prepared = json.loads((RESULTS / "prepare_tatoeba.json").read_text(encoding="utf-8"))["figures"]
    rates = [
        ("encode and store a billion pairs", prepared["pairs"] / prepared["seconds"]["median"], "prepare_tatoeba.json"),
    ]
    for name, preset, system in (
        ("translate them: SMALL, beam 5, CTranslate2 int8", "small", "CTranslate2 int8"),
        ("translate them: SMALL, beam 5, own engine, bf16", "small", "dragoman bf16"),
        ("translate them: BASE, beam 5, own engine, bf16", "base", "dragoman bf16"),
    ):
        rate = measured("presets", preset, "systems", system, "sentences_per_s", file="decoding.json")
        rates.append((name, rate, "decoding.json"))
    return [
        [name, f"{rate:,.0f}", span(hours := BILLION / rate / 3600, hours), span(hours * price, hours * price), file]
        for name, rate, file in rates
    ]


def tables(tokens_a_line: int, here: Sequence[Machine]) -> str:
    """Both tables, and the machines with their evidence, in Markdown."""
    first, second = jobs(tokens_a_line)[:2]
    shares = [paper_share(first, tokens_a_line, 12), paper_share(second, tokens_a_line, 3.5 * 24)]
    return "\n\n".join(
        [
            table(
                ["machine", "TFLOP/s of a training", "why", "price of an hour"],
                [[one.name, span(one.low / 1e12, one.high / 1e12), one.why, f"{one.price:g}"] for one in here],
            ),
            table(["training", "FLOPs", *(one.name for one in here)], training_rows(tokens_a_line, here)),
            f"The paper trained base for 12 hours and big for 3.5 days on 8 P100. By the operations counted here that "
            f"is {shares[0]:.0%} and {shares[1]:.0%} of their peak.",
            table(
                ["a billion lines on two cores", "lines a second", "hours", "price", "measured in"],
                other_rows(here[0].price),
            ),
        ]
    )


PAGE = """# What training costs

This page counts, in hours and money, the paper's two models, a corpus of a billion lines, and the translation of a
billion lines. All of it is arithmetic on few assumptions, and the program has them as parameters:

```bash
python -m benchmarks.costs --tokens 30 --price H100=3.2 --machine "my GPU=90" --price "my GPU=1.1"
```

{tables}

## How it is computed

- **Operations** are those of the matrix products, forward and backward, counted from the shapes for a shared
  vocabulary of {vocabulary:,}. A line is assumed to have {tokens} subwords on either side.
- **Speed on a CPU** is that of the bare step of base, measured by `python -m benchmarks.training`, on one machine;
  big is taken to be as fast. Hours on more cores were not measured: do not divide by their number.
- **Speed on a GPU** is not measured. The upper end, 40% of the peak, is what Llama 3's authors published for H100s
  (38 to 43%, [arXiv 2407.21783](https://arxiv.org/abs/2407.21783), Table 4), with far wider layers than base has. The
  lower end, 15%, is an assumption. For yours train base for 200 updates, and give `--machine` the target tokens a
  second of `log.jsonl` times {mega:.0f} million FLOPs (big: {mega_big:,.0f} million).
- **Preparing** was measured on two cores of AMD Zen 5, without AMX, with the short sentences of Tatoeba; its price is
  that of an hour with AMX.
- **Translating** was measured on captions of Multi30k, about half as long as a line is here; BASE with random
  weights, of 14 steps a sentence.
- **Prices** are round examples for an hour. Storage and traffic are left out: a billion pairs are some 250 GB.
- Searching for settings, and the runs that failed, cost a multiple of the final training.
"""


def main() -> None:
    """Print, or write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokens", type=int, default=TOKENS, help="subwords of each side of a line")
    parser.add_argument("--price", action="append", default=[], metavar="MACHINE=PRICE", help="of an hour")
    parser.add_argument(
        "--machine", action="append", default=[], metavar="NAME=TFLOPS", help="another one, and its speed in training"
    )
    parser.add_argument("--page", type=Path, help="write the page here, instead of printing the tables")
    args = parser.parse_args()
    try:
        prices = {name: float(price) for name, _, price in (one.rpartition("=") for one in args.price)}
        own = {name: float(tflops) for name, _, tflops in (one.rpartition("=") for one in args.machine)}
        said = tables(args.tokens, machines(prices, own))
    except ValueError as error:
        parser.error(str(error))
    if args.page is None:
        print(said)
    else:
        args.page.write_text(page(), encoding="utf-8")


def page() -> str:
    """The page, with the assumptions as they stand."""
    a_token = {name: Job("", preset, 1).flops(TOKENS) / 1e6 for name, preset in (("mega", "base"), ("mega_big", "big"))}
    return PAGE.format(tables=tables(TOKENS, machines({})), vocabulary=VOCABULARY, tokens=TOKENS, **a_token)


if __name__ == "__main__":
    main()
