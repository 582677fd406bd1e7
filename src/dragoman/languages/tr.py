"""Turkish."""

from __future__ import annotations

from dragoman.languages.language import Language

LANGUAGE = Language(
    code="tr",
    name="Turkish",
    scripts=("latin",),
    stop_words="bir ve bu için ne çok ben daha gibi değil ile var bana mı sen kadar",
)
