"""The doctor before training: each kind of damage is put into a clean corpus, and found where it was put."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from dragoman.config import PairOfFiles
from dragoman.data import phrasebook
from dragoman.doctor import findings as findings_module
from dragoman.doctor.diagnosis import TextSets, diagnose_text
from dragoman.doctor.findings import Finding, ranked, report
from dragoman.doctor.kinds import KINDS
from dragoman.doctor.mixture import Part, merge_examinations
from dragoman.doctor.page import corpus_figures
from dragoman.doctor.paired_lines import Pairs, chunks
from dragoman.doctor.repeats import overlap_findings
from dragoman.doctor.text_checks import Examination, examine
from dragoman.errors import DataError
from dragoman.progress import Ticker

Pair = tuple[str, str]


@pytest.fixture(autouse=True)
def all_examples(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep every line number, not the first few."""
    monkeypatch.setattr(findings_module, "N_EXAMPLES", 10_000)


@pytest.fixture(scope="module")
def clean() -> list[Pair]:
    """2,000 different pairs of the embedded corpus."""
    return list(dict.fromkeys(phrasebook.pairs(2000)))


class Found(NamedTuple):
    examination: Examination
    by_name: dict[str, Finding]

    def lines(self, name: str) -> set[int]:
        """Lines, from 0, of a finding."""
        return {line - 1 for line in self.by_name[name].lines} if name in self.by_name else set()


@pytest.fixture
def found(tmp_path: Path) -> Callable[..., Found]:
    """A function that writes pairs and examines them."""

    def run(pairs: list[Pair], src_lang: str = "en", tgt_lang: str = "de") -> Found:
        files = tmp_path / f"x.{src_lang}", tmp_path / f"x.{tgt_lang}"
        for path, side in zip(files, zip(*pairs, strict=True), strict=True):
            path.write_bytes("".join(f"{line}\n" for line in side).encode("utf-8", "surrogateescape"))
        examination = examine(
            PairOfFiles(src=files[0], tgt=files[1], src_lang=src_lang, tgt_lang=tgt_lang), Ticker(quiet=True)
        )
        return Found(examination, {finding.name: finding for finding in examination.findings})

    return run


def chosen(n: int, count: int, seed: int = 0) -> list[int]:
    return sorted(random.Random(seed).sample(range(n), count))


def test_a_clean_corpus_has_no_error_and_no_warning(found: Callable[..., Found], clean: list[Pair]) -> None:
    levels = {finding.level for finding in found(clean).examination.findings}
    assert levels <= {"note"}
    assert not {"misaligned", "shifted", "swapped-sides", "untranslated"} & set(found(clean).by_name)


def test_pairs_that_do_not_belong_together_are_found(found: Callable[..., Found], clean: list[Pair]) -> None:
    pairs, wrong = clean[:], chosen(len(clean), 40)
    for i, j in zip(wrong, wrong[1:] + wrong[:1], strict=True):
        pairs[i] = clean[i][0], clean[j][1]
    lines = found(pairs).lines("misaligned")
    assert len(lines & set(wrong)) >= 0.8 * len(wrong)
    assert len(lines & set(wrong)) >= 0.9 * len(lines)


@pytest.mark.parametrize("side", [0, 1])
def test_lines_that_are_not_translated_yet_are_blank_and_nothing_else(
    found: Callable[..., Found], clean: list[Pair], side: int
) -> None:
    pairs = [(("", tgt), (src, ""))[side] if i % 3 == 0 else (src, tgt) for i, (src, tgt) in enumerate(clean)]
    result = found(pairs)
    assert result.lines("empty") == set(range(0, len(pairs), 3))
    others = {name for name, finding in result.by_name.items() if finding.lines and name != "empty"}
    assert others <= {"final-mark", "case", "near-duplicate"}, result.by_name


