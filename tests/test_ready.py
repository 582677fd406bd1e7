"""Ready bundles: their names, what hides them, and how they are stored."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from benchmarks.ready import frozen
from dragoman import ready
from dragoman.bundle import amend_bundle, load_bundle, save_bundle
from dragoman.cli.completion import runs
from dragoman.doctor.diagnosis import model_folder
from dragoman.errors import BundleError, ConfigError
from dragoman.evaluation.calibration import calibrate
from dragoman.history.summary import ready_summaries
from dragoman.model.weights import SCALES, read_weights, restored, rounded, untied
from dragoman.toolkits.export import export_folder
from dragoman.training.advice import retrain
from dragoman.translation.translator import Translator


@pytest.fixture
def installed(tiny_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package whose ready bundle is the tiny run, seen from an empty folder."""
    shutil.copytree(tiny_run / "bundle", tmp_path / "package/en-de")
    monkeypatch.setattr(ready, "FOLDER", tmp_path / "package")
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path / "package/en-de"


def stored_small(run: Path, folder: Path) -> Path:
    """Write the bundle of a run with its matrices as 8-bit integers."""
    bundle = load_bundle(run)
    facts = {name: fact for name, fact in bundle.manifest.items() if name not in ("files", "sha256")}
    save_bundle(
        folder, bundle.config, bundle.model.config, untied(bundle.model), bundle.src_tokenizer, bundle.tgt_tokenizer,
        {**facts, "stored": "int8"},
    )  # fmt: skip
    return folder


def test_a_name_loads_the_bundle_of_the_package(installed: Path) -> None:
    ours, named = Translator.load(installed), Translator.load("demo")
    assert named.translate("The dog sleeps.").text == ours.translate("The dog sleeps.").text
    assert named.run is None  # an engine keeps no export in the package
    assert load_bundle("en-de").manifest == load_bundle(installed).manifest
    assert export_folder("demo", "page", "int8") == Path("exports/demo/page-int8")


def test_a_folder_of_that_name_goes_first(installed: Path, tiny_run: Path) -> None:
    shutil.copytree(tiny_run, "demo")
    run = Translator.load("demo").run
    assert (run, f"{run}") == (Path("demo").absolute(), "demo")
    shutil.rmtree("demo")
    Path("demo").mkdir()
    with pytest.raises(BundleError, match=r"^demo: neither a run nor a bundle, but it hides the ready bundle of that"):
        load_bundle("demo")


def test_a_run_that_is_not_there_is_refused_with_the_names_of_the_ready_ones(installed: Path) -> None:
    with pytest.raises(BundleError, match=r"^runs/none: no such run; train one with `dragoman train`, or take a ready"):
        load_bundle("runs/none")


def test_tab_offers_the_ready_bundles(installed: Path) -> None:
    assert runs("demo") == ["demo", "demo-zh"]
    assert runs("") == list(ready.NAMES)
    Path("demo").mkdir()
    assert runs("demo") == ["demo/", "demo-zh"]


def test_matrices_stored_in_8_bits_are_a_quarter_and_translate_alike(tiny_run: Path, tmp_path: Path) -> None:
    small = stored_small(tiny_run, tmp_path / "small")
    stored = read_weights(small / "model.safetensors")
    assert {tensor.dtype for name, tensor in stored.items() if tensor.ndim == 2} == {torch.int8}
    sizes = [(path / "model.safetensors").stat().st_size for path in (small, tiny_run / "bundle")]
    assert sizes[0] < 0.35 * sizes[1]
    weights, exact = untied(load_bundle(small).model), untied(load_bundle(tiny_run).model)
    for name, tensor in weights.items():
        step = exact[name].abs().amax(dim=-1, keepdim=True) / 127 if tensor.ndim == 2 else torch.zeros(1)
        assert ((tensor - exact[name]).abs() <= 0.501 * step).all(), name


def test_a_bundle_stored_in_8_bits_can_be_amended_without_loss(tiny_run: Path, tmp_path: Path) -> None:
    small = stored_small(tiny_run, tmp_path / "small")
    before = read_weights(small / "model.safetensors")
    amend_bundle(small, step=7)
    torch.testing.assert_close(read_weights(small / "model.safetensors"), before, rtol=1e-6, atol=0)
    assert load_bundle(small).facts.step == 7


