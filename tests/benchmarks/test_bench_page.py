"""docs/results/performance.md says what the results say, and nothing else."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from benchmarks import page
from benchmarks.harness import plots
from benchmarks.harness.costs_of_sizes import OF_A_CORPUS
from benchmarks.harness.environments import ROOT
from benchmarks.record import RESULTS, spread

MACHINE = {"cpu": "a processor", "cores": 2, "memory_gib": 16.0, "system": "Linux", "preloaded": "another.so"}
VERSIONS = {"versions": {"torch": "2.13"}}


def around(value: float) -> dict[str, float]:
    return spread([0.9 * value, value, 1.2 * value])


def training() -> dict[str, Any]:
    speeds = {"dragoman bf16": 8203.0, "dragoman fp32": 3000.0, "Hugging Face Marian fp32": 2400.0}
    systems = {name: {"tokens_per_s": around(v), "peak_mib": around(900), **VERSIONS} for name, v in speeds.items()}
    ratios = {"dragoman bf16 / Hugging Face Marian fp32": around(3.42)}
    return {"what": "12 batches", "corpus": "a corpus", "presets": {"small": {"systems": systems, "ratios": ratios}}}


def decoding(trained: bool) -> dict[str, Any]:
    at = {"workers": 2, "threads": 1, "batch": 4096}
    speeds = {"dragoman fp32": 210.0, "CTranslate2 int8": 390.0}
    systems: dict[str, Any] = {
        name: {"sentences_per_s": around(v), "peak_mib": around(500), "setting": at, **VERSIONS}
        for name, v in speeds.items()
    }
    for number, one in enumerate(systems.values()):
        one["tokens_per_s"] = around(5000)
        one |= {"bleu": 33.7 + number, "identical_percent": 100.0 - number} if trained else {}
    return {
        "weights": "trained" if trained else "random", "sentences": 1000, "beam_size": 5, "length_penalty": 1.0,
        "without_length_penalty": {"CTranslate2 fp32": {"bleu": 33.5, "identical_percent": 99.9}} if trained else {},
        "steps": None if trained else 14, "systems": systems, "log_prob_difference": {"CTranslate2 fp32": 2e-5},
        "ratios": {"dragoman fp32 / CTranslate2 int8": around(0.54)}, "left_out": {"dragoman int8": "it cannot"},
    }  # fmt: skip


def records() -> dict[str, dict[str, Any]]:
    curves = {
        name: {str(v): {"tokens_per_s": around(k * v), "peak_mib": around(v)} for v in (1000, 4000)}
        for k, name in enumerate(("dragoman fp32", "dragoman bf16", "torch.nn.Transformer fp32"), 1)
    }
    batch = {"dragoman fp32": {str(v): {"sentences_per_s": around(9.0 * v), "batch_ms": around(v)} for v in (1, 16)}}
    growing = {"size": [256, 512], "seconds": [0.1, 0.41], "mib": [1.0, 2.0]}
    fit = {"last_three": {"exponent": 2.04, "off_percent": 3.0, "points": 2}, "all": None}
    return {
        "training": training(),
        "loop": {
            "what": "small", "corpus": "a corpus", "ratios": {"dragoman train / bare step": around(0.957)},
            "systems": {"dragoman train": {"tokens_per_s": around(7000), "peak_mib": around(800),
                                           "memory_growth_percent": around(1.5)}},
        },
        "decoding": {"corpus": "a corpus", "presets": {"small": decoding(True), "base": decoding(False)}},
        "latency": {
            "what": "50 sentences", "weights": "trained", "corpus": "a corpus",
            "systems": {"dragoman fp32": {key: around(31) for key in ("ms", "p10_ms", "p90_ms", "peak_mib")}},
        },
        "long": {"what": "sources of 64 subwords", "corpus": "a corpus", **decoding(False)},
        "minutes": {
            "what": "a recipe", "corpus": "a corpus", "minutes_to_bleu": {"36": 8.04, "39.1": None},
            "runs": [{"minutes": 8.04, "updates": 1500, "dropout": 0.1, "scores": {"BLEU": 36.51, "chrF2": 60.2}}],
        },
        "roofline": {
            "corpus": "a corpus", "left_out": {},
            "products": [
                {"rows": m, "inner": 512, "columns": 2048, "gflop_per_s": {"fp32": around(m)}} for m in (4, 64)
            ],
            "training_steps": {"base bf16": {"gflop_per_s": around(600), "peak_gflop_per_s": 2078.0,
                                             "percent_of_peak": 28.9}},
        },
        "sweep_batch": {"what": "small", "corpus": "a corpus", "systems": batch},
        "sweep_vocabulary": {"what": "small", "corpus": "a corpus", "systems": curves},
        "growth": {
            "length": {"attention": {"fused_fp32": {**growing, "growth": {"seconds": fit, "mib": fit}},
                                     "plain_fp32": {"no_memory": [256, 512], "growth": {}}},
                       "left_out": {"bf16": "none here"}},
            "corpus": {"size": [10_000, 10_000_000], "growth": {"prepare_seconds": fit},
                       **{key: [0.5, 2000.0] for keys in OF_A_CORPUS.values() for key in keys}},
        },
    }  # fmt: skip


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("results")
    for name, figures in records().items():
        record = {"name": name, "command": f"make bench NAME={name}", "date": "2026-01-01", "machine": MACHINE,
                  "versions": {"python": "3.11"}, "figures": figures}  # fmt: skip
        (folder / f"{name}.json").write_text(json.dumps(record), encoding="utf-8")
    return folder


def test_the_page_tells_the_figures(results: Path) -> None:
    text = page.page(results).text
    for said in (
        "| dragoman bf16 | 8,203 (7,383-9,844); 900 |", "| 3.42 (3.08-4.10) |", "reaches 95.7% of the bare step",
        "| CTranslate2 int8 | 390 (351-468) |", "| CTranslate2 int8 | 0.54 (0.49-0.65) |",
        "BLEU is 33.70 to 34.70; at least 99% of translations", "| CTranslate2 int8 | 2 x 1, 4,096; 500 |",
        "of given translations agree to 2e-05 nats.", "random weights, 14 steps",
        "BLEU 36: 8.04 minutes; BLEU 39.1: not reached",
        "| fp32 | 64 |", "| BASE bf16 | 600; 28.9 |",
        "| attention fused fp32 against length | 256 to 512 | 0.1 to 0.41 | 2.04 | 1 to 2 | 2.04 |",
        "| preparing against corpus | 10,000 to 10,000,000 | 0.5 to 2,000 | 2.04 | 0.5 to 2,000 |  |",
        "2 cores, a processor, 16.0 GiB.", "Preloaded: another.so.", "Versions: python 3.11, torch 2.13.",
        "Text: a corpus.", "| dragoman fp32 | 9 | 144 |",
    ):  # fmt: skip
        assert said in text, said
    assert len(re.findall(r"^## ", text, flags=re.MULTILINE)) == len(records())
    assert not re.search(r"[ \t]$", text, flags=re.MULTILINE)


def test_what_was_not_measured_has_no_section(tmp_path: Path) -> None:
    assert page.page(tmp_path).text.rstrip("\n") == page.HEAD.rstrip("\n")


def test_results_of_another_machine_have_columns_and_panels_of_their_own(results: Path, tmp_path: Path) -> None:
    (tmp_path / "without-amx").mkdir()
    for name in ("training", "latency"):
        record = json.loads((results / f"{name}.json").read_text(encoding="utf-8"))
        (tmp_path / f"{name}.json").write_text(json.dumps(record), encoding="utf-8")
        record["machine"] = {**MACHINE, "cpu": "another processor"}
        systems = record["figures"].get("systems") or record["figures"]["presets"]["small"]["systems"]
        for values in systems["dragoman fp32"].values():
            values |= {key: 2 * value for key, value in values.items() if key in ("median", "min", "max")}
        (tmp_path / "without-amx" / f"{name}.json").write_text(json.dumps(record), encoding="utf-8")
    both = page.page(tmp_path)
    for row in (
        "| SMALL: target tokens/s; peak MiB | AMX | no bf16 |",
        "| dragoman fp32 | 3,000 (2,700-3,600); 900 | 6,000 (5,400-7,200); 1,800 |",
        "| median ms; slowest tenth; peak MiB | AMX | no bf16 |",
        "| dragoman fp32 | 31 (27.9-37.2); 31; 31 | 62 (55.8-74.4); 62; 62 |",
        "| SMALL: dragoman at its fastest, times the speed of | bf16, AMX | bf16, no bf16 |",
        "| Hugging Face Marian fp32 | 3.42 (3.08-4.10) | 3.42 (3.08-4.10) |",
    ):  # fmt: skip
        assert row in both.text, row
    assert re.findall(r"^- \*([^*]+)\*: .*2 cores, (.*?), 16", both.text, flags=re.MULTILINE) == [
        ("AMX", "a processor"), ("no bf16", "another processor"),
    ]  # fmt: skip
    [(name, draw)] = both.sections[0].draw
    draw(path=tmp_path / name)
    drawn = (tmp_path / name).read_text(encoding="utf-8")
    assert ">SMALL, AMX<" in drawn
    assert ">SMALL, no bf16<" in drawn


def test_what_is_gone_stays_in_the_records_alone(results: Path, tmp_path: Path) -> None:
    record = json.loads((results / "decoding.json").read_text(encoding="utf-8"))
    small = record["figures"]["presets"]["small"]
    small["systems"]["dragoman int8"] = small["systems"]["dragoman fp32"] | {"bleu": 1.0}
    tried = [{"batch": batch, "workers": 1} for batch in (1024, 4096)]
    small["sweeps"] = {"dragoman int8": tried, "dragoman fp32": tried}
    (tmp_path / "decoding.json").write_text(json.dumps(record), encoding="utf-8")
    text = page.page(tmp_path).text
    assert "\n| dragoman int8 |" not in text
    assert "BLEU is 33.70" in text
    assert "largest one tried for dragoman fp32.\n" in text
    assert "Tried in a single process only: dragoman fp32.\n" in text


def test_every_plot_is_drawn_and_named_in_the_page(results: Path, tmp_path: Path) -> None:
    drawn = [(name, draw, section.text) for section in page.page(results).sections for name, draw in section.draw]
    assert len(drawn) == 8
    for name, draw, text in drawn:
        assert f"](../images/{name})" in text
        draw(path=tmp_path / name)
        assert (tmp_path / name).read_text(encoding="utf-8").rstrip().endswith("</svg>")
    first = (tmp_path / drawn[0][0]).read_bytes()
    drawn[0][1](path=tmp_path / "again.svg")
    assert (tmp_path / "again.svg").read_bytes() == first


def test_numbers_have_three_digits() -> None:
    assert [plots.number(x) for x in (8203.4, 27.41, 0.523, 100.2, 9.0)] == ["8,203", "27.4", "0.523", "100", "9"]
    assert page.spread(spread([3.0])) == "3"


def test_the_page_in_docs_is_that_of_the_results() -> None:
    made = page.page(RESULTS)
    assert [path.stem for path in (ROOT / "docs/results").glob("performance*.md")] == ["performance"]
    assert (ROOT / "docs/results/performance.md").read_text(encoding="utf-8") == made.text, "python -m benchmarks.page"
    drawn = {name for section in made.sections for name, _ in section.draw}
    there = {path.name for path in (ROOT / "docs/images").glob("performance-*.svg")}
    assert drawn == {name for name in there if not name.endswith(".zh-CN.svg")}, "python -m benchmarks.page"


def test_the_performance_table_of_the_results_is_of_that_page() -> None:
    measured = set(re.findall(r"\d[\d,.]*\d|\d", (ROOT / "docs/results/performance.md").read_text(encoding="utf-8")))
    for name in ("docs/results/index.md", "docs/zh/results/index.md"):
        text = (ROOT / name).read_text(encoding="utf-8")
        assert "<!-- docs/results/performance.md -->" in text
        for table in re.findall(r"<!-- docs/results/performance.md -->\n(.*?)\n\n", text, flags=re.DOTALL):
            figures = [cell for row in table.split("\n")[2:] for cell in row.strip("| ").split(" | ")[1:]]
            assert figures
            for figure in re.findall(r"\d[\d,.]*\d|\d", " ".join(figures)):
                assert figure in measured, f"{name}: {figure} is not in docs/results/performance.md"