@pytest.mark.parametrize("offset", [1, -2])
def test_a_run_of_shifted_lines_is_found_with_its_offset(
    found: Callable[..., Found], clean: list[Pair], offset: int
) -> None:
    first, last = 700, 760
    tgt = [pair[1] for pair in clean]
    tgt[first:last] = list(np.roll(tgt[first:last], offset))
    finding = found([(src, t) for (src, _), t in zip(clean, tgt, strict=True)]).by_name["shifted"]
    assert abs(finding.lines[0] - 1 - first) <= 2
    assert abs(finding.n - (last - first)) <= 4
    assert (
        f"{abs(offset)} line{'s' * (abs(offset) > 1)} further {'down' if offset > 0 else 'up'}" in finding.examples[0]
    )


def test_a_missing_line_is_found_where_the_files_part(tmp_path: Path, clean: list[Pair]) -> None:
    src, tgt = tmp_path / "x.en", tmp_path / "x.de"
    src.write_text("".join(s + "\n" for s, _ in clean), encoding="utf-8")
    tgt.write_text("".join(t + "\n" for i, (_, t) in enumerate(clean) if i != 1200), encoding="utf-8")
    by_name = {
        f.name: f
        for f in examine(PairOfFiles(src=src, tgt=tgt, src_lang="en", tgt_lang="de"), Ticker(quiet=True)).findings
    }
    assert by_name["line-counts"].level == "error"
    part = int(by_name["line-counts"].what.split("near line ")[1].replace(",", ""))
    assert abs(part - 1201) <= 3
    assert by_name["shifted"].level == "error"


def test_swapped_sides_are_found(found: Callable[..., Found], clean: list[Pair]) -> None:
    pairs, wrong = clean[:], chosen(len(clean), 40)
    for i in wrong:
        pairs[i] = pairs[i][::-1]
    lines = found(pairs).lines("swapped-sides")
    assert lines <= set(wrong)
    assert len(lines) >= 0.95 * len(wrong)


def test_files_given_the_wrong_way_round_are_an_error(found: Callable[..., Found], clean: list[Pair]) -> None:
    by_name = found([(tgt, src) for src, tgt in clean]).by_name
    assert by_name["source-is-de"].level == by_name["target-is-en"].level == "error"


def test_copies_are_found_but_not_numbers(found: Callable[..., Found], clean: list[Pair]) -> None:
    pairs, wrong = clean[:], chosen(len(clean), 40)
    for i in wrong:
        pairs[i] = pairs[i][0], pairs[i][0]
    near = next(i for i in range(len(pairs)) if i not in wrong and len(pairs[i][0].split()) > 5)
    pairs[near] = pairs[near][0], pairs[near][0].upper() + " und"
    number = next(i for i in range(len(pairs)) if i not in wrong and i != near)
    pairs[number] = "1998", "1998"
    assert found(pairs).lines("untranslated") == {*wrong, near}


def test_repeated_pairs_and_sides_are_counted_apart(found: Callable[..., Found], clean: list[Pair]) -> None:
    few = clean[:50]  # one of them is above one per cent
    n = len(few)
    extra = [
        few[0],
        few[0],
        (few[1][0].upper(), few[1][1] + " !"),
        (few[2][0], "Etwas anderes."),
        ("Other.", few[3][1]),
    ]
    base, result = found(few), found(few + extra)
    for name, line in (
        ("duplicate", n),
        ("near-duplicate", n + 2),
        ("source-repeated", n + 3),
        ("target-repeated", n + 4),
    ):
        assert result.lines(name) - base.lines(name) == ({n, n + 1} if name == "duplicate" else {line})
    assert result.by_name["duplicate"].examples == ("repeats line 1", "repeats line 1")


def test_scripts(found: Callable[..., Found]) -> None:
    pairs = [
        ("A plain line.", "Eine schlichte Zeile."),
        ("Русский текст здесь.", "Eine Zeile."),
        ("Words.", "中文句子在这里。"),
    ]
    result = found(pairs * 3)
    assert result.lines("source-script") == {1, 4, 7}
    assert result.lines("target-script") == {2, 5, 8}
    chinese = found(
        [("The `range` function", "range 函数"), ("Not translated", "Not translated at all")] * 2, tgt_lang="zh"
    )
    assert chinese.lines("target-script") == {1, 3}