def test_a_bundle_whose_replacement_died_half_way_is_amended_in_its_own_place(
    tiny_run: Path, tmp_path: Path, listing: Callable[[Path], list[str]]
) -> None:
    shutil.copytree(tiny_run / "bundle", tmp_path / "run/bundle")
    before = listing(tmp_path)
    (tmp_path / "run/bundle").rename(tmp_path / "run/.bundle.old")  # here a process died; the new one is still aside
    (tmp_path / "run/.bundle.0123abcd.tmp").mkdir()
    amend_bundle(tmp_path / "run", step=7)
    assert listing(tmp_path) == before
    assert load_bundle(tmp_path / "run").facts.step == 7


def test_an_unknown_form_of_storage_is_refused(reseal: Callable[..., Path]) -> None:
    with pytest.raises(BundleError, match=r"stored must be float32 or int8, got 'int2'"):
        load_bundle(reseal({"stored": "int2"}))


def test_rounding_twice_changes_nothing() -> None:
    weights = {"w": torch.randn(5, 7), "b": torch.randn(5), "zero": torch.zeros(2, 3)}
    once = rounded(weights)
    assert set(once) == {"w", f"w{SCALES}", "b", "zero", f"zero{SCALES}"}
    torch.testing.assert_close(rounded(restored(once)), once)
    assert restored(once)["zero"].eq(0).all()


def test_every_command_that_takes_a_run_takes_the_name(
    installed: Path, command: Callable[..., Any], tmp_path: Path
) -> None:
    here = tmp_path / "here"
    for name, text in (("a.en", "The dog sleeps.\n"), ("a.de", "Der Hund schläft.\n")):
        (here / name).write_text(text, encoding="utf-8")
    for args in (
        ("translate", "demo", "a.en"),
        ("explain", "demo", "The dog sleeps.", "--out", "page.html"),
        ("score", "demo", "--src", "a.en", "--ref", "a.de"),
        ("evaluate", "demo", "--src", "a.en", "--ref", "a.de"),
        ("export", "demo", "--format", "page"),
        ("formats", "demo"),
        ("doctor", "demo"),
        ("runs", "demo"),
        ("augment", "--forward", "demo", "--src", "a.en", "--out", "made"),
    ):
        assert command(*args, cwd=here).status == 0, args
    assert (here / "exports/demo/page-float32").is_dir()
    assert not (installed / "exports").exists()
    assert not (here / "demo").exists()


def test_a_run_fine_tuned_from_a_ready_bundle_is_trained_again_from_it(installed: Path, tmp_path: Path) -> None:
    run = tmp_path / "runs/tuned"
    run.mkdir(parents=True)
    (run / "parent.json").write_text('{"name": "demo"}', encoding="utf-8")
    assert "--from-run demo " in retrain(run, {})
    (tmp_path / "runs/demo").mkdir()
    assert f"--from-run {tmp_path / 'runs/demo'} " in retrain(run, {})


def test_text_of_that_name_goes_before_the_bundle(installed: Path) -> None:
    assert model_folder(Path("demo")) == installed
    Path("demo.en").write_text("The dog sleeps.\n", encoding="utf-8")
    assert model_folder(Path("demo")) is None


def test_the_bundle_is_never_changed(installed: Path, corpus: Any) -> None:
    before = load_bundle("demo").manifest
    (beside := installed.parent.parent / "beside").symlink_to(installed)
    for run in ("demo", installed, os.path.relpath(installed), installed / "../en-de", beside):
        with pytest.raises(ConfigError, match=rf"belongs to the package and is not changed: .*cp -r {installed} my-en"):
            calibrate(run, corpus.src, corpus.tgt)
    assert load_bundle("demo").manifest == before


def test_the_list_of_runs_has_the_bundles_once(installed: Path, command: Callable[..., Any]) -> None:
    shutil.copytree(installed, installed.parent / "en-zh")
    rows = [row.split("\t") for row in command("runs", cwd=Path.cwd()).out.decode().splitlines()[1:]]
    assert [(row[0], row[2]) for row in rows] == [("demo", "ready"), ("demo-zh", "ready")]
    assert rows[0][3] == str(load_bundle("demo").facts.step)
    assert rows[0][5] == f"{load_bundle('demo').facts.validation['bleu']:.1f}"
    shutil.copytree(installed, "demo")
    names = [run.name for run in ready_summaries()]
    assert names == ["demo-zh", "en-de"]


