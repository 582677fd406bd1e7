"""``dragoman distill``: from a teacher to a student's certificate, after kills, and what is refused."""

from __future__ import annotations

import io
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

import dragoman
from dragoman.bundle import load_bundle, save_bundle
from dragoman.data.store import fingerprint
from dragoman.distillation import distill as module
from dragoman.distillation.certificate import Certificate, Measured, Measuring, Row, choose
from dragoman.distillation.distill import distill
from dragoman.distillation.text import Text, hold_out
from dragoman.distillation.text import choose as choose_text
from dragoman.errors import ConfigError, DataError, DecodeError, DragomanError
from dragoman.model.weights import untied
from dragoman.progress import Ticker
from dragoman.toolkits.export import export
from dragoman.translation.translator import Translator
from failing import fail_long_lines

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


def test_a_student_with_a_relative_name_has_relative_names_of_its_text(
    teacher: Path, text: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    shutil.copy(text[0], "in.en")
    distilled = distill(teacher, src="in.en", out="st", **{**FEW, "quiet": False})
    assert str(distilled.run) == "st"
    data = yaml.safe_load(Path("st/config.yaml").read_text(encoding="utf-8"))["data"]
    assert [data["train"][side] for side in ("src", "tgt")] == ["st/distillation/pairs.en", "st/distillation/pairs.de"]
    assert str(tmp_path) not in capsys.readouterr().err


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
    student: Path, teacher: Path, text: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    for name in ("choose", "train", "certify", "amend_bundle"):
        monkeypatch.setattr(module, name, _killed)
    (student / "lock").write_text("process 7\n")  # of a training that was killed at its very end
    given: dict[str, Any] = {**FEW, "minutes": 60, "quiet": False}
    found = distill(teacher, src=text[0], ref=text[1], out=student, best_of=2, with_references=True, **given)
    assert found.certificate is not None
    assert not (student / "lock").exists()
    assert "the student was trained by an earlier call; settings of training are not used" in capsys.readouterr().err


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
        (dict(overrides=["train.max_stps=4"]), "unknown setting train.max_stps: did you mean max_steps"),
        (dict(shrink=1, overrides=["train.lrr=4"]), "unknown setting train.lrr"),
        (dict(minutes=30, overrides=["train.max_minutes=10"]), "minutes=30, but override train.max_minutes=10"),
        (dict(shrink=1), "--shrink 1: the teacher has 1 decoder layers; name fewer"),
        (dict(shrink=1, preset="student-tiny"), "--shrink takes the teacher's sizes"),
        (dict(mono="pairs.tsv"), "pairs.tsv: by its name a .tsv, which holds both sides; give a text file with one"),
        (dict(valid_src="good.en", valid_ref="short.de"), "good.en has 4 lines but .*short.de has 3"),
        (dict(valid_src="good.en", valid_ref="latin.de"), r"/latin.de:4:5: byte 0xdf is not UTF-8"),
        (dict(ref="long-latin.de", with_references=True), "long-latin.de:120:5: byte 0xdf is not UTF-8"),
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
    (tmp_path / "pairs.tsv").write_text("a dog\tein Hund\n")
    (tmp_path / "good.en").write_text("one\ntwo\nthree\nfour\n")
    (tmp_path / "latin.de").write_bytes(b"eins\nzwei\ndrei\nStra\xdfe\n")
    (tmp_path / "long-latin.de").write_bytes(b"eins\n" * 119 + b"Stra\xdfe\n")
    (tmp_path / "config.yaml").write_text("")
    there = sorted(tmp_path.iterdir())
    paths = ("mono", "ref", "valid_src", "valid_ref", "out", "src")
    given = {name: tmp_path / value if name in paths else value for name, value in given.items()}
    with pytest.raises(DragomanError, match=what) as error:
        distill(tiny_run, **{"src": text[0], "out": tmp_path / "new", **FEW, **given})
    assert "\n" not in str(error.value)
    assert sorted(tmp_path.iterdir()) == there


def test_the_validation_text_of_the_teacher_is_known_by_its_content(
    tiny: Callable[..., dict[str, Any]], text: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    """Files of the current folder with the same names passed for the teacher's own."""
    monkeypatch.chdir(tmp_path)
    mapping = tiny(max_steps=1, validate_every=1, save_every=1)
    for side, path in list(mapping["data"]["valid"].items()):
        mapping["data"]["valid"][side] = shutil.copy(path, f"own{Path(path).suffix}")
    dragoman.train(dragoman.Config.from_mapping(mapping), out="teacher", quiet=True)
    shutil.copytree("teacher/bundle", "bare")
    given: dict[str, Any] = dict(src=text[0], **{**FEW, "quiet": False})

    def valid(name: str) -> Any:
        requests: list[Any] = []

        def killed(_: Path, request: Any, __: str) -> None:
            requests.append(request)
            raise Killed

        monkeypatch.setattr(module, "check_request", killed)
        with pytest.raises(Killed):
            distill(name, out=tmp_path / "begun", **given)
        return requests[0]["texts"][1:]

    own = [fingerprint(name) for name in ("own.en", "own.de")]
    assert valid("teacher") == own
    assert "by name" not in capsys.readouterr().err
    for name in ("own.en", "own.de"):
        Path(name).write_text("other\n" * 9, encoding="utf-8")
    assert valid("bare") == [fingerprint(name) for name in ("own.en", "own.de")] != own
    assert "validation: own.en and own.de, taken for the teacher's own by name, as bare does" in capsys.readouterr().err
    with pytest.raises(ConfigError, match=r"that of the teacher has changed \(own\.en\); give --valid-src"):
        distill("teacher", out=tmp_path / "student", **given)
    assert not (tmp_path / "student").exists()


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


def test_the_teacher_searches_with_the_threads_that_were_asked_for(
    tiny_run: Path, text: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int | None] = []

    class EnoughError(Exception):
        pass

    def translate_file(self: Any, src: Any, out: Any, plan: Any, **_: Any) -> None:
        asked.append(plan.search.workers)
        raise EnoughError

    monkeypatch.setattr(Translator, "translate_file", translate_file)
    for threads in (1, 3):
        with pytest.raises(EnoughError):
            distill(tiny_run, src=text[0], out=tmp_path / f"{threads}", threads=threads, **FEW)
    assert asked == [1, 3]


def test_lines_with_bytes_that_are_not_utf8_are_dropped_and_counted(tiny_run: Path, tmp_path: Path) -> None:
    (tmp_path / "x.en").write_bytes(b"the dog\nthe stra\xdfe\nthe cat\n")
    (tmp_path / "x.de").write_bytes(b"der Hund\ndie Strasse\ndie K\xe4tze\n")
    found = [[[-0.1, "der Hund"]], [[-0.1, "die Strasse"]], [[-0.1, "die Katze"]]]
    (tmp_path / "found").write_text("".join(json.dumps(one) + "\n" for one in found))
    text = Text(src=tmp_path / "x.en", ref=tmp_path / "x.de", held_out=frozenset(), n_lines=3)
    sides = io.BytesIO(), io.BytesIO()
    counts = choose_text([text], [tmp_path / "found"], Translator.load(tiny_run).plan(), sides, 0.0, QUIET)
    assert counts == {"lines": 3, "kept": 1, "damaged": 2}
    hold_out(text, (tmp_path / "r.en", tmp_path / "r.de"), inverted=True)
    assert (tmp_path / "r.en").read_text() == "the dog\n"


def test_held_out_lines_do_not_come_back_by_text_of_one_language(
    tiny_run: Path, text: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    bundle = load_bundle(tiny_run)
    config = bundle.config.model_copy(update={"data": bundle.config.data.model_copy(update={"valid": None})})
    tokenizers = bundle.src_tokenizer, bundle.tgt_tokenizer
    save_bundle(tmp_path / "teacher", config, bundle.model.config, untied(bundle.model), *tokenizers, {})
    texts: list[Text] = []

    def translated(_: object, __: object, given: list[Text], *___: object) -> None:
        texts.extend(given)
        raise Killed

    monkeypatch.setattr(module, "translate_texts", translated)
    own = text[0].read_text().splitlines()
    (tmp_path / "mono.en").write_text("".join(f"{line}\n" for line in ("a new line", *(line.upper() for line in own))))
    given: dict[str, Any] = {**FEW, "quiet": False}
    with pytest.raises(Killed):
        distill(
            tmp_path / "teacher", src=text[0], ref=text[1], mono=tmp_path / "mono.en", out=tmp_path / "out", **given
        )
    assert texts[0].held_out
    assert {number + 1 for number in texts[0].held_out} <= texts[1].twins
    assert 1 not in texts[1].twins
    first, texts[:] = texts.copy(), []
    (tmp_path / "out/distillation/pairs.json").write_text('{"files": {}, "counts": {}}')  # of pairs that are gone
    with pytest.raises(Killed):
        distill(
            tmp_path / "teacher", src=text[0], ref=text[1], mono=tmp_path / "mono.en", out=tmp_path / "out", **given
        )
    assert texts == first  # pairs are chosen again, by the same lines that are held out
    assert "are held out, as the teacher has none of its own; if the teacher was trained" in capsys.readouterr().err


def test_a_student_without_a_shortlist_has_a_certificate_too(
    teacher: Path, text: tuple[Path, Path], tmp_path: Path
) -> None:
    overrides = [*FEW["overrides"], "model.architecture=lstm"]  # type: ignore[misc]
    found = distill(teacher, src=text[0], out=tmp_path / "lstm", **{**FEW, "overrides": overrides}).certificate
    assert found is not None
    assert not any(row.shortlist for row in found.rows)
    assert "shortlist" not in str(found)


def test_the_size_is_that_of_the_export_that_was_loaded(tiny_run: Path, tmp_path: Path) -> None:
    """Of a ready bundle, or of one in a folder that cannot be written, it is a temporary one."""
    pytest.importorskip("ctranslate2")
    translator = Translator(load_bundle(tiny_run))
    measure = Measuring(["the dog"], ["der hund"], "de", QUIET)
    size = measure("teacher", translator, engine="ctranslate2", precision="int8").row.megabytes
    copied = shutil.copytree(tiny_run / "bundle", tmp_path / "run/bundle")
    folder = export(copied.parent, "ctranslate2", quantization="int8")
    assert size == pytest.approx((folder / "model.bin").stat().st_size / 1e6, abs=1e-3)
    assert size != measure("teacher", translator, engine="torch", precision="fp32").row.megabytes


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


def test_lines_without_memory_end_the_call_and_the_same_call_tries_them_alone_again(
    tiny_run: Path, text: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = "the dog sees a big cat and the man likes the small house here today the woman finds a red tree"
    (tmp_path / "mono.en").write_text(f"the dog\n{long}\n\na cat\n{long} today\n", encoding="utf-8")
    given: dict[str, Any] = dict(src=text[0], mono=tmp_path / "mono.en", out=tmp_path / "out", **FEW)
    with monkeypatch.context() as patch:
        fail_long_lines(patch)
        with pytest.raises(DecodeError, match=r"mono.en: 2 lines ran out of memory; free .* \(line 2, 5\), and le"):
            distill(tiny_run, **given)
    monkeypatch.setattr(Translator, "translate_file", _killed)
    monkeypatch.setattr(module, "train_student", _killed)
    with pytest.raises(Killed):
        distill(tiny_run, **given)
    made = (tmp_path / "out/distillation/translations-1.jsonl").read_text(encoding="utf-8").splitlines()
    assert [bool(json.loads(line)[0][1]) for line in made] == [True, True, False, True, True]


def test_lines_that_never_fit_into_memory_are_left_out_by_the_second_call_and_counted(
    tiny_run: Path, text: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    """Such a line ended every call with an error, and the text could not be changed any more."""
    long = "the dog sees a big cat and the man likes the small house here today the woman finds a red tree"
    (tmp_path / "mono.en").write_text(f"the dog\n{long}\n\na cat\n{long} today\n", encoding="utf-8")
    given: dict[str, Any] = dict(src=text[0], mono=tmp_path / "mono.en", out=tmp_path / "out", **FEW | {"quiet": False})
    fail_long_lines(monkeypatch)
    with pytest.raises(DecodeError, match=r"\(line 2, 5\)"):
        distill(tiny_run, **given)
    monkeypatch.setattr(module, "train_student", _killed)
    for _ in range(2):
        with pytest.raises(Killed):
            distill(tiny_run, **given)
    counts = json.loads((tmp_path / "out/distillation/pairs.json").read_text(encoding="utf-8"))["counts"]
    assert (counts["lines"], counts["out of memory"], counts["blank"]) == (125, 2, 1)
    assert "empty" not in counts
    assert not any(line in (tmp_path / "out/distillation/pairs.en").read_text() for line in (long, f"{long} today"))


@pytest.mark.parametrize("is_given", [True, False], ids=["given", "of the teacher"])
@pytest.mark.parametrize("with_references", [True, False])
def test_validation_text_that_is_no_part_of_the_text_is_not_learned_either(
    is_given: bool, with_references: bool, tiny_run: Path, text: tuple[Path, Path], corpus: Any, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """The student learned the teacher's translations of it, so its scores were of sentences that it knew."""
    valid = [path.read_text(encoding="utf-8").splitlines() for path in (corpus.valid_src, corpus.valid_tgt)]
    for side, name in enumerate(("all.en", "all.de")):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in valid[side]) + text[side].read_text())
    (tmp_path / "mono.en").write_text("a new line\n" + "".join(f"{line.upper()}!\n" for line in valid[0]))
    given: dict[str, Any] = dict(src=tmp_path / "all.en", mono=tmp_path / "mono.en", out=tmp_path / "out", **FEW)
    if is_given:
        for name, path in (("valid_src", corpus.valid_src), ("valid_ref", corpus.valid_tgt)):
            given[name] = tmp_path / path.name
            shutil.copy(path, given[name])
    if with_references:
        given |= dict(ref=tmp_path / "all.de", with_references=True)
    learned: list[Path] = []

    def train(files: list[Path], **_: Any) -> None:
        learned[:] = files
        raise Killed

    monkeypatch.setattr(module, "train", train)
    for _ in range(2):  # also when the pairs are there already
        with pytest.raises(Killed):
            distill(tiny_run, **given)
        assert len(learned) == (4 if with_references else 2)
        for src in learned[::2]:
            lines = src.read_text(encoding="utf-8").splitlines()
            assert len(lines) > 60
            assert not {line.lower().rstrip("!") for line in lines} & set(valid[0])
    counts = json.loads((tmp_path / "out/distillation/pairs.json").read_text(encoding="utf-8"))["counts"]
    assert counts["lines"] == 161
    assert counts["held out"] == sum(line in valid[0] for line in (tmp_path / "all.en").read_text().splitlines()) >= 20
    assert counts["near twins of these"] >= 20


@pytest.mark.parametrize("more", ["", "\n", "  \n\n"])
def test_text_of_which_nothing_is_left_beside_the_validation_text_is_refused_at_once(
    tiny_run: Path, corpus: Any, tmp_path: Path, more: str
) -> None:
    (tmp_path / "all.en").write_text(corpus.valid_src.read_text(encoding="utf-8") + more, encoding="utf-8")
    with pytest.raises(DataError, match=r"all\.en: all of its lines stand in the validation text .*valid\.en"):
        distill(tiny_run, src=tmp_path / "all.en", out=tmp_path / "out", **FEW)
    assert not (tmp_path / "out").exists()


def test_files_of_others_that_training_would_replace_are_refused_before_the_teacher_translates(
    tiny_run: Path, text: tuple[Path, Path], tmp_path: Path
) -> None:
    (tmp_path / "samples.txt").write_text("mine\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"samples\.txt: training would replace this file"):
        distill(tiny_run, src=text[0], out=tmp_path, **FEW)
    assert [path.name for path in tmp_path.iterdir()] == ["samples.txt"]
