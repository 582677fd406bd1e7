"""First lines that users of other libraries type, as a table: each runs, or is refused in one plain line.

    python -m benchmarks.first_lines before RUN SRC REF    ``after`` for the state after a change

RUN is any trained run, SRC and REF are its test set. A user of Hugging Face, OpenNMT, CTranslate2, Argos Translate,
fairseq, sacreBLEU or pandas types what those libraries taught. A line that is refused must name the argument and say
what it must be; an error of Python that does neither counts as a failure.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import re
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pandas import DataFrame

import dragoman
from benchmarks.scripts_record import record

LONGEST_MESSAGE = 400
"""Most characters of a refusal."""
SIZES = [
    "model.d_model=16", "model.d_ff=16", "model.n_heads=2", "model.n_encoder_layers=1", "model.n_decoder_layers=1",
         "data.tokenizer.vocab_size=400", "train.max_steps=1", "train.batch_tokens=256", "train.device=cpu",
]  # fmt: skip
"""Settings of a training that takes a moment."""


@dataclass(frozen=True)
class Line:
    """A line of code that a user types, and what is right."""

    user: str  # library that the user knows
    code: str
    right: str  # expression that is true of ``_``, the result; or, after "refused: ", the pattern of the refusal

    @property
    def trains(self) -> bool:
        """True if the line trains a model."""
        return ".train(" in self.code and not self.right.startswith("refused: ")


FIRST_EIGHT = [
    Line("Hugging Face", "dragoman.train(src, ref, out=out, overrides=sizes)", "_.step == 1"),
    Line("Hugging Face", "dragoman.Translator(run)", "_.translate(texts[0]).text == t.translate(texts[0]).text"),
    Line("Hugging Face", "dragoman.explain(run, texts[0])", "_.source == texts[0] and _.translation"),
    Line("Hugging Face", "t.translate(5)", "refused: texts must be a text or a list of texts, got int"),
    Line("Hugging Face", "t.translate(None)", "refused: texts must be a text or a list of texts, got NoneType"),
    Line("Hugging Face", "dragoman.evaluate(t, src=texts, ref=refs, quiet=True)", "len(_.translations) == len(texts)"),
    Line("Hugging Face", "printed(help, dragoman.Translator.translate)",
         "max(map(len, _.splitlines())) <= 120 and all(name in _ for name in ('beam_size', 'n_best', 'glossary'))"
         " and 'Beam size; 1 is greedy search' in _ and 'Number of translations per line' in _"),
    Line("Hugging Face", "t(texts)", "[line.text for line in _] == [line.text for line in t.translate(texts)]"),
]  # fmt: skip
"""The first eight lines of a user of Hugging Face."""

MORE = [
    Line("Hugging Face", "t(texts[0], num_beams=4)", "refused: unknown option num_beams: .*beam_size.*"),
    Line("Hugging Face", "t(texts[0], num_return_sequences=2)",
         "refused: unknown option num_return_sequences: .*n_best.*"),
    Line("Hugging Face", "t(texts[0], max_length=128)", "refused: unknown option max_length: .*max_extra_tokens.*"),
    Line("Hugging Face", "t(texts[0], do_sample=True)", "refused: unknown option do_sample: .*sample.*"),
    Line("Hugging Face", "t(texts[0], tgt_lang='de')", "refused: unknown option tgt_lang: .*to.*"),
    Line("Hugging Face", "t([{'translation': {'en': 'a', 'de': 'b'}}])",
         r"refused: texts: number 1 must be a text \(str\), got dict"),
    Line("Hugging Face", "dragoman.Translator('no/such-model')", "refused: no/such-model: .*"),
    Line("Hugging Face", "dragoman.train(src, ref, out=out, num_train_epochs=3)",
         "refused: unknown option num_train_epochs: .*train.max_epochs.*"),
    Line("Hugging Face", "dragoman.train(src, ref, out=out, learning_rate=1e-3)",
         "refused: unknown option learning_rate: .*train.lr.*"),
    Line("Hugging Face", "dragoman.train(many, many_refs, out=out, overrides=sizes)", "_.step == 1"),
    Line("Hugging Face", "dragoman.train((x for x in many), (x for x in many_refs), out=out, overrides=sizes)",
         "_.step == 1"),
    Line("Hugging Face", "dragoman.Transformer(run)",
         "refused: config must be a ModelConfig, got .*Translator.*loads.*"),
    Line("Hugging Face", "dragoman.pipeline('translation')",
         "refused: module 'dragoman' has no attribute 'pipeline'.*"),
    Line("pandas", "t.translate(df['en'])", "len(_) == len(texts) and _[0].text == t.translate(texts[0]).text"),
    Line("pandas", "t.translate(df)", r"refused: texts is a table with the columns en, de: .*texts\['en'\].*"),
    Line("pandas", "t.translate(narrow)", "len(_) == len(texts)"),
    Line("pandas", "t.translate(gaps['en'])", "refused: texts: number 2 .*nan.*missing.*"),
    Line("pandas", "dragoman.train(wide['en'], wide['de'], out=out, overrides=sizes)", "_.step == 1"),
    Line("pandas", "dragoman.train(wide, out=out, columns='en,de', overrides=sizes)", "_.step == 1"),
    Line("pandas", "dragoman.train(gaps['en'], gaps['de'], out=out)", "refused: src: number 2 .*nan.*missing.*"),
    Line("pandas", "dragoman.train(df['en'], df['de'][:3], out=out)", "refused: src has .* but tgt has 3.*"),
    Line("pandas", "dragoman.evaluate(run, src=df['en'], ref=df['de'], quiet=True)", "_.scores[0].value >= 0"),
    Line("pandas", "t.score(df['en'], df['de'])", "len(_) == len(texts)"),
    Line("sacreBLEU", "dragoman.evaluate(refs, ref=[refs], quiet=True)", "_.scores[0].value > 99.9"),
    Line("sacreBLEU", "dragoman.evaluate(refs, ref=refs, quiet=True)", "_.scores[0].value > 99.9"),
    Line("sacreBLEU", "dragoman.evaluate(run, src, ref, quiet=True)", "len(_.scores) == 3"),
    Line("sacreBLEU", "dragoman.evaluate(iter(refs), ref=iter(refs), quiet=True)", "_.scores[0].value > 99.9"),
    Line("sacreBLEU", "dragoman.evaluate(texts, src)", "refused: .*ref.*"),
    Line("sacreBLEU", "dragoman.evaluate(run, src=texts, ref=refs[:2])", "refused: src has .* texts but ref has 2.*"),
    Line("sacreBLEU", "dragoman.evaluate(run, src=texts[0], ref=refs[0])", "refused: .*no such file.*"),
    Line("sacreBLEU", "dragoman.compare(run, refs, src=texts, ref=refs, n_samples=5, quiet=True)",
         "_.b.scores[0].value > 99.9"),
    Line("sacreBLEU", "dragoman.stress(run, src=texts[:2], ref=refs[:2], quiet=True)", "len(_) > 3"),
    Line("OpenNMT", "t.translate([['the', 'dog']])", r"refused: texts: number 1 must be a text \(str\), got list"),
    Line("OpenNMT", "t.translate(texts[0], beam=3)", "refused: unknown option beam: .*beam_size.*"),
    Line("OpenNMT", "dragoman.Translator(run, device='cpu')", "_.device.type == 'cpu'"),
    Line("OpenNMT", "dragoman.Translator(run, run)", "_.translate(texts[0]).text"),
    Line("CTranslate2", "t.translate(texts, target_prefix=[['der']])",
         "refused: unknown option target_prefix: .*prefix.*"),
    Line("CTranslate2", "t.translate(texts, max_batch_size=8)",
         "refused: unknown option max_batch_size: .*batch_tokens.*"),
    Line("fairseq", "t.translate(texts[0], lenpen=1.0)", "refused: unknown option lenpen: .*length_penalty.*"),
    Line("fairseq", "t.translate(texts[0], nbest=3)", "refused: unknown option nbest: .*n_best.*"),
    Line("fairseq", "dragoman.train(src, out=out)", "refused: .*both sides.*|.*needs two files.*|.*one side alone.*"),
    Line("Argos Translate", "t.translate(texts[0], 'de')", "refused: options must be .*got 'de'"),
    Line("Argos Translate", "dragoman.translate(texts[0], 'en', 'de')",
         "refused: module 'dragoman' has no attribute 'translate'.*"),
    Line("Argos Translate", "dragoman.Translator(None)", "refused: .*must be .*got None"),
    Line("Argos Translate", "dragoman.explain(run, 5)", "refused: text must be a text, got int"),
    Line("Argos Translate", "dragoman.explain(5, texts[0])", "refused: .*must be .*, got 5"),
    Line("Argos Translate", "t.translate(b'the dog')", "refused: texts must be a text or a list of texts, got bytes"),
    Line("Argos Translate", "dragoman.export(t, 'page', out)", "refused: run must be a path, got <Translator.*"),
    Line("Argos Translate", "printed(help, dragoman.train)", "'valid_src' in _ and 'Fine-tune from this run' in _"),
    Line("Argos Translate", "printed(help, dragoman.TranslateOptions)", "'Beam size; 1 is greedy search' in _"),
]  # fmt: skip
"""More first lines, of users of other libraries."""

LINES = [*FIRST_EIGHT, *MORE]


def printed(function: Callable[..., object], *args: object) -> str:
    """Return what a call prints."""
    with contextlib.redirect_stdout(io.StringIO()) as out:
        function(*args)
    return out.getvalue()


def names(run: Path, src: Path, ref: Path) -> dict[str, Any]:
    """Return the names that the lines use: a run, its translator, the files of a test set, and lines of it."""
    many, many_refs = (path.read_text(encoding="utf-8").split("\n")[:150] for path in (src, ref))
    texts, refs = many[:6], many_refs[:6]
    missing = float("nan")
    return {
        "dragoman": dragoman, "printed": printed, "sizes": SIZES, "run": str(run), "src": str(src), "ref": str(ref),
        "t": dragoman.Translator.load(run), "texts": texts, "refs": refs,
        "many": many, "many_refs": many_refs, "wide": DataFrame({"en": many, "de": many_refs}),
        "df": DataFrame({"en": texts, "de": refs}), "narrow": DataFrame({"en": texts}),
        "gaps": DataFrame({"en": [texts[0], missing, *texts[2:]], "de": refs}),
    }  # fmt: skip


def fault(line: Line, given: dict[str, Any], out: Path) -> str | None:
    """Run a line; return what is wrong, or None."""
    scope = {**given, "out": str(out)}
    wanted = line.right.removeprefix("refused: ") if line.right.startswith("refused: ") else None
    with contextlib.redirect_stderr(io.StringIO()):
        try:
            scope["_"] = eval(line.code, scope)
        except (dragoman.DragomanError, AttributeError) as error:
            message = str(error)
            if wanted is None:
                return f"{type(error).__name__}: {message}"
            plain = "\n" not in message and len(message) <= LONGEST_MESSAGE
            return None if plain and re.fullmatch(wanted, message) else f"refused with {message!r}"
        except Exception as error:
            return f"{type(error).__name__}: {' '.join(str(error).split())}"
        if wanted is not None:
            return f"no refusal, but {scope['_']!r:.80}"
        return None if eval(line.right, scope) else f"wrong result: {scope['_']!r:.80}"


def main() -> None:
    """Try all lines and write the record."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("state", choices=("before", "after"))
    parser.add_argument("run", type=Path)
    parser.add_argument("src", type=Path)
    parser.add_argument("ref", type=Path)
    args = parser.parse_args()
    given = names(args.run, args.src, args.ref)
    with tempfile.TemporaryDirectory() as folder:
        faults = [fault(line, given, Path(folder) / str(number)) for number, line in enumerate(LINES)]
    wrong = {line.code: what.replace(str(args.run), "RUN") for line, what in zip(LINES, faults, strict=True) if what}
    figures = {
        "first_eight_right": sum(what is None for what in faults[: len(FIRST_EIGHT)]), "first_eight": len(FIRST_EIGHT),
        "right": len(LINES) - len(wrong), "lines": len(LINES), "wrong": wrong,
    }  # fmt: skip
    inputs = {
        "rule": "LINES of the module; the first 150 lines of SRC and REF",
        "run": args.run.name,
        "src": args.src.name,
    }
    record("first_lines", args.state, figures, inputs, folder="newcomer")


if __name__ == "__main__":
    main()
