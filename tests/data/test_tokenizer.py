"""Subwords: the exact round trip, sampling, learning and loading."""

from __future__ import annotations

import logging
import random
import threading
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dragoman.config import TokenizerConfig
from dragoman.data import tokenizer as module
from dragoman.data.subword_learning import MIN_CHARACTER_COUNT, coverage
from dragoman.data.tokenizer import BOS_ID, EOS_ID, FEW, PAD_ID, UNK_ID, Tokenizer, learn_tokenizers
from dragoman.errors import BundleError, ConfigError, DataError


def sentences(n: int, seed: int = 0) -> list[str]:
    """Sentences of made-up words, with Zipf-like frequencies."""
    chance = random.Random(seed)
    syllables = [a + b for a in "bdfgklmnprst" for b in ("a", "e", "i", "o", "u", "än")]
    words = ["".join(chance.choices(syllables, k=chance.randint(1, 3))) for _ in range(400)]
    weights = [1 / (i + 1) for i in range(400)]
    return [" ".join(chance.choices(words, weights, k=chance.randint(3, 12))).capitalize() + "." for _ in range(n)]


LINES = sentences(3000)
KINDS = ("bpe", "unigram")
CONFIG = TokenizerConfig(vocab_size=600, normalisation="none")
TOKENIZERS = {kind: Tokenizer.learn(LINES, CONFIG.model_copy(update={"kind": kind})) for kind in KINDS}

kinds = pytest.mark.parametrize("kind", KINDS)
texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\u2581"), max_size=40)


@kinds
@settings(max_examples=150, deadline=None)
@given(
    text=st.one_of(
        texts, st.lists(st.sampled_from([" ", "  ", "\t", "Ba", "de.", "<s>", "▂", "日本", "7"])).map("".join)
    )
)
@example(text="")
@example(text=" ")
@example(text="  a  b  ")
@example(text="\ta\tb\n")
@example(text="\0\x01\x1f\x7f\x85\u2028\ufeff\ufffd\uffff\U0010ffff")
@example(text="👩‍👩‍👧 naïve ﬁ Å \u202f\u3000\xa0")
@example(text="<s></s><unk><pad><0x41> ⁇ \u2585")
@example(text="x" * 20_000)
def test_decoding_gives_back_every_text(kind: str, text: str) -> None:
    tokenizer = TOKENIZERS[kind]
    (ids,) = tokenizer.encode([text])
    assert tokenizer.decode([ids]) == [text]
    assert all(EOS_ID < i < tokenizer.vocab_size for i in ids)
    (sampled,) = tokenizer.sample([text], 0.2, seed=1)
    assert tokenizer.decode([sampled]) == [text]


@kinds
def test_every_character_but_u2581_comes_back(kind: str) -> None:
    characters = [chr(c) for c in range(0x110000) if not 0xD800 <= c < 0xE000]
    blocks = ["".join(characters[i : i + 100]) for i in range(0, len(characters), 100)]
    decoded = TOKENIZERS[kind].decode(TOKENIZERS[kind].encode(blocks))
    assert decoded == [block.replace("\u2581", " ") for block in blocks]


@kinds
def test_sampling_is_a_function_of_its_arguments(kind: str) -> None:
    tokenizer, some = TOKENIZERS[kind], LINES[:200]
    first = tokenizer.sample(some, 0.1, seed=5)
    tokenizer.sample(LINES[:7], 0.3, seed=9)
    tokenizer.encode(some)
    assert tokenizer.sample(some, 0.1, seed=5) == first
    assert tokenizer.sample(some, 0.1, seed=6) != first
    assert first != tokenizer.encode(some)
    assert tokenizer.decode(first) == some
    assert len({str(tokenizer.sample(some[:20], 0.1, seed)) for seed in range(20)}) == 20


