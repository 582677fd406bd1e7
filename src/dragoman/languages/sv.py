"""Swedish."""

from __future__ import annotations

from dragoman.languages.language import Clock, Language, beside_half

_AT = r"(?:klockan|kl\.?|till|före|efter) "

LANGUAGE = Language(
    code="sv",
    name="Swedish",
    scripts=("latin",),
    family="scandinavian",
    titles="[Kk]apt|[Ll]öjtn|[Dd]ir|[Kk]and|Hrr",
    openers="hon vi du ni dem sedan då nu här där",
    articles="en ett den det de",
    stop_words="och är att det inte jag som på ett för med han till vi har av från hon kan din",
    clock=Clock(
        signs="halv kvart",
        hours="ett två tre fyra fem sex sju åtta nio tio elva tolv",
        spoken=((-30, f"{_AT}halv H"), (-15, f"{_AT}kvart i H"), (15, f"{_AT}kvart över H")),
        perhaps=(
            *beside_half("halv", "i", "över", "minuter", ("fem", "tio")),
            (-30, "halv H"),
            (-15, "kvart i H"),
            (15, "kvart över H"),
        ),
    ),
)