def test_a_third_language_is_found(found: Callable[..., Found], clean: list[Pair]) -> None:
    pairs = clean[:]
    pairs[17] = pairs[17][0], "Le chat est dans la maison avec les enfants."
    result = found(pairs)
    assert result.lines("target-language") == {17}
    assert result.by_name["target-language"].examples[0].startswith("fr? Le chat")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("control", "a\x07 bell"),
        ("control", "a\u2028 separator"),
        ("control", "a\r return inside"),
        ("replacement", "lost \ufffd"),
        ("mojibake", "schÃ¶n und groÃŸ"),
        ("mojibake", "â€œquotedâ€\x9d"),
        ("mojibake", "\u00d0\u009f\u00d1\u20ac\u00d0\u00b8\u00d0\u00b2\u00d0\u00b5\u00d1\u201a"),
        ("entity", "rock &amp; roll &#39;n"),
        ("no-break-space", "9\u202f%"),
        ("invisible", "so \u200bbig"),
        ("invisible", "wahr\u00adscheinlich"),
        ("not-utf8", "gr\udcfcn"),
        ("nul", "a\0b"),
        ("carriage-return", "eine Zeile\r"),
        ("empty", "  "),
    ],
)
def test_odd_characters_are_found_and_only_they(found: Callable[..., Found], name: str, text: str) -> None:
    ordinary = [("An Ångström of Âge, AT&T and R&D", "„Ich vergaß“, sagte der Tor – œuvre & Co; na so was…")] * 3
    before = found(ordinary)
    assert name not in before.by_name
    result = found([*ordinary, ("A line.", text)])
    assert result.lines(name) == {3}
    odd = set(result.by_name) - set(before.by_name) - {name, "final-mark", "length-ratio", "target-script", "control"}
    assert not odd - ({"replacement"} if name in ("not-utf8", "nul") else set())


@pytest.mark.parametrize(
    ("lang", "text"),
    [
        ("km", "ខ្ញុំ\u200bទៅ\u200bផ្សារ"),
        ("th", "ฉัน\u200bไป\u200bตลาด"),
        ("he", "\u200fשלום\u200f, \u202aABC\u202c"),
        ("ar", "مرحبا \u2066ABC\u2069\u200e"),
    ],
)
def test_invisible_characters_of_a_writing_are_no_fault_of_its_side_alone(
    found: Callable[..., Found], lang: str, text: str
) -> None:
    assert "invisible" not in found([("A line here.", f"{text} {i}") for i in range(5)], tgt_lang=lang).by_name
    result = found([(f"A {text}.", f"{text} {i}") for i in range(5)], tgt_lang=lang)
    assert result.by_name["invisible"].n == 5
    assert {Path(place.file).name for place in result.by_name["invisible"].places} == {"x.en"}


def test_a_byte_order_mark_is_noted(found: Callable[..., Found]) -> None:
    assert found([("\ufeffA line.", "Eine Zeile."), ("b", "c")]).by_name["byte-order-mark"].level == "note"


def test_right_portuguese_is_no_other_language(found: Callable[..., Found]) -> None:
    lines = [f"O gato {i} viu o dono." if i % 2 else f"O carro {i} foi para o centro." for i in range(200)]
    result = found([("A line here.", line) for line in lines], tgt_lang="pt")
    assert not {"target-is-tr", "target-language"} & set(result.by_name)


def test_unlike_lengths_marks_and_case(found: Callable[..., Found], clean: list[Pair]) -> None:
    pairs = clean[:200]
    pairs[5] = "Yes.", "Ja, und dann ging er noch lange durch den Wald, bis er an ein Haus kam, in dem Licht brannte."
    pairs[7] = "We go home?", "Wir gehen heim."
    pairs[9] = "WE GO HOME", "Wir gehen heim"
    result = found(pairs)
    assert result.lines("length-ratio") == {5}
    assert result.lines("final-mark") == {7}
    assert result.lines("case") == {9}


def test_a_side_that_is_written_without_final_marks_is_fit_to_train(
    found: Callable[..., Found], clean: list[Pair]
) -> None:
    """Thai and Lao have no full stop; in some subtitles there is none either."""
    result = found([(src, tgt.rstrip(".?! ")) for src, tgt in clean], tgt_lang="th")
    assert len(result.lines("final-mark")) > 0.8 * len(clean)
    assert result.by_name["final-mark"].level == "note"
    half = found([(src, tgt.rstrip(".?! ") if i % 2 else tgt) for i, (src, tgt) in enumerate(clean)])
    assert half.by_name["final-mark"].level == "warning"


