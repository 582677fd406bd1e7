"""French."""

from __future__ import annotations

from dragoman.languages.language import Language, NumberWords

LANGUAGE = Language(
    code="fr",
    name="French",
    scripts=("latin",),
    articles="le la les un une des",
    stop_words=(
        "le les et est une des dans pour pas qui vous nous avec sur ce je il elle sont au aux cette ont être été ils "
        "mais où mon leur plus deux du"
    ),
    no_abbreviations="art|vol|sec",
    numbers=NumberWords(
        stems="zéro un|premi deux|second trois quatre|quatri cinq six|sixi sept huit neuf|neuvi dix|dixi onz douz",
        half="demi",
    ),
)
