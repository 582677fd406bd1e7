"""Italian."""

from __future__ import annotations

from dragoman.languages.language import Language, NumberWords

LANGUAGE = Language(
    code="it",
    name="Italian",
    scripts=("latin",),
    articles="il lo la i gli le un uno una",
    stop_words=(
        "il di che è per non gli della sono ho ha questo questa anche nel alla delle dei più mi si lui molto ma "
        "abbiamo hanno perché essere"
    ),
    numbers=NumberWords(
        stems=(
            "zero un|prim due|entrambi|second tre|terz quattro|quart cinque|quint sei|sest sette|settim otto|ottav "
            "nove|non dieci|decim undici dodici"
        ),
        half="mezz",
    ),
)
