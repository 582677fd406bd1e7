"""Constituency parsing by the same model (Table 4): trained on trees, read against gold trees by brackets."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from dragoman.bundle import load_bundle
from dragoman.config import Config, each
from dragoman.data import phrasebook
from dragoman.data.texts import paths_of
from dragoman.errors import ConfigError, DataError
from dragoman.evaluation.bracket_f1 import PAPER_F1, bracket_scores
from dragoman.explanation.figures import Bar, Bars, Chart, Curve, bars, curves
from dragoman.explanation.parse_tree import parse_trees
from dragoman.explanation.style import BLUE, QUIET
from dragoman.files import explained
from dragoman.lab.report import Claim, Findings, Lab, Section, Table
from dragoman.lab.runs import QUICK, changed, finished, of_last_step, validation_texts
from dragoman.parsing.brackets import Counts, by_label, count
from dragoman.parsing.trees import Tree, from_symbols, read_trees, right_branching, to_symbols, tree_of
from dragoman.training.run import Trained
from dragoman.translation.translator import Translator

TAKES = ("config", "run", "device")

RECIPE: dict[str, Any] = {
    "task": "parsing",
    "model": dict(
        d_model=64, d_ff=256, n_heads=8, n_encoder_layers=2, n_decoder_layers=2, dropout=0.1, share_embeddings="decoder"
    ),
    "data": {"tokenizer": {"vocab_size": 1000, "joint": False}},
    "train": dict(
        max_steps=2000, batch_tokens=1024, schedule="cosine", lr=4e-3, warmup_steps=150, clip_norm=1.0, average=0,
        validate_every=2000, save_every=500, log_every=50,
    ),
    "decode": {"beam_size": 4, "length_penalty": 0.3, "max_extra_tokens": 50},
}  # fmt: skip
"""A parser of the embedded treebank, in a minute or two."""

WSJ_ONLY = [
    ("Vinyals & Kaiser et al. (2014), LSTM", 88.3),
    ("Petrov et al. (2006)", 90.4),
    ("Zhu et al. (2013)", 90.4),
    ("Dyer et al. (2016), discriminative", 91.7),
]
"""Table 4: trained on the Wall Street Journal alone, F1 on its section 23; the Transformer has ``PAPER_F1``."""

EDGES = (10, 20, 30, 40)
"""Sentences are grouped by their words: up to so many."""

FEWEST = 10
"""Of fewer sentences no point is drawn."""

AHEAD = 20.0
"""By so much F1 a parser is to be ahead of right-branching trees."""


def run(lab: Lab) -> Findings:
    """Claims: every output is a tree over the sentence's words, and it is far better than right-branching."""
    if lab.run is not None:
        given = lab.run
        weights = load_bundle(given, lab.device).manifest["files"]["model.safetensors"]["sha256"]
        found = lab.done("given", lambda: _of_run(lab, given), weights)
    else:
        config = _config(lab)
        is_embedded = paths_of(each(config.data.train))[0].parent == lab.out / "treebank"

        def measure(folder: Path, done: Trained, config: Config) -> dict[str, Any]:
            lab.say(f"  {done.step:,} steps in {done.seconds:.0f} s; now parsing")
            return _of_run(lab, folder, is_embedded) | {"train_s": done.seconds, "steps": done.step}

        found = finished(lab, "parser", config, 1, measure)
    return Findings(found, sections(found), [] if lab.quick else verdict(found))


def _config(lab: Lab) -> Config:
    """What is trained: the configuration that was given if it is a parser's, else a parser of the embedded treebank."""
    config = lab.config
    if config is not None and not config.is_parser:
        lab.say("the configuration is for translation: using the embedded treebank instead")
        config = None
    if config is None:
        folder, sizes = lab.out / "treebank", (300, 20) if lab.quick else (8000, 500)
        files = {"train": folder / f"train-{sizes[0]}.trees", "valid": folder / f"valid-{sizes[1]}.trees"}
        with explained(folder):
            folder.mkdir(parents=True, exist_ok=True)
            phrasebook.write_trees(sizes[0], files["train"], seed=1)
            phrasebook.write_trees(sizes[1], files["valid"], seed=2, split="held_out")
        data = {**RECIPE["data"], **{name: {"trees": path} for name, path in files.items()}}
        config = Config.from_mapping({**RECIPE, "data": data}, "the recipe of the experiment")
    else:
        config = of_last_step(config)
    return changed(config, **QUICK) if lab.quick else config


# --- measurements -----------------------------------------------------------------------------------------------------


def _of_run(lab: Lab, folder: Path, deeper: bool = False) -> dict[str, Any]:
    """What a parser does on its validation trees; with ``deeper`` on more deeply nested sentences too.

    Raises:
        ConfigError: The run is none of a parser, or has no validation trees.
    """
    parser = Translator.load(folder, lab.device.type)
    if not parser.is_parser:
        raise ConfigError(f"{folder}: not a parser: train one with task: parsing, or leave out --run")
    n = 20 if lab.quick else None
    found = measured(parser, _gold_trees(parser, folder)[:n])
    if deeper:
        lines = phrasebook.trees(n or 500, seed=3, split="deeper")
        found["deeper"] = measured(parser, [tree_of(line) for line in lines])
    return found


