"""The test of the ready bundles, written down before they were trained.

    python -m benchmarks.ready.frozen --data DATA

100 sentences, in ``tatoeba.en``: of the unique lines of ``tatoeba-en-de/dev.en`` and then of ``tatoeba-en-zh/dev.en``,
sorted, 50 each, by ``random.Random(2026).sample``. 20 sentences of a lecture, in ``lecture.en``, were written for this
test. ``SUMS`` holds the SHA-256 of all four files; a test checks those of the package.

The sentences of ``tatoeba.en`` are from tatoeba.org, licence CC BY 2.0 FR.
"""

from __future__ import annotations

import argparse
import hashlib
import random
from pathlib import Path

FOLDER = Path(__file__).parent
SEED, N_EACH = 2026, 50
SUMS = {
    "tatoeba-en-de/dev.en": "e2fd4a701f000755d47f2549c35b8e57a6f877f9867fad9423c18b12fd890486",
    "tatoeba-en-zh/dev.en": "a56b5f47c66a20922c0fc7eb105752182c275753eb1b652ddea806cefe7dc55b",
    "tatoeba.en": "9454f0c8c7a1d9a8f437843123ddedd08963ef480499579b054227dd17b764ff",
    "lecture.en": "79f2292dccb0fbadfc9fcd94cc2f71ce799ad2cfed5266837b00ad45eed3ac15",
}


def lines(path: Path) -> list[str]:
    """Return the lines of a file; a line ends at LF only."""
    return path.read_text(encoding="utf-8").split("\n")[:-1]


def sha256(path: Path) -> str:
    """Return the SHA-256 of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def drawn(data: Path) -> list[str]:
    """Return the sentences that the rule draws."""
    draw = random.Random(SEED)
    sources = (data / f"tatoeba-en-{language}/dev.en" for language in ("de", "zh"))
    return [sentence for source in sources for sentence in draw.sample(sorted(set(lines(source))), N_EACH)]


def main() -> None:
    """Draw the sentences again and compare all four files with their sums."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="Folder of tatoeba-en-de and tatoeba-en-zh.")
    data = parser.parse_args().data
    (FOLDER / "tatoeba.en").write_text("".join(line + "\n" for line in drawn(data)), encoding="utf-8")
    for name, right in SUMS.items():
        actual = sha256((data if "/" in name else FOLDER) / name)
        print(f"{name}: {actual} {'as written down' if actual == right else 'CHANGED'}")


if __name__ == "__main__":
    main()
