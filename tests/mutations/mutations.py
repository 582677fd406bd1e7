"""Defects that were mended, or that somebody might make: each is put back, and the test that is named must fail.

To add one, add a tuple: the file below ``src/dragoman``, a text that stands in it once, what stands there instead, and
the test. Choose a test of seconds; one that takes ``tiny_run`` trains it first.
"""

from __future__ import annotations

from typing import NamedTuple


class Mutation(NamedTuple):
    """A defect, and who notices it."""

    defect: str
    file: str
    old: str
    new: str
    test: str


MUTATIONS = [
    Mutation(
        "the length penalty is another's than GNMT's",
        "decoding/search.py",
        "return float(((5 + n) / 6) ** alpha)",
        "return float(((5 + n) / 5) ** alpha)",
        "tests/decoding/test_search.py::test_the_length_penalty_is_gnmts",
    ),
    Mutation(
        "the length penalty of a beam does not count eos",
        "decoding/search.py",
        "                length_penalty(n, alpha),\n",
        "                length_penalty(n - 1, alpha),\n",
        "tests/decoding/test_search.py::test_a_wide_beam_finds_what_exhaustive_search_finds",
    ),
    Mutation(
        "of translations that are equally good the one found last comes first",
        "decoding/search.py",
        "bisect.insort(own, ",
        "bisect.insort_left(own, ",
        "tests/decoding/test_search.py::test_of_equally_good_translations_the_one_found_first_is_given",
    ),
    Mutation(
        "an n-gram may be repeated at once",
        "decoding/constraints.py",
        "for i in range(len(ids) - n + 1) if",
        "for i in range(len(ids) - n) if",
        "tests/decoding/test_constraints.py::test_repeated_ngrams",
    ),
    Mutation(
        "blank lines are left out",
        "data/corpus.py",
        "        body = _without_ending(raw)\n        n_cut",
        "        body = _without_ending(raw)\n        if not body.strip():\n            continue\n        n_cut",
        "tests/data/test_corpus.py::test_lenient_reading_gives_as_many_lines_as_there_are_lf",
    ),
    Mutation(
        "padding is attended to, so that a sentence depends on its batch",
        "model/masks.py",
        "return (ids != pad_id)[:, None, None, :]",
        "return (ids == ids)[:, None, None, :]",
        "tests/model/test_transformer.py::test_a_sentence_has_the_same_logits_alone_and_beside_a_longer_one",
    ),
    Mutation(
        "a test of significance can give a p-value of 0",
        "evaluation/significance.py",
        "return (as_large + 1) / (n_samples + 1)",
        "return as_large / n_samples",
        "tests/evaluation/test_significance.py::test_systems_that_are_worlds_apart_get_the_smallest_p_value",
    ),
    Mutation(
        "of TER more is better",
        "evaluation/significance.py",
        '(self.difference > 0) != (self.metric == "TER")',
        "self.difference > 0",
        "tests/evaluation/test_significance.py::test_verdicts_in_plain_words",
    ),
    Mutation(
        "checkpoints are added up, not averaged",
        "training/averaging.py",
        "(tensor / count)",
        "tensor",
        "tests/training/test_update.py::test_averaged_checkpoints_are_the_mean_in_any_order",
    ),
    Mutation(
        "a form feed at the end of a line is taken off",
        "data/corpus.py",
        '    return raw.removesuffix(b"\\n")\n',
        '    return raw.rstrip(b"\\n\\x0b\\x0c")\n',
        "tests/data/test_corpus.py::test_any_text_without_lf_and_nul_is_read_back_but_for_the_mark_and_cr",
    ),
]
