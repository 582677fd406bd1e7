"""``dragoman distill``: from a teacher to a student's certificate, after kills, and what is refused."""

from __future__ import annotations

import io
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dragoman.bundle import load_bundle, save_bundle
from dragoman.distillation import distill as module
from dragoman.distillation.certificate import Certificate, Measured, Row, choose
from dragoman.distillation.distill import distill
from dragoman.distillation.text import Text, hold_out
from dragoman.distillation.text import choose as choose_text
from dragoman.errors import ConfigError, DataError, DragomanError
from dragoman.model.weights import untied
from dragoman.progress import Ticker
from dragoman.translation.translator import Translator

QUIET = Ticker(quiet=True)
FEW = dict(
    quiet=True, engine="torch",
    overrides=["train.max_steps=60", "train.batch_tokens=500", "train.validate_every=60", "train.save_every=20",
               "model.d_model=32", "model.d_ff=48", "model.n_encoder_layers=2", "model.n_decoder_layers=1"],
)  # fmt: skip


class Killed(BaseException):
    """Stands for a signal that nobody can catch."""


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory, toy_sentences: Callable[..., Any]) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("text")
    pairs = toy_sentences(120, 11)
    for side, name in enumerate(("more.en", "more.de")):
        (folder / name).write_text("".join(pair[side] + "\n" for pair in pairs))
    return folder / "more.en", folder / "more.de"


