"""Constrained decoding: each rule against a list of all translations from which the forbidden ones are struck."""

from __future__ import annotations

import random
import re
import string
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
import torch
from table_model import EOS, TableModel, every_translation

from dragoman.config import DecodeConfig, ModelConfig
from dragoman.decoding import constraints
from dragoman.decoding.constraints import Rules, Spelling, completing, following, repeating, restrict
from dragoman.decoding.request import Hypothesis
from dragoman.languages.words import joins
from dragoman.model.transformer import Transformer
from limits import cpu_limit
from searching import beam_search, greedy_search, search_all

SPELLED = [b"", b"?", b"", b"", b" a", b"b", b" ab"]
SPELLING = Spelling(SPELLED)
SRC, MAX_LEN = [4, 6, EOS], 5


def text(ids: list[int]) -> str:
    return b"".join(SPELLED[i] for i in ids).decode()


def repeats(ids: list[int], n: int) -> bool:
    ngrams = [tuple(ids[i : i + n]) for i in range(len(ids) - n + 1)]
    return len(set(ngrams)) < len(ngrams)


CASES: dict[str, tuple[Rules, Callable[[list[int]], bool]]] = {
    "prefix within a piece": (Rules(SPELLING, prefix=b" a"), lambda ids: text(ids).startswith(" a")),
    "prefix of several pieces": (Rules(SPELLING, prefix=b" aba"), lambda ids: False),
    "prefix cut in two ways": (Rules(SPELLING, prefix=b" ab a"), lambda ids: text(ids).startswith(" ab a")),
    "excluded word": (Rules(SPELLING, exclude=(b"a",)), lambda ids: not re.search(r"(?<!\w)a(?!\w)", text(ids))),
    "excluded phrase": (Rules(SPELLING, exclude=(b"ab a",)), lambda ids: re.search(r"\bab a\b", text(ids)) is None),
    "no bigram twice": (Rules(SPELLING, no_repeat_ngram=2), lambda ids: not repeats(ids, 2)),
    "no token twice": (Rules(SPELLING, no_repeat_ngram=1), lambda ids: not repeats(ids, 1)),
    "tokens at the start": (Rules(SPELLING, ids=(4, 5)), lambda ids: ids[:2] == [4, 5]),
    "not too short": (Rules(SPELLING, min_tokens=3), lambda ids: len(ids) >= 3),
}  # fmt: skip


@pytest.mark.parametrize("name", [name for name in CASES if name != "prefix of several pieces"])
@pytest.mark.parametrize("seed", range(4))
def test_the_best_translation_that_keeps_a_rule_is_found(name: str, seed: int) -> None:
    model = TableModel(seed)
    rules, allowed = CASES[name]
    found = beam_search(model, torch.tensor([SRC]), [MAX_LEN], beam_size=400, alpha=0.6, n_best=3, rules=[rules])[0]
    every = every_translation(model, SRC, MAX_LEN, 0.6)
    # a piece that would end in an excluded word is not taken, though a next piece could go on with the word
    if rules.exclude:
        every = [(score, ids) for score, ids in every if all(allowed(ids[:n]) for n in range(len(ids)))]
    want = [(score, ids) for score, ids in every if allowed(ids)][:3]
    assert [h.ids for h in found] == [ids for _, ids in want]
    assert [h.score for h in found] == pytest.approx([score for score, _ in want])


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("beam_size", [1, 3])
def test_rules_hold_in_greedy_search_and_in_narrow_beams(name: str, beam_size: int) -> None:
    rules, allowed = CASES[name]
    for seed in range(10):
        model, src = TableModel(seed), torch.tensor([SRC])
        if beam_size == 1:
            found = greedy_search(model, src, [12], rules=[rules])[0]
        else:
            found = beam_search(model, src, [12], beam_size, rules=[rules])[0][0]
        # " aba" can be spelled by no piece after " ab": what cannot be is left, and everything may follow
        assert allowed(found.ids) or name == "prefix of several pieces", found.ids
        assert found.log_prob == pytest.approx(model.log_prob(SRC, found.ids))  # rules leave the probabilities alone


