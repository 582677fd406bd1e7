"""How many scripts does each function of the product cut words of? See ``tests/word_functions.py``."""

from __future__ import annotations

import argparse
import datetime
import hashlib
import importlib.metadata
import importlib.util
import json
import sys
from pathlib import Path
from typing import Any

from benchmarks.record import RESULTS, machine

ROOT = Path(__file__).parent.parent.parent
sys.path[:0] = [str(ROOT / "tests")]

import script_texts  # noqa: E402
from word_functions import CLUSTERS_ONLY, FUNCTIONS  # noqa: E402

RECORD = RESULTS / "scripts" / "words.json"


def clusters_of_another_judge(word: str) -> set[int]:
    """Return the places inside the grapheme clusters of a word as uniseg finds them."""
    from uniseg.graphemecluster import grapheme_cluster_boundaries

    return set(range(1, len(word))) - set(grapheme_cluster_boundaries(word))


def cut_scripts(with_uniseg: bool) -> dict[str, Any]:
    """Return for each function the number of scripts in which it cuts a word, and how many words it cuts."""
    words = script_texts.words_by_script()
    figures: dict[str, Any] = {}
    for name, function in FUNCTIONS.items():
        judge = script_texts.places_inside_clusters if name in CLUSTERS_ONLY else script_texts.places_inside
        scripts, n_words, n_uniseg = set(), 0, 0
        for script, some in words.items():
            for word in some:
                cuts = function(word)
                if cuts & judge(word):
                    scripts.add(script)
                    n_words += 1
                n_uniseg += bool(with_uniseg and cuts & clusters_of_another_judge(word))
        figures[name] = {"scripts": len(scripts), "words": n_words}
        if with_uniseg:
            figures[name]["words, by uniseg's clusters"] = n_uniseg
    figures["scripts cut by some function"] = max(entry["scripts"] for entry in figures.values())
    return figures


def main() -> None:
    """Measure the code as it is, and write its figures into the record as ``before`` or ``after``."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("when", choices=("before", "after"))
    args = parser.parse_args()
    with_uniseg = importlib.util.find_spec("uniseg") is not None
    words = script_texts.words_by_script()
    record = json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.exists() else {}
    packages = ("babel", "regex", *(["uniseg"] if with_uniseg else []))
    record |= {
        "command": "python -m benchmarks.questions.words_of_scripts before|after",
        "machine": machine(),
        "versions": {package: importlib.metadata.version(package) for package in packages},
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "inputs": {
            "rule": script_texts.__doc__,
            "seed": script_texts.SEED,
            "scripts": len(words),
            "words": sum(map(len, words.values())),
            "sha256": hashlib.sha256(json.dumps(words, sort_keys=True).encode()).hexdigest(),
            "licence": "names of CLDR, in Babel: Unicode License v3 (single words, not copied)",
        },
        args.when: cut_scripts(with_uniseg),
    }
    RECORD.parent.mkdir(exist_ok=True)
    RECORD.write_text(json.dumps(record, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    print(json.dumps(record[args.when], indent=2, ensure_ascii=False))


if __name__ == "__main__":
    main()
