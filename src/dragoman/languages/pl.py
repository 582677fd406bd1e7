"""Polish."""

from __future__ import annotations

from dragoman.languages.language import Language

LANGUAGE = Language(
    code="pl",
    name="Polish",
    scripts=("latin",),
    stop_words="nie się jest na że do jak ale za tego czy był mam dla jego wszystko przez która który",
)