def test_rules_that_ask_for_nothing_change_nothing() -> None:
    model, src = TableModel(2), torch.tensor([SRC, [5, EOS, 0]])
    nothing = [Rules(SPELLING)] * 2
    assert beam_search(model, src, [9, 9], 4, rules=nothing) == beam_search(model, src, [9, 9], 4)
    assert greedy_search(model, src, [9, 9], rules=nothing) == greedy_search(model, src, [9, 9])
    ruled = beam_search(model, src, [9, 9], 4, rules=[Rules(SPELLING, exclude=(b"a",)), Rules(SPELLING)])
    assert ruled[1] == beam_search(model, src, [9, 9], 4)[1]  # a neighbour's rule is the neighbour's


def test_a_word_is_banned_where_it_would_stand_alone_however_it_is_cut() -> None:
    spelling = Spelling(
        [b"", b"", b"", b"", b" Hund", b"Hund", b" Hunde", b" Hun", b"d", b"de", b"e", b" ", b"(Hund)", b"."]
    )
    word = b"Hund"
    assert completing(b" ein", word, spelling) == [4, 12]  # " einHund" holds no word Hund, " ein(Hund)" does
    assert set(completing(b" ein ", word, spelling)) == {4, 5, 12}
    assert set(completing(b" ein Hun", word, spelling)) == {4, 8, 12}  # "Hun" + "d", but not + "de"
    assert set(completing(b" Windhun", word, spelling)) == {4, 12}
    assert set(completing(b" \xe7\x8c\xab", word, spelling)) == {4, 5, 12}  # a Chinese character ends any word


