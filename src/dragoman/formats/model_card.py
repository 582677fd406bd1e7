"""A model card, made of what a bundle says of itself: languages, text, sizes, weights, how to translate with it."""

from __future__ import annotations

from dragoman.bundle import Bundle

TEMPLATE = """---
language: [{languages}]
library_name: transformers
pipeline_tag: translation
---

# {title}

A Transformer of {n_parameters:,} parameters that translates {src} to {tgt}, trained with dragoman {version}.

```python
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

tokenizer, model = AutoTokenizer.from_pretrained("."), AutoModelForSeq2SeqLM.from_pretrained(".")
print(tokenizer.batch_decode(model.generate(**tokenizer(["{example}"], return_tensors="pt")), skip_special_tokens=True))
```

{several}
| | |
|---|---|
{rows}

Greedy search gives the token ids that dragoman gives. Beam search divides by another length penalty (n ** p; dragoman
has ((5 + n) / 6) ** alpha) and may give other translations; `certificate.json`, if it is here, compares them. A text
that holds `</s>`, `<pad>` or `<unk>`, or begins with a code such as `>>de<<`, is cut differently.
"""

SEVERAL = """
Each source begins with the code of its target language ({codes}), without a space behind it.
"""


def model_card(bundle: Bundle, quantization: str) -> str:
    """The card in Markdown, with the front matter that model hubs read."""
    config, data, manifest = bundle.model.config, bundle.config.data, bundle.manifest
    targets = sorted(bundle.src_tokenizer.targets) if len(bundle.src_tokenizer.targets) > 1 else []
    sources = sorted({src for src, _ in data.pairs if src})
    src = ", ".join(sources) or "the source language"
    tgt = ", ".join(targets) or data.tgt_lang or "the target language"
    codes = [f">>{target}<<" for target in targets]
    facts = {
        "layers": f"{config.n_encoder_layers} + {config.n_decoder_layers}, {config.norm}-norm, {config.activation}",
        "width": f"{config.d_model}, feed-forward {config.d_ff}, {config.n_heads} heads",
        "vocabulary": f"{config.src_vocab_size:,} source, {config.tgt_vocab_size:,} target subwords",
        "numbers": quantization,
        "weights": manifest.get("weights"),
        "steps": manifest.get("step"),
        "validation": ", ".join(f"{name} {value:.2f}" for name, value in manifest.get("validation", {}).items())
        or None,
        "beam size, length penalty": f"{bundle.config.decode.beam_size}, {bundle.config.decode.length_penalty}",
        "made from bundle": manifest.get("sha256"),
    }
    return TEMPLATE.format(
        languages=", ".join(dict.fromkeys(code for code in (*sources, *(targets or [data.tgt_lang or ""])) if code)),
        example=f"{codes[0] if codes else ''}...",
        several=SEVERAL.format(codes=", ".join(f"`{code}`" for code in codes)) if codes else "",
        title=f"{src} to {tgt}",
        n_parameters=sum(weight.numel() for weight in bundle.model.parameters()),
        src=src,
        tgt=tgt,
        version=manifest.get("dragoman", "of an unknown version"),
        rows="\n".join(f"| {name} | {value} |" for name, value in facts.items() if value is not None),
    )
