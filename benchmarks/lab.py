"""``docs/lab``: figures and numbers of the laboratory's reports, a page for each, and one that lists them."""

from __future__ import annotations

import argparse
import json
import re
import shutil
from pathlib import Path
from typing import Any

from benchmarks.harness.environments import ROOT
from dragoman.explanation.figures import save
from dragoman.lab import EXPERIMENTS
from dragoman.lab.experiment import experiment_module, plain
from dragoman.lab.page import WORDS, plain_section

HERE = ROOT / "docs/lab"
HEAD = """# The laboratory's report

Each experiment examines statements of the paper, or of popular explanations, on models small enough to train here. The
table says how many of its statements *hold*, how many do *not*, and how many stay *open*: the interval over seeds
contains both. [Questions](../understand/questions/index.md) tells what they answer, [errata](../understand/errata.md)
what they refute and which the five documents are."""
FOOT = """**What a verdict can carry.** Nearly all models are small, trained for seconds or minutes on a generated
text or toy task, most at one rate. Seeds are one to three, for the base of `ablations` five. A verdict is about that
model on that task; where the literature found otherwise, or the same at a larger scale, the page names it. Constants
that could decide a verdict are swept (`python -m benchmarks.verdicts`). An interval, in brackets, is over seeds and
for one comparison. `heads` and `ablations` make dozens and allow for all of theirs (Bonferroni); others make up to
eleven and do not.

Tables have the rows that a verdict rests on. Date, machine and all numbers are in each page's `numbers.json`.
`dragoman lab NAME` writes the same page from a run of your own ([how](../how-to/experiments.md))."""


ONCE = ("Label by label",)
"""Headings of sections that a run on other text leaves to the experiment's own page, or to its numbers."""


def publish(report: Path, folder: Path, suffix: str = "") -> list[str]:
    """Copy figures and numbers of every experiment of a report.

    Args:
        report: What ``dragoman lab --out`` made, in full.
        folder: Where to; what is there of the same experiment goes.
        suffix: Of the copies' names, for a report on other text than the laboratory's own.

    Returns:
        The names of the copies.
    """
    names = []
    for path in sorted(report.glob("*/numbers.json")):
        record = json.loads(path.read_text(encoding="utf-8"))
        if record["quick"]:
            raise SystemExit(f"{path}: a quick run claims nothing: publish a full one")
        name = record["experiment"] + suffix
        there = folder / name
        shutil.rmtree(there, ignore_errors=True)
        there.mkdir(parents=True)
        for figure in record["figures"]:
            shutil.copyfile(path.parent / figure["file"], there / figure["file"])
        text = json.dumps(without_folders(record), indent=1, ensure_ascii=False, allow_nan=False)
        (there / "numbers.json").write_text(text + "\n", encoding="utf-8")
        names.append(name)
    return names


def restate(folder: Path) -> None:
    """Write verdict and figures of one experiment anew from its numbers; what was measured stays as it is.

    Figures that need more than the numbers, such as a trained model, stay too.
    """
    path = folder / "numbers.json"
    record = json.loads(path.read_text(encoding="utf-8"))
    module = experiment_module(record["experiment"])
    record["claim"] = EXPERIMENTS[record["experiment"]]
    record["verdict"] = [plain(claim._asdict()) for claim in module.verdict(record["numbers"])]
    if hasattr(module, "sections"):
        sections = module.sections(record["numbers"])
        record["sections"] = [plain_section(section) for section in sections]
        drawn = [section for section in sections if section.figure is not None]
        record["figures"] = [
            {"file": f"{section.name}.svg", "heading": section.heading, "caption": section.caption} for section in drawn
        ]
        for section in drawn:
            title = section.heading or record["experiment"]
            save(section.figure, folder / f"{section.name}.svg", title=title, description=section.caption)
    path.write_text(json.dumps(record, indent=1, ensure_ascii=False, allow_nan=False) + "\n", encoding="utf-8")


def without_folders(record: dict[str, Any]) -> dict[str, Any]:
    """The record with names of files and runs instead of their places on one machine."""
    config = record["config"]
    if config is not None:
        data = dict(config["data"])
        for name in ("train", "valid"):
            if data[name]:
                data[name] = {side: Path(path).name for side, path in data[name].items()}
        config = {**config, "data": data}
    return {**record, "config": config, "run": record["run"] and Path(record["run"]).name}


def found_in(folder: Path) -> dict[str, dict[str, Any]]:
    """The numbers of what lies in ``folder``: the experiments in their order, each before its variants."""
    found = {path.parent.name: json.loads(path.read_text(encoding="utf-8")) for path in folder.glob("*/numbers.json")}
    order = list(EXPERIMENTS)
    names = sorted(found, key=lambda name: (order.index(found[name]["experiment"]), name))
    return {name: found[name] for name in names}


