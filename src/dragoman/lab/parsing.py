"""Train the Transformer as a constituency parser and score its trees by labelled brackets (section 6.3, Table 4)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from dragoman.bundle import find_bundle, is_unfinished
from dragoman.config import Config, each
from dragoman.data import phrasebook
from dragoman.data.store import ABOUT, Store, fingerprint
from dragoman.data.texts import paths_of
from dragoman.errors import ConfigError, DataError
from dragoman.evaluation.bracket_f1 import bracket_scores
from dragoman.explanation.figures import Bar, Bars, Chart, Curve, bars, curves
from dragoman.explanation.parse_tree import parse_trees
from dragoman.explanation.style import BLUE, QUIET
from dragoman.files import explained
from dragoman.lab.experiment import Claim, Findings, Lab, Section, Table, run_to_examine
from dragoman.lab.runs import QUICK, Variant, changed, finished, of_last_step
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
"""Recipe of a parser of the embedded treebank, which trains for a minute or two."""

EDGES = (10, 20, 30, 40)
"""Upper limits, in words, of the groups of sentences by length."""

FEWEST = 10
"""Number of sentences that a group needs to be drawn."""

AHEAD = 20.0
"""Lead over right-branching trees, in F1, that the experiment claims for a parser."""


def run(lab: Lab) -> Findings:
    """Train or load a parser; claims: all outputs are trees over the sentence's words, and beat right-branching."""
    examined = run_to_examine(lab)
    if examined is not None:
        parser = _parser(lab, examined)
        trees = _place_of_trees(parser, examined)
        weights = parser.manifest["files"]["model.safetensors"]["sha256"]
        depends_on = [weights, fingerprint(trees / ABOUT if trees.is_dir() else trees)]
        numbers = lab.done("given", lambda: _examine(lab, parser, trees), depends_on)
    else:
        config = _config(lab)
        is_embedded = paths_of(each(config.data.train))[0].parent == lab.out / "treebank"

        def measure(folder: Path, done: Trained, config: Config) -> dict[str, Any]:
            lab.say(f"  {done.step:,} steps in {done.seconds:.0f} s; now parsing")
            parser = _parser(lab, folder)
            numbers = _examine(lab, parser, _place_of_trees(parser, folder), is_embedded)
            return numbers | {"train_s": done.seconds, "steps": done.step}

        numbers = finished(lab, Variant("parser", config), 1, measure)
    return Findings(numbers, sections(numbers), [] if lab.quick else verdict(numbers))


def _config(lab: Lab) -> Config:
    """Return the configuration to train: a parser's of ``--config``, or else ``RECIPE`` on the embedded treebank."""
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


def _parser(lab: Lab, folder: Path) -> Translator:
    """Load the parser of a run.

    Raises:
        ConfigError: The run is not a parser.
    """
    parser = Translator.load(folder, lab.device.type)
    if not parser.is_parser:
        raise ConfigError(f"{folder}: not a parser: train one with task: parsing, or leave out --run")
    return parser


def _examine(lab: Lab, parser: Translator, trees: Path, deeper: bool = False) -> dict[str, Any]:
    """Return the scores of a parser on a file or store of trees; with ``deeper`` on more deeply nested ones too."""
    n = 20 if lab.quick else None
    numbers = measured(parser, _gold_trees(trees)[:n])
    if deeper:
        lines = phrasebook.trees(n or 500, seed=3, split="deeper")
        numbers["deeper"] = measured(parser, [tree_of(line) for line in lines])
    return numbers


def _place_of_trees(parser: Translator, folder: Path) -> Path:
    """Return the file of a run's validation trees, or the run's store of them if the file is gone.

    Raises:
        ConfigError: The file has changed since the run began, or there are no validation trees.
    """
    texts = parser.config.data.valid
    valid = None if texts is None else paths_of(each(texts))[0]
    run = folder if is_unfinished(folder) else find_bundle(folder).parent
    store = run / "store/valid"
    sources = Store.open(store).sources if store.is_dir() else {}  # none known of a bundle without its run
    places = [] if valid is None else [valid, *(path for path in map(Path, sources) if path.name == valid.name)]
    files = [path for path in places if path.is_file()]
    for path in files:
        if not sources or fingerprint(path) in sources.values():
            return path
    if files:
        raise ConfigError(
            f"{files[0]}: not the validation trees that {folder} was trained with; restore the file, or move it away "
            f"to examine the run on those in {store}"
        )
    if not store.is_dir():
        raise ConfigError(f"{folder}: its validation trees are neither in {valid} nor in store/valid")
    return store


