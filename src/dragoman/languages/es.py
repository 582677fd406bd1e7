"""Spanish."""

from __future__ import annotations

from dragoman.languages.language import Language, NumberWords

LANGUAGE = Language(
    code="es",
    name="Spanish",
    scripts=("latin",),
    family="ibero-romance",
    articles="el la los las un una unos unas",
    stop_words=(
        "el los las y una por para está con del lo como más pero sus muy yo tiene hay qué ser fue esta este cuando "
        "ella usted nosotros sobre"
    ),
    numbers=NumberWords(
        stems=(
            "cero un|primer dos|ambos|segund tres|tercer cuatro|cuart cinco|quint seis|sext siete|séptim ocho|octav "
            "nueve|noven diez|décim once doce"
        ),
        half="media",
    ),
)
