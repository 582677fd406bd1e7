"""What stands below the help of each command: three examples to copy."""

from __future__ import annotations

EXAMPLES = {
    "demo": (
        "dragoman demo",
        "dragoman demo --to zh",
        "dragoman demo --out runs/short --set train.max_minutes=1",
    ),
    "train": (
        "dragoman train train.en train.de --minutes 30 --out runs/first",
        "dragoman train my.yaml --set train.max_steps=20000",
        "dragoman train --out runs/first --resume",
    ),
    "distill": (
        "dragoman distill runs/first --src train.en --ref train.de --out runs/student",
        "dragoman distill runs/first --src train.en --mono news.en --minutes 30 --out runs/student",
        "dragoman distill runs/a runs/b --src train.en --ref train.de --best-of 5 --out runs/student",
    ),
    "translate": (
        'echo "The child sleeps." | dragoman translate runs/first',
        "dragoman translate runs/first book.en --out book.de",
        "dragoman translate runs/first report.docx --out bericht.docx",
    ),
    "score": (
        "dragoman score runs/first --src test.en --tgt test.de",
        "dragoman score runs/first --src test.en --tgt test.de --json",
        "dragoman score runs/first --src test.en --tgt test.de --alignments links",
    ),
    "evaluate": (
        "dragoman evaluate runs/first --src test.en --ref test.de",
        "dragoman evaluate runs/first other.de --src test.en --ref test.de",
        "dragoman evaluate first other --segment-scores first.comet other.comet",
    ),
    "explain": (
        'dragoman explain runs/first "The child sleeps."',
        'dragoman explain runs/first "The child sleeps." --target "Das Kind schläft."',
        'dragoman explain runs/first "The child sleeps." --out figures',
    ),
    "doctor": (
        "dragoman doctor --src train.en --tgt train.de",
        "dragoman doctor my.yaml --out report",
        "dragoman doctor runs/first",
    ),
    "lab": (
        "dragoman lab",
        "dragoman lab scaling",
        "dragoman lab heads --run runs/first",
    ),
    "export": (
        "dragoman export runs/first --to ctranslate2",
        "dragoman export runs/first --to ctranslate2 --quantization int8",
        "dragoman export runs/first --to ctranslate2 --check test.en --ref test.de",
    ),
    "formats": (
        "dragoman formats",
        "dragoman formats runs/first",
        "dragoman formats > formats.md",
    ),
    "import": (
        "dragoman import Helsinki-NLP/opus-mt-en-de --out runs/opus",
        "dragoman import translate-en_de-1_0.argosmodel --out runs/argos",
        "dragoman import opus-mt-en-de --out runs/small --keep-pieces-of train.en --keep-pieces-of train.de",
    ),
    "serve": (
        "dragoman serve runs/first",
        "dragoman serve runs/first --port 9000",
        "dragoman serve runs/first runs/back",
    ),
}


def epilog(command: str) -> str:
    """The examples of a command, a paragraph each, as the help wants them."""
    return "\n\n".join(["Examples:", *(f"  {example}" for example in EXAMPLES[command])])