@pytest.fixture(scope="module")
def teacher(tiny_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy: CTranslate2 has its export beside the run."""
    return Path(shutil.copytree(tiny_run, tmp_path_factory.mktemp("teacher") / "run"))


@pytest.fixture(scope="module")
def student(teacher: Path, text: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A student made by a call that was killed in each of its steps, and gone on with."""
    out = tmp_path_factory.mktemp("students") / "student"
    given: dict[str, Any] = dict(src=text[0], ref=text[1], out=out, best_of=2, with_references=True, **FEW)
    for name in ("choose", "train_student", "add_shortlist", "certify", "export"):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(module, name, _killed)
            with pytest.raises(Killed):
                distill(teacher, **given)
    assert distill(teacher, **given).certificate is not None
    return out


def _killed(*_: Any, **__: Any) -> None:
    raise Killed


def test_the_student_is_an_ordinary_run_with_a_shortlist(student: Path) -> None:
    translator = Translator.load(student)
    assert translator.bundle.shortlist is not None
    config = translator.config
    assert (config.model.d_model, config.model.n_encoder_layers, config.model.n_decoder_layers) == (32, 2, 1)
    assert (config.data.src_lang, config.data.tgt_lang) == ("en", "de")
    assert len(config.data.train) == 2  # type: ignore[arg-type]
    assert translator.translate("the dog runs", shortlist=True).text
    plan = translator.plan(fast=True)
    fast = translator.manifest["fast"]
    assert (plan.search.decode.beam_size, plan.search.shortlist) == (fast["beam_size"], fast["shortlist"])
    assert translator.plan(fast=True, n_best=3).search.decode.beam_size >= 3
    assert translator.plan(fast=True, beam_size=2).search.decode.beam_size == 2


def test_the_certificate_says_what_was_measured(student: Path) -> None:
    found = Certificate.from_json((student / "distillation.json").read_text())
    assert found.hashes["student"] == load_bundle(student).manifest["sha256"]
    assert found.n_lines == 20
    assert found.text["lines"] == 120
    assert found.rows[0].who == "teacher"
    assert {(row.engine, row.shortlist) for row in found.rows if row.who == "student"} >= {
        ("torch", True),
        ("torch", False),
    }
    assert all(row.sentences_per_s > 0 and row.megabytes > 0 for row in found.rows)
    assert [one.metric for one in found.comparisons] == list(found.rows[0].scores) == ["BLEU", "chrF2", "TER"]
    assert found.comparisons[0].a == pytest.approx(found.rows[0].bleu, abs=0.01)
    assert found.comparisons[0].b == pytest.approx(found.rows[found.chosen].bleu, abs=0.01)
    assert Certificate.from_json(found.to_json()) == found
    assert str(found).count("student") >= 5


def test_the_same_call_does_nothing_more(
    student: Path, teacher: Path, text: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("choose", "train", "certify", "amend_bundle"):
        monkeypatch.setattr(module, name, _killed)
    (student / "lock").write_text("process 7\n")  # of a training that was killed at its very end
    found = distill(teacher, src=text[0], ref=text[1], out=student, best_of=2, with_references=True, **FEW)
    assert found.certificate is not None
    assert not (student / "lock").exists()


def test_another_call_is_refused_and_changes_nothing(
    student: Path, teacher: Path, text: tuple[Path, Path], tmp_path: Path
) -> None:
    before = (student / "distillation.json").read_bytes()
    with pytest.raises(ConfigError, match="begun with other best_of and other with_references: give the same again"):
        distill(teacher, src=text[0], ref=text[1], out=student, **FEW)
    other = tmp_path / "other.en"
    other.write_text("a dog\n" * 120)
    with pytest.raises(ConfigError, match="begun with other texts"):
        distill(teacher, src=other, ref=text[1], out=student, best_of=2, with_references=True, **FEW)
    assert (student / "distillation.json").read_bytes() == before


@pytest.mark.parametrize(
    ("given", "what"),
    [
        (dict(mono="empty.en"), "empty.en: there is nothing to translate"),
        (dict(mono="french.en"), r"french.en: looks like French \(fr\), but the teacher translates from English"),
        (dict(mono="x.fr"), r"x.fr: French \(fr\) by its name, but the teacher translates from English"),
        (dict(ref="short.de"), r"short.de: 3 lines, but .*more.en has 120"),
        (dict(overrides=["data.tgt_lang=fr"]), "override data.tgt_lang=fr: must be de as for the teacher, got fr"),
        (dict(best_of=2), "--best-of needs the references"),
        (dict(with_references=True), "--with-references needs the references"),
        (dict(best_of=5, beam_size=2, ref="short.de"), "beam_size must be at least best_of = 5, got 2"),
        (dict(valid_src="x.fr"), "give both sides of the validation text"),
        (dict(preset="students"), "model.preset must be one of tiny, small, student"),
        (dict(overrides=["model.dropuot=0.1"]), "unknown setting model.dropuot: did you mean dropout"),
        (dict(shrink=1), "--shrink 1: the teacher has 1 decoder layers; name fewer"),
        (dict(shrink=1, preset="student-tiny"), "--shrink takes the teacher's sizes"),
        (dict(out="."), "holds a run that no distillation began"),
        (dict(src="none.en"), "none.en"),
    ],
)  # fmt: skip
def test_what_is_impossible_is_refused_in_one_line(
    given: dict[str, Any], what: str, tiny_run: Path, text: tuple[Path, Path], tmp_path: Path
) -> None:
    (tmp_path / "empty.en").write_text("\n\n")
    (tmp_path / "french.en").write_text("le chat est sur la table et les chiens sont dans le jardin avec nous\n" * 30)
    (tmp_path / "x.fr").write_text("le chat\n")
    (tmp_path / "short.de").write_text("eins\nzwei\ndrei\n")
    (tmp_path / "config.yaml").write_text("")
    there = sorted(tmp_path.iterdir())
    paths = ("mono", "ref", "valid_src", "out", "src")
    given = {name: tmp_path / value if name in paths else value for name, value in given.items()}
    with pytest.raises(DragomanError, match=what) as error:
        distill(tiny_run, **{"src": text[0], "out": tmp_path / "new", **FEW, **given})
    assert "\n" not in str(error.value)
    assert sorted(tmp_path.iterdir()) == there


def test_teachers_must_share_their_subwords_and_languages(
    tiny_run: Path, text: tuple[Path, Path], tmp_path: Path
) -> None:
    other = tmp_path / "other"
    shutil.copytree(tiny_run, other)
    bundle = load_bundle(other)
    config = bundle.config.model_copy(update={"data": bundle.config.data.model_copy(update={"tgt_lang": "nl"})})
    save_bundle(
        other / "bundle",
        config,
        bundle.model.config,
        untied(bundle.model),
        bundle.src_tokenizer,
        bundle.tgt_tokenizer,
        {},
    )
    with pytest.raises(ConfigError, match=r"en -> nl, and .* en -> de: ensemble members must share their languages"):
        distill([tiny_run, other], src=text[0], out=tmp_path / "new", **FEW)
    assert not (tmp_path / "new").exists()


def test_bad_translations_are_dropped_and_the_nearest_is_taken(tiny_run: Path, tmp_path: Path) -> None:
    lines = ["the dog runs today", "a cat", "", "the man sees the house here", "held out", "the tree", "a woman"]
    found = [
        [[-0.1, "der Hund rennt"], [-9.5, "der Hund rennt heute"]], [[-0.2, ""]], [[0.0, ""]],
        [[-0.3, "das das das das das das das das das"]], [[-0.1, "x"]], [[-9.0, "der Baum"]], [[-0.2, "eine Frau"]],
    ]  # fmt: skip
    (tmp_path / "x.en").write_text("".join(f"{line}\n" for line in lines))
    (tmp_path / "x.de").write_text("der Hund rennt heute\neine Katze\n\nx\nx\nder Baum\nein Mann\n")
    (tmp_path / "found").write_text("".join(json.dumps(one) + "\n" for one in found))
    text = Text(src=tmp_path / "x.en", ref=tmp_path / "x.de", held_out=frozenset({5}), n_lines=7)
    sides = io.BytesIO(), io.BytesIO()
    counts = choose_text([text], [tmp_path / "found"], Translator.load(tiny_run).plan(), sides, 0.1, QUIET)
    assert [side.getvalue() for side in sides] == [
        b"the dog runs today\na woman\n",
        b"der Hund rennt heute\neine Frau\n",
    ]
    assert counts == {"lines": 7, "kept": 2, "empty": 1, "blank": 1, "loop": 1, "held out": 1, "low score": 1}
    hold_out(text, (tmp_path / "v.en", tmp_path / "v.de"))
    assert (tmp_path / "v.en").read_text() == "held out\n"
    (tmp_path / "found").write_text("".join(json.dumps([[0.0, ""]]) + "\n" for _ in found))
    with pytest.raises(DataError, match="no translation is fit to learn from"):
        choose_text([text], [tmp_path / "found"], Translator.load(tiny_run).plan(), sides, 0.0, QUIET)


def test_the_fastest_way_that_costs_little_is_chosen() -> None:
    def way(beam_size: int, bleu: float, speed: float) -> Measured:
        return Measured(Row("student", "torch", "fp32", beam_size, False, {"BLEU": bleu}, speed, 1.0), [])

    ways = [way(4, 30.0, 10.0), way(1, 29.8, 30.0), way(2, 29.6, 50.0)]
    assert choose(ways) is ways[1]
    assert choose(ways[2:]) is ways[2]


def test_a_teacher_of_several_languages_has_a_student_of_one(
    several_run: Path, text: tuple[Path, Path], toy_sentences: Callable[..., Any], tmp_path: Path
) -> None:
    french = [" ".join(word[::-1] for word in tgt.split()) for _, tgt in toy_sentences(120, 11)]
    (tmp_path / "more.fr").write_text("".join(f"{tgt}\n" for tgt in french))
    given: dict[str, Any] = dict(src=text[0], ref=tmp_path / "more.fr", **FEW)
    refusals: list[tuple[dict[str, Any], str]] = [
        ({}, r"translates into 2 languages: choose one with to \(de, fr\)"),
        (dict(to="it"), "to must be de or fr, got 'it'"),
        (
            dict(to="fr", shrink=1),
            "--shrink keeps the subwords of .*, whose sources name one of several target languages",
        ),
        (
            dict(to="fr", overrides=["data.tgt_lang=de"]),
            "override data.tgt_lang=de: must be fr as for the teacher, got de",
        ),
    ]
    for options, what in refusals:
        with pytest.raises(ConfigError, match=what):
            distill(several_run, **{**given, "out": tmp_path / "new", **options})
        assert not (tmp_path / "new").exists()
    teacher = shutil.copytree(several_run, tmp_path / "teacher")  # CTranslate2 has its export beside the run
    found = distill(teacher, out=tmp_path / "student", to="fr", **given)
    assert found.certificate is not None
    student = Translator.load(tmp_path / "student")
    assert (student.config.data.src_lang, student.config.data.tgt_lang) == ("en", "fr")
    assert student.src_tokenizer.tags == {}
    assert found.certificate.rows[0].scores["chrF2"] > 40  # of the teacher, on its own validation text of that language
    assert (tmp_path / "student/distillation/pairs.fr").is_file()
    assert "valid.fr" in str(student.config.data.valid)
