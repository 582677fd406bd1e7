"""Czech."""

from __future__ import annotations

from dragoman.languages.language import Language, NumberWords

LANGUAGE = Language(
    code="cs",
    name="Czech",
    scripts=("latin",),
    family="czecho-slovak",
    stop_words="je že jsem se na by jako ale také když byl jsou nebo není jeho která který už",
    no_abbreviations="kol|hod",
    numbers=NumberWords(
        stems=(
            "nul jed|prvn dv|oba|obě|druh tři|tř|třet čtyř|čtvrt pět|pát šest sedm osm devět|devát deset|desát "
            "jedenáct dvanáct"
        ),
        half="půl",
    ),
)
