"""sacreBLEU's expected values, and those of three other projects' tests, through ``dragoman.evaluation``."""

from __future__ import annotations

import bz2
import io
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import sacrebleu
from sacrebleu.metrics import BLEU

from dragoman.evaluation import metrics, significance
from peers import member

Suite = Callable[[str, int], Any]

DOGS = ["The dog bit the man.", "It wasn't surprising.", "The man had just bitten him."]
TWO_REFERENCES = [
    ["The dog bit the man.", "It was not unexpected.", "The man bit him first."],
    ["The dog had bit the man.", "No one was surprised.", "The man had bitten the dog."],
]
RAW = dict(tokenize="none", smooth_method="floor", force=True, effective_order=True)


def test_bleu_with_one_reference(suite: Suite) -> None:
    values = suite("sacrebleu-bleu", 14)
    for hyps, refs, expected in [
        (["this is a test", "another test"], ["ref1", "ref2"], 0.0),
        (["this is a test"], ["this is a test"], 1.0),
        (["this is a fest"], ["this is a test"], 0.223606797749979),
        (["test"], ["a test"], 0.3678794411714425),
        (["a test"], ["a test"], 1.0),
        (["a little test"], ["a test"], 0.03218297948685433),
    ]:
        values.near(hyps, metrics.bleu(hyps, refs, smooth_value=0.01, **RAW).value / 100, expected, 1e-8)
    hyps, refs = ["am I am a character sequence"], ["I am a symbol string sequence a a"]
    for offset, expected in ((0.0, 0.0), (0.1, 0.1555722182)):
        values.near(
            f"offset {offset}", metrics.bleu(hyps, refs, smooth_value=offset, **RAW).value / 100, expected, 1e-8
        )
    for refs in TWO_REFERENCES:  # each alone: sacreBLEU's library says what to expect
        for tokenize in ("13a", "none", "intl"):
            expected = sacrebleu.corpus_bleu(DOGS, [refs], tokenize=tokenize).score
            values.near((refs[0], tokenize), metrics.bleu(DOGS, refs, tokenize=tokenize).value, expected, 1e-9)


def test_bleu_with_two_references(suite: Suite) -> None:
    values = suite("sacrebleu-references", 12)
    for hyps, options, expected in [
        (DOGS, {}, 48.530827),
        (["", "", ""], {}, 0.0),
        (DOGS, {"tokenize": "none"}, 49.1919566),
        (DOGS, {"tokenize": "13a"}, 48.530827),
        (DOGS, {"tokenize": "intl"}, 43.91623493),
        (DOGS, {"smooth_method": "none"}, 48.530827),
    ]:
        values.near((hyps[0], options), metrics.bleu(hyps, TWO_REFERENCES, **options).value, expected, 1e-6)
    for order, expected in enumerate((77.65, 60.50, 53.93, 48.53, 46.14, 43.28), 1):
        found = metrics.bleu(DOGS, TWO_REFERENCES, max_ngram_order=order).value
        values.near(f"n-grams up to {order}", found, expected, 0.005001)


def test_bleu_of_a_sentence(suite: Suite) -> None:
    reference = "producţia de zahăr brut se exprimă în zahăr alb;"
    translation = "Producția de zahăr primă va fi exprimată în ceea ce privește zahărul alb;"
    values = suite("sacrebleu-sentence", 18)
    for method, value, lowercase, tokenize, expected in [
        ("exp", None, False, "13a", 8.493),
        ("none", None, False, "13a", 0.0),
        ("floor", None, False, "13a", 4.51688),
        ("floor", 0.1, False, "13a", 4.51688),
        ("floor", 0.5, False, "13a", 10.10),
        ("add-k", None, False, "13a", 14.882),
        ("add-k", 1, False, "13a", 14.882),
        ("add-k", 2, False, "13a", 21.389),
        ("exp", None, False, "none", 7.347),
        ("exp", None, False, "intl", 8.493),
        ("exp", None, False, "char", 40.8759),
        ("exp", None, True, "char", 42.0267),
    ]:
        options = dict(smooth_method=method, smooth_value=value, lowercase=lowercase, tokenize=tokenize)
        found = metrics.bleu([translation], [reference], effective_order=True, **options).value
        values.near((method, value, tokenize), found, expected, 1e-3)
    for method, value in [
        ("exp", None),
        ("none", None),
        ("floor", None),
        ("floor", 0.1),
        ("add-k", None),
        ("add-k", 1),
    ]:
        options = dict(smooth_method=method, smooth_value=value, effective_order=True)
        values.near((method, value, "nothing right"), metrics.bleu(["this is a cat"], ["okay thanks"], **options).value,
                    0.0, 1e-3)  # fmt: skip