@pytest.mark.parametrize("pair", ["en-de", "en-zh"])
def test_the_bundles_of_the_package_are_small_and_say_where_their_text_is_from(pair: str) -> None:
    folder = ready.FOLDER / pair
    card, figures = (
        (folder / "README.md").read_text(encoding="utf-8"),
        json.loads((folder / "certificate.json").read_text()),
    )
    assert "CC BY 2.0 FR" in card
    assert "tatoeba.org" in card
    assert figures["identical"] >= 0.8 * figures["lines"]  # storing in 8 bits changes little
    assert sum(path.stat().st_size for path in folder.iterdir()) < 4e6
    for name in ("config.yaml", "manifest.json"):
        assert "/" not in "".join(re.findall(r"(?:src|tgt|run|from).*", (folder / name).read_text(encoding="utf-8")))


@pytest.mark.parametrize(
    ("name", "right"),
    [
        ("demo", ("Kannst du mir helfen?", "Können Sie mir helfen?")),
        ("demo-zh", ("你能帮我吗？", "你能帮助我吗？")),
    ],
)
def test_an_ordinary_sentence_is_translated_at_once(name: str, right: tuple[str, ...]) -> None:
    assert Translator.load(name).translate("Can you help me?").text in right


def test_X8_a_list_stays_a_list(figure: Callable[[str, str], None]) -> None:
    translator = Translator.load("demo")
    entries = ["a man sleeps", "A man is sitting on a bench."]
    right = [one.text for one in translator.translate(entries)]
    marks = [
        "- ",
        "* ",
        "• ",
        "> ",
        "# ",
        "- [ ] ",
        "a) ",
        "  – ",
        "2) ",
        "» ",
        "aa) ",
        "1.) ",
        "[x] ",
        "•",
        ">",
        "*",
        "† ",
        "① ",
    ]
    for mark in marks:
        assert [one.text for one in translator.translate([mark + entry for entry in entries])] == [
            mark + text for text in right
        ]
    figure("X8", "18 marks before 2 entries: 36 of 36 arrive, the rest as without them")


CODES = [
    "r2d2",
    "x86",
    "iPhone14",
    "GPT-4",
    "4x4",
    "1920x1080",
    "CO₂",
    "C++",
    "C#",
    "--no-guard",
    "--out=a.txt",
    "-v",
    "≈",
    "≠",
    "→",
    "->",
    "=>",
    "!=",
    "©",
    "™",
    "s3://a/b",
    "mailto:a@b.de",
    "git@a.com:b/c.git",
    "fe80::1",
    "00:1A:2B:3C:4D:5E",
    "10.1000/182",
    "2023-01-02T10:30:00Z",
    "3-16-148410-X",
    "$E=mc^2$",
    "\\(x\\)",
    "x.php",
    "<@U123>",
    "~/.bashrc",
    "C:/a/b",
]


def test_X10_codes_signs_and_names_with_digits_arrive(figure: Callable[[str, str], None]) -> None:
    translator = Translator.load("demo")
    lines = [line.format(code) for code in CODES for line in ("A man sits on {} in the park.", "{} is on the table.")]
    texts = [one.text for one in translator.translate(lines)]
    wanted = [code for code in CODES for _ in range(2)]
    assert [code in text for code, text in zip(wanted, texts, strict=True)] == [True] * len(lines)
    strings = [r"The dog sleeps.\nThe cat eats.", r"The dog sleeps.\n\nThe cat eats.\n"]
    assert [one.text for one in translator.translate(strings)] == [
        r"Der Hund schläft.\nDie Katze isst.",
        r"Der Hund schläft.\n\nDie Katze isst.\n",
    ]
    numbers = [f"We bought {word}37 and {word}42 today." for word in ("python", "chapter", "room")]
    for one in translator.translate(numbers):
        assert sorted(re.findall(r"\d+", one.text)) == ["37", "42"]
    figure(
        "X10", f"{len(CODES)} codes in 2 sentences: {len(lines)} of {len(lines)}; 6 of 6 numbers at the end of words"
    )


def test_the_frozen_test_is_the_one_that_was_written_down() -> None:
    for name in ("tatoeba.en", "lecture.en"):
        assert frozen.sha256(frozen.FOLDER / name) == frozen.SUMS[name]
    assert [len(frozen.lines(frozen.FOLDER / name)) for name in ("tatoeba.en", "lecture.en")] == [100, 20]
