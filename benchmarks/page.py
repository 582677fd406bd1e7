"""``docs/results/performance.md`` and its plots, from the results alone; a measurement without a result has no section.

    python -m benchmarks.page

The folders in ``results/`` hold the results of other kinds of machine. Each kind has a column of its own in the tables.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from benchmarks.harness import plots
from benchmarks.harness.costs_of_sizes import growth, roofline, sweep
from benchmarks.harness.environments import ROOT
from benchmarks.harness.markdown import (
    UPPER,
    Record,
    Records,
    Section,
    across,
    image,
    machine_of,
    ratio,
    sources,
    spread,
    table,
    versions_of,
)
from benchmarks.harness.plots import number
from benchmarks.record import RESULTS

HEAD = """# Performance

`python -m benchmarks.page` makes this page from the records in [benchmarks/results](../../benchmarks/results). The
records hold more: each round, command, day, setting and refusal. [benchmarks/README.md](../../benchmarks/README.md)
describes how to repeat each measurement. Systems take turns in one run, each in its own process and environment, with
the same text, subwords and sizes, in decoding with the same weights. Quality by the clock is different: its systems
do not take turns, and have subwords and sizes of their own. The text is Multi30k English-German unless another is
named. Numbers are medians of the runs, followed by (minimum-maximum); ratios are of neighbouring runs.
Memory is the peak of the process. SMALL is d_model 256, d_ff 1024, 4 heads, 3 + 3 layers; BASE is 512, 2048, 8,
6 + 6.

- With AMX, and without any bf16, most numbers are medians of two runs, so differences of a few per cent mean nothing.
  With AVX-512 in bf16 they are medians of five.
- Compare within a column. The machines are virtual, and their speed changes from one day to the next.
- tcmalloc is a memory allocator that only dragoman was measured with. Ratios are without it, and without a shortlist
  on dragoman's side.
- int8 is CTranslate2's, or Marian's own (`intgemm8`).
- Zen 4 decodes a model that Marian trained for 30 minutes and `dragoman import` read. Hugging Face's model has other
  positions, so it is left out there.
