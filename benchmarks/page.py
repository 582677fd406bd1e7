"""``docs/results/performance*.md`` and their plots, from the results alone; what has no result has no section.

A folder in ``results/`` holds those of another kind of machine, which has pages of its own.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.harness import plots
from benchmarks.harness.environments import ROOT
from benchmarks.harness.markdown import Record, image, left_out, ratio, source, spread, table
from benchmarks.harness.plots import Line, number
from benchmarks.record import RESULTS

HEAD = """# Performance

`python -m benchmarks.page` generates these pages from the files in [benchmarks/results](../../benchmarks/results).
[benchmarks/README.md](../../benchmarks/README.md) describes how each number is measured and how to repeat it. Systems
take turns in one run, each in its own process and environment, with the same text, subwords, sizes and, for decoding,
the same weights. Numbers are medians of the runs, followed by (minimum-maximum); so are ratios (*is*: how many times as
fast), each of neighbouring runs. Memory is the peak of the process. SMALL is d_model 256, d_ff 1024, 4 heads, 3 + 3
layers; BASE is 512, 2048, 8, 6 + 6.

How far the numbers go:

- With AMX, and without any bf16, most are medians of two runs: there differences of a few per cent mean nothing, and
  where the two runs are far apart, the ratio means nothing either. With AVX-512 in bf16 they are medians of five.
- Compare within a table. The machines are virtual, and their speed changes from one day to the next.
- The CPU model is the one that the virtual machine reports; it may not be the real one (Intel's family 6, model 167 has
  neither AMX nor avx512_bf16). Go by the instruction sets. The two cores with AMX are virtual too and seem to share one
  physical core: two trainings at once each ran at 0.6 times their speed alone ([log](../log.md)).
