"""Turkish."""

from __future__ import annotations

from dragoman.languages.language import Language

LANGUAGE = Language(
    code="tr",
    name="Turkish",
    scripts=("latin",),
    titles="Doç|Av|Sn|Yrd|Öğr|Gör|Uzm|Alb|Yzb|Org|Korg|Tümg|Tuğg|Bnb|Ütğm|Arş|Müh|Mim|Hz",
    openers="o onlar biz siz sonra şimdi burada orada",
    stop_words="bir ve bu için ne çok ben daha gibi değil ile var bana mı sen kadar",
)