RISK = "risk assessment"
QUALIFIED = (
    f"{RISK} must be made of those who are qualified and expertise in the sector - these are the scientists .",
    f"{RISK} has to be undertaken by those who are qualified and expert in that area - that is the scientists .",
)
FRIENDLY = (
    "Die Beziehung zwischen Obama und Netanjahu ist nicht gerade freundlich.",
    "Das Verhältnis zwischen Obama und Netanyahu ist nicht gerade freundschaftlich.",
)
WALL = "Niemand hat die Absicht, eine Mauer zu errichten"
BETA_3 = "the expected value is that of chrF3 (beta 3); ours is chrF2, as sacreBLEU's default is"
SMOOTHED = (
    "the expected value is smoothed with an epsilon where there are too few characters, as chrF++.py does; ours is "
    "not, as sacreBLEU's default is not"
)
SPACES = "the expected value counts spaces as characters, which ours does not, nor sacreBLEU's default"


def test_chrf(suite: Suite) -> None:
    values = suite("sacrebleu-chrf", 25)
    # chrF2 and chrF3 are the same where precision and recall are, as in these
    for hyps, refs, expected in [
        (["a"], ["a"], 100.0),
        ([""], ["reference"], 0.0),
        (["a b c"], ["a b c"], 100.0),
        (["a b c"], ["abc"], 100.0),
        ([""], ["c"], 0.0),
        (["a", "b"], ["a", "c"], 50.0),
        (["aa"], ["ab"], 25.0),
        (["abcdefg"], ["hijklmnop"], 0.0),
        (["a"], ["b"], 0.0),
        ([""], ["b"], 0.0),
        ([""], ["ref"], 0.0),
        ([""], ["reference"], 0.0),
        ([WALL], [WALL], 100.0),
    ]:
        values.near((hyps, refs), metrics.chrf(hyps, refs).value, expected, 1e-4)
    for hyp, ref, expected in [
        ("Co nás nejvíc trápí, protože lékaři si vybírají, kdo bude žít a kdo zemře.",
         "Nejvíce smutní jsme z toho, že musíme rozhodovat o tom, kdo bude žít a kdo zemře.", 39.14078509),
        ("Nebo prostě nemají vybavení, které by jim pomohlo, uvedli lékaři.",
         "A někdy nemáme ani potřebný materiál, abychom jim pomohli, popsali lékaři.", 31.22557079),
    ]:  # fmt: skip
        values.near(hyp, metrics.sentence_chrf([hyp], [ref])[0], expected, 1e-4)
    hyp = "Lapali po dechu, jejich životy skončily dřív, než skutečně začaly."
    ref = "Lapali po dechu a pak jejich život skončil - dřív, než skutečně mohl začít, připomněli."
    values.near(hyp, metrics.sentence_chrf([hyp], [ref])[0], 57.15704367, 1e-3)  # which their epsilon moves by 4e-4
    for hyps, refs, expected in [
        (["aa"], ["ab"], 8.3333),
        (["a", "b"], ["a", "c"], 8.3333),
        (["a"], ["a"], 16.6667),
        (["a b c"], ["a b c"], 50.0),
        (["a b c"], ["abc"], 50.0),
    ]:
        values.differs((hyps, refs), round(metrics.chrf(hyps, refs).value, 4), expected, SMOOTHED)
    for (hyp, ref), expected, reason in [
        (QUALIFIED, 63.361730, BETA_3),
        (FRIENDLY, 64.1302698, BETA_3),
        (FRIENDLY, 67.3481606, SPACES),
        (QUALIFIED, 65.2414427, SPACES),
    ]:
        values.differs(hyp, round(metrics.chrf([hyp], [ref]).value, 4), round(expected, 4), reason)


def test_chrf_plus_plus(suite: Suite) -> None:
    def chrf_plus_plus(hyps: list[str], refs: list[list[str]]) -> float:
        return metrics.scores(hyps, refs, None, metrics.select_metrics(["chrf++"]), interval=False)[0].value

    pairs = [QUALIFIED, FRIENDLY, (WALL, WALL), *zip(DOGS, TWO_REFERENCES[0], strict=True)]
    values = suite("sacrebleu-chrf++", len(pairs) + 1)
    for hyp, ref in pairs:
        expected = sacrebleu.corpus_chrf([hyp], [[ref]], word_order=2).score
        values.near(hyp, chrf_plus_plus([hyp], [[ref]]), expected, 1e-9)
    expected = sacrebleu.corpus_chrf(DOGS, TWO_REFERENCES, word_order=2).score
    values.near("two references", chrf_plus_plus(DOGS, TWO_REFERENCES), expected, 1e-9)


