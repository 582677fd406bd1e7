"""Two text files in, a translator out, in Python: train a very small model and let it translate what it has not seen.

Run it with ``python examples/train_and_translate.py``; it takes well under a minute on a CPU. So short a training
learns the commonest patterns of the embedded corpus and little more; ``make demo`` does it properly.
"""

import tempfile
from pathlib import Path

import dragoman
from dragoman.data import phrasebook

MODEL = {"d_model": 64, "d_ff": 128, "n_heads": 4, "n_encoder_layers": 1, "n_decoder_layers": 1, "dropout": 0.0}
TRAIN = {
    "max_steps": 300, "batch_tokens": 1024, "schedule": "cosine", "lr": 5e-3, "warmup_steps": 30, "clip_norm": 1.0,
    "average": 0, "validate_every": 150, "save_every": 150, "log_every": 50,
}  # fmt: skip


def main(folder: Path) -> None:
    phrasebook.write(4000, folder / "train.en", folder / "train.de")
    phrasebook.write(100, folder / "valid.en", folder / "valid.de", split="held_out", seed=1)
    phrasebook.write(100, folder / "test.en", folder / "test.de", split="held_out", seed=2)
    data = {
        "train": {"src": folder / "train.en", "tgt": folder / "train.de"},
        "valid": {"src": folder / "valid.en", "tgt": folder / "valid.de"},
        "tokenizer": {"vocab_size": 600},
    }
    config = dragoman.Config.from_mapping({"model": MODEL, "data": data, "train": TRAIN, "decode": {"beam_size": 2}})

    trained = dragoman.train(config, out=folder / "run")
    print(f"trained for {trained.step} steps, {trained.seconds:.0f} s")

    translator = dragoman.Translator.load(trained.run)
    sources = (folder / "test.en").read_text(encoding="utf-8").splitlines()[:5]
    for source, translation in zip(sources, translator.translate(sources), strict=True):
        print(f"{source}\n  {translation.text}")
    for score in dragoman.evaluate(translator, src=folder / "test.en", ref=folder / "test.de").scores:
        print(score)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        main(Path(name))
