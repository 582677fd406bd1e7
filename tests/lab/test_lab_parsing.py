"""The parsing experiment: a smoke run of its training, and its figures from trees whose scores are known."""

from __future__ import annotations

import contextlib
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import dragoman
from dragoman.config import Config
from dragoman.data import phrasebook
from dragoman.errors import ConfigError
from dragoman.evaluation.bracket_f1 import bracket_scores
from dragoman.lab import parsing
from dragoman.lab.experiment import Lab
from dragoman.lab.report import run_experiment
from dragoman.parsing.trees import Tree, right_branching, tree_of, write_tree
from dragoman.translation.notes import Note
from dragoman.translation.translator import Translation


class Oracle:
    """A parser that knows the trees, but of every third sentence only the words."""

    def __init__(self, golds: list[Tree]) -> None:
        self.golds = golds

    def translate(self, texts: list[str]) -> list[Translation]:
        assert texts == [" ".join(tree.words) for tree in self.golds]
        trees = [right_branching(tree.words) if i % 3 == 0 else tree for i, tree in enumerate(self.golds)]
        return [
            Translation(write_tree(tree), 0.0, notes=() if i % 3 else (Note("repaired", "repaired: closed 2"),))
            for i, tree in enumerate(trees)
        ]


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    golds = [tree_of(line) for line in phrasebook.trees(60, seed=4)]
    return parsing.measured(Oracle(golds), golds)  # type: ignore[arg-type]


def test_what_is_measured(found: dict[str, Any]) -> None:
    golds = [tree_of(line) for line in phrasebook.trees(60, seed=4)]
    mixed = [right_branching(tree.words) if i % 3 == 0 else tree for i, tree in enumerate(golds)]
    f1, _, _, exact = bracket_scores(golds, mixed)
    assert (found["sentences"], found["well_formed"], found["repaired"]) == (60, 60, 20)
    assert (found["parser"]["f1"], found["parser"]["exact"]) == (f1.value, exact.value)
    assert found["parser"]["unlabelled_f1"] > found["parser"]["f1"] > found["right_branching"]["f1"]
    lengths = found["by_length"]
    assert lengths["sentences"] == [sum(10 * k < len(t.words) <= 10 * k + 10 for t in golds) for k in range(4)] + [0]
    assert lengths["parser"][0] > lengths["right_branching"][0]
    assert lengths["parser"][4] is None
    right, gold, said, label_f1 = found["by_label"]["NP"]
    assert label_f1 == pytest.approx(200 * right / (gold + said))
    assert next(iter(found["by_label"])) == "NP"
    assert found["example"]["found"] != found["example"]["gold"]  # one that has something to show
    assert 8 <= len(found["example"]["sentence"].split()) <= 12


def test_what_is_no_tree_over_the_words_is_counted_and_has_no_bracket_right() -> None:
    golds = [tree_of(line) for line in phrasebook.trees(6, seed=4)]

    class Careless(Oracle):
        def translate(self, texts: list[str]) -> list[Translation]:
            lines = [write_tree(tree) for tree in self.golds]
            lines[1], lines[2] = lines[1][:-1], lines[3]
            return [Translation(line, 0.0) for line in lines]

    found = parsing.measured(Careless(golds), golds)  # type: ignore[arg-type]
    assert (found["sentences"], found["well_formed"], found["repaired"]) == (6, 4, 0)
    assert found["parser"]["precision"] == 100 > found["parser"]["recall"]
    assert found["parser"]["exact"] == pytest.approx(100 * 4 / 6)
    assert parsing.verdict(found)[0].holds is False


def test_the_verdict_follows_the_numbers(found: dict[str, Any]) -> None:
    formed, ahead = parsing.verdict(found)
    assert formed.holds
    assert ahead.holds
    assert "60 of 60" in formed.figures
    near = {**found, "parser": {**found["right_branching"]}, "well_formed": 59}
    assert [claim.holds for claim in parsing.verdict(near)] == [False, False]
    worse = {**found, "deeper": {**found, "parser": {**found["parser"], "f1": 10.0, "low": 9.0, "high": 11.0}}}
    assert [claim.holds for claim in parsing.verdict(worse)] == [True, True, True]
    assert parsing.verdict({**found, "deeper": found})[2].holds is None


