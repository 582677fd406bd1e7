"""A trace holds what the model did, no more and no less."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

import dragoman
from dragoman.bundle import Bundle
from dragoman.config import Config, ModelConfig
from dragoman.data.tokenizer import BOS_ID, EOS_ID, Tokenizer
from dragoman.decoding.request import Hypothesis, SearchResult
from dragoman.errors import ConfigError, DecodeError
from dragoman.explanation.explain import explain
from dragoman.explanation.outputs import write
from dragoman.explanation.page import page
from dragoman.explanation.trace import Trace
from dragoman.explanation.words import END, START
from dragoman.model.build import build
from dragoman.parsing import trees
from dragoman.translation.translator import Translator

TEXT = "the big dog sees a cat"
TREE = "(S (NP (DT The) (NN dog)) (VP (VBZ barks)) (. .))"


@pytest.fixture(scope="module")
def translator(tiny_run: Path) -> Translator:
    return Translator.load(tiny_run, "cpu")


@pytest.fixture(scope="module")
def found(translator: Translator) -> Trace:
    return explain(translator, TEXT)


def test_it_explains_the_translation_that_the_run_gives(translator: Translator, found: Trace) -> None:
    assert found.translation == translator.translate([TEXT], guard=False)[0].text
    assert found.source == TEXT
    assert (found.src.tokens[-1], found.tgt.tokens[-1]) == (END, END)


def test_a_host_may_train_the_weights_that_an_explanation_has_read(tiny_run: Path) -> None:
    cold = Translator.load(tiny_run, "cpu")
    explain(cold, TEXT)
    ids = torch.tensor([[5, EOS_ID]])
    cold.model(ids, ids).sum().backward()
    assert all(weight.grad is not None for weight in cold.model.parameters())


def test_each_attention_has_its_shape_and_rows_that_sum_to_1(found: Trace) -> None:
    S, T = len(found.src.tokens), len(found.tgt.tokens)
    for kind, shape in (("cross", (2, T, S)), ("encoder", (2, S, S)), ("decoder", (2, T, T))):
        (layer,) = found.layers(kind)
        assert layer.shape == shape
        np.testing.assert_allclose(layer.sum(-1), 1, atol=1e-5)
        rows, columns = found.tokens(kind)
        assert (len(rows), len(columns)) == shape[1:]
    assert found.tokens("decoder")[1][0] == START
    assert np.triu(found.layers("decoder")[0][0], 1).max() == 0
    with pytest.raises(ConfigError, match="cross, encoder, decoder"):
        found.layers("sideways")


def test_weights_are_those_that_the_reference_would_record(translator: Translator, found: Trace) -> None:
    src = torch.tensor([[*translator.src_tokenizer.encode([TEXT])[0], EOS_ID]])
    tgt_in = torch.tensor([[BOS_ID, *translator.tgt_tokenizer.encode([found.translation])[0]]])
    seen = {}
    with torch.inference_mode():
        translator.model(src, tgt_in, record=lambda name, weights: seen.update({name: weights[0].numpy()}))
    assert seen.keys() == found.weights.keys()
    for name, weights in seen.items():
        np.testing.assert_allclose(found.weights[name], weights, atol=1e-6)


def test_the_alignment_is_the_last_layer_but_one(found: Trace) -> None:
    one = {"decoder.layers.0.cross_attn": np.full((2, 1, 4), 0.25, np.float32)}
    assert replace(found, weights=one).alignment().tolist() == [[0.25] * 4]
    more = {f"decoder.layers.{i}.cross_attn": np.full((2, 1, 4), float(i), np.float32) for i in range(3)}
    assert replace(found, weights=more).alignment().tolist() == [[1.0] * 4]
    with pytest.raises(DecodeError, match="no cross-attention"):
        replace(found, weights={}).alignment()


def test_steps_have_the_probabilities_that_scoring_gives(translator: Translator, found: Trace) -> None:
    scored = translator.score([TEXT], [found.translation])[0]
    assert [step.probability for step in found.steps] == pytest.approx(
        [math.exp(log_prob) for log_prob in scored.token_log_probs], abs=1e-5
    )
    for step in found.steps:
        shares = [probability for _, probability in step.best]
        assert len(shares) == 5
        assert shares == sorted(shares, reverse=True)
        if step.rank <= 5:
            assert step.best[step.rank - 1] == (step.chosen, pytest.approx(step.probability))


def test_words_keep_rows_that_sum_to_1_and_leave_subwords_alone(translator: Translator) -> None:
    found = explain(translator, "greenish house-trees")  # words that the toy language has not
    words = found.by_words()
    assert words.src.tokens == ("greenish", "house-trees", END)
    assert len(found.src.tokens) > 3
    assert words.by_words().weights.keys() == words.weights.keys()
    for name, weights in words.weights.items():
        np.testing.assert_allclose(weights.sum(-1), 1, atol=1e-5)
        np.testing.assert_allclose(words.by_words().weights[name], weights)
    assert words.layers("decoder")[0].shape[1:] == (len(words.tgt.tokens),) * 2
    assert words.steps == found.steps


def test_another_candidate_is_kept_and_the_rest_searched_for(translator: Translator, found: Trace) -> None:
    for step, (before, other) in enumerate(zip(found.steps, found.steps[0].best_ids[:2], strict=False)):
        assert before.id == found.steps[step].best_ids[before.rank - 1]
        prefix = [*(one.id for one in found.steps[:step]), other]
        again = explain(translator, TEXT, prefix=prefix)
        assert [one.id for one in again.steps][: step + 1] == prefix
        assert again.n_forced == step + 1
        assert again.steps[-1].id == EOS_ID
    own = [one.id for one in found.steps]
    assert explain(translator, TEXT, prefix=own[:2]).translation == found.translation
    assert explain(translator, TEXT, prefix=[*own[:1], EOS_ID]).tgt.tokens[1:] == (END,)
    assert found.model["parameters"] == sum(weight.numel() for weight in translator.model.parameters())


def test_a_prefix_that_is_no_text_is_refused(translator: Translator) -> None:
    for prefix, message in (([-1], "must hold ids"), ([EOS_ID, 9], "must hold ids"), ([10**6], "must hold ids")):
        with pytest.raises(ConfigError, match=message):
            explain(translator, TEXT, prefix=prefix)
    with pytest.raises(DecodeError, match="too long"):
        explain(translator, TEXT, prefix=[9] * 10_000)
    with pytest.raises(ConfigError, match="give one of them"):
        explain(translator, TEXT, "haus", prefix=[9])


def test_a_given_translation_is_explained_as_it_is(translator: Translator) -> None:
    found = explain(translator, TEXT, "haus katze")
    assert found.translation == "haus katze"
    assert found.tgt.words == ("haus", "katze", END)


@pytest.mark.parametrize(("text", "target", "message"), [
    (" ", None, "the text is blank"), (TEXT, "", "the translation is blank"), ("dog " * 2000, None, "too many"),
])  # fmt: skip
def test_what_cannot_be_explained_is_refused(
    translator: Translator, text: str, target: str | None, message: str
) -> None:
    with pytest.raises(DecodeError, match=message):
        explain(translator, text, target)


@pytest.fixture(name="parser")
def _parser() -> Translator:
    """A parser with random weights."""
    symbols = trees.to_symbols(trees.tree_of(TREE))
    data = {"train": {"trees": "train.trees"}, "tokenizer": {"joint": False, "vocab_size": 290}}
    config = Config.from_mapping({"task": "parsing", "model": {"share_embeddings": "none"}, "data": data})
    learned = ("A cat sleeps.", " ".join(symbols))  # so that the sentence is spelt letter by letter
    tokenizers = [Tokenizer.learn([text] * 9, config.data.tokenizer) for text in learned]
    sizes = dict(zip(("src_vocab_size", "tgt_vocab_size"), (one.vocab_size for one in tokenizers), strict=True))
    small = {"d_model": 16, "n_heads": 2, "d_ff": 16, "n_encoder_layers": 1, "n_decoder_layers": 1}
    model = build(ModelConfig(share_embeddings="none", **small, **sizes))
    return Translator(Bundle(config, model.eval(), tokenizers[0], tokenizers[1], {}))


def test_a_parser_is_explained_by_its_words_and_symbols(parser: Translator) -> None:
    symbols = trees.to_symbols(trees.tree_of(TREE))
    found = explain(parser, "The dog barks, doesn't it?", TREE)
    words = found.by_words()
    assert words.src.tokens == ("The", "dog", "barks,", "doesn't", "it?", END)  # what stands between spaces
    assert words.tgt.tokens == (*symbols, END)
    assert len(found.src.tokens) > 15
    for weights in words.weights.values():
        np.testing.assert_allclose(weights.sum(-1), 1, atol=1e-5)


def test_a_candidate_can_be_followed_however_unlikely_it_is(tiny_run: Path) -> None:
    """Pad, unk and bos stand in no translation: a prefix with them is refused."""
    translator = Translator.load(tiny_run)
    steps = explain(translator, "the dog", n_best=10_000).steps
    assert len(steps[0].best_ids) == translator.tgt_tokenizer.vocab_size - EOS_ID
    assert min(steps[0].best_ids) == EOS_ID
    assert steps[0].best[steps[0].rank - 1][0] == steps[0].chosen


def test_of_a_parsers_beam_the_first_tree_is_explained(parser: Translator, monkeypatch: pytest.MonkeyPatch) -> None:
    tokenizer, symbols = parser.tgt_tokenizer, " ".join(trees.to_symbols(trees.tree_of(TREE)))
    texts = [f"{symbols} )S", symbols, symbols.replace("VBZ", "NN")]  # the first is likelier, and no tree
    hypotheses = [Hypothesis(ids, -1.0, -1.0) for ids in tokenizer.encode(texts)]
    monkeypatch.setattr("dragoman.explanation.explain.search_all", lambda *_: SearchResult([hypotheses]))
    assert explain(parser, "The dog barks .").translation == symbols
    monkeypatch.setattr("dragoman.explanation.explain.search_all", lambda *_: SearchResult([hypotheses[:1]]))
    assert explain(parser, "The dog barks .").translation == texts[0]


def test_an_ensemble_is_refused_and_any_number_of_candidates_has_names(tiny_run: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="one by one"):
        explain(Translator.load([tiny_run, tiny_run], "cpu"), TEXT)
    found = explain(Translator.load(tiny_run, "cpu"), TEXT, n_best=7)
    write(found, tmp_path / "page.html")
    write(found, tmp_path / "candidates.svg", "candidates")
    assert "7th" in (tmp_path / "candidates.svg").read_text(encoding="utf-8")


def test_it_is_shown_saved_and_named(found: Trace, tmp_path: Path) -> None:
    assert repr(found) == f"<Trace: {TEXT!r} to {found.translation!r}, 6 heads in 3 attentions>"
    assert found.page() == page(found)
    assert found.save(str(tmp_path / "x.html")) == [tmp_path / "x.html"]
    assert (tmp_path / "x.html").read_text(encoding="utf-8") == found.page()
    assert found._repr_html_().startswith("<iframe srcdoc=")
    nasty = replace(found, source="</script><script>alert(1)</script>")._repr_html_()
    assert "<script" not in nasty
    assert dragoman.explain is explain