def index(folder: Path) -> str:
    """``README.md`` of what lies in ``folder``: a row for each experiment."""
    found = found_in(folder)
    rows = ["| experiment | what it examines | holds | does not | open | minutes |", "|---|---|--:|--:|--:|--:|"]
    for name, record in found.items():
        counts = [sum(claim["holds"] is word for claim in record["verdict"]) for word in (True, False, None)]
        minutes = f"{record['seconds'] / 60:.1f}"
        claim = record["claim"] if name == record["experiment"] else "The same on other text"
        rows.append(f"| [{name}]({name}/README.md) | {claim} | {' | '.join(map(str, counts))} | {minutes} |")
    own = [record["seconds"] for name, record in found.items() if name in EXPERIMENTS]
    total = f"The laboratory's own {len(own)} experiments took {sum(own) / 3600:.1f} hours together."
    return "\n\n".join([HEAD, "\n".join(rows), total, FOOT]) + "\n"


def page(name: str, record: dict[str, Any]) -> str:
    """``NAME/README.md``, one experiment: its verdict and its figures."""
    experiment = record["experiment"]
    options = {"config": "CONFIG", "run": "RUN"}
    given = "".join(f" --{option} {value}" for option, value in options.items() if record[option])
    method = "" if name == experiment else f"; claim and method: [{experiment}](../{experiment}/README.md)"
    claim = f"{record['claim']}.\n\n" if name == experiment else ""
    head = f"# {name}\n\n{claim}`dragoman lab {experiment}{given}`; [numbers.json](numbers.json); "
    head += f"[limits](../README.md){method}."
    verdict = "\n".join(
        f"- *{WORDS[claim['holds']]}*: {claim['text']}: {claim['figures']}" for claim in record["verdict"]
    )
    sections = record["sections"] if name == experiment else without_repeats(record["sections"], experiment)
    return "\n\n".join([head, verdict, *(block for section in sections for block in blocks(section))]) + "\n"


def without_repeats(sections: list[dict[str, Any]], experiment: str) -> list[dict[str, Any]]:
    """Return sections of a run on other text without the sentences that the experiment's own page has."""
    own = json.loads((HERE / experiment / "numbers.json").read_text(encoding="utf-8"))["sections"]
    told = {sentence for section in own for text in (*section["texts"], section["caption"]) for sentence in split(text)}

    def new(text: str) -> str:
        return " ".join(sentence for sentence in split(text) if sentence not in told)

    return [
        {**section, "texts": list(filter(None, map(new, section["texts"]))), "caption": new(section["caption"])}
        for section in sections
        if section["heading"] not in ONCE
    ]


def split(text: str) -> list[str]:
    """Return the sentences of a paragraph."""
    return re.split(r"(?<=\.) (?=[A-Z`])", text)


def blocks(section: dict[str, Any]) -> list[str]:
    """The blocks of a section of a report: heading, paragraphs, figure, table, caption."""
    heading, caption, table = section["heading"], section["caption"], section["table"]
    parts = [f"## {heading}"] if heading else []
    parts += section["texts"]
    if section["figure"]:
        parts.append(f"![{heading or caption}]({section['figure']})")
    parts += [f"*{caption}*"] if caption and section["figure"] else []
    if table:
        rule = ["---" if kind == "text" else "--:" for kind in table["kinds"]]
        rows = [table["columns"], rule, *([cell.replace("|", "\\|") for cell in row] for row in table["rows"])]
        parts.append("\n".join(f"| {' | '.join(row)} |" for row in rows))
    return [*parts, f"*{caption}*"] if caption and table and not section["figure"] else parts


def main() -> None:
    """Publish reports and write the pages."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "reports", nargs="*", metavar="REPORT[:SUFFIX]", help="such as lab, or lab-multi30k:-multi30k for other text"
    )
    parser.add_argument("--restate", action="store_true", help="verdicts and figures anew from the numbers in docs/lab")
    args = parser.parse_args()
    for given in args.reports:
        report, _, suffix = given.partition(":")
        print(f"{report}: {', '.join(publish(Path(report), HERE, suffix)) or 'nothing'}")
    for path in sorted(HERE.glob("*/numbers.json")) if args.restate else ():
        restate(path.parent)
    (HERE / "README.md").write_text(index(HERE), encoding="utf-8")
    for name, record in found_in(HERE).items():
        (HERE / name / "README.md").write_text(page(name, record), encoding="utf-8")


if __name__ == "__main__":
    main()
