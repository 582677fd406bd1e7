"""Scores: comparable, with signature and interval, and named as what they are."""

from __future__ import annotations

import builtins
import json
import random
from typing import Any

import pytest
import sacrebleu
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.ter import TER

from dragoman.errors import ConfigError, DataError
from dragoman.evaluation.metrics import (
    SacreBleu,
    bleu,
    chrf,
    moses_tokens,
    old_style_bleu,
    scores,
    select_metrics,
    signatures,
    ter,
    tokenized_bleu,
)
from dragoman.evaluation.writing import Writing
from dragoman.languages.known import is_unspaced, unspaced_codes

REFS = ["The old man's dog sleeps, doesn't it?", "A cat (black) runs.", "Two women see the big house today.", "No."]
HYPS = ["The old man's dog sleeps , does it?", "A black cat runs.", "Two women see a big house today.", "No."]
ZH_REFS = ["那只大狗在房子里睡觉。", "两个女人今天看见了一只猫。", "他没有买红色的书。"]
ZH_HYPS = ["那只狗在房子里睡觉。", "两个女人今天看见一只猫。", "他没有买书。"]


def test_bleu_chrf_and_ter_are_sacrebleus_with_signatures() -> None:
    assert bleu(HYPS, REFS).value == sacrebleu.corpus_bleu(HYPS, [REFS]).score
    assert chrf(HYPS, REFS).value == sacrebleu.corpus_chrf(HYPS, [REFS]).score
    assert ter(HYPS, REFS).value == sacrebleu.corpus_ter(HYPS, [REFS]).score
    version = sacrebleu.__version__
    assert bleu(HYPS, REFS).signature == f"nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:{version}"
    assert chrf(HYPS, REFS).signature == f"nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no|version:{version}"
    assert ter(HYPS, REFS).signature == f"nrefs:1|case:lc|tok:tercom|norm:no|punct:yes|asian:no|version:{version}"
    with_interval = bleu(HYPS, REFS, interval=True)
    assert (
        with_interval.signature == f"nrefs:1|bs:1000|seed:12345|case:mixed|eff:no|tok:13a|smooth:exp|version:{version}"
    )
    assert with_interval.value == bleu(HYPS, REFS).value


OTHER_REFS = ["The dog of the old man is asleep, isn't it?", "A black cat is running.",
              "Two women look at a big house today.", "No!"]  # fmt: skip


@pytest.mark.parametrize("refs", [[REFS], [REFS, OTHER_REFS], [OTHER_REFS, REFS, HYPS[::-1]]], ids=len)
@pytest.mark.parametrize(
    "metric",
    [BLEU(), BLEU(tokenize="zh"), BLEU(tokenize="char"), CHRF(), CHRF(word_order=2), TER(),
     TER(asian_support=True, normalized=True)],
    ids=["bleu", "zh", "char", "chrf", "chrf++", "ter", "ter of characters"],
)  # fmt: skip
def test_what_sacrebleu_counts_in_sentences_adds_up_to_its_score(metric: Any, refs: list[list[str]]) -> None:
    """Holds ``SacreBleu``, which asks sacreBLEU for what it counts, to sacreBLEU's public score."""
    scorer = SacreBleu(metric)
    statistics = scorer.statistics(HYPS, refs)
    assert len(statistics) == len(HYPS)
    whole = metric.corpus_score(HYPS, refs)
    assert scorer.score(statistics.sum(0)) == pytest.approx(whole.score, abs=1e-9)
    assert scorer.signature(None) == str(metric.get_signature())
    assert scorer.signature(7).startswith(f"nrefs:{len(refs)}|bs:7|seed:12345|")
    few = scorer.score(statistics[[2, 0, 2]].sum(0))
    theirs = metric.corpus_score([HYPS[i] for i in (2, 0, 2)], [[one[i] for i in (2, 0, 2)] for one in refs])
    assert few == pytest.approx(theirs.score, abs=1e-9)


def test_the_interval_is_of_sacrebleus_samples() -> None:
    for ours, metric in ((bleu, BLEU()), (chrf, CHRF()), (ter, TER())):
        found = ours(HYPS, REFS, interval=True)
        theirs = metric.corpus_score(HYPS, [REFS], n_bootstrap=1000)
        assert found.signature == str(metric.get_signature())
        assert found.low is not None
        assert found.high is not None
        half = json.loads(theirs.format(signature=found.signature, is_json=True))["confidence_var"]
        assert (found.high - found.low) / 2 == pytest.approx(half, rel=0.1)  # it takes the 26th of 1,000


