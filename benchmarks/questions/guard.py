"""What does the guard see, mend and leave? On a clean test set, and on 1,000 lines unlike any in training."""

from __future__ import annotations

import argparse
import random
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.record import save
from dragoman.data.corpus import read_lines
from dragoman.translation.faults import is_loop, without_runs
from dragoman.translation.translator import Translation, Translator

NOISY = 1000
EMOJI = "🙂🙃😀😎😴🤖👍🎉🚲🐕🐈🌍🔥❤️👩‍👩‍👧🏳️‍🌈"
SIGNS = "!?.,;:-_()[]{}<>/\\|@#$%^&*+=~`'\"€§°…–—«»"


def noisy_lines(data: Path, count: int, seed: int = 0) -> list[tuple[str, str]]:
    """Lines of eleven kinds, equally many of each, with the name of the kind; the same for the same arguments."""
    chance = random.Random(seed)
    clean = list(read_lines(data / "multi30k/test_2016_flickr.en"))
    talk = list(read_lines(data / "tatoeba-en-de/dev.en"))
    words = sorted({word.strip(".,!?\"'") for line in clean + talk for word in line.split()} - {""})
    texts = {
        "python documentation": list(read_lines(data / "pydocs-en-zh/dev.en")),
        "legal text": list(read_lines(data / "justice-en-fr/dev.en")),
        "naughty strings": [line for line in read_lines(data / "torture/blns.txt") if not line.startswith("#")],
        "target language": list(read_lines(data / "multi30k/test_2016_flickr.de")),
        "capitals": [line.upper() for line in clean],
        "one word": words,
    }

    def made(kind: str) -> Iterator[str]:
        """Lines without end: drawn from texts, or made up."""
        while True:
            if kind in texts:
                yield chance.choice(texts[kind])
            elif kind == "repeated words":
                phrase = " ".join(chance.choices(words, k=chance.randint(1, 4)))
                yield " ".join([phrase] * chance.randint(5, 60))
            elif kind == "random characters":
                letters = "".join(chr(chance.randrange(0x21, 0x2FFF)) for _ in range(8)) + "abcdefghijklmnop     "
                yield "".join(chance.choices(letters, k=chance.randint(3, 150)))
            elif kind == "emoji":
                about = chance.choice(clean).split()[: chance.choice([0, 0, 3, 6])]
                yield " ".join([*about, "".join(chance.choices(EMOJI, k=chance.randint(1, 25)))])
            elif kind == "digits and signs":
                yield "".join(chance.choices("0123456789 " + SIGNS, k=chance.randint(1, 80)))
            elif kind == "very long":
                parts = chance.choices(talk + clean, k=chance.randint(15, 60))
                yield " ".join(part.strip(".!? ") for part in parts)

    kinds = [*texts, "repeated words", "random characters", "emoji", "digits and signs", "very long"]
    lines: list[tuple[str, str]] = []
    for i, kind in enumerate(kinds):
        wanted = (count * (i + 1)) // len(kinds) - (count * i) // len(kinds)
        usable = (line for line in made(kind) if line.strip() and "\0" not in line)
        lines += [(kind, next(usable)) for _ in range(wanted)]
    chance.shuffle(lines)
    return lines


def count_faults(sources: Sequence[str], found: Sequence[Translation]) -> dict[str, Any]:
    """What the notes tell, and, counted anew from the texts, what loops and what is empty."""
    seen = [{note.kind for note in translation.notes} for translation in found]
    left = [{note.kind for note in translation.notes if note.left} for translation in found]
    return {
        "lines": len(found),
        "lines_with_an_alarm": sum(map(bool, seen)),
        "alarms": dict(Counter(kind for kinds in seen for kind in kinds)),
        "lines_repaired": sum(bool(kinds) and not rest for kinds, rest in zip(seen, left, strict=True)),
        "left_and_said": dict(Counter(kind for kinds in left for kind in kinds)),
        "loops_in_the_output": sum(
            without_runs(src, t.text) != t.text if t.n_parts > 1 else is_loop(src, t.text)  # parts may be alike
            for src, t in zip(sources, found, strict=True)
        ),
        "empty_outputs": sum(bool(src.strip()) and not t.text.strip() for src, t in zip(sources, found, strict=True)),
    }


def main() -> None:
    """Translate both, and count what the notes say and what is left in the texts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--run", type=Path, required=True, help="a trained run from English")
    parser.add_argument("--data", type=Path, required=True, help="the folder with multi30k, tatoeba-en-de, and so on")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--beam-size", type=int, help="instead of the run's")
    args = parser.parse_args()
    translator = Translator.load(args.run, args.device)
    clean = list(read_lines(args.data / "multi30k/test_2016_flickr.en"))
    noisy = noisy_lines(args.data, NOISY)
    beam_size = args.beam_size or translator.config.decode.beam_size
    figures: dict[str, Any] = {"beam_size": beam_size}
    for name, sources in (("clean", clean), ("noisy", [text for _, text in noisy])):
        started = time.perf_counter()
        found = translator.translate(sources, beam_size=beam_size)
        figures[name] = count_faults(sources, found) | {"seconds": round(time.perf_counter() - started, 1)}
        if name == "clean":
            figures[name]["share_with_an_alarm"] = figures[name]["lines_with_an_alarm"] / len(sources)
        else:
            lines = Counter(kind for kind, _ in noisy)
            alarms = Counter(kind for (kind, _), t in zip(noisy, found, strict=True) if t.notes)
            figures[name]["alarms_by_kind_of_line"] = {kind: f"{alarms[kind]} of {n}" for kind, n in lines.items()}
    save("guard", figures, "python -m benchmarks.questions.guard --run RUN --data DATA", ("torch", "sentencepiece"))


if __name__ == "__main__":
    main()
