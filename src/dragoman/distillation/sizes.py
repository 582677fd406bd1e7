"""Sizes of a student that nobody has chosen: never larger or slower than its teacher."""

from __future__ import annotations

from typing import Any

from dragoman.config import PRESETS, ModelConfig
from dragoman.training.flops import training_flops
from dragoman.training.memory import n_parameters

STUDENTS = ("student", "student-tiny")
"""Presets of students, the largest first."""

LENGTH = 20
"""Subwords of the sentences by which the work of two models is compared."""


def sizes_below(teacher: ModelConfig) -> dict[str, Any]:
    """Return sizes of a student that has fewer parameters and less work than its teacher.

    They are the largest preset of ``STUDENTS`` that has; else the teacher's own with one decoder layer, or half of its
    feed-forward width where it has one layer only.
    """
    own = {name: getattr(teacher, name) for name in PRESETS["student"]}
    candidates = [PRESETS[name] for name in STUDENTS] + [{**own, "n_decoder_layers": 1}]
    for sizes in candidates:
        if is_smaller(sizes, teacher):
            return sizes
    return {**own, "n_decoder_layers": 1, "d_ff": max(1, teacher.d_ff // 2)}


def is_smaller(sizes: dict[str, Any], teacher: ModelConfig) -> bool:
    """Return True if a Transformer of these sizes has fewer parameters and does less work than the teacher.

    A decoder works once for each word, so its layers may not be more or wider than the teacher's.
    """
    common = {"src_vocab_size": teacher.src_vocab_size, "tgt_vocab_size": teacher.tgt_vocab_size}
    student = ModelConfig(**{**common, **sizes})
    work = [training_flops(model, 1, LENGTH, LENGTH) for model in (student, teacher)]
    decoder = [model.n_decoder_layers * model.d_model for model in (student, teacher)]
    return n_parameters(student) < n_parameters(teacher) and work[0] < work[1] and decoder[0] <= decoder[1]
