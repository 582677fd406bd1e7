"""Model card, made from the facts of a bundle: languages, training text, sizes, weights and an example."""

from __future__ import annotations

from collections.abc import Sequence

from dragoman.bundle import Bundle
from dragoman.config import ModelConfig
from dragoman.languages.known import known
from dragoman.toolkits.huggingface import NEEDED, ONE_TABLE

TEMPLATE = """---
language: [{languages}]
library_name: transformers
pipeline_tag: translation
---

# {title}

A Transformer of {n_parameters:,} parameters that translates {src} to {tgt}, trained with dragoman {version}.

It needs {needed}.

```python
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

tokenizer, model = AutoTokenizer.from_pretrained("."), AutoModelForSeq2SeqLM.from_pretrained(".")
print(tokenizer.batch_decode(model.generate(**tokenizer(["{example}"], return_tensors="pt")), skip_special_tokens=True))
```

{several}
| | |
|---|---|
{rows}

Greedy search gives the token ids that dragoman gives. Beam search {search}. A text
that holds `</s>`, `<pad>` or `<unk>`, or begins with a code such as `>>de<<`, is cut differently.
{compared}"""
OTHER = """divides by another length penalty (n ** p; dragoman
has ((5 + n) / 6) ** alpha) and may give other translations"""
SAME = """divides by n ** p, as it does in dragoman for this model, and
ends a hypothesis at the limit of its sentence for free"""

SEVERAL = """
Each source begins with the code of its target language ({codes}), without a space behind it.
"""


def has_lost_tables(config: ModelConfig) -> bool:
    """True if transformers 4 loads one table of embeddings for a model that has two or three: an untied Pegasus."""
    return config.norm == "pre" and config.share_embeddings != "all"


def model_card(bundle: Bundle, quantization: str, compared: str = "") -> str:
    """Return the card in Markdown, with the front matter that model hubs read.

    Args:
        compared: Comparison of the export with the bundle in Markdown; "": none.
    """
    config, data, known = bundle.sizes, bundle.config.data, bundle.facts
    targets = sorted(bundle.src_tokenizer.targets) if len(bundle.src_tokenizer.targets) > 1 else []
    sources = sorted({src for src, _ in data.pairs if src})
    src = _in_words(sources) or "the source language"
    tgt = _in_words(targets or [data.tgt_lang or ""]) or "the target language"
    codes = [f">>{target}<<" for target in targets]
    decode = bundle.config.decode
    signatures = {name: f" ({text})".replace("|", r"\|") for name, text in known.signatures.items()}
    facts = {
        "layers": f"{config.n_encoder_layers} + {config.n_decoder_layers}, {config.norm}-norm, {config.activation}",
        "width": f"{config.d_model}, feed-forward {config.d_ff}, {config.n_heads} heads",
        "vocabulary": f"{config.src_vocab_size:,} source, {config.tgt_vocab_size:,} target subwords",
        "numbers": quantization,
        "weights": known.weights or None,
        "training pairs": f"{known.train_pairs:,}" if known.train_pairs else None,
        "steps": known.step,
        **{
            f"validation, {SCORES.get(name, name)}": f"{value:.2f}{signatures.get(name, '')}"
            for name, value in known.validation.items()
        },
        "beam size": decode.beam_size,
        "length penalty": decode.penalty.formula,
        "made from bundle": known.sha256,
    }
    return TEMPLATE.format(
        languages=", ".join(dict.fromkeys(code for code in (*sources, *(targets or [data.tgt_lang or ""])) if code)),
        example=f"{codes[0] if codes else ''}...",
        several=SEVERAL.format(codes=", ".join(f"`{code}`" for code in codes)) if codes else "",
        title=f"{src} to {tgt}",
        needed=f"{NEEDED}: {ONE_TABLE}" if has_lost_tables(config) else NEEDED,
        search=SAME if decode.length_penalty_form == "power" else OTHER,
        compared=f"\n{compared}" if compared else "",
        n_parameters=sum(weight.numel() for weight in bundle.model.parameters()),
        src=src,
        tgt=tgt,
        version=known.dragoman or "of an unknown version",
        rows="\n".join(f"| {name} | {value} |" for name, value in facts.items() if value is not None),
    )


SCORES = {"loss": "nats per token", "bleu": "BLEU, greedy", "chrf": "chrF, greedy", "f1": "F1 of brackets"}
"""Names of a validation's figures in the card."""


def _in_words(codes: Sequence[str]) -> str:
    return ", ".join(known(code).name for code in codes if code)