def test_chrf_plus_plus_and_several_references() -> None:
    (plain,) = scores(HYPS, REFS, "de", select_metrics(["chrf++"]), interval=False)
    assert (plain.name, plain.value) == ("chrF2++", sacrebleu.corpus_chrf(HYPS, [REFS], word_order=2).score)
    assert "|nw:2|" in plain.signature
    both = scores(HYPS, [REFS, OTHER_REFS], "de", select_metrics(["ter", "bleu"]), interval=False)
    assert [one.name for one in both] == ["BLEU", "TER"]
    assert both[0].value == sacrebleu.corpus_bleu(HYPS, [REFS, OTHER_REFS]).score
    assert all(one.signature.startswith("nrefs:2|") for one in both)
    with pytest.raises(DataError, match="4 translations but 3 references"):
        bleu(HYPS, [REFS, OTHER_REFS[:3]])
    with pytest.raises(ConfigError, match=r"metric must be one of bleu, chrf, ter, chrf\+\+, .*, got 'comet'"):
        select_metrics(["bleu", "comet"])


def test_the_same_text_scores_100_and_has_no_edits() -> None:
    assert bleu(REFS[:3], REFS[:3]).value == pytest.approx(100)
    assert chrf(REFS, REFS).value == pytest.approx(100)
    assert ter(REFS, REFS).value == 0
    assert bleu(["x"] * 4, REFS).value < 1


def test_case_counts_unless_asked_otherwise() -> None:
    lower = [ref.lower() for ref in REFS]
    assert bleu(lower, REFS).value < 100
    assert bleu(lower, REFS, lowercase=True).value == pytest.approx(100)


def test_chinese_is_scored_by_characters() -> None:
    for lang in ("zh", "zh-CN", "zh_TW", "ZH", "cmn", "yue", "zho", "chi", "zho_Hans"):
        assert Writing(lang, is_unspaced(lang)).bleu_tokenizer == "zh"
    for lang in ("de", "en", None, "ko", "zhx"):
        assert Writing(lang, is_unspaced(lang)).bleu_tokenizer == "13a"
    score = bleu(ZH_HYPS, ZH_REFS, "zh")
    assert "tok:zh" in score.signature
    assert score.value == sacrebleu.corpus_bleu(ZH_HYPS, [ZH_REFS], tokenize="zh").score > 30
    assert "tok:char" in bleu(ZH_HYPS, ZH_REFS, "de").signature  # with 13a a sentence would be one word
    edits = ter(ZH_HYPS, ZH_REFS, "zh")
    assert "asian:yes" in edits.signature
    assert 0 < edits.value == ter(ZH_HYPS, ZH_REFS).value < 40


UNSPACED_REFS = {
    "ja": ["猫が家の中で眠っている。", "彼は赤い本を買いませんでした。"],
    "th": ["แมวกำลังนอนหลับอยู่ในบ้าน", "เขาไม่ได้ซื้อหนังสือสีแดง"],
    "lo": ["ແມວກຳລັງນອນຢູ່ໃນເຮືອນ", "ລາວບໍ່ໄດ້ຊື້ປຶ້ມສີແດງ"],
    "km": ["ឆ្មាកំពុងដេកនៅក្នុងផ្ទះ", "គាត់មិនបានទិញសៀវភៅក្រហមទេ"],
    "my": ["ကြောင်ကအိမ်ထဲမှာအိပ်နေတယ်", "သူကစာအုပ်အနီကိုမဝယ်ခဲ့ဘူး"],
    **dict.fromkeys(("zh", "yue", "wuu", "lzh"), ZH_REFS),
}
OF_THREE_LETTERS = {"zho": "zh", "chi": "zh", "cmn": "zh", "jpn": "ja", "tha": "th", "lao": "lo", "khm": "km",
                    "mya": "my", "bur": "my", "zho_Hans": "zh", "jpn_Jpan": "ja"}  # fmt: skip


@pytest.mark.parametrize("lang", [*unspaced_codes(), *OF_THREE_LETTERS])
def test_the_same_text_scores_100_in_languages_without_spaces(lang: str) -> None:
    refs = UNSPACED_REFS[OF_THREE_LETTERS.get(lang, lang)]
    found = bleu(refs, refs, lang)
    assert found.value == pytest.approx(100)
    assert f"tok:{Writing(lang, is_unspaced(lang)).bleu_tokenizer}|" in found.signature
    edits = ter(refs, refs, lang)
    assert edits.value == 0
    assert "asian:yes" in edits.signature or edits.signature.endswith("|unit:characters")
    almost = [ref[:4] + ref[5:] for ref in refs]
    assert 30 < bleu(almost, refs, lang).value < 100
    assert bleu(almost, refs, "de").value == bleu(almost, refs).value > 30  # whatever the language is said to be