def _gold_trees(place: Path) -> list[Tree]:
    """Read trees from a file, or from the store of a run."""
    if place.is_file():
        return list(read_trees(place))
    store = Store.open(place)
    pairs = zip(*store.texts(range(len(store))), strict=True)
    return [from_symbols(symbols.split(" "), sentence.split(" ")).tree for sentence, symbols in pairs]


def measured(parser: Translator, golds: Sequence[Tree]) -> dict[str, Any]:
    """Return the scores of a parser and of right-branching trees, in all, by length and by label, with an example."""
    outputs = parser.translate([" ".join(tree.words) for tree in golds])
    read = [_read(output.text, gold.words) for output, gold in zip(outputs, golds, strict=True)]
    # An output that is no tree over the words counts as a tree without brackets, so that it costs recall.
    trees = [tree or gold._replace(brackets=()) for tree, gold in zip(read, golds, strict=True)]
    branching = [right_branching(tree.words) for tree in golds]
    example = _example(golds, trees)
    return {
        "sentences": len(golds),
        "words": sum(len(tree.words) for tree in golds),
        "well_formed": sum(tree is not None for tree in read),
        "repaired": sum(note.kind == "repaired" for output in outputs for note in output.notes),
        "parser": _summary(golds, trees),
        "right_branching": _summary(golds, branching),
        "by_length": {
            "sentences": _by_length(golds, trees, lambda counts: len(counts)),
            "parser": _by_length(golds, trees, _f1),
            "right_branching": _by_length(golds, branching, _f1),
        },
        "by_label": {label: [*counts, counts.f1] for label, counts in by_label(golds, trees).items()},
        "example": {
            "sentence": " ".join(golds[example].words),
            "gold": " ".join(to_symbols(golds[example])),
            "found": " ".join(to_symbols(trees[example])),
        },
    }


def _read(line: str, words: Sequence[str]) -> Tree | None:
    """Return the tree in a line; None if there is none, or if it has other words."""
    try:
        tree = tree_of(line)
    except DataError:
        return None
    return tree if tree.words == tuple(words) else None


def _example(golds: Sequence[Tree], trees: Sequence[Tree]) -> int:
    """Choose a sentence to show: about ten words long, with a wrong bracket if possible; return its number."""

    def unfitness(i: int) -> tuple[int, bool]:
        return max(0, abs(len(golds[i].words) - 10) - 2), golds[i].brackets == trees[i].brackets

    return min(range(len(golds)), key=unfitness)


def _summary(golds: Sequence[Tree], trees: Sequence[Tree]) -> dict[str, float | None]:
    """Return the bracket scores of ``trees`` in per cent, labelled and unlabelled."""
    f1, precision, recall, exact = bracket_scores(golds, trees)
    bare_golds, bare_trees = ([_unlabelled(tree) for tree in side] for side in (golds, trees))
    return {
        "f1": f1.value, "low": f1.low, "high": f1.high, "precision": precision.value, "recall": recall.value,
        "exact": exact.value, "unlabelled_f1": bracket_scores(bare_golds, bare_trees)[0].value,
    }  # fmt: skip


def _unlabelled(tree: Tree) -> Tree:
    return tree._replace(brackets=tuple(bracket._replace(label="X") for bracket in tree.brackets))


def _by_length(
    golds: Sequence[Tree], trees: Sequence[Tree], summarise: Callable[[list[Counts]], float | None]
) -> list[float | None]:
    """Return ``summarise`` of the bracket counts of sentences up to 10, 20, 30 and 40 words, and of longer ones."""
    groups: list[list[Counts]] = [[] for _ in (*EDGES, None)]
    for gold, tree in zip(golds, trees, strict=True):
        counts = count(gold, tree)
        if counts is not None:
            groups[sum(len(gold.words) > edge for edge in EDGES)].append(counts)
    return [summarise(group) for group in groups]


def _f1(group: Sequence[Counts]) -> float | None:
    return Counts(*(sum(column) for column in zip(*group, strict=True))).f1 if group else None


# --- the report -------------------------------------------------------------------------------------------------------


