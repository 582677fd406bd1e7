"""Options of translation: each once, with its name, type, default, check and help.

The command line, the Python functions, the JSON schema and the reference page are made from ``TranslateOptions``.
Nothing here imports torch, even indirectly.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping
from typing import Annotated, Any, ClassVar, Self

from pydantic import WithJsonSchema, field_validator, model_validator

from dragoman.arguments import is_listable
from dragoman.errors import ConfigError
from dragoman.options import LanguageOptions, SamplingOptions, default_of, must, option, option_group
from dragoman.toolkits.options import FastOptions
from dragoman.translation.notes import Events

OTHER_NAMES = {
    "beam_size": "beam beams num_beams beam_width n_beams",
    "n_best": "nbest num_hypotheses num_return_sequences k",
    "length_penalty": "lenpen alpha normalize",
    "sample": "do_sample sampling",
    "temperature": "sampling_temperature",
    "top_k": "sampling_topk topk",
    "top_p": "sampling_topp topp",
    "to": "tgt_lang target_lang target_language tgt to_lang to_code",
    "from_lang": "src_lang source_lang source_language src from_code",
    "batch_tokens": "batch_size max_batch_size max_tokens mini_batch",
    "no_repeat_ngram": "no_repeat_ngram_size",
    "prefix": "target_prefix prefix_tokens forced_bos",
    "include": "constraints force_words force_words_ids",
    "exclude": "bad_words bad_words_ids suppress_tokens suppress_sequences",
    "glossary": "terms terminology glossary_id",
    "alignments": "alignment print_alignment return_attention output_attentions",
    "precision": "compute_type dtype torch_dtype fp16",
    "threads": "workers num_threads inter_threads intra_threads num_workers",
    "sentence_split": "split_sentences",
    "allow_unk": "replace_unk replace_unknowns",
}
"""Names of options in Hugging Face, fairseq, CTranslate2, OpenNMT, Marian, DeepL and Argos Translate, by ours."""

LENGTH = "the longest translation follows from its source; decode.max_extra_tokens of a run's configuration limits it"


@option_group
class TranslateOptions(LanguageOptions, SamplingOptions, FastOptions):
    """All options of translation; None means the run's own setting."""

    hints: ClassVar[Mapping[str, str]] = {
        **{name: f"pass it as events=Events({name}=...)" for name in Events.__dataclass_fields__},
        **{name: f"did you mean {ours}?" for ours, names in OTHER_NAMES.items() for name in names.split()},
        **dict.fromkeys(("max_length", "max_new_tokens", "max_decoding_length"), LENGTH),
    }

    allow_unk: bool = option(
        False, "Search", "Allow the unknown subword in translations, as Marian's --allow-unk; its text is ⁇."
    )
    sentence_split: bool = option(
        True, "Output", "Split lines into sentences, which are translated one by one and joined again."
    )
    alignments: bool = option(False, "Output", "Return word alignments, read off attention weights.")
    prefix: str | tuple[str, ...] = option("", "Words", "Target prefix: every translation starts with it.")
    include: tuple[str, ...] = option(
        (), "Words", "Positive constraint: word or phrase that every translation must contain."
    )
    exclude: tuple[str, ...] = option(
        (), "Words", "Negative constraint: word or phrase that no translation may contain."
    )
    glossary: Annotated[Any, WithJsonSchema({"type": ["object", "string", "null"]})] = option(
        None,
        "Words",
        "Glossary: a file, or its text, with lines of 'source = target', or a source term alone to copy it.",
        metavar="FILE",
    )
    no_repeat_ngram: int = option(0, "Words", "Forbid repeated n-grams of this many subwords; 0 allows them.", ge=0)
    guard: bool = option(
        True,
        "Checks",
        "Detect and re-decode degenerate translations (loops, copies, empty, far too long, a part left out).",
    )
    protect: bool = option(
        True, "Checks", "Carry over numbers, addresses, placeholders, markup and emoji unchanged; name what is missing."
    )
    truecase: bool = option(
        True,
        "Checks",
        "Read lines in CAPITALS or Title Case in usual case too, and take the likelier translation; CAPITALS stay so.",
    )
    threads: int | None = option(
        None, "Speed", "Threads on a CPU, each of which decodes a batch (default: one for each core).", ge=1
    )
    shortlist: bool = option(
        False,
        "Speed",
        "Restrict each sentence to its lexical shortlist of target subwords, if the run has one; some translations "
        "differ.",
    )
    deterministic: bool = option(
        False, "Speed", "Decode one sentence at a time, so that results are bit-identical in any batch."
    )

    @field_validator("include", "exclude", mode="before")
    @classmethod
    def _a_list_of_words(cls, words: Any, info: Any) -> Any:
        if not is_listable(words):
            raise must(f"be a list of words, such as {info.field_name}=['word']")
        if not all(isinstance(word, str) and word.strip() for word in words):
            raise must("hold no blank word")
        return tuple(words)

    @field_validator("prefix", mode="before")
    @classmethod
    def _a_prefix_or_one_for_each(cls, prefix: Any) -> Any:
        return tuple(prefix) if is_listable(prefix) else prefix

    @model_validator(mode="after")
    def _check(self) -> Self:
        for word in (*self.prefixes, *self.include, *self.exclude):
            if any("\ud800" <= character <= "\udfff" for character in word):  # a byte of argv that is not UTF-8
                raise ValueError(
                    f"{word!r} contains an unpaired surrogate, which is not a character: give text in UTF-8"
                )
        if any(end in prefix for prefix in self.prefixes for end in "\n\r"):
            raise ValueError("the prefix contains a line break, but a translation is a single line")
        if self.deterministic and self.batch_tokens is not None:
            raise ValueError("deterministic decodes each sentence alone: leave it out, or batch_tokens")
        if self.sample and self.shortlist:
            raise ValueError("sample draws from the whole vocabulary: leave out one of sample and shortlist")
        if self.sample and (self.include or self.glossary):
            raise ValueError("sampling cannot place words that must appear (include, glossary): leave out one of them")
        return self

    @property
    def prefixes(self) -> tuple[str, ...]:
        """Prefixes: one for all texts, or one for each."""
        return (self.prefix,) if isinstance(self.prefix, str) else self.prefix

    @property
    def constrains(self) -> bool:
        """True if decoding is constrained (prefix, words, n-grams); terms of a glossary are placed after decoding."""
        return bool(any(self.prefixes) or self.include or self.exclude or self.no_repeat_ngram)

    def refuse_others(self, used: Collection[str], what: str) -> None:
        """Refuse options that have no effect on an action.

        Raises:
            ConfigError: An option that is not among ``used`` differs from its default.
        """
        for field in dataclasses.fields(self):
            if field.name not in used and getattr(self, field.name) != default_of(field):
                raise ConfigError(f"{field.name} has no effect on {what}: leave it out (used are {', '.join(used)})")


SCORING = (
    "length_penalty", "length_penalty_form", "batch_tokens", "precision", "alignments", "sentence_split", "to",
    "from_lang",
)  # fmt: skip
"""Names of the options that affect scoring."""