def test_georgian_has_no_capitals_to_miss(found: Callable[..., Found], clean: list[Pair]) -> None:
    letters = dict(zip(map(ord, "abcdefghijklmnopqrstuvwxyzäöüß"), map(chr, range(0x10D0, 0x10F0)), strict=False))
    pairs = [(src, tgt.lower().translate(letters)) for src, tgt in clean]
    assert "lower-case" not in found(pairs, tgt_lang="ka").by_name
    assert "lower-case" in found([(src, tgt.lower()) for src, tgt in clean]).by_name


@pytest.mark.parametrize("lengths", [(1, 2), (1, 2, 3)])
def test_entries_of_a_dictionary_were_not_cut(found: Callable[..., Found], lengths: tuple[int, ...]) -> None:
    chance, pairs = random.Random(1), []
    for n in lengths:
        for _ in range(60 * n**2):
            words = ["".join(chance.choices("abdegiklmnorstu", k=chance.randrange(3, 12))) for _ in range(2 * n)]
            pairs.append((" ".join(words[:n]), " ".join(words[n:])))
    assert "truncated" not in found(pairs).by_name
    cut = [(" ".join(f"w{i * j % 997}" for j in range(1, 40))[: 60 + 3 * (i % 40)], "ein Satz.") for i in range(900)]
    cut = [(src[:100], tgt) for src, tgt in cut]
    assert len(found(cut).lines("truncated")) > 500


@pytest.mark.parametrize("fault", ["subwords", "columns", "entities", "latin-1"])
def test_test_text_with_the_faults_of_the_training_text_is_found_too(
    tmp_path: Path, clean: list[Pair], fault: str
) -> None:
    def spoilt(line: str, number: int) -> str:
        if fault == "subwords":
            return " ".join(f"{word[:2]}@@ {word[2:]}" if len(word) > 2 else word for word in line.split(" "))
        return {"columns": f"{number}\t{line}", "entities": f"&quot;{line}&quot;", "latin-1": f"{line} é"}[fault]

    paths = [tmp_path / name for name in ("train.en", "train.de", "test.en", "test.de")]
    sides = [*zip(*clean[:1000], strict=True), *zip(*clean[200:300], strict=True)]
    for path, side in zip(paths, sides, strict=True):
        first = 1 if path.stem == "train" else 201
        text = "".join(f"{spoilt(line, number)}\n" for number, line in enumerate(side, first))
        path.write_bytes(text.encode("latin-1" if fault == "latin-1" else "utf-8"))
    texts: TextSets = {"train": (PairOfFiles(src=paths[0], tgt=paths[1]),), "test": (
        PairOfFiles(src=paths[2], tgt=paths[3]),)}  # fmt: skip
    by_name = {finding.name: finding for finding in diagnose_text(None, texts, [], None, quiet=True).findings}
    assert by_name["test-overlap-pair"].n == 100


def test_test_text_that_was_trained_on_is_found(tmp_path: Path, clean: list[Pair]) -> None:
    paths = [tmp_path / name for name in ("train.en", "train.de", "test.en", "test.de")]
    train, unseen = clean[:1000], ("Something never seen", "Etwas nie Gesehenes")
    test = [
        unseen,
        train[3],
        (train[4][0].upper(), train[4][1]),
        (train[5][0], "Etwas nie Gesehenes!!"),
        ("?", train[6][1]),
        ("", ""),
    ]
    for path, lines in zip(paths, [*zip(*train, strict=True), *zip(*test, strict=True)], strict=True):
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    known = examine(PairOfFiles(src=paths[0], tgt=paths[1]), Ticker(quiet=True)).digests
    by_name = {f.name: f for f in overlap_findings(known, PairOfFiles(src=paths[2], tgt=paths[3]), "test")}
    lines = {name: finding.lines for name, finding in by_name.items()}
    names = ("pair", "near-pair", "source", "target")
    assert lines == {f"test-overlap-{name}": (line,) for line, name in enumerate(names, start=2)}
    assert by_name["test-overlap-pair"].level == "error"  # more than a tenth