def test_ter(suite: Suite) -> None:
    values = suite("sacrebleu-ter", 7)
    same = [
        'wenn Sie alle Aufgaben im aktuellen Dokument aktualisieren möchten , wählen Sie im Menü des '
        'Aufgabenbedienfelds die Option " Alle Aufgaben aktualisieren . "',
        'wählen Sie im Dialogfeld " Neu aus Vorlage " eine Vorlage aus und klicken Sie auf " Neu . "',
    ]  # fmt: skip
    pictures = (
        'wählen Sie " Bild neu berechnen , " um beim Ändern der Bildgröße Pixel hinzuzufügen oder zu entfernen , damit '
    )
    for hyps, refs, expected in [
        (["aaaa bbbb cccc dddd"], ["aaaa bbbb cccc dddd"], 0.0),
        (["dddd eeee ffff"], ["aaaa bbbb cccc"], 1.0),
        ([""], ["a"], 1.0),
        (["a"], [""], 1.0),
        ([""], [""], 0.0),
        (["d e f g h a b c"], ["a b c d e f g h"], 1 / 8),
        ([
            f"{pictures}das Bild ungefähr dieselbe Größe aufweist wie die andere Größe .",
            same[0],
            'klicken Sie auf der Registerkarte " Optionen " auf die Schaltfläche " Benutzerdefiniert " und geben Sie '
            'Werte für " Fehlerkorrektur-Level " und " Y / X-Verhältnis " ein .',
            "Sie können beispielsweise ein Dokument erstellen , das ein Auto über die Bühne enthält .",
            same[1],
        ], [
            f"{pictures}die Darstellung des Bildes in einer anderen Größe beibehalten wird .",
            same[0],
            'klicken Sie auf der Registerkarte " Optionen " auf die Schaltfläche " Benutzerdefiniert " und geben Sie '
            'für " Fehlerkorrektur-Level " und " Y / X-Verhältnis " niedrigere Werte ein .',
            "Sie können beispielsweise ein Dokument erstellen , das ein Auto enthalt , das sich über die Bühne "
            "bewegt .",
            same[1],
        ], 0.136),
    ]:  # fmt: skip
        values.near(hyps[0], metrics.ter(hyps, refs).value, 100 * expected, 1e-3)


def test_what_joeynmt_expects(suite: Suite) -> None:
    values = suite("joeynmt-metrics", 4)
    lower = metrics.bleu(["This is a test."], ["this is a Tezt."], tokenize="13a", lowercase=True)
    values.near("BLEU", lower.value, 42.729, 5e-4)
    without = [metrics.chrf(["t est"], ["tez t"]).value, metrics.chrf(["test"], ["tezt"]).value]
    values.equal("spaces do not count in chrF", *without)
    values.near("chrF", without[0] / 100, 0.271, 5e-4)
    spaced = metrics.chrf(["これはテストです。"], ["これは テストです。"])
    values.differs("chrF with spaces", round(spaced.value / 100, 3), 0.558, SPACES)


def test_what_sockeye_expects(suite: Suite) -> None:
    values = suite("sockeye-metrics", 18)
    for hyps, refs, expected in [
        (["this is a test", "another test"], ["ref1", "ref2"], 0.0),
        (["this is a test"], ["this is a test"], 1.0),
        (["this is a fest"], ["this is a test"], 0.223606797749979),
    ]:
        values.near(hyps, metrics.bleu(hyps, refs, smooth_value=0.01, **RAW).value / 100, expected, 1e-8)
    for hyps, refs, expected in [
        ([WALL], [WALL], 1.0),
        (["abcdefg"], ["hijklmnop"], 0.0),
        (["a"], ["a"], 1.0),
        ([""], [""], 0.0),
        ([""], ["reference"], 0.0),
        (["a b c"], ["a b c"], 1.0),
        (["a b c"], ["abc"], 1.0),
        ([""], ["c"], 0.0),
        (["a", "b"], ["a", "c"], 0.5),
        (["source"], [""], 0.0),
        (["aa"], ["ab"], 0.25),
    ]:
        values.near((hyps, refs), metrics.chrf(hyps, refs).value / 100, expected, 1e-8)
    for (hyp, ref), expected, reason in [
        (FRIENDLY, 0.64130269831561459, BETA_3),
        (QUALIFIED, 0.63361730303214769, BETA_3),
        (FRIENDLY, 0.67348160629772402, SPACES),
        (QUALIFIED, 0.652414427449, SPACES),
    ]:
        values.differs(hyp, round(metrics.chrf([hyp], [ref]).value / 100, 4), round(expected, 4), reason)


