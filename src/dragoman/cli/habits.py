"""Options and commands of fairseq, Marian, JoeyNMT and Argos Translate, and former options: their names in dragoman."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

NAMES = {
    "translate": {
        "--beam --beam-width --num-beams --num_beams -b -k": "--beam-size",
        "--nbest --num-hypotheses --num-return-sequences -n": "--n-best",
        "--lenpen --normalize --alpha --beam-alpha": "--length-penalty",
        "--input --src --source --input-file --text": "name the file after the run: dragoman translate RUN FILE",
        "--output -o --tgt --output-file": "--out",
        "--model -m --path --ckpt": "name the run first: dragoman translate RUN FILE",
        "--source-lang --src-lang --from-lang -s": "not needed: a run knows its languages",
        "--target-lang --tgt-lang --to-lang -t": "not needed: a run knows its languages",
        "--batch-size --mini-batch --max-tokens": "--batch-tokens",
        "--gpu --gpus --cuda --devices -d": "--device cuda",
        "--cpu": "--device cpu",
        "--cpu-threads --num-threads --inter-threads": "--threads",
        "--fp16 --half": "--precision bf16",
        "--no-repeat-ngram-size": "--no-repeat-ngram",
        "--replace-unk --remove-bpe --post-process": "not needed: the output has no subwords and no unknown words",
        "--constraints --force-decode": "--include",
        "--sampling": "--sample",
        "--sampling-topk --output-sampling": "--top-k",
        "--sampling-topp": "--top-p",
    },
    "train": {
        "--max-minutes --time --after-minutes": "--minutes",
        "--max-update --max-updates --steps --after-batches --updates": "--set train.max_steps=N",
        "--max-epoch --epochs --after-epochs -e": "--set train.max_epochs=N",
        "--learn-rate --learning-rate": "--set train.lr=1e-3",
        "--arch -a --type": "--set model.preset=base, or model.architecture=lstm",
        "--train-sets --trainpref --train --data --input": "name the files alone: dragoman train train.en train.de",
        "--valid-sets --validpref --dev": "--valid",
        "--source-lang -s --src-lang": "--set data.src_lang=en",
        "--target-lang -t --tgt-lang": "--set data.tgt_lang=de",
        "--save-dir --save --model -m -o --output": "--out",
        "--config -c": "name the configuration alone: dragoman train CONFIG.yaml",
        "--max-tokens --batch-size --mini-batch": "--set train.batch_tokens=4096",
        "--update-freq --optimizer-delay": "--set train.accumulate=N",
        "--warmup-updates --lr-warmup --warmup": "--set train.warmup_steps=N",
        "--dim-vocabs --vocabs": "--set data.tokenizer.vocab_size=8000",
        "--transformer-dropout": "--set model.dropout=0.1",
        "--early-stopping": "--set train.patience=N",
        "--restore-file --continue": "--resume",
        "--finetune-from-model --pretrained-model --from-pretrained": "--from-run RUN",
        "--gpu --gpus --devices": "--set train.device=cuda",
        "--fp16 --bf16": "--set train.precision=bf16",
    },
    "evaluate": {
        "--beam -b": "--beam-size",
        "--refs --reference --references -r --tgt": "--ref",
        "--source --input -i": "--src",
        "--hyp --hypothesis --hypotheses": "name the file first: dragoman evaluate HYPOTHESES --ref REF",
        "--metrics -m": "--metric",
    },
    "lab": {"--list --ls -l": "leave it out: dragoman lab lists the experiments"},
}

RENAMED = {
    "translate": {"--workers": "--threads"},
    "evaluate": {"--workers": "--threads"},
    "train": {"--from": "--from-run"},
    "score": {"--tgt": "--ref"},
    "explain": {"--target": "--translation"},
    "export": {"--to": "--format", "--target": "--to"},
}
"""Former names of options, by command, and their names today. Former names still work, with a warning."""

COMMANDS = {
    "fairseq-train marian fit": "dragoman train train.en train.de",
    "generate interactive fairseq-generate fairseq-interactive marian-decoder predict argos-translate": (
        "dragoman translate RUN FILE, or dragoman translate RUN -i"
    ),
    "preprocess fairseq-preprocess build-vocab build_vocab spm_train": "not needed: dragoman train learns the subwords",
    "validate test eval bleu sacrebleu fairseq-score comet-score": "dragoman evaluate RUN --src FILE --ref FILE",
    "marian-scorer fairseq-eval-lm": "dragoman score RUN --src FILE --ref FILE",
    "marian-server libretranslate server": "dragoman serve RUN",
    "convert marian-conv": "dragoman export RUN --format FORMAT, or dragoman import MODEL --out RUN",
    "install update search argospm": "dragoman import MODEL.argosmodel --out RUN; nothing is downloaded",
    "backtranslate back-translate": "dragoman augment",
    "help usage man": "dragoman --help, or dragoman COMMAND --help",
    "version": "dragoman --version",
}
"""Commands of other toolkits, and the dragoman command for each."""


def with_present_names(command: str, arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the arguments of a command with the present names of options, and a warning for each former name."""
    renamed = dict(RENAMED.get(command, {}))
    names = [argument.partition("=")[0] for argument in arguments]
    n_options = names.index("--") if "--" in names else len(names)
    if command == "export" and "--format" in names[:n_options]:
        del renamed["--to"]  # it names the language then
    present, warnings = list(arguments), []
    for i, name in enumerate(names[:n_options]):
        if name in renamed:
            present[i] = renamed[name] + arguments[i][len(name) :]
            warnings.append(f"{name} is called {renamed[name]} now")
    return present, warnings


def command_hint(command: str) -> str:
    """Return a suggestion for another toolkit's command; "" if it is not known."""
    for foreign, own in COMMANDS.items():
        if command in foreign.split():
            return _did_you_mean(own) if own.startswith("dragoman") else own
    return ""


def option_hint(command: str, option: str, known: Sequence[str]) -> str:
    """Return a suggestion for an option that ``command`` does not have; "" if none comes near."""
    option = option.partition("=")[0]
    for foreign, own in NAMES.get(command, {}).items():
        if option in foreign.split():
            return _did_you_mean(own) if own.startswith("-") else own
    if command == "train":
        from dragoman.config import settings_named

        if names := settings_named(option.removeprefix("--").replace("-", "_")):
            return _did_you_mean(" or ".join(f"--set {name}=..." for name in names))
    close = difflib.get_close_matches(option, known, n=1, cutoff=0.7)
    return _did_you_mean(close[0]) if close else ""


def _did_you_mean(option: str) -> str:
    return f"did you mean {option}?"
