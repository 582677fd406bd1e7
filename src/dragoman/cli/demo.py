"""``dragoman demo``: from two text files of the embedded corpus to a trained translator."""

from __future__ import annotations

import math
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dragoman.cli.declared_options import with_options
from dragoman.cli.signs import at_ctrl_c, loading
from dragoman.cli.tables import print_line
from dragoman.errors import ConfigError, as_command
from dragoman.options import not_among
from dragoman.progress import Ticker
from dragoman.training.options import RunOptions

if TYPE_CHECKING:
    from dragoman.config import Config
    from dragoman.training.run import Trained
    from dragoman.translation.translator import Translator

TRAIN_PAIRS = 120_000
TEST_PAIRS = 1000
SPLITS = {  # (number of pairs, split of the phrasebook, seed)
    "train": (TRAIN_PAIRS, "train", 1),
    "valid": (300, "held_out", 2),
    "held_out": (TEST_PAIRS, "held_out", 3),
    "deeper": (TEST_PAIRS, "deeper", 4),
}
MORE_STEPS = 600
"""Number of steps by which a demo that has done all of its own is continued."""
SENTENCE_TOKENS = 16
"""Typical length of a sentence of the corpus in subwords."""
MAP = ("attention.svg", "attention.png")
"""Files of the attention map in the run folder."""
PAGE = "translator.html"
"""File of the exported page in the run folder."""
Files = Mapping[str, Mapping[str, Path]]
LANGUAGES = {"de": "German", "zh": "Chinese"}
PROMISED = 0.97
"""Fraction of the held-out sentences that the demo translates exactly right where it reaches its goal."""
MINUTES = 12.0
"""Minutes of training after which the demo stops although the goal is not reached."""

RECIPE: dict[str, Any] = {
    "model": {
        "preset": "tiny", "d_ff": 512, "n_encoder_layers": 3, "n_decoder_layers": 3, "norm": "pre", "dropout": 0.0,
    },
    "data": {"src_lang": "en", "tokenizer": {"vocab_size": 1600}},
    "train": {
        "goal": 99.3, "max_steps": 1700, "batch_tokens": 3072, "schedule": "cosine", "lr": 3e-3,
        "warmup_steps": 200, "clip_norm": 1.0, "ema": 0.998, "average": 0, "validate_every": 150, "save_every": 300,
        "log_every": 50,
    },
    "decode": {"beam_size": 4},
}  # fmt: skip