def test_what_tensor2tensor_expects(suite: Suite) -> None:
    def bleu(hyps: list[list[int]], refs: list[list[int]]) -> float:
        texts = [[" ".join(map(str, line)) for line in lines] for lines in (hyps, refs)]
        return metrics.tokenized_bleu(*texts).value / 100

    values = suite("t2t-bleu", 6)
    values.near("two lines", bleu([[1, 2, 3, 4], [5, 6, 7, 0]], [[1, 2, 3, 4], [5, 6, 7, 10]]), 0.7231, 1e-3)
    lines = [[1, 2, 1, 3], [5, 6, 7, 4]], [[1, 2, 1, 13], [12, 6, 7, 4, 8, 9, 10]]
    values.near("n-grams", bleu(*lines), 0.3436, 1e-3)
    letters = ["a b a c", "e f g d"], ["a b a z", "y f g d k l m"]
    values.near("letters", metrics.tokenized_bleu(*letters).value / 100, 0.3436, 1e-3)
    separator = ["a b a c", "e f \u2028 d"], letters[1]
    values.near("a line separator", metrics.tokenized_bleu(*separator).value / 100, 0.2638, 1e-3)
    because = "tensor2tensor smooths in another way where no n-gram is right, or where the text is too short for one"
    values.differs("all right, three words", bleu([[1, 2, 3]], [[1, 2, 3]]), 1.0, because)
    values.differs("nothing right", round(bleu([[1, 2, 3, 4]], [[5, 6, 7, 8]]), 7), 0.0798679, because)


# --- significance, on 15 systems of WMT17 -----------------------------------------------------------------------------

MOSES = (
    "C-3MA.4959 0 FBK.4870 .01267 KIT.4950 .02233 LMU-nmt-reranked.4934 .04383 LMU-nmt-single.4893 .20783 online-A.0 0 "
    "online-B.0 .381 online-F.0 0 online-G.0 0 PROMT-Rule-based.4735 0 RWTH-nmt-ensemble.4921 .01167 "
    "SYSTRAN.4847 .20983 TALP-UPC.4834 0 uedin-nmt.4722 0 xmu.4910 .25483"
)
MULTEVAL = (
    "C-3MA.4959 .0001 FBK.4870 .0218 KIT.4950 .041 LMU-nmt-reranked.4934 .09029 LMU-nmt-single.4893 .58494 "
    "online-A.0 .0001 online-B.0 .94111 online-F.0 .0001 online-G.0 .0001 PROMT-Rule-based.4735 .0001 "
    "RWTH-nmt-ensemble.4921 .0207 SYSTRAN.4847 .59914 TALP-UPC.4834 .0001 uedin-nmt.4722 .0001 xmu.4910 .71073"
)
ANOTHER_P = (
    "Moses counts how often the better system is not better, on one side; ours is two-sided, the chance of so large a "
    "difference in either direction, and is about twice as large"
)


class OnlyData(pickle.Unpickler):
    """Reads lists of texts, and refuses whatever would have to be imported."""

    def find_class(self, module: str, name: str) -> Any:
        raise pickle.UnpicklingError(f"{module}.{name} is no list of texts")


def wmt17(file: Path) -> tuple[list[str], dict[str, list[str]], list[str]]:
    """The baseline, the other systems by their names, and the references, of sacreBLEU's test file."""
    named = OnlyData(io.BytesIO(bz2.decompress(file.read_bytes()))).load()
    *systems, (_, references) = named
    names = {name.removeprefix("newstest2017.").removesuffix(".en-de"): lines for name, lines in systems[1:]}
    return systems[0][1], names, references[0]


def p_values(text: str) -> dict[str, float]:
    words = text.split()
    return {name: float(p) for name, p in zip(words[::2], words[1::2], strict=True)}


@pytest.mark.foreign
@pytest.mark.parametrize(("key", "table"), [("sacrebleu-randomisation", MULTEVAL), ("sacrebleu-bootstrap", MOSES)])
def test_p_values(suite: Suite, key: str, table: str) -> None:
    values, expected = suite(key, 15), p_values(table)
    file = member("sacrebleu", "test/wmt17_en_de_systems.pkl.bz2")
    if file is None:
        values.not_tried("sacreBLEU's source package is not there: make test-foreign fetches it")
    baseline, systems, references = wmt17(file)
    scorer = metrics.SacreBleu(BLEU(tokenize="none", force=True))  # the texts are cut already
    a = scorer.statistics(baseline, [references])
    for name, p in expected.items():
        b = scorer.statistics(systems[name], [references])
        if key == "sacrebleu-randomisation":
            found = significance.approximate_randomisation(scorer.score, a, b, 10_000, significance.SEED)
            # both are of 10,000 random samples: within three standard errors of their difference
            values.near(name, found, p, 3 * (2 * p * (1 - p) / 10_000) ** 0.5)
            continue
        *_, found = significance.bootstrap(scorer.score, a, b, 2_000, significance.SEED)
        if p == 0:
            values.near(name, found, p, 0.01)
        else:
            values.differs(name, round(found, 3), round(p, 3), ANOTHER_P)
