"""``dragoman demo``: from two text files of the embedded corpus to a trained translator."""

from __future__ import annotations

import shlex
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dragoman.cli.declared_options import with_options
from dragoman.cli.signs import at_ctrl_c, loading
from dragoman.errors import ConfigError
from dragoman.options import not_among
from dragoman.progress import Ticker
from dragoman.training.options import OverrideOptions

if TYPE_CHECKING:
    from dragoman.translation.translator import Translator

TRAIN_PAIRS = 120_000
TEST_PAIRS = 1000
SPLITS = {  # (number of pairs, split of the phrasebook, seed)
    "train": (TRAIN_PAIRS, "train", 1),
    "valid": (300, "held_out", 2),
    "held_out": (TEST_PAIRS, "held_out", 3),
    "deeper": (TEST_PAIRS, "deeper", 4),
}
Files = Mapping[str, Mapping[str, Path]]
LANGUAGES = {"de": "German", "zh": "Chinese"}

RECIPE: dict[str, Any] = {
    "model": {
        "preset": "tiny", "d_ff": 512, "n_encoder_layers": 3, "n_decoder_layers": 3, "norm": "pre", "dropout": 0.0,
    },
    "data": {"src_lang": "en", "tokenizer": {"vocab_size": 1600}},
    "train": {
        "max_minutes": 4, "max_steps": 1700, "batch_tokens": 3072, "schedule": "cosine", "lr": 3e-3,
        "warmup_steps": 200, "clip_norm": 1.0, "ema": 0.998, "average": 0, "validate_every": 150, "save_every": 300,
        "log_every": 50,
    },
    "decode": {"beam_size": 4},
}  # fmt: skip


@with_options(OverrideOptions)
def demo(
    options: OverrideOptions,
    tgt_lang: Annotated[str, typer.Option("--to", help="Target language: de (German) or zh (Chinese).")] = "de",
    out: Annotated[Path | None, typer.Option(help="Run folder (default: runs/demo or runs/demo-zh).")] = None,
) -> None:
    """``dragoman demo``; its help is in ``cli/commands.py``."""
    signal = run_demo(tgt_lang, out, options.overrides)
    if signal is not None:
        raise typer.Exit(128 + signal)


def run_demo(tgt_lang: str = "de", out: Path | None = None, overrides: Sequence[str] = ()) -> int | None:
    """Write the corpus, train, score unseen combinations, show translations, an attention map and a page.

    Returns:
        Number of the signal that stopped training, or None.

    Raises:
        ConfigError: The language is unknown or the folder already holds a run.
    """
    from dragoman.config import Config, with_overrides

    if tgt_lang not in LANGUAGES:
        raise not_among("to", tgt_lang, LANGUAGES)
    run = out or Path("runs/demo" if tgt_lang == "de" else f"runs/demo-{tgt_lang}")
    if any((run / name).exists() for name in ("config.yaml", "checkpoints", "bundle")):
        raise ConfigError(f"{run} already holds a run: delete it, or choose another --out")
    files = {name: {"src": run / f"corpus/{name}.en", "tgt": run / f"corpus/{name}.{tgt_lang}"} for name in SPLITS}
    data = {**RECIPE["data"], "tgt_lang": tgt_lang, "train": files["train"], "valid": files["valid"]}
    config = Config.from_mapping(with_overrides({**RECIPE, "data": data}, overrides))
    ticker = Ticker()
    ticker.say(f"The embedded corpus: English sentences with their {LANGUAGES[tgt_lang]} translations.")
    with loading():
        from dragoman.training.run import train
        from dragoman.translation.translator import Translator

    with at_ctrl_c(lambda: "before the corpus was written: the same command starts again"):
        write_corpus(files, tgt_lang, ticker)
    trained = train(config, out=run)
    if trained.signal is not None:
        return trained.signal
    with at_ctrl_c(lambda: f"after training: the model is complete.\n{what_next(run, tgt_lang)}"):
        translator = Translator.load(run)
        report(translator, files, tgt_lang, ticker)
        draw(translator, run, ticker)
        write_page(run, ticker)
    print(what_next(run, tgt_lang))
    return None


def what_next(run: Path, tgt_lang: str) -> str:
    """Return the commands to try next, ready to paste, with the activation of the environment if that is needed."""
    name = shlex.quote(str(run))
    environment = Path(sys.prefix)
    here = environment.relative_to(Path.cwd()) if environment.is_relative_to(Path.cwd()) else environment
    commands = [
        (f"dragoman translate {name} -i", f"type English, read {LANGUAGES[tgt_lang]}"),
        (f'dragoman explain {name} "The clever girl sleeps."', "a page: where the model looked, word by word"),
        (f"dragoman train A.en A.{tgt_lang} --out runs/mine", "your own text, line by line"),
    ]
    if shutil.which("dragoman") is None and (environment / "bin/activate").is_file():
        commands.insert(0, (f"source {shlex.quote(str(here / 'bin/activate'))}", "first, in each new terminal"))
    width = max(len(command) for command, _ in commands)
    return "\n".join(["", "Now you:", *(f"  {command:{width}}  {about}" for command, about in commands)])


def write_corpus(files: Files, tgt_lang: str, ticker: Ticker) -> None:
    """Write the splits of the corpus as plain text files."""
    from dragoman.data import phrasebook
    from dragoman.files import explained

    for name, (count, split, seed) in SPLITS.items():
        src, tgt = files[name]["src"], files[name]["tgt"]
        with explained(src.parent), ticker.task(f"writing {count:,} sentences: {name}"):
            src.parent.mkdir(parents=True, exist_ok=True)
            phrasebook.write(count, src, tgt, seed=seed, tgt_lang=tgt_lang, split=split)


def report(translator: Translator, files: Files, tgt_lang: str, ticker: Ticker) -> None:
    """Print the share of sentences that are exactly right, and a few examples."""
    from dragoman.evaluation.metrics import bleu
    from dragoman.translation.notes import Events

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
        print(f"\n{what}: {right / len(translations):.1%} of {len(translations):,} exactly right, BLEU {quality:.1f}")
        for source, translation, reference in list(zip(sources, translations, references, strict=True))[:4]:
            mark = "✓" if translation.text == reference else "✗"
            print(f"  {source}\n  {mark} {translation.text}")
    sys.stdout.flush()


def draw(translator: Translator, run: Path, ticker: Ticker) -> None:
    """Save an attention map of one sentence, if matplotlib and a font are installed."""
    from dragoman.explanation.attention import alignment
    from dragoman.explanation.explain import explain
    from dragoman.explanation.style import save

    text = "Yesterday the clever girl did not open the white box."
    try:
        trace = explain(translator, text)
        save(alignment(trace.by_words()), run / "attention.svg", run / "attention.png")
        print(f"\nattention map: {run / 'attention.svg'}")
    except ConfigError as error:
        ticker.say(f"no attention map: {error}")


def write_page(run: Path, ticker: Ticker) -> None:
    """Export the translator as one HTML file, if the page supports the model."""
    from dragoman.toolkits.export import export

    try:
        page = export(run, "page", run / "translator.html", "int8")
        megabytes = page.stat().st_size / 1e6
        print(f"the translator as one file: {page} ({megabytes:.1f} MB; open it in a browser, offline too)")
    except ConfigError as error:
        ticker.say(f"no page: {error}")