- tcmalloc is a memory allocator that only dragoman was measured with; no other system was given it.
- Marian, in C++, was not run here. [CTranslate2's authors](https://github.com/OpenNMT/CTranslate2#benchmarks) measured
  both with one OPUS-MT model of base size, on four threads of an Intel Xeon 8275CL: Marian 1.11 gives 345 target tokens
  a second in float32 and 356 in int8, CTranslate2 3.6 gives 525 and 696.
"""
MACHINES = {"": "", "avx512-bf16": "with AVX-512 in bf16, without AMX", "without-amx": "without AMX"}
"""Folders of results, and what the kind of machine is called in the titles of its pages."""
ABOUT = {
    "avx512-bf16": "Products in bf16 are half as fast as in float32 on this processor, so dragoman's own choice, "
    "`precision: auto`, trains in float32. It does so by a timing, not by the instruction set: on AMD Zen 4, which has "
    "the same one, bf16 is twice as fast ([log](../log.md)).\n"
}
"""What has to be known of a kind of machine, above its figures."""
GROUPS = {
    "": ("Performance", ("training", "loop", "decoding")),
    "-latency": ("Single sentences, long ones, and products of matrices", ("latency", "long", "minutes", "roofline")),
    "-growth": ("How cost grows", ("sweep_batch", "sweep_vocabulary", "sweep_layers", "growth")),
}
"""What goes on a page of each kind of machine: the end of its name, its title, its results."""

DRAWN = ("fp32", "bf16", "bf16 prepared", "int8 prepared")
"""The kinds of product that are drawn, those that dragoman uses: with more, lines and names cover one another."""

UPPER = {"small": "SMALL", "base": "BASE", "tiny": "TINY", "big": "BIG"}


class Section(NamedTuple):
    """A part of a page: its text, and the plots it shows."""

    text: str
    draw: Sequence[tuple[str, Callable[[Path], None]]] = ()  # file name, what draws it


class Page(NamedTuple):
    """A page: its name without ``.md``, what stands above its sections, and these."""

    name: str
    head: str
    sections: Sequence[Section]

    @property
    def text(self) -> str:
        """All of it."""
        return "\n".join([self.head, *(f"{section.text}\n" for section in self.sections)]).rstrip("\n") + "\n"


def training(record: Record) -> Section:
    """Target tokens per second, ratios, memory."""
    presets = record["figures"]["presets"]
    tables = []
    for preset, found in presets.items():
        systems = found["systems"]
        order = sorted(systems, key=lambda name: -systems[name]["tokens_per_s"]["median"])
        ours = [name for name in ("dragoman bf16", "dragoman fp32") if name in systems]
        rows = [
            [
                name, spread(systems[name]["tokens_per_s"]), *(ratio(found["ratios"], mine, name) for mine in ours),
                number(systems[name]["peak_mib"]["median"]),
            ]
            for name in order
        ]  # fmt: skip
        head = [UPPER[preset], "target tokens/s", *(f"{name} is" for name in ours), "peak MiB"]
        tables.append(table(head, rows) + left_out(found))
    text = f"## Training\n\n{record['figures']['what']}. Tokens are those of the target, padding left out.\n\n"
    text += "\n\n".join(tables) + "\n\n" + image("performance-training.svg", "Training throughput of each system")
    panels = {
        f"{UPPER[preset]}, training": {name: one["tokens_per_s"] for name, one in found["systems"].items()}
        for preset, found in presets.items()
    }
    return Section(
        f"{text}\n\n{source(record)}",
        [("performance-training.svg", lambda p: plots.bars(panels, "target tokens/s", p, "Training throughput"))],
    )


def loop(record: Record) -> Section:
    """The real loop over the bare step, and memory."""
    figures = record["figures"]
    share = next(iter(figures["ratios"].values()))
    rows = [
        [
            name, spread(one["tokens_per_s"]), number(one["peak_mib"]["median"]),
            spread(one["memory_growth_percent"]) if "memory_growth_percent" in one else "",
        ]
        for name, one in figures["systems"].items()
    ]  # fmt: skip
    head = ["", "target tokens/s", "peak MiB", "memory growth, %"]
    text = f"## The loop around the step\n\n{figures['what']}. `dragoman train` reaches "
    text += f"{100 * share['median']:.1f}% of the bare step. Growth is the resident memory of the last fifth of the "
    text += f"time over that of the second.\n\n{table(head, rows)}\n\n{source(record)}"
    return Section(text)


def decoding(record: Record) -> Section:
    """Sentences per second, BLEU, identical translations, memory."""
    tables, panels = [], {}
    for preset, found in record["figures"]["presets"].items():
        systems, trained = found["systems"], found["weights"] == "trained"
        order = sorted(systems, key=lambda name: -systems[name]["sentences_per_s"]["median"])
        # of those that search as the peers do
        ours = [name for name in order if name.startswith("dragoman") and not name.endswith(" safe")]
        rows = []
        for name in order:
            one, at = systems[name], systems[name]["setting"]
            row = [name, spread(one["sentences_per_s"]), *(ratio(found["ratios"], mine, name) for mine in ours)]
            row += [f"{one['bleu']:.2f}", f"{one['identical_percent']:.1f}"] if trained else []
            rows.append(
                [*row, f"{at['workers']} x {at['threads']}, {at['batch']:,}", number(one["peak_mib"]["median"])]
            )
        head = [UPPER[preset], "sentences/s", *(f"{name} is" for name in ours)]
        head += ["BLEU", "as dragoman fp32, %"] if trained else []
        kind = "trained" if trained else f"random weights, {found['steps']} steps"
        worst = max(found["log_prob_difference"].values())
        about = f"{UPPER[preset]}, {kind}: {found['sentences']:,} sentences, beam {found['beam_size']}, length penalty "
        about += f"{found['length_penalty']:g} in each system's own formula. Log-probabilities of given translations "
        about += f"differ by at most {worst:.1g} nats between the systems in fp32."
        if found.get("without_length_penalty"):
            same = [f"{name} BLEU {one['bleu']:.2f}, {one['identical_percent']:.1f}% as dragoman fp32"
                    for name, one in found["without_length_penalty"].items()]  # fmt: skip
            about += f" Without length penalty, where all seek the same: {'; '.join(same)}."
        columns = [*head, "workers x threads, batch", "peak MiB"]
        tables.append(f"{about}\n\n{table(columns, rows)}{_limits(found)}{left_out(found)}")
        panels[f"{UPPER[preset]}, {kind}"] = {name: one["sentences_per_s"] for name, one in systems.items()}
    text = (
        "## Decoding\n\nEach system at the best of the batch sizes and workers that were tried; the result file lists "
    )
    text += "them all. A batch is rows times the longest source for dragoman, sentences for the others.\n\n"
    text += "\n\n".join(tables) + "\n\n" + image("performance-decoding.svg", "Decoding throughput of each system")
    return Section(
        f"{text}\n\n{source(record)}",
        [("performance-decoding.svg", lambda p: plots.bars(panels, "sentences/s", p, "Decoding throughput"))],
    )


def _limits(found: Record) -> str:
    """For which systems the settings that were tried may have missed the best one."""
    edges, alone = [], []
    for name, tried in found.get("sweeps", {}).items():
        batches, best = [one["batch"] for one in tried], found["systems"][name]["setting"]["batch"]
        if best in (min(batches), max(batches)):
            edges.append(f"{name} ({best:,} of {min(batches):,} to {max(batches):,})")
        if {one["workers"] for one in tried} == {1}:
            alone.append(name)
    text = ""
    if edges:
        text += "\n\nThe best batch was the smallest or the largest one tried, so another may be faster still, for "
        text += f"{', '.join(edges)}."
    if alone:
        text += f" Tried in a single process only, where the others could use two: {', '.join(alone)}."
    return text


def latency(record: Record) -> Section:
    """Milliseconds for one sentence."""
    figures = record["figures"]
    systems = figures["systems"]
    order = sorted(systems, key=lambda name: systems[name]["ms"]["median"])
    rows = [
        [
            name, spread(systems[name]["ms"]), number(systems[name]["p10_ms"]["median"]),
            number(systems[name]["p90_ms"]["median"]), number(systems[name]["peak_mib"]["median"]),
        ]
        for name in order
    ]  # fmt: skip
    text = f"## One sentence at a time\n\n{figures['what']}; {figures['weights']} weights."
    text += " auto is `--engine auto`, which chose CTranslate2." * any(name.endswith(" auto") for name in order)
    text += "\n\n"
    text += table(["", "median ms", "fastest tenth", "slowest tenth", "peak MiB"], rows)
    return Section(f"{text}{left_out(figures)}\n\n{source(record)}")


def long(record: Record) -> Section:
    """Tokens per second on long sentences."""
    figures = record["figures"]
    systems = figures["systems"]
    order = sorted(systems, key=lambda name: -systems[name]["tokens_per_s"]["median"])
    ours = [name for name in order if name.startswith("dragoman")]
    rows = [
        [
            name, number(systems[name]["tokens_per_s"]["median"]),
            *(ratio(figures["ratios"], mine, name) for mine in ours), number(systems[name]["peak_mib"]["median"]),
        ]
        for name in order
    ]  # fmt: skip
    text = f"## Long sentences\n\n{figures['sentences']} {figures['what']}, {figures['steps']} steps, beam "
    text += f"{figures['beam_size']}.\n\n"
    text += table(["", "tokens/s", *(f"{name} is" for name in ours), "peak MiB"], rows)
    return Section(f"{text}{left_out(figures)}\n\n{source(record)}")


def minutes(record: Record) -> Section:
    """Quality after so many minutes of training."""
    figures = record["figures"]
    rows = [
        [
            number(run["minutes"]), f"{run['updates']:,}", number(run["dropout"]),
            f"{run['scores']['BLEU']:.2f}", f"{run['scores']['chrF2']:.2f}",
        ]
        for run in figures["runs"]
    ]  # fmt: skip
    reached = "; ".join(
        f"BLEU {target}: {'not reached' if found is None else f'{number(found)} minutes'}"
        for target, found in figures["minutes_to_bleu"].items()
    )
    text = f"## Minutes to a quality\n\n{figures['what']}, beam search as in the recipe. {reached}.\n\n"
    return Section(
        text + table(["minutes of training", "updates", "dropout", "BLEU", "chrF"], rows) + f"\n\n{source(record)}"
    )


def roofline(record: Record) -> Section:
    """What the processor reaches, and the share that a step does."""
    figures = record["figures"]
    products, steps = figures["products"], figures["training_steps"]
    ways = list(products[0]["gflop_per_s"])
    rows = [
        [f"{p['rows']} x {p['inner']} x {p['columns']}"]
        + [number(p["gflop_per_s"][way]["median"]) if way in p["gflop_per_s"] else "" for way in ways]
        for p in products
    ]
    shares = [
        [UPPER.get(name.split()[0], name.split()[0]) + " " + name.split()[1], number(s["gflop_per_s"]["median"]),
         number(s["peak_gflop_per_s"]), f"{s['percent_of_peak']:.1f}"]
        for name, s in steps.items()
    ]  # fmt: skip
    text = "## Roofline\n\nProducts of matrices, GFLOP/s (rows x inner width x columns):\n\n" + table(["", *ways], rows)
    text += "\n\nA training step; its time includes everything, its operations only matrix products:\n\n"
    text += table(["", "GFLOP/s", "fastest product", "share, %"], shares)
    text += "\n\n" + image("performance-roofline.svg", "Speed of matrix products against their rows")
    text += "\n\n" + image("performance-roofline-steps.svg", "Share of the fastest product that training steps reach")
    series = [p for p in products if (p["inner"], p["columns"]) == (512, 2048)]
    drawn = [
        Line(way, [p["rows"] for p in series], [p["gflop_per_s"][way]["median"] for p in series])
        for way in ways
        if way in DRAWN
    ]
    speeds = {
        f"{UPPER[name.split()[0]]} {name.split()[1]}": (one["gflop_per_s"]["median"], one["peak_gflop_per_s"])
        for name, one in steps.items()
    }
    panel = {"Products of rows x 512 x 2,048": drawn}
    draw = [
        ("performance-roofline.svg", lambda p: plots.lines(panel, "rows", ["GFLOP/s"], p, "Matrix products")),
        ("performance-roofline-steps.svg", lambda p: plots.shares(speeds, p, "Training steps and the fastest product")),
    ]
    return Section(f"{text}{left_out(figures)}\n\n{source(record)}", draw)


def sweep(record: Record, title: str, unit: str, keys: Mapping[str, str], note: str) -> Section:
    """A sweep: a plot with a panel for each figure, and the first of them as a table."""
    figures = record["figures"]
    systems = figures["systems"]
    values = sorted({int(value) for one in systems.values() for value in one})
    first = next(iter(keys))
    rows = [
        [name, *(number(one[str(v)][first]["median"]) if str(v) in one else "" for v in values)]
        for name, one in systems.items()
    ]
    panels = {
        f"{unit_y.partition(' (')[0]} against {title.lower()}": [
            Line(name, [int(v) for v in one], [one[v][key]["median"] for v in one]) for name, one in systems.items()
        ]
        for key, unit_y in keys.items()
    }
    name = f"performance-{title.lower()}.svg"
    text = f"## {title}\n\n{note} {figures['what']}. The table is {next(iter(keys.values()))}.\n\n"
    text += table([title.lower(), *(f"{value:,}" for value in values)], rows)
    text += "\n\n" + image(name, f"{' and '.join(keys.values())} against {title.lower()}")
    draw = [(name, lambda path: plots.lines(panels, unit, list(keys.values()), path, f"Cost against {title.lower()}"))]
    return Section(f"{text}{left_out(figures)}\n\n{source(record)}", draw)


def growth(record: Record) -> Section:
    """Cost at both ends of each series and its exponents; the plots against sentence length and corpus."""
    figures = record["figures"]
    rows = [
        _grown(f"{' '.join(path)} against {part}".replace("_", " "), one, "seconds", "mib")
        for part, measures in figures.items()
        for path, one in _series(measures)
        if "seconds" in one
    ]
    corpus = figures.get("corpus")
    if corpus:
        rows += [_grown(f"{what} against corpus", corpus, *keys) for what, keys in OF_A_CORPUS.items()]
    text = "## How cost grows\n\nTime and memory above idle at the smallest and the largest size, and the slope of a "
    text += "line through the logarithms of the three largest: 1 is linear, 2 quadratic. Lengths are tokens of one "
    text += "sentence, batches sentences of 32 tokens in training and of 15 in a search with beam 5, corpora pairs of "
    text += "the phrasebook.\n\n" + table(["", "sizes", "seconds", "exponent", "MiB", "exponent"], rows)
    units = ["seconds", "memory above idle (MiB)"]
    draw = []
    attention = figures.get("length", {}).get("attention")
    if attention:
        panels = {
            f"{title} of attention against length": [
                Line(name.replace("_", " "), one["size"], one[key])
                for name, one in attention.items()
                if one.get("size")
            ]
            for title, key in (("Time", "seconds"), ("Memory", "mib"))
        }
        text += "\n\n" + image("performance-length.svg", "Time and memory of attention against sentence length")
        draw.append(
            (
                "performance-length.svg",
                lambda p: plots.lines(panels, "sentence length (tokens)", units, p, "Cost of attention"),
            )
        )
    if corpus:
        both = {
            f"{title} against the corpus": [
                Line(what, corpus["size"], corpus[keys[i]]) for what, keys in OF_A_CORPUS.items()
            ]
            for i, title in enumerate(("Time", "Memory"))
        }
        text += "\n\n" + image("performance-corpus.svg", "Time and memory of preparing and opening against the corpus")
        draw.append(("performance-corpus.svg", lambda p: plots.lines(both, "pairs", units, p, "Cost of a corpus")))
    return Section(f"{text}{left_out(figures.get('length', {}))}\n\n{source(record)}", draw)


OF_A_CORPUS = {
    "preparing": ("prepare_seconds", "prepare_mib"),
    "first batch": ("first_batch_warm_s", "first_batch_warm_mib"),
    "first batch, files not cached": ("first_batch_cold_s", "first_batch_cold_mib"),
}
"""What is measured of a corpus, by its time and its memory in the result."""


def _grown(name: str, one: Record, *keys: str) -> list[str]:
    """A row: sizes, then of each key its values at both ends and its exponent, if there is one."""
    row = [name, f"{number(one['size'][0])} to {number(one['size'][-1])}"]
    for key in keys:
        fit = (one["growth"].get(key) or {}).get("last_three")
        row += [f"{number(one[key][0])} to {number(one[key][-1])}", "" if fit is None else f"{fit['exponent']:.2f}"]
    return row


def _series(found: Any, path: tuple[str, ...] = ()) -> list[tuple[tuple[str, ...], Record]]:
    """Every series of sizes below ``found`` that has any, with the names that lead to it."""
    if not isinstance(found, dict):
        return []
    here = [(path, found)] if found.get("size") else []
    return here + [one for key, value in found.items() if key != "growth" for one in _series(value, (*path, key))]


def pages(results: Path) -> list[Page]:
    """The pages for which there are results, the first one always; it names the others."""
    found = []
    for folder, machine in MACHINES.items():
        sections = _of_one_machine(results / folder)
        end = f"-{folder}" if folder else ""
        for group, (title, names) in GROUPS.items():
            own = [_renamed(sections[name], end) for name in names if name in sections]
            name = f"performance{end}{group}"
            title = f"{title}, {machine}" if machine else title
            note = f"\n{ABOUT[folder]}" if folder in ABOUT else ""
            note += "" if group else _two_days(results / folder) if folder else ""
            if name != "performance" and own:
                found.append(Page(name, f"# {title}\n\nHow it was measured, and how far the numbers go: "
                                        f"[performance](performance.md).\n{note}", own))  # fmt: skip
            elif name == "performance":
                first = own
    others = [f"- [{page.head[2 : page.head.index(chr(10))]}]({page.name}.md)" for page in found]
    head = HEAD + ("\nOther pages:\n\n" + "\n".join(others) + "\n" if others else "")
    return [Page("performance", head, first), *found]


def _two_days(results: Path) -> str:
    """How much the speed of the same training step differed between two results of one kind of machine."""
    records = []
    for name in ("training", "loop"):
        if not (results / f"{name}.json").is_file():
            return ""
        records.append(json.loads((results / f"{name}.json").read_text(encoding="utf-8")))
    trained, looped = (record["figures"] for record in records)
    speeds = [
        number(systems[name]["tokens_per_s"]["median"])
        for systems, name in (
            (trained["presets"]["small"]["systems"], "dragoman fp32"), (looped["systems"], "bare step"))
    ]  # fmt: skip
    days = [record["date"] for record in records]
    return (
        f"\nThe same training step (SMALL, fp32) reached {speeds[0]} target tokens/s under Training ({days[0]}) and "
        f"{speeds[1]} under The loop around the step ({days[1]}), on virtual machines of the same kind: compare within "
        "a table, not between tables.\n"
    )


def _renamed(section: Section, end: str) -> Section:
    """A section whose plots have names of their own."""
    own = lambda name: name.replace("performance-", f"performance{end}-", 1)  # noqa: E731
    text = section.text.replace("](../images/performance-", f"](../images/{own('performance-')}")
    return Section(text, [(own(name), draw) for name, draw in section.draw])


def _of_one_machine(results: Path) -> dict[str, Section]:
    """The parts for which there are results in this folder, by the names of these."""
    tokens = {"tokens_per_s": "target tokens/s", "peak_mib": "peak memory (MiB)"}
    makers: list[tuple[str, Callable[[Record], Section]]] = [
        ("training", training), ("loop", loop), ("decoding", decoding), ("latency", latency), ("long", long),
        ("minutes", minutes), ("roofline", roofline),
        ("sweep_batch", lambda record: sweep(
            record, "Batch", "sentences in a batch",
            {"sentences_per_s": "sentences/s", "batch_ms": "time until a batch is done (ms)"},
            "N sentences are translated at a time.",
        )),
        ("sweep_vocabulary", lambda record: sweep(
            record, "Vocabulary", "subwords", tokens, "Training while the vocabulary grows.")),
        ("sweep_layers", lambda record: sweep(
            record, "Layers", "layers on each side", tokens, "Training while both stacks grow.")),
        ("growth", growth),
    ]  # fmt: skip
    paths = {name: results / f"{name}.json" for name, _ in makers}
    return {
        name: make(json.loads(paths[name].read_text(encoding="utf-8")))
        for name, make in makers
        if paths[name].is_file()
    }


def main() -> None:
    """Write the pages and their plots."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--out", type=Path, default=ROOT / "docs", help="gets results/performance*.md and images/")
    parser.add_argument("--png", action="store_true", help="also write the plots as PNG, to look at them")
    args = parser.parse_args()
    (args.out / "results").mkdir(parents=True, exist_ok=True)
    for page in pages(args.results):
        for name, draw in (each for section in page.sections for each in section.draw):
            draw(args.out / "images" / name)
            if args.png:
                draw(args.out / "images" / Path(name).with_suffix(".png"))
        path = args.out / f"results/{page.name}.md"
        path.write_text(page.text, encoding="utf-8")
        print(path)


if __name__ == "__main__":
    main()