def test_answers_are_those_of_asking_every_piece() -> None:
    chance = random.Random(1)

    def some(most: int) -> bytes:
        return "".join(chance.choices(" ab.ü", k=chance.randint(0, most))).encode()

    def of_each(question: Callable[[Spelling], list[int]], pieces: Sequence[bytes]) -> list[int]:
        """Ask about one piece at a time."""
        return [i for i, piece in enumerate(pieces) if question(Spelling([piece]))]

    for _ in range(300):
        pieces = [some(4) for _ in range(30)] + [b"\xff", b"\xc3", b"\xbc"]
        spelling, text, word = Spelling(pieces), some(9), some(5) or b"a"
        for question in (
            lambda spelling, text=text: spelling.along(text), lambda spelling, word=word: spelling.holding(word),
            lambda spelling, word=word: spelling.closing(word, len(word) // 2),
            lambda spelling, text=text: spelling.gluing(text),
        ):  # fmt: skip
            assert question(spelling) == of_each(question, pieces), (text, word)
        assert spelling.along(text) == [
            i for i, piece in enumerate(pieces) if piece and (text.startswith(piece) or piece.startswith(text))
        ]
        expected = spelling.holding(word)
        for n in range(min(len(word) - 1, len(text)) + 1):
            before = text[: len(text) - n].decode(errors="ignore")
            if text.endswith(word[:n]) and not joins(before, word.decode()):
                expected = expected + spelling.closing(word, n)
        assert sorted(completing(text, word, spelling)) == sorted(expected)


def test_S27_words_that_one_key_excludes_hold_up_no_other_key(figure: Callable[[str, str], None]) -> None:
    """One batch may ask about 50,000 words of clients that nobody asked about before, in one step of the search."""
    chance = random.Random(1)

    def some(n: int) -> bytes:
        return "".join(chance.choices(string.ascii_lowercase, k=n)).encode()

    spelling = Spelling([b" " * (i % 2) + some(2 + i % 7) for i in range(37_000)])
    with cpu_limit():  # seconds; asking each piece takes minutes
        for i in range(20_000):
            completing(b" the dog sees a c", some(3 + i % 37), spelling)
    figure("S27", "20,000 new words, 37,000 subwords: none asks every subword")


def test_a_character_of_several_bytes_is_begun_and_ended() -> None:
    spelling = Spelling([b"", b"", b"", b"", b" ", b"\xc3", b"\xbc", b"\xa4", "ü".encode(), " ü".encode()])
    assert spelling.along(" ü".encode()) == [4, 9]
    assert spelling.along("ü".encode()) == [5, 8]
    assert spelling.along(b"\xbc") == [6]
    assert completing(b" \xc3", "ü".encode(), spelling) == [9, 8, 6]
    assert 6 in spelling.gluing(b" a")
    assert 4 not in spelling.gluing(b" a")


def test_a_prefix_continues_without_an_excluded_word_unless_it_holds_one() -> None:
    spelling = Spelling([b"", b"", b"", b"", b" Hun", b" Hund", b" Hunne"])
    assert following([], Rules(spelling, prefix=b" Hun"), 9, EOS) == ([4, 5, 6], [])
    assert following([], Rules(spelling, prefix=b" Hun", exclude=(b"Hund",)), 9, EOS) == ([4, 6], [])
    assert following([], Rules(spelling, prefix=b" Hund", exclude=(b"Hund",)), 9, EOS) == ([4, 5], [])
    assert following([], Rules(spelling, prefix=b" Hun", exclude=(b"Hun", b"Hund", b"Hunne")), 9, EOS) == ([4], [])


def test_a_prefix_that_cannot_go_on_is_given_up_and_never_taken_up_at_a_later_byte() -> None:
    rules = Rules(Spelling([b"", b"", b"", b" a", b"b", b"xy"]), prefix=b" a\xc2\xa0b")  # no piece spells the two bytes
    assert following([3], rules, 9, EOS) == ([], [])
    assert following([3, 5], rules, 9, EOS) == ([], [])  # two other bytes: "b" is not forced after them


def test_repeated_ngrams() -> None:
    assert repeating([4, 5, 4, 6, 4], 2) == [5, 6]
    assert repeating([4, 5, 6, 4, 5], 3) == [6]
    assert repeating([4, 5, 6], 3) == []
    assert repeating([4, 5], 1) == [4, 5]
    assert repeating([4, 5], 0) == []


def test_at_the_length_limit_only_the_end_may_follow_whatever_a_rule_says() -> None:
    log_p = torch.full((1, 7), -torch.inf)
    log_p[0, EOS] = -1.0
    restrict(log_p, [[4]], [Rules(SPELLING, prefix=b" ab ab", include=((6, 6),), min_tokens=9)], [1], EOS)
    assert log_p[0, EOS] == -1.0


@pytest.mark.parametrize("beam_size", [1, 4])
def test_rules_do_not_depend_on_the_batch(beam_size: int) -> None:
    torch.manual_seed(0)
    model = Transformer(ModelConfig(preset="tiny", src_vocab_size=23, tgt_vocab_size=23, dropout=0.0)).eval()
    spelling = Spelling([b""] * 4 + [f" {chr(97 + i)}".encode() for i in range(19)])
    gen = torch.Generator().manual_seed(1)
    sources = [torch.randint(4, 23, (n,), generator=gen).tolist() for n in (1, 9, 3, 3, 7, 2, 11, 5)]
    rules = [
        Rules(spelling, no_repeat_ngram=2), Rules(spelling), Rules(spelling, include=((7, 9), (5,))),
        Rules(spelling, prefix=b" c d"), Rules(spelling, exclude=(b"a", b"b c")), Rules(spelling, include=((4,),)),
        Rules(spelling, prefix=b" f", include=((8,),), exclude=(b"g",), no_repeat_ngram=1), Rules(spelling),
    ]  # fmt: skip
    config = DecodeConfig(beam_size=beam_size, max_extra_tokens=10)

    def search(which: list[int], batch_tokens: int) -> list[Hypothesis]:
        found = search_all(
            model, [sources[i] for i in which], replace(config, batch_tokens=batch_tokens),
            torch.device("cpu"), rules=[rules[i] for i in which],
        )  # fmt: skip
        return [h[0] for h in found]

    alone = [search([i], 4096)[0] for i in range(8)]
    for batch_tokens in (1, 13, 30, 1000):
        for order in (list(range(8)), [5, 2, 7, 0, 3, 6, 1, 4]):
            together = search(order, batch_tokens)
            assert [h.ids for h in together] == [alone[i].ids for i in order]
            assert [h.score for h in together] == pytest.approx([alone[i].score for i in order], abs=1e-5)


def test_answers_about_texts_of_any_number_take_little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server is asked about other prefixes and words all the time, for months."""
    monkeypatch.setattr(constraints, "MOST_ANSWERS", 10_000)
    spelling = Spelling(SPELLED)
    for number in range(1000):
        assert spelling.along(b" ab%d" % number + b"a" * 100) == [4, 6]
    assert sum(len(text) + len(ids) for (_, text), ids in spelling.answers.items()) < 11_000
    assert 0 < len(spelling.answers) < 110