@with_options(RunOptions, "minutes", "threads", "overrides")
def demo(
    options: RunOptions,
    tgt_lang: Annotated[str, typer.Option("--to", help="Target language: de (German) or zh (Chinese).")] = "de",
    out: Annotated[Path | None, typer.Option(help="Run folder (default: runs/demo or runs/demo-zh).")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue the training of an earlier demo.")] = False,
) -> None:
    """``dragoman demo``; its help is in ``cli/commands.py``."""
    _ = options.settings  # refuses another limit among the overrides
    settings = replace(options, minutes=None).settings
    signal = run_demo(tgt_lang, out, settings, minutes=options.minutes or MINUTES, resume=resume)
    if signal is not None:
        raise typer.Exit(128 + signal)


def run_demo(
    tgt_lang: str = "de", out: Path | None = None, overrides: Sequence[str] = (), *,
    minutes: float = MINUTES, resume: bool = False,
) -> int | None:  # fmt: skip
    """Write the corpus, train, score unseen combinations, show translations, an attention map and a page.

    Args:
        tgt_lang: ``de`` or ``zh``.
        out: The run folder.
        overrides: Settings that replace those of ``RECIPE``.
        minutes: Limit of the training, or of its continuation.
        resume: Continue the training in ``out``.

    Returns:
        Number of the signal that stopped training, or None.

    Raises:
        ConfigError: The language is unknown, or the folder already holds a run, or has none to resume, or other files
            have the names of the map and the page.
        typer.Exit: With status 2, if training has diverged, which it has reported.
    """
    if tgt_lang not in LANGUAGES:
        raise not_among("to", tgt_lang, LANGUAGES)
    run = out or Path("runs/demo" if tgt_lang == "de" else f"runs/demo-{tgt_lang}")
    files, ticker = files_of(run, tgt_lang), Ticker()
    refuse_other_results(run)
    trained = (
        resume_demo(run, tgt_lang, overrides, minutes) if resume else train_demo(run, tgt_lang, overrides, minutes)
    )
    if trained.signal is not None:
        return trained.signal
    if trained.diverged is not None:
        raise typer.Exit(2)
    with at_ctrl_c(lambda: f"after training: the model is complete.\n{what_next(run, tgt_lang)}"):
        with loading(run):
            from dragoman.translation.translator import Translator

            translator = Translator.load(run)
        share = report(translator, files, tgt_lang, ticker)
        draw(translator, run, ticker)
        write_page(run, ticker)
    if share < PROMISED:
        print(what_is_missing(trained, share, run, tgt_lang))
    print(what_next(run, tgt_lang))
    return None


def files_of(run: Path, tgt_lang: str) -> Files:
    """Return the files of each split of the corpus."""
    return {name: {"src": run / f"corpus/{name}.en", "tgt": run / f"corpus/{name}.{tgt_lang}"} for name in SPLITS}


def train_demo(run: Path, tgt_lang: str, overrides: Sequence[str], minutes: float) -> Trained:
    """Write the corpus, estimate how long the training takes on this machine, and train."""
    from dragoman.config import Config, with_overrides

    with loading():
        from dragoman.training.folder import refuse_a_run
    refuse_a_run(run)  # before any is written; one that was killed before its first checkpoint begins again
    files, ticker = files_of(run, tgt_lang), Ticker()
    data = {**RECIPE["data"], "tgt_lang": tgt_lang, "train": files["train"], "valid": files["valid"]}
    recipe = {**RECIPE, "data": data, "train": {**RECIPE["train"], "max_minutes": minutes}}
    config = Config.from_mapping(with_overrides(recipe, overrides))
    ticker.say(f"The embedded corpus: English sentences with their {LANGUAGES[tgt_lang]} translations.")
    with loading():
        from dragoman.training.run import train

    with at_ctrl_c(lambda: "before the corpus was written: the same command starts again"):
        refuse_other_text(files, tgt_lang, ticker)
        write_corpus(files, tgt_lang, ticker)
    ticker.say(estimate(config))
    return train(config, out=run)


def resume_demo(run: Path, tgt_lang: str, overrides: Sequence[str], minutes: float) -> Trained:
    """Continue the training of an earlier demo for ``minutes``, with more steps if it has done all of its own."""
    files = [*(file for names in files_of(run, tgt_lang).values() for file in names.values()), run / "log.jsonl"]
    missing = next((file for file in files if not file.is_file()), None)
    if missing is not None:
        raise ConfigError(f"{run}: no demo to resume, as {missing} is missing; leave out --resume to start one")
    with loading():
        from dragoman.training.record import read_run
        from dragoman.training.run import train

    record = read_run(run)
    seconds = record.end["seconds"] if record.end else max((e["seconds"] for e in record.reports), default=0.0)
    steps = max(record.config.train.max_steps, record.step + MORE_STEPS)
    longer = (f"train.max_minutes={seconds / 60 + minutes:.2f}", f"train.max_steps={steps}")
    return train(out=run, resume=True, overrides=(*longer, *overrides))


def estimate(config: Config) -> str:
    """Time a few steps; return in a sentence how long the steps of the demo take on this machine."""
    from dragoman.training.speed import tokens_per_second

    train = config.train
    needed = train.max_steps * train.batch_tokens / tokens_per_second(config, SENTENCE_TOKENS) / 60
    at_most = f"{train.max_steps:,} steps take about {needed:.0f} minutes on this machine as busy as it is now"
    if train.max_minutes is None or needed <= train.max_minutes:
        return f"{at_most}; training stops earlier once it is good enough"
    return (
        f"{at_most}, but training stops after {train.max_minutes:g} and says how to go on; "
        f"--minutes {math.ceil(needed)} gives it the time"
    )


def what_is_missing(trained: Trained, share: float, run: Path, tgt_lang: str) -> str:
    """Return what the demo promises, what it reached and why, and the command that goes on."""
    steps = max(RECIPE["train"]["max_steps"], trained.step + MORE_STEPS)
    minutes = max(1, math.ceil((steps - trained.step) * trained.seconds / max(trained.step, 1) / 60))
    command: list[object] = ["dragoman", "demo", "--resume", "--minutes", minutes]
    command += ["--to", tgt_lang] if tgt_lang != "de" else []
    command += ["--out", run] if run != Path("runs/demo" if tgt_lang == "de" else f"runs/demo-{tgt_lang}") else []
    done = f"{trained.step:,} of about {steps:,} steps in {trained.seconds / 60:.0f} minutes"
    why = ": this machine was busy or is slow" if trained.reason == "max_minutes" else ""
    return (
        f"\nNot there yet: {share:.1%} are exactly right, and the demo is to reach {PROMISED:.0%}.\n"
        f"Training did {done}{why}.\n  # go on for {minutes} minutes\n  {as_command(*command)}"
    )


def what_next(run: Path, tgt_lang: str) -> str:
    """Return the commands to try next, ready to paste, with the activation of the environment if that is needed."""
    name = as_command(run)
    environment = Path(sys.prefix)
    here = environment.relative_to(Path.cwd()) if environment.is_relative_to(Path.cwd()) else environment
    commands = [
        (f"dragoman translate {name} -i", f"type English, read {LANGUAGES[tgt_lang]}"),
        (f'dragoman explain {name} "The clever girl sleeps."', "a page: where the model looked, word by word"),
        (f"dragoman train A.en A.{tgt_lang} --out runs/mine", "your own text, line by line"),
    ]
    if shutil.which("dragoman") is None and (environment / "bin/activate").is_file():
        commands.insert(0, (as_command("source", here / "bin/activate"), "first, in each new terminal"))
    return "\n".join(["", "Now you:", *(f"  # {about}\n  {command}" for command, about in commands)])


def refuse_other_results(run: Path) -> None:
    """Check, before the training, that the attention map and the page replace no other files.

    Raises:
        ConfigError: One would.
    """
    with loading():
        from dragoman.explanation.style import refuse_other_figures
        from dragoman.pages.render import refuse_other_page
        from dragoman.toolkits.page.write import HEADING

    refuse_other_figures(*(run / name for name in MAP))
    refuse_other_page(run / PAGE, "the demo", HEADING)


def refuse_other_text(files: Files, tgt_lang: str, ticker: Ticker) -> None:
    """Check, before any is written, that no file of the corpus holds other text; a killed demo leaves a beginning.

    Raises:
        ConfigError: One does.
    """
    from dragoman.data import phrasebook

    for name, (count, split, seed) in SPLITS.items():
        old = [(side, path) for side, path in enumerate(files[name].values()) if path.exists()]
        if not old:
            continue
        with ticker.task(f"comparing {count:,} sentences: {name}"):
            pairs = list(phrasebook.pairs(count, seed=seed, tgt_lang=tgt_lang, split=split))
        for side, path in old:
            text = "".join(f"{pair[side]}\n" for pair in pairs).encode()
            if not path.is_file() or path.stat().st_size > len(text) or not text.startswith(path.read_bytes()):
                raise ConfigError(
                    f"{path}: the demo would replace this file, which holds other text; move it away, or choose "
                    "another --out"
                )


def write_corpus(files: Files, tgt_lang: str, ticker: Ticker) -> None:
    """Write the splits of the corpus as plain text files."""
    from dragoman.data import phrasebook
    from dragoman.files import explained

    for name, (count, split, seed) in SPLITS.items():
        src, tgt = files[name]["src"], files[name]["tgt"]
        with explained(src.parent), ticker.task(f"writing {count:,} sentences: {name}"):
            src.parent.mkdir(parents=True, exist_ok=True)
            phrasebook.write(count, src, tgt, seed=seed, tgt_lang=tgt_lang, split=split)


def report(translator: Translator, files: Files, tgt_lang: str, ticker: Ticker) -> float:
    """Print the share of sentences that are exactly right, and a few examples; return that of the held-out ones."""
    from dragoman.evaluation.metrics import bleu
    from dragoman.translation.notes import Events

    shares = {}
    for name, what in (
        ("held_out", "combinations of words never seen together"),
        ("deeper", "clauses nested one level deeper than any trained on"),
    ):
        sources = files[name]["src"].read_text(encoding="utf-8").split("\n")[:-1]
        references = files[name]["tgt"].read_text(encoding="utf-8").split("\n")[:-1]
        translations = translator.translate(sources, events=Events(progress=ticker))
        right = sum(
            translation.text == reference for translation, reference in zip(translations, references, strict=True)
        )
        quality = bleu([translation.text for translation in translations], references, tgt_lang).value
        shares[name] = right / len(translations)
        print_line(f"\n{what}: {shares[name]:.1%} of {len(translations):,} exactly right, BLEU {quality:.1f}")
        for source, translation, reference in list(zip(sources, translations, references, strict=True))[:4]:
            mark = "✓" if translation.text == reference else "✗"
            print_line(f"  {source}\n  {mark} {translation.text}")
    sys.stdout.flush()
    return shares["held_out"]


def draw(translator: Translator, run: Path, ticker: Ticker) -> None:
    """Save an attention map of one sentence, if matplotlib and a font are installed."""
    from dragoman.explanation.attention import alignment
    from dragoman.explanation.explain import explain
    from dragoman.explanation.style import save

    text = "Yesterday the clever girl did not open the white box."
    try:
        trace = explain(translator, text)
        save(alignment(trace.by_words()), *(run / name for name in MAP))
        print_line(f"\nattention map: {run / MAP[0]}")
    except ConfigError as error:
        ticker.say(f"no attention map: {error}")


def write_page(run: Path, ticker: Ticker) -> None:
    """Export the translator as one HTML file, if the page supports the model."""
    from dragoman.toolkits.export import export

    try:
        page = export(run, "page", run / PAGE, "int8")
        megabytes = page.stat().st_size / 1e6
        print_line(f"the translator as one file: {page} ({megabytes:.1f} MB; open it in a browser, offline too)")
    except ConfigError as error:
        ticker.say(f"no page: {error}")
