"""Portuguese."""

from __future__ import annotations

from dragoman.languages.language import Clock, Language, NumberWords, not_after

_0_TO_19 = (
    "zero uma? (?:dois|duas) tr[eê]s quatro cinco seis sete oito nove dez onze doze treze (?:ca|qua)torze quinze "
    "dez[ae]sseis dez[ae]ssete dezoito dez[ae]nove"
)
_TENS = "vinte trinta quarenta cinquenta sessenta setenta oitenta noventa"
_WORDS = [*_0_TO_19.split(), *_TENS.split()]
_HUNDREDS = "duz trez quatroc quinh seisc setec oitoc novec"
_FIRST = "primeir segund terceir quart quint sext s[eé]tim oitav non"
_TENTH = "d[eé]c vig[eé]s trig[eé]s quadrag[eé]s quinquag[eé]s sexag[eé]s sep?tuag[eé]s octog[eé]s nonag[eé]s cent[eé]s"
_OTHERS = (  # ends of words
    "e um|e uma|dois|duas|três|quatro|cinco|seis|sete|oito|nove|dez|onze|doze|treze|torze|quinze|"
    f"{_TENS.replace(' ', '|')}|cem|cento|cento e|zentos|zentas|zentos e|zentas e|centos|centas|centos e|centas e|"
    "nhentos|nhentas|nhentos e|nhentas e|mil|mil,|mil e"
)
_START = not_after(_OTHERS.split("|"))
LONGER = (
    rf" mil\b| e (?:{'|'.join(_WORDS[1:10])})\b|(?<=[oa]s|il),?(?: e)? (?:{'|'.join(_WORDS[10:])})\b"
    rf"|(?<=il),?(?: e)? (?:cem|cento|(?:{_HUNDREDS.replace(' ', '|')})ent[oa]s)\b"
    rf"|(?<=im[oa])[- ](?:{_FIRST.replace(' ', '|')})"
)


def spelled(n: int) -> str:
    """Return the pattern of a number below a million in words, such as ``trinta e dois``, not after a number word."""
    start = f"(?<!nta e )(?<!vinte e ){_START}" if 1000 < n < 10_000 else _START  # 2000 is not in "trinta e dois mil"
    return rf"{start}(?:{_words(n)}{_ordinal(n)})\b"


def _ordinal(n: int) -> str:
    """Return the pattern of an ordinal number as one more alternative, such as ``|vig[eé]sim[oa]s?``."""
    if n > 100:
        return "|mil[eé]sim[oa]s?" if n == 1000 else ""
    unit = f"[oa][- ]{_FIRST.split()[n % 10 - 1]}" if n % 10 else ""
    return f"|{_TENTH.split()[n // 10 - 1]}im{unit}[oa]s?"


def _words(n: int) -> str:
    if n < 20:
        return _WORDS[n]
    if n < 100:
        words = _WORDS[18 + n // 10]
    elif n < 200:
        words = "cento" if n % 100 else "cem"
    elif n < 1000:
        words = f"{_HUNDREDS.split()[n // 100 - 2]}ent[oa]s"
    else:
        words = "mil" if n < 2000 else f"{_words(n // 1000)} mil"
    rest = n % (10 if n < 100 else 100 if n < 1000 else 1000)
    return words + (f",?(?: e)? {_words(rest)}" if rest else "")


_AT = "(?:às?|são|é) "
_O_CLOCK = "(?: horas?)?"

LANGUAGE = Language(
    code="pt",
    name="Portuguese",
    scripts=("latin",),
    family="ibero-romance",
    titles=(
        "Srta|Srt[ªa]|Eng[ªa]|Arq|Prof[ªa]|Exma|Ilm[oa]|St[ao]|Av|Cel|Cap|Ten|Alm|Pe|Fr|Ir|Mons|Des|Min|Dep|Gov|Pres|"
        "Pça?|Sres|(?<![e&] )Cia"
    ),
    openers="eles elas depois então assim também este esta esse essa isto aqui ali no na se é",
    articles="o a os as um uma uns umas",
    stop_words=(
        "os uma não em um com ele eu você isso muito mais são foi ao pelo seu sua também ela dos da estava tem nós"
    ),
    numbers=NumberWords(
        stems=(
            "zero um|primeir dois|duas|ambos|segund três|terceir quatro|quart cinco|quint seis|sext sete|sétim "
            "oito|oitav nove|non dez|décim onze doze"
        ),
        spelled=spelled,
        longer=LONGER,
    ),
    clock=Clock(
        signs="meia quarto quinze trinta quarenta",
        hours="uma duas três quatro cinco seis sete oito nove dez onze doze|meio-dia|meia-noite",
        spoken=(
            (30, f"{_AT}H{_O_CLOCK} e meia(?! de)"),
            (15, f"{_AT}H{_O_CLOCK} e (?:um )?quarto"),
            (-15, "(?:às?|aos?|são|é|faltam?) (?:um )?(?:quarto|quinze) para [ao]s? H"),
            (-15, f"{_AT}H menos (?:um )?quarto"),
        ),
        perhaps=(
            (-15, "(?:quarto|quinze) para [ao]s? H"),  # "um quarto para as 3 pessoas"
            (30, f"H{_O_CLOCK} e meia"),
            (15, f"H{_O_CLOCK} e (?:um )?quarto"),
            (15, f"H{_O_CLOCK} e quinze"),
            (30, f"H{_O_CLOCK} e trinta"),
            (45, f"H{_O_CLOCK} e quarenta e cinco"),
        ),
    ),
)