def test_sampling_is_a_function_of_its_arguments_among_threads() -> None:
    tokenizer, some = TOKENIZERS["bpe"], LINES[:50]
    wanted = {seed: tokenizer.sample(some, 0.1, seed) for seed in range(8)}
    wrong = []

    def work(seed: int) -> None:
        for _ in range(10):
            if tokenizer.sample(some, 0.1, seed) != wanted[seed]:
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.parametrize("seed", [0, 1, 2**32 - 2, 2**32 - 1, 2**32, 2**63 - 1])
def test_every_seed_is_reproducible(seed: int) -> None:
    tokenizer = TOKENIZERS["bpe"]
    assert tokenizer.sample(LINES[:50], 0.2, seed) == tokenizer.sample(LINES[:50], 0.2, seed)


def test_special_ids_are_dropped_wherever_they_stand() -> None:
    tokenizer = TOKENIZERS["bpe"]
    (ids,) = tokenizer.encode([LINES[0]])
    assert tokenizer.decode([[BOS_ID, *ids, EOS_ID, PAD_ID, PAD_ID], [], [EOS_ID]]) == [LINES[0], "", ""]


def test_empty_lists_stay_empty() -> None:
    tokenizer = TOKENIZERS["bpe"]
    assert tokenizer.encode([]) == tokenizer.decode([]) == tokenizer.sample([], 0.1, 1) == []
    assert tokenizer.encode([""]) == [[]]


@pytest.mark.parametrize("i", [-1, 600, 10**9])
def test_ids_outside_the_vocabulary_are_refused(i: int) -> None:
    with pytest.raises(DataError, match="knows 0 to 599"):
        TOKENIZERS["bpe"].decode([[5], [5, i]])


@kinds
def test_a_few_texts_are_cut_and_joined_as_many_are(kind: str) -> None:
    tokenizer = TOKENIZERS[kind]
    texts = ["", " ", "Haus und Hof", "\U0001d518 \u00fc", "a\0b", "unknowable " * 50]
    ids = tokenizer.encode(texts * FEW)[: len(texts)]
    assert tokenizer.encode(texts) == ids
    assert tokenizer.decode(ids) == tokenizer.decode(ids * FEW)[: len(texts)]


def test_half_a_surrogate_pair_is_refused_with_its_place() -> None:
    for call in (lambda t: TOKENIZERS["bpe"].encode(t), lambda t: TOKENIZERS["bpe"].sample(t, 0.1, 1)):
        with pytest.raises(DataError, match=r"text 2, character 2: U\+D800"):
            call(["fine", "a\ud800"])


def test_pieces_show_spaces_and_special_ids() -> None:
    tokenizer = TOKENIZERS["bpe"]
    assert tokenizer.pieces([PAD_ID, UNK_ID, BOS_ID, EOS_ID]) == ["<pad>", "<unk>", "<s>", "</s>"]
    assert "".join(tokenizer.pieces(tokenizer.encode(["ba de"])[0])) == "▁ba▁de"


def test_digits_are_pieces_of_their_own() -> None:
    tokenizer = Tokenizer.learn([f"year {i}" for i in range(1900, 2000)] * 3, TokenizerConfig(vocab_size=280))
    assert tokenizer.pieces(tokenizer.encode(["1984"])[0]) == ["▁", "1", "9", "8", "4"]


@kinds
def test_learning_is_reproducible(kind: str) -> None:
    assert Tokenizer.learn(iter(LINES), CONFIG.model_copy(update={"kind": kind})).proto == TOKENIZERS[kind].proto


def test_a_large_text_is_drawn_from_by_chance_and_always_alike(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module, "MAX_LEARNING_LINES", 500)
    caplog.set_level(logging.INFO)
    first = Tokenizer.learn(LINES, TokenizerConfig(vocab_size=500))
    assert Tokenizer.learn(LINES, TokenizerConfig(vocab_size=500)) == first
    assert "sample of 500 of 3,000 lines" in caplog.text


