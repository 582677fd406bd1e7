"""Dutch."""

from __future__ import annotations

from dragoman.languages.language import Language, NumberWords

LANGUAGE = Language(
    code="nl",
    name="Dutch",
    scripts=("latin",),
    family="dutch",
    articles="de het een",
    stop_words=(
        "het een niet ik dat van zijn voor op met hij maar zij wij wat heb heeft ook naar er bij deze werd aan ze dit "
        "geen"
    ),
    numbers=NumberWords(
        stems="nul een|één|eerst twee|beide drie|derde vier vijf zes zeven acht negen tien elf twaalf",
        half="half",
    ),
)
