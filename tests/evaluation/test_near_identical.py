"""Near-identical texts score well in every script, with spaces between words or without."""

from __future__ import annotations

import pytest
import sacrebleu

from benchmarks.near_identical import SPACED, UNSPACED, all_texts, is_wrong, near_identical, scores_of
from dragoman.evaluation.metrics import METRICS, Metric, bleu, scores, ter
from dragoman.evaluation.writing import split_characters, writing_of


@pytest.mark.parametrize("scripts", [UNSPACED, SPACED], ids=["unspaced", "spaced"])
def test_two_changed_letters_of_a_line_cost_little(scripts: dict[str, tuple[str, ...]]) -> None:
    scored = {(texts.script, texts.lang): scores_of(texts) for texts in all_texts() if texts.script in scripts}
    assert len(scored) > 2 * len(scripts)
    assert not {name: scores for name, scores in scored.items() if is_wrong(scores)}


def test_sacrebleus_own_values_where_it_knows_the_language() -> None:
    for script, lang in (("Han", "zh"), ("Han", "ja"), ("Latin", "de"), ("Hangul", "ko"), ("Devanagari", "hi")):
        texts = near_identical(script, lang)
        tokenize = {"zh": "zh", "ja": "char"}.get(lang, "13a")
        theirs = sacrebleu.corpus_bleu(texts.hyps, [texts.refs], tokenize=tokenize)
        assert bleu(texts.hyps, texts.refs, lang).value == theirs.score
        by_characters = lang in ("zh", "ja")
        edits = sacrebleu.corpus_ter(texts.hyps, [texts.refs], normalized=by_characters, asian_support=by_characters)
        assert ter(texts.hyps, texts.refs, lang).value == edits.score


def test_the_unit_is_in_the_signature_and_an_unknown_language_in_a_note() -> None:
    thai, german = near_identical("Thai", None), near_identical("Latin", None)
    assert ter(thai.hyps, thai.refs).signature.endswith("|unit:characters")
    assert "tok:char|" in bleu(thai.hyps, thai.refs).signature
    assert "unit" not in ter(german.hyps, german.refs).signature
    assert "count characters" in writing_of(None, thai.refs).note
    assert writing_of(None, german.refs).note == writing_of("th", thai.refs).note == ""


@pytest.mark.parametrize(
    ("refs", "tokenizer", "edits"),
    [
        (["他在2016年买了一部 iPhone 手机。", "我喜欢。"], "zh", "asian:yes"),
        (["優衣庫の新店很多，大家都喜歡去那裡買衣服和褲子，還有鞋。"], "zh", "asian:yes"),
        (["彼は赤い本を買いませんでした。", "日本国憲法第九条"], "char", "asian:yes"),
        (["カタカナだけ"], "char", "unit:characters"),
        (["แมวกำลังนอนหลับอยู่ในบ้าน 猫猫"], "char", "asian:yes"),
        (["고양이가 집에서 자고 있다.", "漢字"], "13a", "asian:no"),
        (["Das Wort 猫 steht hier."], "13a", "asian:no"),
    ],
)  # fmt: skip
def test_where_the_language_is_not_known_the_script_says_chinese_or_japanese(
    refs: list[str], tokenizer: str, edits: str
) -> None:
    """Chinese was split as all else, so that half of a Latin word was right."""
    assert f"|tok:{tokenizer}|" in bleu(refs, refs).signature
    assert edits in ter(refs, refs).signature
    assert writing_of(None, refs).bleu_tokenizer == writing_of("", refs).bleu_tokenizer == tokenizer


def test_the_script_decides_where_a_language_has_two() -> None:
    latin, javanese = near_identical("Latin", "jv"), near_identical("Javanese", "jv")
    assert not writing_of("jv", latin.refs).unspaced
    assert writing_of("jv", javanese.refs).unspaced
    assert not writing_of("de", ["Das Wort 猫 steht hier."]).unspaced
    assert writing_of("th", ["123"]).unspaced  # no letter says otherwise
    assert split_characters("ดี A b12 ก") == "ด ี A b12 ก"


@pytest.mark.parametrize("metric", METRICS[:4], ids=lambda metric: metric.key)
def test_blank_lines_alone_are_right_but_in_chrf_and_nothing_exceeds_100(metric: Metric) -> None:
    right = 0.0 if metric.lower_is_better else 100.0
    blank, same = (
        scores([""], [""], "de", [metric], False),
        scores(["A b c d e."] * 7, ["A b c d e."] * 7, "de", [metric]),
    )
    # chrF counts characters: as in sacreBLEU, none are right of none
    assert blank[0].value == (0.0 if metric.key.startswith("chrf") else right)
    assert (same[0].value, same[0].high) == (right, right)