"""
MACHINES = {
    "": "AMX", "avx512-bf16": "AVX-512 bf16", "zen4": "Zen 4", "zen5": "Zen 5", "zen3": "Zen 3",
    "without-amx": "no bf16",
}  # fmt: skip
"""Folders of results, and the name of that kind of machine at the head of its column."""
CORPORA = {"multi30k": "Multi30k English-German", "tatoeba-en-de": "Tatoeba English-German"}
ABOUT = {
    "AMX": "Two cores of an Intel Xeon with AMX, which seem to share one physical core.",
    "AVX-512 bf16": "Two cores of an Intel Xeon with AVX-512 in bf16, without AMX. Products in bf16 are half as fast "
    "as in float32, so `precision: auto`, which times both, trains in float32.",
    "Zen 4": "Two cores of AMD Zen 4, which has AVX-512 in bf16 too: 411 GFLOP/s in bf16 and 151 in float32.",
    "Zen 5": "Two cores of AMD Zen 5, which has AVX-512 in bf16 too.",
    "Zen 3": "Two cores of AMD Zen 3, which has AVX2 and no bf16.",
    "no bf16": "Two cores of AMD Zen 1, which has AVX2 and no bf16.",
}
"""What has to be known of a kind of machine, above the tables."""
ONLY_IN_RECORDS = re.compile(r"dragoman int8(?! auto)|CTranslate2 int8 tokens")
"""Systems that the page leaves out: an implementation that is gone, and batches in tokens, which change nothing."""
BESIDE_THE_FASTEST = (" safe", ", tcmalloc", " shortlist", " auto")
"""Endings of systems of ours that are no precision of their own."""


class Page(NamedTuple):
    """The page: the text above its sections, and these."""

    head: str
    sections: Sequence[Section]

    @property
    def text(self) -> str:
        """The whole page."""
        return "\n".join([self.head, *(f"{section.text}\n" for section in self.sections)]).rstrip("\n") + "\n"


def training(records: Records) -> Section:
    """Show target tokens per second, memory and ratios of training."""
    tables, panels = [], {}
    for preset, results in by_preset(records).items():
        tables += speeds(f"{UPPER[preset]}: ", "target tokens/s; peak MiB", "tokens_per_s", results)
        for machine, result in results.items():
            panels[f"{UPPER[preset]}, {machine}"] = {
                name: system["tokens_per_s"] for name, system in result["systems"].items()
            }
    text = (
        "## Training\n\nTokens are those of the target, padding left out. With AMX, and without any bf16, Hugging "
        "Face trained in one process and without dragoman's malloc settings, so ratios to it are upper bounds there. "
        "With AVX-512 in bf16 both were tried; the best setting was 1.08 times (fp32) and 1.42 times (bf16) as fast."
    )
    text += "\n\n" + "\n\n".join(tables)
    text += "\n\n" + image("performance-training.svg", "Training throughput of each system")
    draw = partial(plots.bars, panels, "target tokens/s", title="Training throughput")
    notes = sources(records, lambda machine, figures: f"{figures['what']}.")
    return Section(f"{text}\n\n{notes}", [("performance-training.svg", draw)])


def loop(records: Records) -> Section:
    """Compare the real loop with the bare step, in speed and memory."""
    tables = []
    for machine, record in records.items():
        rows = [
            [
                name, spread(system["tokens_per_s"]), number(system["peak_mib"]["median"]),
                spread(system["memory_growth_percent"]) if "memory_growth_percent" in system else "",
            ]
            for name, system in record["figures"]["systems"].items()
        ]  # fmt: skip
        tables.append(table([machine, "target tokens/s", "peak MiB", "memory growth, %"], rows))
    text = (
        "## The loop around the step\n\nGrowth is the resident memory of the last fifth of the time over that of the "
    )
    text += "second.\n\n" + "\n\n".join(tables)

    def note(machine: str, figures: Record) -> str:
        share = 100 * next(iter(figures["ratios"].values()))["median"]
        return f"{figures['what']}. `dragoman train` reaches {share:.1f}% of the bare step."

    return Section(f"{text}\n\n{sources(records, note)}")


def decoding(records: Records) -> Section:
    """Show sentences per second, ratios, settings and memory of decoding; BLEU in the notes."""
    tables, panels, notes = [], {}, []
    for preset, results in by_preset(records).items():
        tables += speeds(f"{UPPER[preset]}: ", "sentences/s", "sentences_per_s", results)
        settings = {m: of_systems(result, setting) for m, result in results.items() if result["weights"] == "trained"}
        if settings:
            tables.append(across(f"{UPPER[preset]}: workers x threads, batch; peak MiB", settings))
        for machine, result in results.items():
            kind = "trained" if result["weights"] == "trained" else f"random weights, {result['steps']} steps"
            notes.append(f"- *{UPPER[preset]}, {machine}*: {about_decoding(result, kind)}{limits(result)}")
            panels[f"{UPPER[preset]}, {kind}, {machine}"] = {
                name: system["sentences_per_s"] for name, system in shown(result).items()
            }
    every = [result for results in by_preset(records).values() for result in results.values()]
    worst = max(difference for result in every for difference in result["log_prob_difference"].values())
    alone = dict.fromkeys(name for result in every for name in in_one_process(result))
    text = (
        "## Decoding\n\nThe length penalty is in each system's own formula. Each system has the best of the batch "
        "sizes and workers that were tried. A batch is rows times the longest source for dragoman, sentences for the "
        "others. *safe* is dragoman's own rule to stop, without `--patience 1`. "
    )
    text += f"In fp32 the systems' log-probabilities of given translations agree to {worst:.1g} nats."
    text += f" Tried in a single process only: {', '.join(alone)}.\n\n" if alone else "\n\n"
    text += "\n\n".join(tables) + "\n\n" + image("performance-decoding.svg", "Decoding throughput of each system")
    text += "\n\n" + "\n".join(notes)
    draw = partial(plots.bars, panels, "sentences/s", title="Decoding throughput")
    return Section(text, [("performance-decoding.svg", draw)])


def about_decoding(result: Record, kind: str) -> str:
    """Return the sentences that describe a comparison of decoding: its texts, its search and how alike outputs are."""
    text = f"{kind}, {result['sentences']:,} sentences, beam {result['beam_size']}, length penalty "
    text += f"{result['length_penalty']:g}."
    if result["weights"] != "trained":
        return text
    systems = shown(result).values()
    low, high = (choose(system["bleu"] for system in systems) for choose in (min, max))
    same = min(system["identical_percent"] for system in systems)
    return f"{text} BLEU is {low:.2f} to {high:.2f}; at least {same:.0f}% of translations are those of dragoman fp32."


def limits(result: Record) -> str:
    """Return for which systems the batches that were tried may have missed the best one."""
    edges = []
    for name, tried in result.get("sweeps", {}).items():
        batches, best = [setting["batch"] for setting in tried], result["systems"][name]["setting"]["batch"]
        if name in shown(result) and best in (min(batches), max(batches)):
            edges.append(name)
    return f" The best batch was the smallest or the largest one tried for {', '.join(edges)}." if edges else ""


def in_one_process(result: Record) -> list[str]:
    """Return the systems that were tried with one worker only."""
    sweeps = result.get("sweeps", {})
    return [name for name in shown(result) if {setting["workers"] for setting in sweeps.get(name, ())} == {1}]


def latency(records: Records) -> Section:
    """Show the milliseconds that one sentence takes."""
    results = {machine: ordered(record["figures"], "ms", 1) for machine, record in records.items()}
    times = {machine: of_systems(result, tail) for machine, result in results.items()}
    text = "## One sentence at a time\n\nauto is `--engine auto`, which chose CTranslate2.\n\n"
    text += across("median ms; slowest tenth; peak MiB", times)

    def note(machine: str, figures: Record) -> str:
        return f"{figures['what']}; {figures['weights']} weights."

    return Section(f"{text}\n\n{sources(records, note)}")


def long(records: Records) -> Section:
    """Show tokens per second on long sentences."""
    results = {machine: record["figures"] for machine, record in records.items()}

    def note(machine: str, figures: Record) -> str:
        return f"{figures['sentences']} {figures['what']}, {figures['steps']} steps, beam {figures['beam_size']}."

    tables = speeds("", "tokens/s; peak MiB", "tokens_per_s", results)
    return Section("## Long sentences\n\n" + "\n\n".join(tables) + "\n\n" + sources(records, note))


def minutes(records: Records) -> Section:
    """Show the quality after so many minutes of training."""
    tables = []
    for machine, record in records.items():
        rows = [
            [
                number(run["minutes"]), f"{run['updates']:,}", number(run["dropout"]),
                f"{run['scores']['BLEU']:.2f}", f"{run['scores']['chrF2']:.2f}",
            ]
            for run in record["figures"]["runs"]
        ]  # fmt: skip
        tables.append(table([f"minutes of training, {machine}", "updates", "dropout", "BLEU", "chrF"], rows))
    text = "## Minutes to a quality\n\nBeam search as in the recipe.\n\n" + "\n\n".join(tables)

    def note(machine: str, figures: Record) -> str:
        reached = [
            f"BLEU {target}: {'not reached' if minute is None else f'{number(minute)} minutes'}"
            for target, minute in figures["minutes_to_bleu"].items()
        ]
        return f"{figures['what']}. {'; '.join(reached)}."

    return Section(f"{text}\n\n{sources(records, note)}")


SMALLER = ", smaller"
"""End of the name of a peer with the sizes that dragoman has chosen by its minutes."""


def clock(records: Records, smaller: Records | None = None) -> Section:
    """Show BLEU of the test set after some minutes, of dragoman and of the peers.

    Args:
        smaller: The peers again, with the sizes that dragoman has chosen by its minutes.
    """
    tables, panels = [], {}
    for machine, record in records.items():
        again = smaller[machine]["figures"]["corpora"] if smaller and machine in smaller else {}
        for corpus, systems in record["figures"]["corpora"].items():
            found = {**systems, **{name + SMALLER: by_limit for name, by_limit in again.get(corpus, {}).items()}}
            order = sorted(found, key=lambda name: list(systems).index(name.removesuffix(SMALLER)))
            limits = dict.fromkeys(limit for by_limit in systems.values() for limit in by_limit)
            rows = [[name, *(_scores(found[name].get(limit)) for limit in limits)] for name in order]
            title = f"{CORPORA.get(corpus, corpus)}, {record['machine']['cores']} cores ({machine})"
            tables.append(table([f"{title}: BLEU", *(f"{limit} minutes" for limit in limits)], rows))
            lines = sorted((_by_clock(name, found[name]) for name in order), key=lambda line: line.y[-1:])
            better = {line.name.removesuffix(SMALLER): line for line in lines}
            others = (other["figures"]["corpora"].get(corpus, ()) for other in records.values())
            has_most = len(systems) == max(map(len, others))
            whole = [name for name, by_limit in systems.items() if by_limit.keys() >= limits.keys()]
            if has_most and len(whole) > 1:
                panels[title] = [better[name]._replace(name=name) for name in whole]
    text = (
        "## Quality by the clock\n\n"
        "The minutes begin with the two raw files; learning subwords, preparing and validating count. Each column "
        "has a training of dragoman's own (`train --minutes`) and the checkpoint that a peer, which trains once, "
        "has by then. Peers have the sizes of dragoman's recipe for Multi30k: 256 wide, 3 + 3 layers, 8,000 "
        "subwords. By its minutes dragoman chooses smaller ones: 128 wide for 3 and 10, 192 for 30 (128 on Zen 3), "
        "2 + 2 layers, 4,000 subwords. On Zen 4 with Multi30k Marian and Hugging Face trained once more with those "
        "of its 30 minutes, its dropout and its highest rate (smaller), Eole and JoeyNMT did not. The figure shows "
        "the better training of each peer with all minutes, on the machine with most of them. In parentheses is the "
        "95% interval of the test set, or the range of several seeds.\n\n"
    )
    text += "\n\n".join(tables) + "\n\n" + image("performance-clock.svg", "BLEU by minutes of training")
    draw = partial(plots.by_clock, panels, title="Quality by the clock")

    def note(machine: str, figures: Record) -> str:
        versions = ", ".join(figures["peers"]["versions"].values())
        return f"Peers: {versions}. {figures.get('note', '')}".rstrip()

    return Section(f"{text}\n\n{sources(records, note)}", [("performance-clock.svg", draw)])


def _scores(found: Sequence[Record] | None) -> str:
    if not found:
        return "" if found is None else "no checkpoint yet"
    values = [one["BLEU"] for one in found]
    low, high = (min(values), max(values)) if len(values) > 1 else found[0]["interval"]
    return f"{sum(values) / len(values):.1f} ({low:.1f}-{high:.1f})"


def _by_clock(name: str, by_limit: Mapping[str, Sequence[Record]]) -> plots.Line:
    there = {float(limit): found for limit, found in by_limit.items() if found}
    return plots.Line(name, list(there), [sum(one["BLEU"] for one in found) / len(found) for found in there.values()])


def by_preset(records: Records) -> dict[str, Records]:
    """Return the results of each size of model, by its name and that of the machine."""
    presets = dict.fromkeys(preset for record in records.values() for preset in record["figures"]["presets"])
    return {
        preset: {
            machine: record["figures"]["presets"][preset]
            for machine, record in records.items()
            if preset in record["figures"]["presets"]
        }
        for preset in presets
    }


def shown(result: Record) -> dict[str, Record]:
    """Return the systems of a result that the page shows, by name."""
    return {name: system for name, system in result["systems"].items() if not ONLY_IN_RECORDS.match(name)}


def ordered(result: Record, key: str, sign: int) -> Record:
    """Return a result with its systems in the order of ``key``, the greatest first if ``sign`` is -1."""
    systems = result["systems"]
    return {
        **result,
        "systems": {n: systems[n] for n in sorted(systems, key=lambda n: sign * systems[n][key]["median"])},
    }


def speeds(before: str, unit: str, key: str, results: Records) -> list[str]:
    """Return the table of speeds of a comparison, and how many times as fast as others dragoman at its fastest is."""
    results = {machine: ordered(result, key, -1) for machine, result in results.items()}

    def cell(system: Record) -> str:
        return spread(system[key]) + (f"; {peak(system)}" if "peak MiB" in unit else "")

    cells = {machine: of_systems(result, cell) for machine, result in results.items()}
    ratios = {}
    for machine, result in results.items():
        names = (name for name in shown(result) if name.startswith("dragoman"))
        ours = next((name for name in names if not name.endswith(BESIDE_THE_FASTEST)), None)
        if ours is not None:
            peers = [name for name in shown(result) if not name.startswith("dragoman")]
            column = f"{ours.removeprefix('dragoman ')}, {machine}"
            ratios[column] = {peer: ratio(result["ratios"], ours, peer) for peer in peers}
    return [across(f"{before}{unit}", cells), across(f"{before}dragoman at its fastest, times the speed of", ratios)]


def of_systems(result: Record, cell: Callable[[Record], str]) -> dict[str, str]:
    """Return the cells of a column: one for each system of a result that is shown."""
    return {name: cell(system) for name, system in shown(result).items()}


def peak(system: Record) -> str:
    """Return the peak memory of a system in MiB."""
    return number(system["peak_mib"]["median"])


def setting(system: Record) -> str:
    """Return the setting that a system is fastest with, and its peak memory in MiB."""
    best = system["setting"]
    return f"{best['workers']} x {best['threads']}, {best['batch']:,}; {peak(system)}"


def tail(system: Record) -> str:
    """Return the milliseconds of the median and of the slowest tenth of the sentences, and the peak memory in MiB."""
    return f"{spread(system['ms'])}; {number(system['p90_ms']['median'])}; {peak(system)}"


def page(results: Path) -> Page:
    """Return the page of the results in a folder."""
    tokens = {"tokens_per_s": "target tokens/s", "peak_mib": "peak memory (MiB)"}
    batch = {"sentences_per_s": "sentences/s", "batch_ms": "time until a batch is done (ms)"}
    makers: dict[str, Callable[[Records], Section]] = {
        "training": training, "loop": loop, "decoding": decoding, "latency": latency, "long": long,
        "clock": partial(clock, smaller=records_of(results, "clock_smaller")), "minutes": minutes, "roofline": roofline,
        "sweep_batch": partial(
            sweep, title="Batch", unit="sentences in a batch", keys=batch,
            note="N sentences are translated at a time."),
        "sweep_vocabulary": partial(
            sweep, title="Vocabulary", unit="subwords", keys=tokens, note="Training while the vocabulary grows."),
        "growth": growth,
    }  # fmt: skip
    measured = {name: records_of(results, name) for name in makers}
    head = HEAD
    items = {machine: about_machine(measured, machine) for machine in MACHINES.values()}
    if any(items.values()):
        head += "\nA column is a kind of machine:\n\n"
        head += "".join(f"- *{machine}*: {text}\n" for machine, text in items.items() if text)
        pairs = [versions_of(record).items() for records in measured.values() for record in records.values()]
        versions = dict.fromkeys(pair for versions in pairs for pair in versions)
        head += f"\nVersions: {', '.join(' '.join(pair) for pair in versions)}.\n"
    return Page(head, [make(measured[name]) for name, make in makers.items() if measured[name]])


def records_of(results: Path, name: str) -> dict[str, Record]:
    """Return the results of one measurement, by machine."""
    paths = {machine: results / folder / f"{name}.json" for folder, machine in MACHINES.items()}
    return {m: json.loads(path.read_text(encoding="utf-8")) for m, path in paths.items() if path.is_file()}


def about_machine(measured: Mapping[str, Records], machine: str) -> str:
    """Return what a kind of machine is and reports to be; nothing if nothing was measured on it."""
    records = [records[machine] for records in measured.values() if machine in records]
    if not records:
        return ""
    reported = dict.fromkeys(machine_of(record["machine"]) for record in records)
    return f"{ABOUT[machine]} Reported: {'; '.join(reported)}.{two_days(measured, machine)}"


def two_days(measured: Mapping[str, Records], machine: str) -> str:
    """Return how much the speed of the same training step differed between two results of one kind of machine."""
    if machine not in measured["training"] or machine not in measured["loop"]:
        return ""
    trained, looped = measured["training"][machine], measured["loop"][machine]
    small = trained["figures"]["presets"].get("small", {"systems": {}})["systems"]
    if "dragoman fp32" not in small or "bare step" not in looped["figures"]["systems"]:
        return ""
    first, second = (
        number(system["tokens_per_s"]["median"])
        for system in (small["dragoman fp32"], looped["figures"]["systems"]["bare step"])
    )
    return (
        f" The same training step (SMALL, fp32) reached {first} target tokens/s on {trained['date']} and {second} on "
        f"{looped['date']}."
    )


def main() -> None:
    """Write the page and its plots."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--out", type=Path, default=ROOT / "docs", help="gets results/performance.md and images/")
    parser.add_argument("--png", action="store_true", help="also write the plots as PNG, to look at them")
    args = parser.parse_args()
    (args.out / "results").mkdir(parents=True, exist_ok=True)
    made = page(args.results)
    for name, draw in (drawing for section in made.sections for drawing in section.draw):
        draw(path=args.out / "images" / name)
        if args.png:
            draw(path=args.out / "images" / Path(name).with_suffix(".png"))
    path = args.out / "results/performance.md"
    path.write_text(made.text, encoding="utf-8")
    print(path)


if __name__ == "__main__":
    main()
