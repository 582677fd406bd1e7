"""Defects that were mended, and some that somebody might make: each is put back, and the test that is named must fail.

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


MENDED = [
    Mutation(
        "a perfect translation into Japanese or Thai has BLEU 0",
        "evaluation/writing.py",
        'return "char" if self.unspaced else "13a"',
        'return "13a"',
        "tests/evaluation/test_metrics.py::test_the_same_text_scores_100_in_languages_without_spaces",
    ),
    Mutation(
        "while BLEU is 0 the first validation stays the best",
        "training/loop.py",
        "better = (quality, -loss) > (best_quality, -best_loss)",
        "better = quality > best_quality",
        "tests/training/test_loop.py::test_of_equal_quality_the_lower_loss_is_better_and_at_0_patience_does_not_count",
    ),
    Mutation(
        "translate --out destroys somebody's OUT.journal",
        "translation/resumable.py",
        "if not MARK.startswith(first):",
        "if not first:",
        "tests/translation/test_resumable.py::test_a_journal_that_is_not_ours_is_refused_and_kept",
    ),
    Mutation(
        "two writers of one name destroy each other's work",
        "files.py",
        'f".{path.name}.{secrets.token_hex(4)}.tmp"',
        'f".{path.name}.tmp"',
        "tests/test_files.py::test_two_processes_that_write_one_name_do_not_meet_and_a_reader_never_sees_half",
    ),
    Mutation(
        "a link at the name of a temporary file is followed",
        "locks.py",
        "os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | (os.O_EXCL if new else 0)",
        "os.O_RDWR | os.O_CREAT",
        "tests/test_files.py::test_a_link_that_lies_in_wait_is_not_followed",
    ),
    Mutation(
        "decode.max_extra_tokens may ask for more memory than there is",
        "config.py",
        'subwords more than its source.", ge=1, le=10_000',
        'subwords more than its source.", ge=1',
        "tests/test_config.py::test_what_cannot_be_is_refused_in_one_line_with_its_value_and_the_rule",
    ),
    Mutation(
        "a wrong usual_src_tokens in a manifest ends in a traceback",
        "bundle.py",
        "Count = Annotated[int | None, Field(strict=True, ge=1)]",
        "Count = Any",
        "tests/test_bundle.py::test_facts_that_do_not_fit_are_refused",
    ),
    Mutation(
        "Norwegian cannot be said: no is a switch",
        "config.py",
        "for tag, pattern in resolvers if tag != _BOOL]",
        "for tag, pattern in resolvers]",
        "tests/test_config.py::test_norwegian_is_a_language_and_switches_take_yes_and_no",
    ),
    Mutation(
        "the doctor's advice ignores train.max_minutes",
        "training/advice.py",
        'if train.max_minutes is not None and (reason == "max_minutes" or minutes > train.max_minutes):',
        "if False:",
        "tests/doctor/test_run_checks.py::test_to_train_longer_is_to_raise_what_ended_the_run",
    ),
    Mutation(
        "export --check blames long lines where the model says nothing",
        "evaluation/certify.py",
        "if not any(text.strip() for text in translations):",
        "if not translations:",
        "tests/evaluation/test_certify.py::test_what_cannot_be_compared_is_refused",
    ),
    Mutation(
        "export --check of a parser is refused when the export has been written",
        "cli/export.py",
        "    certify.check_task(translator)\n",
        "",
        "tests/translation/test_parser.py::test_an_export_of_a_parser_is_not_compared_and_nothing_is_written",
    ),
    Mutation(
        "an imported model writes the mark of the unknown subword",
        "decoding/request.py",
        "else (special.pad, special.unk, special.bos)",
        "else (special.pad, special.bos)",
        "tests/decoding/test_search.py::test_pad_bos_and_unk_are_the_ids_that_no_search_chooses",
    ),
]
"""Defects that users met, or that were found in search of them, and that were mended."""

POSSIBLE = [
    Mutation(
        "the length penalty is another's than GNMT's",
        "config.py",
        "return float(((5 + n) / 6) ** self.alpha)",
        "return float(((5 + n) / 5) ** self.alpha)",
        "tests/decoding/test_search.py::test_the_length_penalty_is_gnmts",
    ),
    Mutation(
        "the length penalty of a beam does not count eos",
        "decoding/search.py",
        "                penalty(n),\n",
        "                penalty(n - 1),\n",
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
        "        body = without_ending(raw)\n        n_cut",
        "        body = without_ending(raw)\n        if not body.strip():\n            continue\n        n_cut",
        "tests/data/test_corpus.py::test_lenient_reading_gives_as_many_lines_as_there_are_lf",
    ),
    Mutation(
        "padding is attended to, so that a sentence depends on its batch",
        "model/masks.py",
        "read = src != config.pad_id",
        "read = src == src",
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
        "(self.difference > 0) != self.lower_is_better",
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
"""Defects that somebody might make."""

MUTATIONS = MENDED + POSSIBLE
