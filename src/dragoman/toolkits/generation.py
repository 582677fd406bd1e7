"""Read the search settings of a model of Hugging Face: ``generation_config.json``, or ``config.json`` of older models.

A run keeps beam, length penalty and stopping rule. Every other setting that changes which translation is chosen must
have its neutral value. Any other value is refused by name, so that none is dropped silently.

As in transformers, ``config.json`` gives settings of the search only if there is no ``generation_config.json``.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from dragoman.errors import BundleError
from dragoman.toolkits.reading import read_object, shown

logger = logging.getLogger(__name__)

FILE = "generation_config.json"
KEPT = ("num_beams", "length_penalty", "early_stopping")
"""Settings that become the run's own."""
LIMITS = ("max_length", "max_new_tokens")
"""Settings that limit the length of all translations; a run has a limit for each sentence instead."""
BANS = ("bad_words_ids", "suppress_tokens", "begin_suppress_tokens")
"""Settings that list forbidden tokens."""
SAME = ("decoder_start_token_id", "eos_token_id", "pad_token_id")
"""Settings that must agree with ``config.json``."""
NEUTRAL: dict[str, tuple[Any, ...]] = {
    "min_length": (0, 1), "min_new_tokens": (0,), "do_sample": (False,), "repetition_penalty": (1,),
    "encoder_repetition_penalty": (1,), "no_repeat_ngram_size": (0,), "encoder_no_repeat_ngram_size": (0,),
    "num_beam_groups": (1,), "diversity_penalty": (0,), "penalty_alpha": (0,), "guidance_scale": (1,),
    "token_healing": (False,), "forced_bos_token_id": (), "exponential_decay_length_penalty": (),
    "sequence_bias": ({},), "force_words_ids": ([],), "constraints": ([],), "stop_strings": ([],), "max_time": (),
    "watermarking_config": (), "dola_layers": (),
}  # fmt: skip
"""Settings that change the search, and the values with which they do not; null never does."""
WITHOUT_EFFECT = frozenset({
    # of sampling, which do_sample: false turns off
    "temperature", "top_k", "top_p", "min_p", "top_h", "typical_p", "epsilon_cutoff", "eta_cutoff",
    # rescaling of scores that keeps their order; treatment of scores that are not finite
    "renormalize_logits", "remove_invalid_values",
    # results returned besides the best translation
    "num_return_sequences", "output_attentions", "output_hidden_states", "output_scores", "output_logits",
    "return_dict_in_generate",
    # speed alone: caches, compilation, speculative decoding
    "use_cache", "cache_implementation", "cache_config", "max_cache_len", "compile_config", "disable_compile",
    "low_memory", "prefill_chunk_size", "continuous_batching_config", "use_mtp", "is_assistant",
    "num_assistant_tokens", "num_assistant_tokens_schedule", "assistant_confidence_threshold",
    "prompt_lookup_num_tokens", "max_matching_ngram_size", "assistant_early_exit", "assistant_lookbehind",
    "target_lookbehind", "assistant_ensemble_weight", "speculation_type",
    # provenance
    "bos_token_id", "transformers_version",
})  # fmt: skip
KNOWN = frozenset({*KEPT, *LIMITS, *BANS, *SAME, "forced_eos_token_id", *NEUTRAL, *WITHOUT_EFFECT})


def ordered_search(folder: Path, theirs: Mapping[str, Any], never: Collection[int], wanted: str) -> dict[str, Any]:
    """Return the section ``decode`` of a run that has the search settings of a model.

    Args:
        theirs: Checked content of ``config.json``.
        never: Ids that our search never chooses.
        wanted: Advice for a ``generation_config.json`` that cannot be read.

    Raises:
        BundleError: A run cannot hold a setting; the message names it.
    """
    path = folder / FILE
    if path.is_file():
        search = read_object(path, wanted)
    else:
        path = folder / "config.json"
        search = {name: value for name, value in theirs.items() if name in KNOWN}

    def refuse(name: str, allowed: str, advice: str = "") -> BundleError:
        return BundleError(
            f"{path}: {name} = {shown(search[name])} orders a search that a run cannot hold, only "
            f"{allowed}; remove it there to import the model without it{advice}"
        )

    for name, value in search.items():
        if value is None or name.startswith("_"):
            continue
        if name in BANS and not _bans_only(value, never):
            raise refuse(name, "tokens that are never chosen: padding, bos and unk")
        if name in SAME and value != theirs[name]:
            raise refuse(name, f"the {theirs[name]} of config.json")
        if name == "forced_eos_token_id" and value not in (theirs["eos_token_id"], [theirs["eos_token_id"]]):
            raise refuse(name, f"eos, which is {theirs['eos_token_id']}")
        if name in NEUTRAL and value not in NEUTRAL[name]:
            n_gram = f", and give --no-repeat-ngram {value} to translate" if name == "no_repeat_ngram_size" else ""
            raise refuse(name, " or ".join(map(str, NEUTRAL[name] or ("null",))), n_gram)
        if name not in KNOWN and value is not False:
            raise refuse(name, "settings that are known here")

    for name in LIMITS:
        if type(search.get(name)) is int:
            logger.info("%s: %s = %s is not kept; the length of the source limits a translation here",
                        folder, name, search[name])  # fmt: skip
    beams, penalty, stops = search.get("num_beams"), search.get("length_penalty"), search.get("early_stopping")
    if beams is not None and (type(beams) is not int or not 1 <= beams <= 1000):
        raise refuse("num_beams", "1 to 1000")
    if penalty is not None and (type(penalty) not in (int, float) or not 0 <= penalty <= 10):
        raise refuse("length_penalty", "0 to 10")
    if stops not in (None, False, True, "never"):
        raise refuse("early_stopping", "true, false or 'never'")
    beam_size = 1 if beams is None else beams  # its default is greedy search
    return dict(
        beam_size=beam_size,
        length_penalty=1.0 if penalty is None else penalty,
        length_penalty_form="power",
        patience=1.0 if stops is True and beam_size != 1 else None,  # it stops at num_beams finished translations
    )


def _bans_only(value: Any, never: Collection[int]) -> bool:
    """True if a list of tokens, or of lists of one token each, has only ids that our search never chooses."""
    if not isinstance(value, list):
        return False
    ids = [ids[0] if isinstance(ids, list) and len(ids) == 1 else ids for ids in value]
    return all(type(i) is int and i in never for i in ids)
