"""Portuguese."""

from __future__ import annotations

from dragoman.languages.language import Language, NumberWords

LANGUAGE = Language(
    code="pt",
    name="Portuguese",
    scripts=("latin",),
    family="ibero-romance",
    articles="o a os as um uma uns umas",
    stop_words=(
        "os uma não em um com ele eu você isso muito mais são foi ao pelo seu sua também ela dos da estava tem nós"
    ),
    numbers=NumberWords(
        stems=(
            "zero um|primeir dois|duas|ambos|segund três|terceir quatro|quart cinco|quint seis|sext sete|sétim "
            "oito|oitav nove|non dez|décim onze doze"
        ),
        half="meia",
    ),
)