@kinds
@pytest.mark.parametrize("byte_fallback", [True, False])
def test_a_vocabulary_larger_than_the_text_is_lowered_and_said(
    kind: str, byte_fallback: bool, caplog: pytest.LogCaptureFixture
) -> None:
    config = TokenizerConfig(kind=kind, vocab_size=5000, byte_fallback=byte_fallback)
    tokenizer = Tokenizer.learn(["the cat sat on the mat"] * 3, config)
    assert tokenizer.vocab_size < 400
    assert f"yields only {tokenizer.vocab_size} subwords" in caplog.text
    assert tokenizer.decode(tokenizer.encode(["the cat sat"])) == ["the cat sat"]


@kinds
@pytest.mark.parametrize("byte_fallback", [True, False])
def test_a_vocabulary_too_small_for_the_characters_is_refused(kind: str, byte_fallback: bool) -> None:
    with pytest.raises(ConfigError, match=r"tokenizer.vocab_size = 9 is too small: this text needs \d+"):
        Tokenizer.learn(LINES, TokenizerConfig(kind=kind, vocab_size=9, byte_fallback=byte_fallback))


def test_without_byte_fallback_an_unseen_character_is_unknown() -> None:
    tokenizer = Tokenizer.learn(LINES, TokenizerConfig(vocab_size=300, byte_fallback=False))
    (ids,) = tokenizer.encode(["ba 日"])
    assert UNK_ID in ids


def test_common_characters_are_pieces_and_rare_ones_are_bytes() -> None:
    lines = ["日本 " * 10] * 10 + ["罕"]
    tokenizer = Tokenizer.learn(lines, TokenizerConfig(vocab_size=270))
    assert tokenizer.pieces(tokenizer.encode(["罕"])[0]) == ["▁", "<0xE7>", "<0xBD>", "<0x95>"]
    assert not any("<0x" in piece for piece in tokenizer.pieces(tokenizer.encode(["日本"])[0]))


@given(
    st.lists(
        st.text(st.sampled_from("aab \u00fc\u4e2d\U0001f600\ud800\0\n\u2585"), max_size=30), min_size=1, max_size=30
    ),
    st.integers(1, 5),
)
def test_common_characters_are_counted_as_a_counter_counts_them(lines: list[str], most: int) -> None:
    reserved = str.maketrans({"\0": " ", "\u2585": " ", "\n": " "})
    counts = Counter(character for line in lines for character in " " + line.translate(reserved))
    common = sum(n for _, n in counts.most_common(most) if n >= MIN_CHARACTER_COUNT)
    assert coverage(lines, most) == max(0.98, common / counts.total())


def test_nothing_is_left_out_of_learning() -> None:
    lines = ["zz\u2585qqqqqq\0zz"] * 9 + ["w" * 30_000]  # SentencePiece by itself would skip each of these
    tokenizer = Tokenizer.learn(lines, TokenizerConfig(vocab_size=275))
    assert not any("<0x" in piece for piece in tokenizer.pieces(tokenizer.encode(["zzqqww"])[0]))


@pytest.mark.parametrize("lines", [[], ["", " ", "\t"]])
def test_a_text_without_words_is_refused(lines: list[str]) -> None:
    with pytest.raises(DataError, match="every line is blank"):
        Tokenizer.learn(lines, TokenizerConfig())


def test_joint_is_one_vocabulary_and_separate_are_two() -> None:
    def pairs() -> list[tuple[str, str]]:
        return [(line, line.upper()) for line in LINES[:500]]

    src, tgt = learn_tokenizers(pairs, TokenizerConfig(vocab_size=400))
    assert src.shares_pieces(tgt)
    assert tgt is src.for_targets
    src, tgt = learn_tokenizers(pairs, TokenizerConfig(vocab_size=400, joint=False))
    assert src != tgt
    assert len(src.encode([LINES[0]])[0]) < len(src.encode([LINES[0].upper()])[0])
    assert len(tgt.encode([LINES[0]])[0]) > len(tgt.encode([LINES[0].upper()])[0])