def verdict(numbers: Mapping[str, Any]) -> list[Claim]:
    """Return the claims of the experiment, each decided by the numbers of a run."""
    parser, baseline = numbers["parser"], numbers["right_branching"]
    ahead = parser["low"] - baseline["high"]
    claims = [
        Claim(
            "Whatever the model writes becomes a well-formed tree over exactly the sentence's words",
            numbers["well_formed"] == numbers["sentences"],
            f"{numbers['well_formed']:,} of {numbers['sentences']:,} sentences; {numbers['repaired']:,} had to be "
            "repaired",
        ),
        Claim(
            f"The parser is more than {AHEAD:.0f} F1 ahead of right-branching trees",
            ahead > AHEAD,
            f"{_value(parser)} against {_value(baseline)}",
        ),
    ]
    if "deeper" in numbers:
        deeper = numbers["deeper"]["parser"]
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


def sections(numbers: Mapping[str, Any]) -> list[Section]:
    """Return the sections of the report, with figures and tables made from the numbers of a run."""
    example, is_embedded = numbers["example"], "deeper" in numbers
    corpus = "the embedded treebank, which a small grammar generates" if is_embedded else "the given treebank"
    written = [f"Sentence: `{example['sentence']}`", f"What the decoder should write: `{example['gold']}`"]
    return [
        Section(
            "A tree as a sequence",
            [
                "A tree is written as a sequence: brackets with their labels, and the tag of each word instead of the "
                "word. So the decoder has to find its place in the sentence by attention.",
                *(written if is_embedded else ()),
            ],
            figure=parse_trees(*(_tree(example, key) for key in ("found", "gold"))),
            name="tree",
            caption="Marked: brackets that the other tree has not.",
        ),
        Section(
            "Against right-branching trees",
            f"Labelled brackets are counted as EVALB counts them, on {numbers['sentences']:,} sentences of {corpus}. "
            "Right-branching trees bracket each word with all that follow it, the usual guess for English. The "
            "paper's Table 4 is of another corpus and cannot be compared with this.",
            figure=bars([Bars(_bars(numbers), "labelled bracket F1 (%)")], width=4.6),
            name="f1",
            table=Table(
                ("", "F1", "precision", "recall", "exact match"),
                [_row(*row) for row in _rows(numbers)],
            ),
            caption="Whiskers and brackets: 95% bootstrap intervals over sentences.",
        ),
        Section(
            "Longer sentences are harder",
            "",
            figure=curves([_chart(numbers)]),
            name="lengths",
            caption="F1 by the number of words of a sentence, punctuation included, where there are "
            f"{FEWEST} sentences or more.",
        ),
        Section(
            "Label by label",
            "",
            table=Table(
                ("label", "gold brackets", "F1"),
                [(label, n_gold, f"{f1:.1f}") for label, (_, n_gold, _, f1) in list(numbers["by_label"].items())[:6]],
            ),
            caption="The most frequent labels; ADVP includes PRT.",
        ),
    ]


def _tree(example: dict[str, str], which: str) -> Tree:
    return from_symbols(example[which].split(" "), tuple(example["sentence"].split(" "))).tree


def _rows(numbers: Mapping[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    rows = [("the parser", numbers["parser"]), ("right-branching", numbers["right_branching"])]
    if "deeper" in numbers:
        rows += [
            ("the parser, one level deeper", numbers["deeper"]["parser"]),
            ("right-branching, one level deeper", numbers["deeper"]["right_branching"]),
        ]
    return rows


def _row(name: str, scores: dict[str, Any]) -> tuple[str, ...]:
    keys = ("f1", "precision", "recall", "exact")
    return (name, *(f"{scores[key]:.1f}" for key in keys))


def _bars(numbers: Mapping[str, Any]) -> list[Bar]:
    """Return a bar for each row; the paper's results are of another corpus, so they have no bar here."""
    return [
        Bar(name, row["f1"], row["low"], row["high"], QUIET if name.startswith("right") else BLUE, f"{row['f1']:.1f}")
        for name, row in _rows(numbers)
    ]


def _chart(numbers: Mapping[str, Any]) -> Chart:
    groups = {5.5: "1–10", 15.5: "11–20", 25.5: "21–30", 35.5: "31–40", 45.5: "over 40"}  # by their middles
    lines: list[Curve] = []
    counts = numbers["by_length"]["sentences"]
    for key, name in (("parser", "parser"), ("right_branching", "right-branching")):
        rows = zip(groups, numbers["by_length"][key], counts, strict=True)
        points = [(x, y) for x, y, n in rows if y is not None and (n >= FEWEST or n == max(counts))]
        lines.append(Curve(name, [x for x, _ in points], [y for _, y in points], points=True))
    xs = lines[0].x
    return Chart(
        lines,
        "words in the sentence",
        "labelled bracket F1 (%)",
        y_range=(0, 103),
        x_names={at: groups[at] for at in xs},
    )
