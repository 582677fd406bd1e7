"""Polish."""

from __future__ import annotations

from dragoman.languages.language import Clock, Language

LANGUAGE = Language(
    code="pl",
    name="Polish",
    scripts=("latin",),
    titles=(
        "[Ii]nż|[Dd]r|[Mm]gr|hab|[Dd]oc|[Kk]s|[Śś]w|(?<!ten )(?<!to )[Gg]en|p?płk|kpt|ppor|mjr|[Rr]ed|[Dd]yr|al|pl|os|"
        "woj|pow|gm|a?bp|kard|tow|tzw|lek|"
        # "im" is a word too ("them"), and means "named after" only behind what may have a name
        "(?:szk[oó][lł]|uniwersyt|lice|muze|teatr|park|stadion|fabry|instyt|fundacj|bibliote|szpital|"
        "akademi|plac|nagrod|medal|konkurs|ośrod|zesp|zakład|hut|kopal|lotnisk|stoczni|politech|festiwal|centr)\\w* im"
    ),
    openers="on ona ono oni one potem ja ty my wy on tam tu teraz więc i a w z to ten ta te",
    stop_words="nie się jest na że do jak ale za tego czy był mam dla jego wszystko przez która który",
    clock=Clock(
        signs="pół kwadrans",
        hours="pierwsz drug trzeci czwart piąt szóst siódm ósm dziewiąt dziesiąt jedenast dwunast",
        ending="(?:i?(?:ej|a|ą))?",
        spoken=((-30, "w ?pół do H"), (15, "kwadrans po H"), (-15, "(?:za kwadrans|kwadrans przed) H")),
        perhaps=((-35, "za pięć(?: minut)? w ?pół do H"), (-25, "pięć(?: minut)? po w ?pół do H")),
    ),
)