def test_saving_and_loading_keeps_every_byte(tmp_path: Path) -> None:
    tokenizer = TOKENIZERS["unigram"]
    tokenizer.save(tmp_path / "joint.spm")
    loaded = Tokenizer.load(tmp_path / "joint.spm")
    assert loaded == tokenizer
    assert hash(loaded) == hash(tokenizer)
    assert loaded.encode(LINES[:10]) == tokenizer.encode(LINES[:10])


def test_missing_foreign_and_oversized_files_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.spm"
    with pytest.raises(BundleError, match="no such file"):
        Tokenizer.load(path)
    with pytest.raises(BundleError, match="cannot be read"):
        Tokenizer.load(tmp_path)
    for content in (b"", b"\0", b"hello world", b"\xff" * 1000):
        path.write_bytes(content)
        with pytest.raises(BundleError, match="copy it again"):
            Tokenizer.load(path)
    monkeypatch.setattr(module, "MAX_MODEL_BYTES", 10)
    path.write_bytes(b"x" * 11)
    with pytest.raises(BundleError, match="too much"):
        Tokenizer.load(path)


def test_a_model_with_other_special_ids_is_refused(tmp_path: Path) -> None:
    import io

    import sentencepiece

    for options, says in (
        ({}, "special pieces are not pad, unk, bos, eos"),
        ({"normalization_rule_name": "identity"}, "special pieces are not pad, unk, bos, eos"),
        ({"normalization_rule_name": "identity", "model_type": "char"}, "its type must be unigram"),
    ):
        model = io.BytesIO()
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(LINES), model_writer=model, vocab_size=60, minloglevel=2, **options
        )
        with pytest.raises(BundleError, match=says):
            Tokenizer(model.getvalue())


@kinds
def test_five_hundred_damaged_models_never_crash(kind: str) -> None:
    whole, chance, refused = TOKENIZERS[kind].proto, random.Random(0), 0
    for _ in range(500):
        damaged = bytearray(whole)
        for _ in range(chance.choice([1, 5, 50])):
            damaged[chance.randrange(len(damaged))] ^= 1 << chance.randrange(8)
        if chance.random() < 0.4:
            del damaged[chance.randrange(len(damaged)) :]
        if chance.random() < 0.3:
            place = chance.randrange(len(damaged) + 1)
            damaged[place:place] = chance.randbytes(chance.randrange(1, 200))
        try:
            tokenizer = Tokenizer(bytes(damaged))
            ids = tokenizer.encode(["Hello wörld, 日本 12"])
            tokenizer.decode(ids)
            tokenizer.pieces(range(tokenizer.vocab_size))
        except BundleError:
            refused += 1
    assert refused > 100


def test_a_piece_of_a_hundred_kilobytes_is_refused() -> None:
    # a ModelProto field 1 (piece) with field 1 (its text), see gh:google/sentencepiece/issues/1263
    text = b"\x0a\xa0\x8d\x06" + b"a" * 100_000
    with pytest.raises(BundleError, match="damaged"):
        Tokenizer(TOKENIZERS["bpe"].proto + b"\x0a\xa4\x8d\x06" + text)


def test_words_can_be_the_vocabulary() -> None:
    lines = ["(S (NP DT NN )NP )S", "(S UH )S", ""]
    words = Tokenizer.learn_words(lines)
    assert words.vocab_size == 4 + 7
    assert [len(ids) for ids in words.encode(lines)] == [6, 3, 0]
    assert words.decode(words.encode(lines)) == lines
    assert words.sample(lines, 0.5, seed=1) == words.encode(lines)
    assert words.encode(["(S XX )S"])[0][1] == UNK_ID
    assert Tokenizer.learn_words(reversed(lines)) == words
    with pytest.raises(DataError, match="every line is blank"):
        Tokenizer.learn_words(["", " "])
