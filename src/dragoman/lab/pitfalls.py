"""Show classic bugs of the Transformer at work, each with the test of this project that catches it."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple

from dragoman.lab import bugs
from dragoman.lab.bugs import Symptom
from dragoman.lab.experiment import Claim, Findings, Lab, Section, Table


class Pitfall(NamedTuple):
    """A bug with the code that has it, and the test that catches it."""

    name: str
    show: Callable[[], Symptom]
    wrong: str  # code with the bug
    right: str  # correct code
    test: str  # the test that fails with the bug, as file::function


PITFALLS = (
    Pitfall(
        "a bool mask added", bugs.mask_added, "scores + mask", "scores.masked_fill(~mask, ...)",
        "tests/model/test_attention.py::test_attend_equals_scaled_dot_product_attention",
    ),
    Pitfall(
        "padded queries hidden", bugs.padded_queries, "q_mask & k_mask, filled with -inf", "hide keys only",
        "tests/model/test_attention.py::test_a_query_that_sees_nothing_gathers_zeros_and_its_gradients_are_finite",
    ),
    Pitfall(
        "keys in the queries' shape", bugs.keys_in_the_query_s_shape, "k.view(batch, n_queries, ...)",
        "k.unflatten(-1, (n_heads, d_k))",
        "tests/model/test_transformer.py::test_every_source_token_is_seen_by_every_target_position",
    ),
    Pitfall(
        "a causal encoder", bugs.causal_encoder, "tril inside multi-head attention", "the mask is an argument",
        "tests/model/test_transformer.py::test_every_source_position_sees_every_source_token",
    ),
    Pitfall(
        "-1e9 in half precision", bugs.minus_1e9_in_half, "masked_fill(mask, -1e9)",
        "torch.finfo(scores.dtype).min",
        "tests/model/test_attention.py::test_a_query_that_sees_nothing_gathers_zeros_and_its_gradients_are_finite",
    ),
    Pitfall(
        "view of what is not contiguous", bugs.view_without_contiguous, "x.transpose(1, 2).view(...)",
        "x.transpose(1, 2).flatten(2)",
        "tests/model/test_attention.py::test_heads_attend_side_by_side_and_are_projected_once_more",
    ),
    Pitfall(
        "a norm's result dropped", bugs.norm_dropped, "self.norm1(x + y)", "x = self.norm1(x + y)",
        "tests/parity/test_torch_nn.py::test_logits_and_gradients_equal_torch_nn_transformer",
    ),
    Pitfall(
        "norm2 of the memory", bugs.norm2_of_memory, "cross_attn(norm2(x), norm2(memory))",
        "cross_attn(norm2(x), memory)",
        "tests/parity/test_torch_nn.py::test_logits_and_gradients_equal_torch_nn_transformer",
    ),
    Pitfall(
        "a decoder of encoder layers", bugs.decoder_of_encoder_layers, "ModuleList([EncoderLayer() ...])",
        "ModuleList(DecoderLayer() ...)",
        "tests/model/test_state_dict.py::test_the_names_of_the_smallest_model_that_has_them_all",
    ),
    Pitfall(
        "forward inside __init__", bugs.nested_forward, "def forward indented twice", "def forward in the class",
        "tests/model/test_state_dict.py::test_every_combination_builds_and_predicts",
    ),
    Pitfall(
        "no super().__init__()", bugs.no_super_init, "self.fc1 = nn.Linear(...) first", "super().__init__() first",
        "tests/model/test_state_dict.py::test_every_combination_builds_and_predicts",
    ),
    Pitfall(
        "arguments in another order", bugs.arguments_swapped, "Embedding(d_model, max_len, vocab_size)",
        "names: d_model=512",
        "tests/model/test_state_dict.py::test_the_names_of_the_smallest_model_that_has_them_all",
    ),
    Pitfall(
        "targets not shifted", bugs.not_shifted, "model(src, tgt_out)", "model(src, bos + tgt)",
        "tests/data/test_batching.py::test_collate_shifts_and_pads",
    ),
    Pitfall(
        "loss over padding", bugs.loss_over_padding, "cross_entropy(logits, tgt)", "ignore_index=pad_id",
        "tests/training/test_loss.py::test_plain_loss_equals_torch",
    ),
    Pitfall(
        "padding_idx=1, padding 0", bugs.padding_idx, "Embedding(..., padding_idx=1)", "padding_idx=pad_id",
        "tests/model/test_initialisation.py::test_only_the_padding_row_of_an_embedding_is_zero",
    ),
    Pitfall(
        "a mean over micro-batches", bugs.mean_of_means, "(loss.mean() / n).backward()",
        "(loss.sum() / tokens of all).backward()",
        "tests/training/test_update.py::test_accumulated_micro_batches_equal_one_batch",
    ),
    Pitfall(
        "positions on another device", bugs.positions_left_behind, "self.table = ...",
        "made where it is needed, or a buffer",
        "tests/model/test_transformer.py::test_positions_go_with_the_model_to_another_device",
    ),
)  # fmt: skip


def run(lab: Lab) -> Findings:
    """Make each bug; claims: some raise no error, and make a model that is worse without any sign."""
    symptoms = {pitfall.name: pitfall.show() for pitfall in PITFALLS}
    numbers: dict[str, Any] = {p.name: {**symptoms[p.name]._asdict(), "test": p.test} for p in PITFALLS}
    return Findings(numbers, sections(numbers), verdict(numbers))


def verdict(numbers: dict[str, Any]) -> list[Claim]:
    """Return the claims of the experiment, each decided by the numbers of a run."""
    silent = [name for name, symptom in numbers.items() if not symptom["loud"]]
    shifted, hidden = numbers["targets not shifted"], numbers["padded queries hidden"]
    return [
        Claim(
            "Some of these bugs raise no error: the model trains, and is worse",
            bool(silent),
            f"{len(silent)} of {len(numbers)} are silent; the list was chosen by hand, so the share means nothing",
        ),
        Claim(
            "A model whose targets are not shifted is nearly perfect in training and writes nonsense",
            shifted["numbers"]["wrong_accuracy"] > 0.95 and shifted["numbers"]["wrong_spoken"] < 0.2,
            f"{shifted['numbers']['wrong_accuracy']:.0%} of tokens right in training, "
            f"{shifted['numbers']['wrong_spoken']:.0%} of sentences",
        ),
        Claim(
            "Hiding padded queries with -inf spoils the whole sentence, two layers on",
            hidden["numbers"]["two_layers"] == 1.0,
            f"{hidden['numbers']['two_layers']:.0%} of all numbers are NaN",
        ),
    ]


def sections(numbers: dict[str, Any]) -> list[Section]:
    """Return the sections of the report, made from the numbers of a run: the silent bugs, then the loud ones."""
    groups = [[pitfall for pitfall in PITFALLS if numbers[pitfall.name]["loud"] is loud] for loud in (False, True)]
    silent, loud = (
        Table(
            ("bug", "wrong", "right", "what it shows", "caught by"),
            [(_named(p.name), f"`{p.wrong}`", f"`{p.right}`", _symptom(numbers[p.name]), f"`{p.test}`") for p in group],
        )
        for group in groups
    )
    return [
        Section(
            "Silent bugs",
            "Most of these bugs are in one of the five documents, in code that looks right. Each has a test here that "
            "fails when the bug is made, and `tests/lab/test_pitfalls.py` makes each bug to check that.",
            table=silent,
        ),
        Section("Loud bugs", "", table=loud),
    ]


def _named(name: str) -> str:
    """Return the name of a bug with names of Python as code."""
    return re.sub(r"(?<!\S)\S*__\S+", r"`\g<0>`", name)


def _symptom(symptom: dict[str, Any]) -> str:
    """Return what a bug shows: an error as code, or numbers in words."""
    text: str = symptom["symptom"]
    if not symptom["loud"]:
        return text
    error, _, remark = text.partition(" (reshape")
    return f"`{error}`" + (f" (reshape{remark}" if remark else "")
