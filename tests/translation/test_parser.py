"""A parser: trained on trees by the ordinary command, one well-formed tree out for each line in, brackets counted."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import dragoman
from dragoman.errors import ConfigError
from dragoman.evaluation import ledger
from dragoman.evaluation.bracket_f1 import bracket_scores
from dragoman.explanation.explain import explain
from dragoman.parsing.trees import Tree, read_trees, right_branching, tree_of, words_of, write_tree
from dragoman.translation.notes import Events


class Treebank(NamedTuple):
    train: Path
    test: Path


def grow(chance: random.Random) -> str:
    """A sentence of a toy grammar, with its tree."""

    def noun_phrase(depth: int = 0) -> str:
        words = f"(NP (DT {chance.choice(['the', 'a'])}) (NN {chance.choice(['dog', 'cat', 'man', 'tree'])}))"
        if depth < 2 and chance.random() < 0.4:
            return f"(NP {words} (PP (IN {chance.choice(['of', 'near'])}) {noun_phrase(depth + 1)}))"
        return words

    verb = f"(VBZ {chance.choice(['sees', 'likes', 'finds'])})"
    what = noun_phrase() if chance.random() < 0.7 else "(ADVP (RB here))"
    return f"(TOP (S {noun_phrase()} (VP {verb} {what}) (. .)))"


@pytest.fixture(scope="module")
def treebank(tmp_path_factory: pytest.TempPathFactory) -> Treebank:
    folder = tmp_path_factory.mktemp("treebank")
    chance = random.Random(3)
    files = Treebank(folder / "train.trees", folder / "test.trees")
    for path, count in zip(files, (500, 40), strict=True):
        path.write_text("".join(grow(chance) + "\n" for _ in range(count)), encoding="utf-8")
    return files


@pytest.fixture(scope="module")
def settings(treebank: Treebank, tiny: Callable[..., dict[str, Any]]) -> dict[str, Any]:
    mapping = tiny(max_steps=160, schedule="cosine", batch_tokens=800, validate_every=80, save_every=80)
    mapping["task"] = "parsing"
    mapping["model"] |= {"share_embeddings": "decoder", "dropout": 0.0, "n_heads": 4}
    mapping["data"] = {"train": {"trees": str(treebank.train)}, "tokenizer": {"vocab_size": 320, "joint": False}}
    mapping["decode"] = {"max_extra_tokens": 20, "length_penalty": 0.3}
    return mapping


@pytest.fixture(scope="module")
def parser_run(tmp_path_factory: pytest.TempPathFactory, settings: dict[str, Any]) -> Path:
    run = tmp_path_factory.mktemp("runs") / "parser"
    dragoman.train(dragoman.Config.from_mapping(settings), out=run, quiet=True)
    return run


@pytest.fixture(scope="module")
def parser(parser_run: Path) -> dragoman.Translator:
    return dragoman.Translator.load(parser_run)


def test_it_learns_and_beats_right_branching(parser: dragoman.Translator, treebank: Treebank) -> None:
    found = dragoman.evaluate(parser, ref=treebank.test, quiet=True)
    f1, precision, recall, exact, baseline, paper = found.scores
    assert [score.name for score in found.scores] == [
        "bracket F1", "precision", "recall", "exact match", "right-branching bracket F1", "the paper's bracket F1",
    ]  # fmt: skip
    assert f1.value > baseline.value + 30
    assert 50 < min(exact.value, precision.value, recall.value) <= max(precision.value, recall.value) < 100
    assert paper.value == 91.3
    golds = list(read_trees(treebank.test))
    assert found.scores[:4] == bracket_scores(golds, [tree_of(one.text) for one in found.translations])
    assert baseline.value == bracket_scores(golds, [right_branching(tree.words) for tree in golds])[0].value
    assert parser.run is not None
    assert ledger.read(parser.run)[-1]["scores"] == {score.name: score.value for score in found.scores[:4]}


def test_the_run_holds_what_a_parser_needs(parser_run: Path, treebank: Treebank) -> None:
    assert {path.name for path in (parser_run / "bundle").iterdir()} == {
        "config.yaml", "manifest.json", "model.safetensors", "src.spm", "tgt.spm",
    }  # fmt: skip
    manifest = json.loads((parser_run / "bundle/manifest.json").read_text(encoding="utf-8"))
    assert set(manifest["validation"]) == {"loss", "f1"}
    assert "confidence" not in manifest
    symbols = dragoman.Translator.load(parser_run).tgt_tokenizer
    trees = treebank.train.read_text(encoding="utf-8")
    labels = {label for label in ("S", "NP", "VP", "PP", "ADVP") if f"({label}" in trees}
    pieces = set(symbols.pieces(range(4, symbols.vocab_size)))
    assert {f"\u2581{side}{label}" for label in labels for side in "()"} <= pieces
    assert {piece for piece in pieces if piece[1] not in "()"} <= {
        f"\u2581{tag}" for tag in ("DT", "NN", "IN", "VBZ", "RB", ".")
    }
    log = [json.loads(line) for line in (parser_run / "log.jsonl").read_text(encoding="utf-8").splitlines()]
    seen = [event for event in log if event["event"] == "validation"]
    assert len(seen) == 2
    assert all({"f1", "loss"} <= event.keys() and "bleu" not in event for event in seen)
    assert seen[-1]["f1"] > 50


def test_every_line_becomes_one_tree_over_its_words(parser: dragoman.Translator) -> None:
    texts = [
        "the dog sees a cat .", "", "   ", "a", "( a ) \u2581 \u281a (TOP -LRB- )NP NN", "dog " * 60,
        "\u4e2d\u6587 \u00a0 x\ty", "the\u2028dog",
    ]  # fmt: skip
    found = parser.translate(texts)
    for text, one in zip(texts, found, strict=True):
        assert (one.text == "") == (not text.split())
        assert "\n" not in one.text
        if one.text:
            assert tree_of(one.text).words == words_of(text)
    assert found[0].text.startswith("(TOP (S (NP (DT the) (NN dog)) (VP (VBZ sees) ")


def test_what_had_to_be_repaired_is_said(parser: dragoman.Translator) -> None:
    said: list[str] = []
    found = parser.translate(
        ["the dog sees a cat .", "here here here of of of"],
        beam_size=1,
        events=Events(warn=lambda note: said.append(str(note))),
    )
    assert found[0].notes == ()
    assert [line.partition(": ")[0] for line in said] == [f"line {i + 1}" for i in range(2) if found[i].notes]
    assert all("repaired: " in line for line in said)


def test_of_a_beam_whole_trees_come_first(parser: dragoman.Translator) -> None:
    texts = ["here here here of of of", "sees of the", "a a a a", "the dog of the man near a tree sees ."]
    for one in parser.translate(texts, beam_size=4, n_best=4):
        every = (one, *one.alternatives)
        assert 1 <= len(every) <= 4
        assert len({each.text for each in every}) == len(every)
        whole = [not each.notes for each in every]
        assert whole == sorted(whole, reverse=True)
        for kind in (True, False):
            scores = [each.score for each, is_whole in zip(every, whole, strict=True) if is_whole == kind]
            assert scores == sorted(scores, reverse=True)
        assert len({tree_of(each.text).words for each in every}) == 1


def test_a_sentence_that_is_too_long_becomes_right_branching_and_that_is_said(parser: dragoman.Translator) -> None:
    said: list[str] = []
    words = ("dog",) * 300
    one, other = parser.translate([" ".join(words), "the dog"], events=Events(warn=lambda note: said.append(str(note))))
    assert one.text == write_tree(right_branching(words))
    assert said[0] == "line 1: too long to be parsed (300 words): a right-branching tree is returned"
    assert tree_of(other.text).words == ("the", "dog")


def test_a_tree_does_not_depend_on_its_neighbours(parser: dragoman.Translator, treebank: Treebank) -> None:
    texts = [" ".join(tree.words) for tree in read_trees(treebank.test)][:12]
    together = [one.text for one in parser.translate(texts)]
    assert [parser.translate([text])[0].text for text in texts] == together


def test_the_commands(command: Any, parser_run: Path, treebank: Treebank, tmp_path: Path) -> None:
    golds: list[Tree] = list(read_trees(treebank.test))
    lines = [" ".join(tree.words) for tree in golds[:5]] + ["", "the dog sees a cat ."]
    done = command("translate", parser_run, stdin="".join(line + "\n" for line in lines).encode())
    assert done.status == 0, done.err
    out = done.out.decode().split("\n")
    assert len(out) == 8
    assert out[5] == out[7] == ""
    assert [tree_of(line).words for line in out[:5]] == [tree.words for tree in golds[:5]]
    done = command("evaluate", parser_run, "--ref", treebank.test, "--json", "--out", tmp_path / "found.trees")
    assert done.status == 0, done.err
    told = json.loads(done.out)
    assert told["lines"] == 40
    assert told["scores"][0]["name"] == "bracket F1"
    assert re.search(r"40 trees; \d+ had to be repaired to be well-formed\n", done.err)
    found = list(read_trees(tmp_path / "found.trees"))
    assert bracket_scores(golds, found)[0].value == pytest.approx(told["scores"][0]["value"])


def test_an_export_of_a_parser_is_not_compared_and_nothing_is_written(
    command: Any, parser_run: Path, treebank: Treebank, tmp_path: Path
) -> None:
    done = command("export", parser_run, "--format", "ctranslate2", "--check", treebank.test, "--out", tmp_path / "out")
    assert done.status == 2
    assert "a parser cannot be compared, as no other toolkit can parse; export it without --check" in done.error
    assert not (tmp_path / "out").exists()


def test_attention_of_a_parser_is_traced(parser: dragoman.Translator) -> None:
    seen = explain(parser, "the dog sees a cat .")
    assert seen.by_words().src.tokens == ("the", "dog", "sees", "a", "cat", ".", "(end)")
    assert seen.translation.startswith("(S (NP DT NN )NP (VP VBZ (NP DT NN )NP")


def test_the_doctor_looks_at_a_parsers_run(command: Any, parser_run: Path, treebank: Treebank, tmp_path: Path) -> None:
    done = command("doctor", parser_run, "--json")
    assert done.status == 0, done.err
    assert "BLEU" not in done.out.decode()
    assert json.loads(done.out)["facts"]["best_f1"] > 50
    done = command("doctor", parser_run / "config.yaml")
    assert done.status == 2
    assert "doctor does not check treebanks" in done.error


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("translate", "RUN", "--prefix", "(S"), "prefix, include, exclude, glossary and no_repeat_ngram"),
        (("translate", "RUN", "--prefix", "狗"), "prefix, include, exclude, glossary and no_repeat_ngram"),
        (("translate", "RUN", "--alignments", "links"), "alignments: not supported by a parser"),
        (("translate", "RUN", "--engine", "ctranslate2"), "cannot do"),
        (("evaluate", "RUN", "--ref", "GOLD", "--src", "GOLD"), "give one --ref, and no --src"),
        (("evaluate", "RUN", "RUN", "--ref", "GOLD", "--src", "GOLD"), "one at a time"),
        (("evaluate", "RUN", "--ref", "GOLD", "--src", "GOLD", "--stress"), "--stress is for translation runs"),
        (("evaluate", "RUN", "--ref", "BAD"), "BAD:2: a leaf of two words"),
        (("score", "RUN", "--src", "GOLD", "--ref", "GOLD"), "cannot score given trees"),
    ],
)
def test_what_a_parser_cannot_do_is_refused(
    command: Any, parser_run: Path, treebank: Treebank, tmp_path: Path, arguments: tuple[str, ...], said: str
) -> None:
    bad = tmp_path / "BAD"
    bad.write_text("(TOP (NP (NN dog)))\n(TOP (NP (NN two words)))\n", encoding="utf-8")
    places = {"RUN": parser_run, "GOLD": treebank.test, "BAD": bad, "links": tmp_path / "links"}
    done = command(*(places.get(one, one) for one in arguments), stdin=b"the dog\n")
    assert done.status == 2
    assert said in done.error


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"task": "translation"}, "data.train.trees is for parsers"),
        ({"task": "pasring"}, "task must be translation or parsing, got 'pasring'"),
        ({"data": {"train": {"src": "a", "tgt": "b"}, "tokenizer": {"joint": False}}}, "give data.train.trees"),
        ({"data": {"train": {"trees": "a", "src": "b"}, "tokenizer": {"joint": False}}}, "give trees alone"),
        ({"data": {"train": {"trees": "a"}}}, "set data.tokenizer.joint to false"),
        ({"model": {}}, "model.share_embeddings to decoder or none"),
        ({"data": {"train": {"trees": "a"}, "tokenizer": {"joint": False}, "noise": {"typos": 0.1}}}, "data.noise"),
    ],
)
def test_a_configuration_that_does_not_fit_a_parser(
    settings: dict[str, Any], changed: dict[str, Any], said: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        dragoman.Config.from_mapping({**settings, **changed})
    assert said in str(caught.value)


def test_a_configuration_is_read_back_as_it_was_written(settings: dict[str, Any], tmp_path: Path) -> None:
    config = dragoman.Config.from_mapping(settings)
    (tmp_path / "config.yaml").write_text(config.to_yaml(), encoding="utf-8")
    assert dragoman.Config.from_yaml(tmp_path / "config.yaml") == config


def test_a_run_resumes_where_it_was_stopped(settings: dict[str, Any], tmp_path: Path) -> None:
    for folder, stops in (("whole", [6]), ("parts", [3, 6])):
        mapping = {
            **settings,
            "train": {**settings["train"], "max_steps": stops[0], "save_every": 3, "warmup_steps": 1},
        }
        mapping["train"] |= {"schedule": "inverse_sqrt", "validate_every": 6}
        dragoman.train(dragoman.Config.from_mapping(mapping), out=tmp_path / folder, quiet=True)
        for stop in stops[1:]:
            dragoman.train(out=tmp_path / folder, resume=True, overrides=[f"train.max_steps={stop}"], quiet=True)
    name = "checkpoints/step_00000006/model.safetensors"
    one, other = ((tmp_path / folder / name).read_bytes() for folder in ("whole", "parts"))
    assert one == other


def test_subwords_of_sentences_can_be_sampled(settings: dict[str, Any], tmp_path: Path) -> None:
    data = {**settings["data"], "tokenizer": {**settings["data"]["tokenizer"], "sampling": 0.1}}
    mapping = {**settings, "data": data, "train": {**settings["train"], "max_steps": 2, "warmup_steps": 1}}
    trained = dragoman.train(dragoman.Config.from_mapping(mapping), out=tmp_path / "run", quiet=True)
    assert trained.validation is not None
    assert trained.validation.f1 is not None


def test_a_line_of_invisible_characters_is_blank_and_not_too_long(parser: dragoman.Translator) -> None:
    for line in parser.translate(["\u200b", "\u00ad", ""]):
        assert (line.text, line.notes) == ("", ())


def test_warnings_about_trees_are_listed(parser: dragoman.Translator, tmp_path: Path) -> None:
    gold, listed = tmp_path / "gold.trees", tmp_path / "warnings.txt"
    gold.write_text("(S " + "(NN dog) " * 900 + ")\n", encoding="utf-8")
    dragoman.evaluate(parser, ref=gold, warnings=listed, quiet=True)
    assert f"{gold}:1: too long to be parsed" in listed.read_text(encoding="utf-8")
