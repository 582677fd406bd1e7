"""The diagnosis of text: sets that training refuses, a language that has no stop words, the commands that come next."""

from __future__ import annotations

import json
import random
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dragoman.config import PairOfFiles
from dragoman.data import phrasebook
from dragoman.doctor.diagnosis import TextSets, diagnose_text
from dragoman.doctor.findings import Finding
from dragoman.doctor.text_checks import examine
from dragoman.progress import Ticker


def write(path: Path, lines: list[str]) -> Path:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def sentences(patterns: list[str], words: str, count: int = 100) -> list[str]:
    """Different sentences made from patterns with two words each."""
    chance, choices = random.Random(1), words.split()
    return [chance.choice(patterns).format(*chance.sample(choices, 2)) for _ in range(count)]


TEXTS = {
    "zh": sentences(
        ["我们明天去看{}和{}。", "他把{}放在{}旁边了。", "请问这里有{}或者{}吗？"],
        "书 车 学校 商店 花园 医院 房子 电影",
    ),
    "ja": sentences(
        ["明日は{}と{}を見に行きます。", "彼は{}を{}の隣に置きました。", "ここに{}か{}はありますか？"],
        "本 車 学校 店 庭 病院 家 映画",
    ),
    "ar": sentences(
        ["سوف نذهب غدا إلى {} ثم {}.", "وضع الرجل {} بجانب {} في الغرفة.", "هل يوجد هنا {} أو {}؟"],
        "الكتاب السيارة المدرسة المتجر الحديقة المستشفى البيت",
    ),
    "fa": sentences(
        ["ما فردا به {} و {} خواهیم رفت.", "او {} را کنار {} گذاشته است.", "آیا اینجا {} یا {} هست؟"],
        "کتاب ماشین مدرسه مغازه باغ بیمارستان خانه",
    ),
}


@pytest.mark.parametrize("lang", ["zh", "ja", "ar", "fa"])
@pytest.mark.parametrize("labelled", ["zh", "ja", "ar", "fa"])
def test_a_text_in_a_language_without_stop_words_that_is_another_is_an_error(
    tmp_path: Path, lang: str, labelled: str
) -> None:
    files = [
        write(tmp_path / "x.en", [f"Line {i} is here." for i in range(100)]),
        write(tmp_path / "x.txt", TEXTS[lang]),
    ]
    corpus = PairOfFiles(src=files[0], tgt=files[1], src_lang="en", tgt_lang=labelled)
    findings = {finding.name: finding.level for finding in examine(corpus, Ticker(quiet=True)).findings}
    others = {name for name in findings if name.startswith(("source-is", "target-is"))}
    if {lang, labelled} in ({"zh", "ja"}, {"ar", "fa"}):  # others differ in their script, which is told by lines
        assert others == {f"target-is-{lang}"}
        assert findings[f"target-is-{lang}"] == "error"
    else:
        assert others == set()
        assert (findings.get("target-script") == "error") is (lang != labelled)


def test_a_fifth_of_lines_in_another_language_is_not_the_whole_text(tmp_path: Path) -> None:
    mixed = [ja if i % 5 == 0 else zh for i, (zh, ja) in enumerate(zip(TEXTS["zh"], TEXTS["ja"], strict=True))]
    files = [write(tmp_path / "x.en", [f"Line {i} is here." for i in range(100)]), write(tmp_path / "x.zh", mixed)]
    corpus = PairOfFiles(src=files[0], tgt=files[1], src_lang="en", tgt_lang="zh")
    assert not [f for f in examine(corpus, Ticker(quiet=True)).findings if f.name.startswith("target-is")]


@pytest.mark.parametrize(
    ("fault", "name", "lines"),
    [
        (b"gr\xfcn", "not-utf8", (3,)),
        (b"a\0b", "nul", (3,)),
        (b"long " * 220_000, "too-long-line", (3,)),
    ],
)
@pytest.mark.parametrize("name_of_set", ["valid", "test"])
def test_a_set_that_is_refused_is_told(
    tmp_path: Path, fault: bytes, name: str, lines: tuple[int, ...], name_of_set: str
) -> None:
    findings = with_set(tmp_path, name_of_set, lambda text: text)
    assert f"{name_of_set}-{name}" not in findings
    findings = with_set(tmp_path, name_of_set, lambda text: b"\n".join([*text.split(b"\n")[:2], fault, b"end", b""]))
    finding = findings[f"{name_of_set}-{name}"]
    assert (finding.level, finding.lines, finding.n) == ("error", lines, 1)
    assert finding.what.startswith(f"of the {name_of_set} set contain") or name == "too-long-line"
    assert ("evaluation refuses" if name_of_set == "test" else "training refuses") in finding.advice


def test_a_set_in_an_old_encoding_is_told_with_the_command_that_converts_it(tmp_path: Path) -> None:
    def encode(text: bytes) -> bytes:
        return (text.decode() + "größer und schöner\n" * 30).encode("latin-1")

    finding = with_set(tmp_path, "valid", encode)["valid-encoding"]
    assert finding.level == "error"
    assert "iconv -f " in finding.advice