def test_a_quick_run(tmp_path: Path, tiny_run: Path, tiny: Any) -> None:
    said: list[str] = []
    translator = Config.from_mapping(tiny())
    record = run_experiment("parsing", tmp_path, Lab(tmp_path, quick=True, config=translator, say=said.append))
    assert any("is for translation" in line for line in said)
    assert record["verdict"] == []
    numbers = record["numbers"]
    assert numbers["well_formed"] == numbers["sentences"] == 20
    assert numbers["deeper"]["well_formed"] == 20
    page = (tmp_path / "parsing/index.html").read_text(encoding="utf-8")
    assert page.count("data:image/svg") == 3
    for name in ("tree.svg", "tree.png", "f1.svg", "f1.png", "lengths.svg", "lengths.png", "numbers.json"):
        assert (tmp_path / "parsing" / name).stat().st_size > 0
    said.clear()
    again = run_experiment("parsing", tmp_path, Lab(tmp_path, quick=True, config=translator, say=said.append))
    assert again["numbers"] == numbers
    assert not any("training" in line for line in said)  # what was measured is read
    with pytest.raises(ConfigError, match="not a parser"):
        run_experiment("parsing", tmp_path / "other", Lab(tmp_path, quick=True, run=tiny_run))


@pytest.fixture(scope="module")
def treebank(tmp_path_factory: pytest.TempPathFactory, tiny: Any) -> Path:
    """A folder with a parser, ``run``, that was trained there on ``train.trees`` and validated on ``valid.trees``."""
    folder = tmp_path_factory.mktemp("treebank")
    phrasebook.write_trees(60, folder / "train.trees", seed=1)
    phrasebook.write_trees(12, folder / "valid.trees", seed=2)
    mapping = tiny(max_steps=2, validate_every=2, save_every=2)
    mapping |= {"task": "parsing", "model": mapping["model"] | {"share_embeddings": "decoder"}}
    texts = {name: {"trees": f"{name}.trees"} for name in ("train", "valid")}
    mapping["data"] = {**texts, "tokenizer": {"vocab_size": 300, "joint": False}}
    with contextlib.chdir(folder):
        dragoman.train(dragoman.Config.from_mapping(mapping), out="run", quiet=True)
    return folder


def n_sentences(out: Path, run: Path) -> int:
    """The number of trees by which a parser is examined."""
    record = run_experiment("parsing", out, Lab(out, quick=True, run=run, say=lambda text: None))
    number: int = record["numbers"]["sentences"]
    return number


def test_a_run_is_examined_on_its_own_trees_and_on_no_others_of_that_name(
    treebank: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Any file of that name was taken for its validation trees."""
    shutil.copytree(treebank, tmp_path / "own")
    (tmp_path / "elsewhere").mkdir()
    phrasebook.write_trees(5, tmp_path / "elsewhere/valid.trees", seed=9)
    monkeypatch.chdir(tmp_path / "elsewhere")
    for run in ("run", "run/bundle"):
        assert n_sentences(tmp_path / "lab", treebank / run) == 12  # the file is where it was in training
    with monkeypatch.context() as patched:
        patched.chdir(tmp_path / "own")
        assert n_sentences(tmp_path / "lab", tmp_path / "own/run") == 12
    store = tmp_path / "own/run/store/valid/store.json"
    about = json.loads(store.read_text(encoding="utf-8"))
    about["sources"] = {str(tmp_path / "gone/valid.trees"): next(iter(about["sources"].values()))}
    store.write_text(json.dumps(about), encoding="utf-8")
    with pytest.raises(ConfigError, match=r"^valid\.trees: not the validation trees that .*own/run was trained with"):
        n_sentences(tmp_path / "lab", tmp_path / "own/run")
    (tmp_path / "elsewhere/valid.trees").unlink()
    assert n_sentences(tmp_path / "lab", tmp_path / "own/run") == 12  # from the store


def test_other_trees_for_a_bundle_are_measured_again(
    treebank: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The numbers depended on the weights alone, so that those of the trees before came back."""
    shutil.copytree(treebank / "run/bundle", tmp_path / "alone/bundle")
    monkeypatch.chdir(tmp_path)
    for number in (7, 4):
        phrasebook.write_trees(number, tmp_path / "valid.trees", seed=9)
        assert n_sentences(tmp_path / "lab", tmp_path / "alone/bundle") == number
    (tmp_path / "valid.trees").unlink()
    with pytest.raises(ConfigError, match=r"its validation trees are neither in valid\.trees nor in store/valid"):
        n_sentences(tmp_path / "lab", tmp_path / "alone/bundle")
