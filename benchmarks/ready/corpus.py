"""The training text of the ready bundles: Tatoeba's pairs, cleaned, without those that resemble a test or dev sentence.

    python -m benchmarks.ready.corpus --data DATA --out FOLDER

Chinese is written in simplified characters (OpenCC's ``t2s``; ``pip install opencc``). A pair goes if

- a side has no letter, more than 40 words or 60 Chinese characters, or a script that is not its language's;
- one side is more than three times as long as usual for the other;
- it stands there already, but for case, punctuation and white space;
- its source or its target, read that way, is in dev or in the frozen test: either corpus's dev, both sides.

``all.*`` has these pairs, and some of the short ones again without their last mark: people type words and headings too.
``valid.*`` are 500 pairs of the corpus's dev set whose source is not in the frozen test, by ``random.Random(7)``.
"""

from __future__ import annotations

import argparse
import random
import unicodedata
from collections.abc import Callable
from pathlib import Path

from benchmarks.ready.frozen import FOLDER, lines

N_VALID = 500
N_SHORT = {"de": 30_000, "zh": 8_000}
"""Number of pairs that come again without their last mark."""
SHORT_WORDS = 6
MARKS = ".!?。！？"
QUOTES = str.maketrans({"’": "'", "‘": "'", "“": '"', "”": '"', "\u00a0": " ", "\u202f": " ", "…": "..."})
WIDE = str.maketrans({",": "，", "?": "？", "!": "！", ":": "：", ";": "；", "(": "（", ")": "）"})  # fmt: skip


def key(text: str) -> str:
    """Return the letters and digits of a text, in lower case."""
    return "".join(c for c in unicodedata.normalize("NFKC", text).casefold() if c.isalnum())


def is_latin(text: str) -> bool:
    """True if all letters are Latin and there is one."""
    letters = [c for c in text if c.isalpha()]
    return bool(letters) and all("LATIN" in unicodedata.name(c, "") for c in letters)


def is_chinese(text: str) -> bool:
    """True if most letters are Chinese characters."""
    letters = [c for c in text if c.isalpha()]
    n_han = sum("CJK UNIFIED" in unicodedata.name(c, "") for c in letters)
    return n_han > len(letters) / 2


def clean_latin(text: str) -> str:
    """Return a Latin text with plain quotes and single spaces."""
    return " ".join(text.translate(QUOTES).split())


def clean_german(text: str) -> str:
    """Return a German text with its quotes made plain as well."""
    return clean_latin(text.translate(str.maketrans({"„": '"', "»": '"', "«": '"', "‚": "'"})))


def chinese_cleaner() -> Callable[[str], str]:
    """Return a function that writes Chinese in simplified characters, with Chinese punctuation and no spaces."""
    import opencc

    converter = opencc.OpenCC("t2s")

    def clean(text: str) -> str:
        simple = converter.convert(text.translate(QUOTES)).replace("...", "……")
        simple = simple.translate(WIDE) if is_chinese(simple) else simple
        simple = simple[:-1] + "。" if simple.endswith(".") else simple
        return simple if is_latin(simple) else "".join(simple.split())

    return clean


def pairs_of(folder: Path, name: str, language: str, clean: Callable[[str], str]) -> list[tuple[str, str]]:
    """Return the cleaned pairs of a file pair."""
    src, tgt = lines(folder / f"{name}.en"), lines(folder / f"{name}.{language}")
    return [(clean_latin(a), clean(b)) for a, b in zip(src, tgt, strict=True)]


def fits(source: str, target: str, language: str) -> bool:
    """True if a pair's scripts and lengths are usual."""
    if not is_latin(source) or not (is_latin(target) if language == "de" else is_chinese(target)):
        return False
    n_src, n_tgt = len(source), len(target) * (1.0 if language == "de" else 3.2)
    too_long = len(source.split()) > 40 or len(target.split()) > 40 or (language == "zh" and len(target) > 60)
    return not too_long and n_tgt < 3 * n_src + 10 and n_src < 3 * n_tgt + 10


def without_marks(pairs: list[tuple[str, str]], language: str) -> list[tuple[str, str]]:
    """Return some of the short pairs that end in a mark on both sides, without it."""
    short = [p for p in pairs if len(p[0].split()) <= SHORT_WORDS and p[0][-1] in MARKS and p[1][-1] in MARKS]
    random.Random(7).shuffle(short)
    return [(a.rstrip(MARKS).rstrip(), b.rstrip(MARKS).rstrip()) for a, b in short[: N_SHORT[language]]]


def main() -> None:
    """Write ``FOLDER/en-de`` and ``FOLDER/en-zh``: train, all and valid."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="Folder of tatoeba-en-de and tatoeba-en-zh.")
    parser.add_argument("--out", type=Path, required=True, help="Folder to write.")
    options = parser.parse_args()
    cleaners = {"de": clean_german, "zh": chinese_cleaner()}
    dev = {name: pairs_of(options.data / f"tatoeba-en-{name}", "dev", name, cleaners[name]) for name in cleaners}
    frozen = {key(line) for name in ("tatoeba.en", "lecture.en") for line in lines(FOLDER / name)}
    closed = frozen | {key(side) for pairs in dev.values() for pair in pairs for side in pair}
    for language, clean in cleaners.items():
        pairs = pairs_of(options.data / f"tatoeba-en-{language}", "train", language, clean)
        usual = [pair for pair in pairs if fits(*pair, language)]
        open_pairs = [pair for pair in usual if not closed.intersection(map(key, pair))]
        unique = {(key(a) + a[-1:], key(b) + b[-1:]): (a, b) for a, b in open_pairs}
        valid = random.Random(7).sample([pair for pair in dev[language] if key(pair[0]) not in frozen], N_VALID)
        folder = options.out / f"en-{language}"
        folder.mkdir(parents=True, exist_ok=True)
        train = list(unique.values())
        for name, chosen in (("train", train), ("all", train + without_marks(train, language)), ("valid", valid)):
            for side, ending in enumerate(("en", language)):
                text = "".join(pair[side] + "\n" for pair in chosen)
                (folder / f"{name}.{ending}").write_text(text, encoding="utf-8")
        print(f"en-{language}: {len(pairs):,} pairs, {len(usual):,} usual, {len(open_pairs):,} not in dev or test, "
              f"{len(unique):,} different; {len(valid)} for validation")  # fmt: skip


if __name__ == "__main__":
    main()