def _gold_trees(parser: Translator, folder: Path) -> list[Tree]:
    texts = parser.config.data.valid
    valid = None if texts is None else paths_of(each(texts))[0]
    if valid is not None and valid.exists():
        return list(read_trees(valid))
    if not (folder / "store/valid").is_dir():
        raise ConfigError(f"{folder}: its validation trees are neither in {valid} nor in store/valid")
    pairs = zip(*validation_texts(folder), strict=True)
    return [from_symbols(symbols.split(" "), sentence.split(" ")).tree for sentence, symbols in pairs]


def measured(parser: Translator, golds: Sequence[Tree]) -> dict[str, Any]:
    """Scores of a parser and of right-branching trees, as a whole, by length and by label; and an example."""
    lines = parser.translate([" ".join(tree.words) for tree in golds])
    read = [_read(one.text, gold.words) for one, gold in zip(lines, golds, strict=True)]
    founds = [tree or gold._replace(brackets=()) for tree, gold in zip(read, golds, strict=True)]
    branching = [right_branching(tree.words) for tree in golds]
    example = _example(golds, founds)
    return {
        "sentences": len(golds),
        "words": sum(len(tree.words) for tree in golds),
        "well_formed": sum(tree is not None for tree in read),
        "repaired": sum(note.kind == "repaired" for one in lines for note in one.notes),
        "parser": _summary(golds, founds),
        "right_branching": _summary(golds, branching),
        "by_length": {
            "sentences": _by_length(golds, founds, lambda counts: len(counts)),
            "parser": _by_length(golds, founds, _f1),
            "right_branching": _by_length(golds, branching, _f1),
        },
        "by_label": {label: [*counts, counts.f1] for label, counts in by_label(golds, founds).items()},
        "example": {
            "sentence": " ".join(golds[example].words),
            "gold": " ".join(to_symbols(golds[example])),
            "found": " ".join(to_symbols(founds[example])),
        },
    }


def _read(line: str, words: Sequence[str]) -> Tree | None:
    """The tree in a line; None if there is no tree, or one over other words."""
    try:
        tree = tree_of(line)
    except DataError:
        return None
    return tree if tree.words == tuple(words) else None


def _example(golds: Sequence[Tree], founds: Sequence[Tree]) -> int:
    """A sentence to show: of about ten words, and with some brackets wrong if there is one."""

    def oddness(i: int) -> tuple[int, bool]:
        return max(0, abs(len(golds[i].words) - 10) - 2), golds[i].brackets == founds[i].brackets

    return min(range(len(golds)), key=oddness)


def _summary(golds: Sequence[Tree], founds: Sequence[Tree]) -> dict[str, float | None]:
    f1, precision, recall, exact = bracket_scores(golds, founds)
    bare_golds, bare_founds = ([_unlabelled(tree) for tree in trees] for trees in (golds, founds))
    return {
        "f1": f1.value, "low": f1.low, "high": f1.high, "precision": precision.value, "recall": recall.value,
        "exact": exact.value, "unlabelled_f1": bracket_scores(bare_golds, bare_founds)[0].value,
    }  # fmt: skip


def _unlabelled(tree: Tree) -> Tree:
    return tree._replace(brackets=tuple(bracket._replace(label="X") for bracket in tree.brackets))


def _by_length(
    golds: Sequence[Tree], founds: Sequence[Tree], make: Callable[[list[Counts]], float | None]
) -> list[float | None]:
    """For sentences of up to 10, 20, 30, 40 and more words."""
    groups: list[list[Counts]] = [[] for _ in (*EDGES, None)]
    for gold, found in zip(golds, founds, strict=True):
        counts = count(gold, found)
        if counts is not None:
            groups[sum(len(gold.words) > edge for edge in EDGES)].append(counts)
    return [make(group) for group in groups]


def _f1(group: Sequence[Counts]) -> float | None:
    return Counts(*(sum(column) for column in zip(*group, strict=True))).f1 if group else None


# --- the account ------------------------------------------------------------------------------------------------------


def verdict(found: Mapping[str, Any]) -> list[Claim]:
    """What a full run decides, from the numbers that it keeps."""
    parser, baseline = found["parser"], found["right_branching"]
    ahead = parser["low"] - baseline["high"]
    claims = [
        Claim(
            "Whatever the model writes becomes a well-formed tree over exactly the sentence's words",
            found["well_formed"] == found["sentences"],
            f"{found['well_formed']:,} of {found['sentences']:,} sentences; {found['repaired']:,} had to be repaired",
        ),
        Claim(
            f"The parser is more than {AHEAD:.0f} F1 ahead of right-branching trees",
            ahead > AHEAD,
            f"{_value(parser)} against {_value(baseline)}, labelled brackets, 95% bootstrap intervals over sentences",
        ),
    ]
    if "deeper" in found:
        deeper = found["deeper"]["parser"]
        apart = deeper["high"] < parser["low"] or deeper["low"] > parser["high"]
        claims.append(
            Claim(
                "Sentences nested one level deeper than any it was trained on are parsed worse",
                deeper["high"] < parser["low"] if apart else None,
                f"{_value(deeper)} against {_value(parser)} of new combinations at known depths",
            )
        )
    return claims