def with_set(folder: Path, name: str, change: Callable[[bytes], bytes]) -> dict[str, Finding]:
    """Return the findings about a text with a validation or test set whose target is changed."""
    pairs = list(dict.fromkeys(phrasebook.pairs(120)))
    files = [write(folder / f"{part}.{lang}", [pair[side] for pair in rows])
             for part, rows in (("train", pairs[:80]), (name, pairs[80:]))
             for side, lang in enumerate(("en", "de"))]  # fmt: skip
    files[3].write_bytes(change(files[3].read_bytes()))
    src_lines = ["A line.\n"] * files[3].read_bytes().count(b"\n")
    files[2].write_text("".join(src_lines), encoding="utf-8")
    train, other = (PairOfFiles(src=src, tgt=tgt) for src, tgt in (files[:2], files[2:]))
    sets: TextSets = {"train": (train,), name: (other,)}
    return {finding.name: finding for finding in diagnose_text(None, sets, [], None, quiet=True).findings}


def test_blank_pairs_are_blank_and_no_boilerplate(tmp_path: Path) -> None:
    pairs = [*dict.fromkeys(phrasebook.pairs(300)), *[("", "")] * 60, *[("", " ")] * 60, *[("\u00a0", "\u200b")] * 60]
    files = [write(tmp_path / f"x.{lang}", [pair[side] for pair in pairs]) for side, lang in enumerate(("en", "de"))]
    diagnosis = diagnose_text(None, {"train": (PairOfFiles(src=files[0], tgt=files[1]),)}, [], None, quiet=True)
    by_name = {finding.name: finding for finding in diagnosis.findings}
    assert not {"boilerplate", "duplicate", "near-duplicate", "source-repeated", "target-repeated"} & set(by_name)
    assert by_name["empty"].level == "error"
    assert "nothing to do" not in by_name["empty"].advice
    assert " --write clean.en clean.de" in diagnosis.next_steps()[1]


def next_command(out: bytes) -> list[str]:
    """Return the words of the command that a report names."""
    (line,) = [line for line in out.decode().split("\n") if line.startswith("  next: dragoman ")]
    return shlex.split(line)[2:]


@pytest.fixture
def foreign(tmp_path: Path) -> Path:
    """A text whose names tell no language, with lines in a third one; a validation and a test set; a configuration."""
    pairs = list(dict.fromkeys(phrasebook.pairs(700)))
    french = [(src, f"Je ne sais pas si le numéro {i} est dans la maison.") for i, (src, _) in enumerate(pairs[:60])]
    for name, rows in (("a", [*pairs[60:600], *french]), ("v", pairs[600:640]), ("t", pairs[600:])):
        for side, ending in enumerate(("one", "two")):
            write(tmp_path / f"{name}.{ending}.txt", [pair[side] for pair in rows])
    data = {
        "src_lang": "en", "tgt_lang": "de", "train": {"src": "a.one.txt", "tgt": "a.two.txt"},
        "valid": {"src": "v.one.txt", "tgt": "v.two.txt"},
    }  # fmt: skip
    (tmp_path / "my.yaml").write_text(json.dumps({"data": data, "model": {"preset": "tiny"}}), encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize("by", ["configuration", "options"])
def test_the_command_that_mends_knows_the_languages(command: Callable[..., Any], foreign: Path, by: str) -> None:
    """Without them no line was in a third language, and none was dropped."""
    words = ["my.yaml"]
    if by == "options":
        words = ["a.one.txt", "a.two.txt", "--set", "data.src_lang=en", "--set", "data.tgt_lang=de"]
    mend = next_command(command("doctor", *words, "--quiet", cwd=foreign).out)
    assert mend[-3:] == ["--write", "clean.en", "clean.de"]
    done = command(*mend, "--quiet", cwd=foreign)
    assert done.status == 0, done.err
    assert (foreign / "clean.en.log.tsv").read_text(encoding="utf-8").count("dropped\ttarget-language") == 60


def test_the_command_after_mending_examines_the_same_sets(command: Callable[..., Any], foreign: Path) -> None:
    options = ["--set", "data.max_tokens=90", "--test-src", "t.one.txt", "--test-ref", "t.two.txt", "--memory", "30"]
    done = command("doctor", "my.yaml", *options, "--write", "c.one", "c.two", "--quiet", cwd=foreign)
    again = next_command(done.out)
    assert again[:4] == ["doctor", "my.yaml", "c.one", "c.two"]
    examined = command(*again, "--json", "--quiet", cwd=foreign)
    assert examined.status == 0, examined.err
    before = command("doctor", "my.yaml", *options, "--json", "--quiet", cwd=foreign)
    names = [{finding["name"] for finding in json.loads(out)["findings"]} for out in (examined.out, before.out)]
    assert "target-language" in names[1] - names[0]
    for options_of in ("--set", "--test-src", "--test-ref", "--memory"):
        assert options_of in again


def test_sets_that_were_named_are_named_again(command: Callable[..., Any], foreign: Path) -> None:
    named = ["a.one.txt", "a.two.txt", "--valid-src", "v.one.txt", "--valid-tgt", "v.two.txt"]
    langs = ["--set", "data.src_lang=en", "--set", "data.tgt_lang=de"]
    done = command("doctor", *named, *langs, "--write", "c.en", "c.two.txt", "--quiet", cwd=foreign)
    again = next_command(done.out)
    assert again == ["doctor", "c.en", "c.two.txt", "--set", "data.tgt_lang=de", *named[2:]]
    assert command(*again, "--quiet", cwd=foreign).status == 0
