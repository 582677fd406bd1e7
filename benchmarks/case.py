"""What capitals and Title Case cost: a test set as it is, in CAPITALS and With Capitals.

    python -m benchmarks.case before --run RUN --src test.en --ref test.de

``before`` is without a second reading (``truecase=False``). Scores without case, too: what is translated into capitals
has other letters than its reference, and the same words. Lines
of one word in capitals, most of them names, must come out as they do without a second reading.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from benchmarks.scripts_record import record
from dragoman.data.corpus import read_lines
from dragoman.data.noise import titled
from dragoman.evaluation.metrics import bleu
from dragoman.translation.translator import Translator

NAMES = (
    "USA", "NATO", "OK", "EU", "UNESCO", "IBM", "BMW", "NASA", "FBI", "DVD", "HTML", "UNO", "BBC", "AC/DC", "A", "I",
    "USA!", "OK.", "WHO?", "NATO:", "3D", "MP3", "H2O", "COVID-19", "A4", "S.O.S.", "R&B", "PS", "TV", "FC",
)  # fmt: skip
"""Lines of one word in capitals."""

DRESSES = {"plain": str, "Title Case": titled, "CAPITALS": str.upper}


def main() -> None:
    """Translate and record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("when", choices=["before", "after"])
    for name in ("run", "src", "ref"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--lines", type=int, help="number of lines of the test set; all if not given")
    arguments = parser.parse_args()
    translator = Translator.load(arguments.run, "cpu")
    sources, references = (list(read_lines(path))[: arguments.lines] for path in (arguments.src, arguments.ref))
    figures: dict[str, Any] = {"lines": len(sources)}
    truecase = arguments.when == "after"
    for name, dress in DRESSES.items():
        translations = translator.translate([dress(text) for text in sources], truecase=truecase)
        hyps, lang = [translation.text for translation in translations], translator.config.data.tgt_lang
        capitals = [text.upper() for text in references]
        figures[name] = {
            "BLEU": round(bleu(hyps, references, lang).value, 2),
            "BLEU without case": round(bleu(hyps, references, lang, lowercase=True).value, 2),
            "BLEU against references in capitals": round(bleu(hyps, capitals, lang).value, 2),
            "lines with a note on a fault": sum(bool(translation.notes) for translation in translations),
            "examples": list(zip([dress(text) for text in sources[:3]], hyps[:3], strict=True)),
        }
    figures["names"] = {name: str(translator.translate(name, truecase=truecase)) for name in NAMES}
    record(
        "case",
        arguments.when,
        figures,
        {"rule": "the test set of Multi30k, test_2016_flickr (CC BY-NC-SA 4.0)"},
    )
    print(json.dumps(figures, indent=2, ensure_ascii=False))


if __name__ == "__main__":
    main()