def _value(scores: dict[str, Any]) -> str:
    return f"{scores['f1']:.1f} [{scores['low']:.1f}, {scores['high']:.1f}]"


def sections(found: Mapping[str, Any]) -> list[Section]:
    """What a full run tells and draws, from the numbers that it keeps."""
    example, is_embedded = found["example"], "deeper" in found
    corpus = "the embedded treebank, which a small grammar generates" if is_embedded else "the given treebank"
    return [
        Section(
            "A tree as a sequence",
            [
                "Section 6.3 of the paper parses with the very model that translates. A tree is written as a sequence: "
                "brackets with their label, and for each word its tag instead of the word. Nothing in it says which "
                "word is meant: the decoder has to find the place in the sentence by its attention.",
                f"Sentence: `{example['sentence']}`",
                f"What the decoder should write: `{example['gold']}`",
                "It is free to write anything else. Rules make a tree of what came out, over exactly the sentence's "
                f"words; {found['repaired']:,} of {found['sentences']:,} outputs needed one.",
            ],
            figure=parse_trees(*(_tree(example, key) for key in ("found", "gold"))),
            name="tree",
            caption="Words, their tags, and constituents above them. Marked: brackets that the other tree has not.",
        ),
        Section(
            "Against right-branching trees",
            f"Labelled brackets are counted as EVALB counts them, on {found['sentences']:,} sentences of {corpus}. "
            "Right-branching trees bracket each word with all that follow it, the usual blind guess for English. The "
            "paper's Table 4 is of another corpus, section 23 of the Wall Street Journal, and cannot be compared with "
            f"this: {_published()}.",
            figure=bars([Bars(_bars(found), "labelled bracket F1 (%)")], width=4.6),
            name="f1",
            table=Table(
                ("", "F1", "precision", "recall", "exact match", "unlabelled F1"),
                [_row(*row) for row in _rows(found)],
            ),
            caption=f"Labelled brackets of {corpus}; whiskers: 95% bootstrap intervals over sentences. Figures of "
            f"other "
            "corpora, such as those of the paper's Table 4, cannot be compared with these.",
        ),
        Section(
            "Longer sentences are harder",
            "F1 by the number of words of a sentence, punctuation included.",
            figure=curves([_chart(found)]),
            name="lengths",
            caption="Each point is a group of sentences: of up to 10 words, of 11 to 20, and so on, where there are "
            f"{FEWEST} or more.",
        ),
        Section(
            "Label by label",
            "The commonest labels are learned first; a rare one is seen too seldom.",
            table=Table(
                ("label", "gold brackets", "found", "right", "F1"),
                [
                    (label, gold, said, right, f"{f1:.1f}")
                    for label, (right, gold, said, f1) in list(found["by_label"].items())[:12]
                ],
            ),
            caption="ADVP includes PRT. F1 in per cent.",
        ),
    ]


def _tree(example: dict[str, str], which: str) -> Tree:
    return from_symbols(example[which].split(" "), tuple(example["sentence"].split(" "))).tree


def _rows(found: Mapping[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    rows = [("the parser", found["parser"]), ("right-branching", found["right_branching"])]
    if "deeper" in found:
        rows += [
            ("the parser, one level deeper", found["deeper"]["parser"]),
            ("right-branching, one level deeper", found["deeper"]["right_branching"]),
        ]
    return rows


def _row(name: str, scores: dict[str, Any]) -> tuple[str, ...]:
    keys = ("f1", "precision", "recall", "exact", "unlabelled_f1")
    return (name, *(f"{scores[key]:.1f}" for key in keys))


def _bars(found: Mapping[str, Any]) -> list[Bar]:
    """Those of one corpus; the paper's are of another, and no bar of theirs belongs on the same axis."""
    return [
        Bar(name, row["f1"], row["low"], row["high"], QUIET if name.startswith("right") else BLUE, f"{row['f1']:.1f}")
        for name, row in _rows(found)
    ]


def _published() -> str:
    """Table 4 in words."""
    return ", ".join(f"{name} {value}" for name, value in (*WSJ_ONLY, ("the paper's Transformer", PAPER_F1)))


def _chart(found: Mapping[str, Any]) -> Chart:
    groups = {5.5: "1–10", 15.5: "11–20", 25.5: "21–30", 35.5: "31–40", 45.5: "over 40"}  # by their middles
    lines: list[Curve] = []
    counts = found["by_length"]["sentences"]
    for key, name in (("parser", "parser"), ("right_branching", "right-branching")):
        rows = zip(groups, found["by_length"][key], counts, strict=True)
        there = [(x, y) for x, y, n in rows if y is not None and (n >= FEWEST or n == max(counts))]
        lines.append(Curve(name, [x for x, _ in there], [y for _, y in there], points=True))
    shown = lines[0].x
    return Chart(
        lines,
        "words in the sentence",
        "labelled bracket F1 (%)",
        y_range=(0, 103),
        x_names={at: groups[at] for at in shown},
    )