@pytest.mark.parametrize("seed", range(6))
def test_the_interval_contains_the_value_and_shrinks_with_more_lines(seed: int) -> None:
    chance = random.Random(seed)
    words = [f"{onset}{rime}" for onset in "bdgk" for rime in ("an", "ot", "il")]
    refs = [" ".join(chance.choices(words, k=chance.randint(4, 12))) for _ in range(120)]
    hyps = [" ".join(word if chance.random() < 0.8 else chance.choice(words) for word in ref.split()) for ref in refs]
    for metric in (bleu, chrf, ter):
        few, many = (metric(hyps[:n], refs[:n], interval=True) for n in (12, 120))
        for score in (few, many):
            assert score.low is not None
            assert score.high is not None
            assert score.low <= score.value <= score.high
        assert many.high - many.low < few.high - few.low  # type: ignore[operator]
        assert metric(hyps[:12], refs[:12], interval=True) == few  # the same samples each time


def test_old_style_bleu_equals_bleu_on_tokens_written_by_hand() -> None:
    refs = ["the old man &apos;s dog sleeps , doesn &apos;t it ?", "a cat ( black ) runs .",
            "two women see the big house today .", "no ."]  # fmt: skip
    hyps = ["the old man &apos;s dog sleeps , does it ?", "a black cat runs .",
            "two women see a big house today .", "no ."]  # fmt: skip
    assert moses_tokens(REFS, "en") == refs
    assert moses_tokens(HYPS, "en") == hyps
    found = old_style_bleu(HYPS, REFS, "en")
    assert found == tokenized_bleu(hyps, refs)
    assert found.value == sacrebleu.corpus_bleu(hyps, [refs], tokenize="none", force=True).score
    assert "old-style" in found.name
    assert "tok:none" in found.signature
    assert found.value != bleu(HYPS, REFS).value


def test_old_style_bleu_without_sacremoses_says_which_extra_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *args: Any, **kwargs: Any) -> Any:
        if name == "sacremoses":
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ConfigError, match="pip install sacremoses"):
        old_style_bleu(HYPS, REFS, "en")


@pytest.mark.parametrize("metric", [bleu, chrf, ter, tokenized_bleu, lambda h, r: old_style_bleu(h, r, "en")])
def test_unequal_counts_and_nothing_to_score_are_refused(metric: Any) -> None:
    with pytest.raises(DataError, match="3 translations but 4 references"):
        metric(HYPS[:3], REFS)
    with pytest.raises(DataError, match="nothing to score"):
        metric([], [])


def test_the_signature_of_a_validation_is_that_of_its_scores() -> None:
    refs = ["他买了手机。", "你好。"]
    for lang in (None, "zh"):
        assert signatures({lang: refs})["bleu"] == bleu(refs, refs, lang).signature
    both = signatures({"zh": refs, "de": ["Ein Hund."]})["bleu"]
    assert both.startswith("zh: ")
    assert "tok:zh" in both
    assert "; de: " in both
    assert "tok:13a" in both


def test_a_score_reads_as_one_line() -> None:
    score = bleu(HYPS, REFS, interval=True)
    assert str(score).startswith(f"BLEU {score.value:.2f}  [{score.low:.2f}, {score.high:.2f}]  nrefs:1|")
    assert "[" not in str(bleu(HYPS, REFS))
    assert "\n" not in str(score)


def test_a_language_with_its_country_has_the_languages_tokens() -> None:
    text = "Er sagte: „Am 3. Mai kostet es 1.000,50 Euro.“ Dr. Meier"
    assert moses_tokens([text], "de-DE") == moses_tokens([text], "de") != moses_tokens([text], "en")


def test_no_interval_lies_above_what_a_score_can_be() -> None:
    refs = [f"the dog number {i} sleeps in the house of the man" for i in range(60)]
    hyps = [*refs[:-1], "the cat"]
    for metric in (bleu, chrf):
        score = metric(hyps, refs, interval=True)
        assert score.high is not None
        assert score.low is not None
        assert score.low < score.value < round(score.high, 9) <= 100