def test_chunks_lose_no_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clean: list[Pair]) -> None:
    from dragoman.doctor import paired_lines

    for name, side in (("a", 0), ("b", 1)):
        (tmp_path / name).write_text("".join(pair[side] + "\n" for pair in clean), encoding="utf-8")
    for limit in (1, 7, 10**6):
        monkeypatch.setattr(paired_lines, "CHUNK_PAIRS", limit)
        read = [
            pair
            for s, t in chunks(Pairs(PairOfFiles(src=tmp_path / "a", tgt=tmp_path / "b")))
            for pair in zip(s, t, strict=True)
        ]
        assert read == clean


def test_chunks_do_not_change_what_is_found(
    found: Callable[..., Found], monkeypatch: pytest.MonkeyPatch, clean: list[Pair]
) -> None:
    from dragoman.doctor import paired_lines

    pairs = clean[:]
    pairs[490:510] = [(clean[i][0], clean[490 + (i - 489) % 20][1]) for i in range(490, 510)]
    whole = found(pairs)
    monkeypatch.setattr(paired_lines, "CHUNK_PAIRS", 100)
    assert found(pairs).by_name == whole.by_name
    assert whole.by_name["shifted"].lines[0] in (490, 491, 492)


@pytest.mark.parametrize(("content", "says"), [(None, "no such file"), (b"", "the file is empty")])
def test_a_file_that_cannot_be_examined_is_refused(tmp_path: Path, content: bytes | None, says: str) -> None:
    (tmp_path / "a").write_text("x\n", encoding="utf-8")
    if content is not None:
        (tmp_path / "b").write_bytes(content)
    with pytest.raises(DataError, match=says):
        examine(PairOfFiles(src=tmp_path / "a", tgt=tmp_path / "b"), Ticker(quiet=True))


def test_every_kind_says_what_to_do() -> None:
    for kind in KINDS.values():
        assert kind.what
        assert kind.advice
        assert kind.unit in ("lines", "pairs")


def test_the_worst_comes_first_and_lines_are_shown() -> None:
    found = [
        Finding("note", "a", "are so", "do this", 3, 10),
        Finding("warning", "b", "are so", "do this", 1, 10),
        Finding("warning", "c", "are so", "do this", 2, 10, lines=(7,), examples=("text",)),
        Finding("error", "d", "is so", "do this"),
    ]
    assert [finding.name for finding in ranked(found)] == ["d", "c", "b", "a"]
    assert report(ranked(found)).startswith(
        "error: is so  [d]\n  -> do this\n\nwarning: 2 of 10 pairs (20.0%) are so  [c]"
    )
    assert "    line 7: text\n" in report(found)


def test_a_file_in_an_old_encoding_is_named_with_the_command_that_converts_it(tmp_path: Path) -> None:
    src, tgt = tmp_path / "train.en", tmp_path / "train.ru"
    src.write_text("We went home late.\n" * 30)
    tgt.write_bytes("Мы поздно пошли домой, было уже темно.\n".encode("koi8-r") * 30)
    examination = examine(PairOfFiles(src=src, tgt=tgt), Ticker(quiet=True))
    finding = next(finding for finding in examination.findings if finding.name == "encoding")
    assert (
        f"{tgt}: the file is in KOI8-R; convert it with iconv -f KOI8-R -t UTF-8 {tgt} > {tgt}.utf8" in finding.advice
    )
    assert str(src) not in finding.advice


def test_the_figure_of_repeated_lines_counts_all_texts(found: Callable[..., Found], clean: list[Pair]) -> None:
    pytest.importorskip("matplotlib")
    many, few = found(clean[:400] + clean[:200]).examination, found(clean[400:500] + clean[400:410]).examination
    entry = PairOfFiles(src=Path("a"), tgt=Path("b"))
    merged = merge_examinations([Part(entry, many), Part(entry, few)])
    assert merged.pairs == 710
    (repeats,) = (figure for figure in corpus_figures(merged) if figure.title == "Repeated lines")
    assert "210 (29.6%)" in repeats.svg
