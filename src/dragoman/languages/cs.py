"""Czech."""

from __future__ import annotations

from dragoman.languages.language import Clock, Language, NumberWords, not_after

_0_TO_9 = (
    r"nul jed(?:en|n\w{1,3}) dv(?:a|ě|ou|ěma) tř(?:i|í|em|emi|ech) čtyř(?:i|em|mi|ech) pěti? šesti? sedmi? osmi? "
    "dev(?:ět|íti)"
)
_10_TO_19 = "deset jedenáct dvanáct třináct čtrnáct patnáct šestnáct sedmnáct osmnáct devatenáct"
_TENS = "dvac[eá]t třic[eá]t čtyřic[eá]t padesát šedesát sedmdesát osmdesát devadesát"
_WORDS = [*_0_TO_9.split(), *_10_TO_19.split(), *_TENS.split()]
_ORDINALS = "prvn druh třet čtvrt pát šest sedm osm devát"
_SHORT = "jede?n dva tři čtyři pět šest sedm osm devět"  # as in pětadvacet
_HUNDRED, _HUNDREDS = r"st(?:[oauýáé]|em|ého|ému|ém|ovk[au])\b", r"(?:st(?:[aěý]|ech|ům|ého|ém)|set)\b"
_UNIT = "|".join(_WORDS[:10])
LONGER = (
    rf"i? (?:(?:{_UNIT}|(?:(?:{_SHORT.replace(' ', '|')})a)?(?:{'|'.join(_WORDS[10:])})i?|tisíc\w{{0,2}})\b"
    rf"|(?:{_UNIT}) ?{_HUNDREDS}|{_HUNDRED}|{_HUNDREDS})"
    rf"|[ýáé]\w{{0,3}} (?:{_ORDINALS.replace(' ', '|')})[ýáéío]\w{{0,3}}\b"
)
_COUNTS = "jeden jedna dva dvě dvou tři tří čtyři čtyř pět pěti šest šesti sedm sedmi osm osmi devět devíti"
_LARGE = "sto stě sta set tisíc tisíce tisíců"
_ENDS = "náct nácti dvacet dvaceti řicet řiceti desát desáti deset deseti dvěstě řista tset mset"


_START = not_after(_LARGE.split(), r"\b") + not_after(_ENDS.split())
_ALONE = not_after(_COUNTS.split(), r"\b")


def spelled(n: int) -> str:
    """Return the pattern of a number below a million in words: ``dvacet pět`` or ``pětadvacet``."""
    # a hundred is not in "dvě stě", but two who are fifteen are "dva patnáctiletí"
    return (_ALONE if 1 in (n // 100, n // 1000) else "") + _START + _words(n)


def _words(n: int) -> str:
    if n < 10:
        return rf"(?:{_WORDS[n]}\b|{_ORDINALS.split()[n - 1]}[ýáéío]\w{{0,3}}\b)"
    if n < 20 or n in range(20, 100, 10):
        return f"{_WORDS[n if n < 20 else 18 + n // 10]}i?"
    if n < 100:
        tens, unit = _WORDS[18 + n // 10], n % 10
        apart = rf"{tens}i? {_WORDS[unit]}\b|{tens}[ýáé]\w{{0,3}} {_ORDINALS.split()[unit - 1]}[ýáéío]\w{{0,3}}\b"
        return f"(?:{_SHORT.split()[unit - 1]}a{tens}i?|{apart})"
    if 1100 <= n < 2000:  # years: devatenáct set pět
        return f"(?:{_by(n, 100)}|{_by(n, 1000)})"
    return _by(n, 100 if n < 1000 else 1000)


def _by(n: int, size: int) -> str:
    """Return the pattern of a number as a count of hundreds or thousands and a remainder."""
    count, remainder = divmod(n, size)
    if size == 100:
        words = _HUNDRED if count == 1 else f"{_WORDS[count]}{'i?' if count > 9 else ''} ?{_HUNDREDS}"
    else:
        words = ("(?:jeden )?" if count == 1 else f"{_words(count)} ") + r"tisíc\w{0,3}\b"
    return words + (f" {_words(remainder)}" if remainder else "")


LANGUAGE = Language(
    code="cs",
    name="Czech",
    scripts=("latin",),
    family="czecho-slovak",
    stop_words="je že jsem se na by jako ale také když byl jsou nebo není jeho která který už",
    no_abbreviations="kol|hod",
    titles="ThDr|pí|plk|kpt|mjr|npor|pplk|arch|akad|dipl",
    numbers=NumberWords(
        stems=(
            "nul jed|prvn dv|oba|obě|druh tři|tř|třet čtyř|čtvrt pět|pát šest sedm osm devět|devát deset|desát "
            "jedenáct dvanáct"
        ),
        spelled=spelled,
        longer=LONGER,
    ),
    clock=Clock(
        signs="půl čtvrt",
        hours=("jedn druh|dvě třet|tři čtvrt|čtyři pát|pět šest sedm osm devát|devět desát|deset jedenáct dvanáct"),
        ending="[éíu]?",
        # without a word before, "půl druhé" may be one and a half
        spoken=(
            (-30, "(?:ve?|je|bylo) půl H(?! hodin)"),
            (-45, "čtvrt na H"),
            (-15, "tři ?čtvrtě na H"),
        ),
        perhaps=((-35, "za pět(?: minut)? půl H"), (-30, "půl H")),
    ),
)
