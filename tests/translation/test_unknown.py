"""The unknown subword is never chosen unless it is allowed, by whichever search; and a note says what was not read.

The model here predicts unk at every step: it is the trained toy model with a large bias for it.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from dragoman import reference
from dragoman.bundle import Bundle, load_bundle, save_bundle
from dragoman.config import DecodeConfig, ModelConfig, TokenizerConfig
from dragoman.data.shortlist import Shortlist
from dragoman.data.tokenizer import UNK_ID, Tokenizer
from dragoman.decoding.batched_search import Shortlisted
from dragoman.decoding.constraints import Rules, Spelling
from dragoman.decoding.ensemble import Ensemble, Mean
from dragoman.decoding.request import Hypothesis, Sampling, SearchSettings, Segment
from dragoman.decoding.scoring import read_all
from dragoman.errors import ConfigError
from dragoman.evaluation.certify import ComparedText, compare_export, opened
from dragoman.fast.step import FastTransformer
from dragoman.model.build import build
from dragoman.model.transformer import Transformer
from dragoman.model.weights import untied
from dragoman.toolkits.export import export
from dragoman.translation.options import TranslateOptions
from dragoman.translation.translator import Translator
from searching import search_all

CPU = torch.device("cpu")
MARK = "\u2047"
SEARCHES: dict[str, dict[str, Any]] = {
    "greedy": dict(beam_size=1),
    "beam": dict(beam_size=4),
    "n best": dict(beam_size=4, n_best=4),
    "patience": dict(beam_size=3, patience=1.0),
}


@pytest.fixture(scope="module")
def bundle(tiny_run: Path) -> Bundle:
    real = load_bundle(tiny_run)
    fields = {**real.model.config.model_dump(), "generator_bias": True}
    model = Transformer(ModelConfig(**fields)).eval()
    model.load_state_dict(real.model.state_dict(), strict=False)
    with torch.no_grad():
        model.generator.bias.zero_()
        model.generator.bias[UNK_ID] = 12.0
    config = real.config.model_copy(update={"model": model.config})
    return real._replace(weights=model, config=config)


@pytest.fixture
def folder(bundle: Bundle, tmp_path: Path) -> Path:
    """The bundle on disk."""
    folder, tokenizer = tmp_path / "bundle", bundle.src_tokenizer
    save_bundle(folder, bundle.config, bundle.model.config, untied(bundle.model), tokenizer, tokenizer, {})
    return folder


@pytest.fixture(scope="module")
def sources(bundle: Bundle, toy_sentences: Callable[..., Any]) -> list[list[int]]:
    return bundle.src_tokenizer.encode([src for src, _ in toy_sentences(8, 7)])


def ids_of(found: list[list[Hypothesis]]) -> list[list[int]]:
    return [hypothesis.ids for hypotheses in found for hypothesis in hypotheses]


def searches(bundle: Bundle) -> dict[str, Any]:
    """Everything that our search runs on."""
    fast, n = FastTransformer(bundle.model), bundle.tgt_tokenizer.vocab_size  # type: ignore[arg-type]
    torch.manual_seed(1)
    lstm = build(ModelConfig(architecture="lstm", src_vocab_size=n, tgt_vocab_size=n, d_model=16, d_ff=16)).eval()
    lstm.step = biased(lstm.step)  # type: ignore[method-assign]
    shortlist = Shortlist(np.arange(n), np.zeros(n + 1, np.int64), np.zeros(0, np.int64))
    return {
        "model": bundle.model, "optimised": fast, "bf16": FastTransformer(bundle.model, "bf16"),  # type: ignore[arg-type]
        "ensemble": Ensemble([bundle.model, bundle.model]), "optimised ensemble": Mean((fast, fast)),
        "shortlist": Shortlisted(fast, shortlist), "baseline": lstm,
    }  # fmt: skip


def biased(step: Callable[..., Any]) -> Callable[..., Any]:
    def stepped(state: Any, last_ids: torch.Tensor) -> tuple[torch.Tensor, Any]:
        logits, state = step(state, last_ids)
        return logits.index_fill(1, torch.tensor([UNK_ID]), 50.0), state

    return stepped


@pytest.mark.parametrize("name", SEARCHES)
def test_no_search_of_ours_chooses_it(bundle: Bundle, sources: list[list[int]], name: str) -> None:
    how = dict(SEARCHES[name])
    n_best = how.pop("n_best", 1)
    config = DecodeConfig(**how, max_extra_tokens=5)
    for model in searches(bundle).values():
        found = ids_of(search_all(model, sources, config, CPU, n_best))
        assert len(found) == n_best * len(sources)
        assert not any(UNK_ID in ids for ids in found)
        assert any(found)
        allowed = ids_of(search_all(model, sources, config, CPU, n_best, allow_unk=True))
        assert any(UNK_ID in ids for ids in allowed)


def test_nor_does_sampling(bundle: Bundle, sources: list[list[int]]) -> None:
    config = DecodeConfig(max_extra_tokens=5)
    for how in (Sampling(), Sampling(top_k=3), Sampling(top_p=0.5), Sampling(temperature=2.0)):
        found = ids_of(search_all(bundle.model, sources, config, CPU, 3, sampling=how))
        assert not any(UNK_ID in ids for ids in found)
        assert any(found)
        allowed = search_all(bundle.model, sources, config, CPU, 3, sampling=how, allow_unk=True)
        assert any(UNK_ID in ids for ids in ids_of(allowed))


@pytest.mark.parametrize("beam_size", [1, 4])
def test_nor_does_constrained_decoding(bundle: Bundle, sources: list[list[int]], beam_size: int) -> None:
    tokenizer = bundle.tgt_tokenizer
    spelling, (word,) = Spelling(tokenizer.spelled), tokenizer.encode(["Hund"])
    config = DecodeConfig(beam_size=beam_size, max_extra_tokens=8)
    cases = (
        Rules(spelling, prefix=b" Der"),
        Rules(spelling, include=(tuple(word),)),  # by beam allocation
        Rules(spelling, exclude=(b"Hund",), no_repeat_ngram=2, min_tokens=3),
        Rules(spelling, ids=tuple(word)),
    )
    for rules in cases:
        found = ids_of(search_all(bundle.model, sources, config, CPU, rules=[rules] * len(sources)))
        assert len(found) == len(sources)
        assert not any(UNK_ID in ids for ids in found)


def test_scores_stay_the_models(bundle: Bundle, sources: list[list[int]]) -> None:
    """The probability that unk has is not given to the others, and forced decoding still reads it."""
    for config in (DecodeConfig(beam_size=1), DecodeConfig(beam_size=3)):
        found = [one[0] for one in search_all(bundle.model, sources, config, CPU)]
        read = read_all(bundle.model, [(src, one.ids) for src, one in zip(sources, found, strict=True)], CPU)
        assert [one.log_prob for one in found] == pytest.approx([one.log_prob for one in read if one], abs=1e-3)
    (read_unk,) = read_all(bundle.model, [(sources[0], [UNK_ID])], CPU)
    assert read_unk is not None
    assert read_unk.log_probs[0] > -0.1


@pytest.mark.parametrize("beam_size", [1, 3])
def test_nor_does_the_reference(bundle: Bundle, sources: list[list[int]], beam_size: int) -> None:
    params = {name: tensor.double().numpy() for name, tensor in bundle.model.state_dict().items()}
    config, how = bundle.model.config.model_dump(), reference.SearchSettings(0, 2, 3, UNK_ID, beam_size)
    model = Transformer(bundle.model.config).double().eval()
    model.load_state_dict(bundle.model.state_dict())
    decode = DecodeConfig(beam_size=beam_size)
    for src in sources[:2]:
        (ours,) = search_all(model, [src], decode, CPU, longest=9)
        assert reference.translate(params, config, src, how, 9)[0].ids == ours[0].ids
        assert UNK_ID in reference.translate(params, config, src, how._replace(unk_id=None), 9)[0].ids


# --- foreign searches -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("to", ["ctranslate2", "huggingface", "onnx", "page"])
@pytest.mark.parametrize("beam_size", [1, 4])
@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::FutureWarning", "ignore::DeprecationWarning")
def test_no_export_chooses_it_and_the_certificate_compares_like_with_like(
    folder: Path, tmp_path: Path, toy_sentences: Callable[..., Any], to: str, beam_size: int
) -> None:
    pytest.importorskip({"huggingface": "transformers", "onnx": "onnxruntime", "page": "json"}.get(to, to))
    if to == "page" and shutil.which("node") is None:
        pytest.skip("needs node")
    lines = [src for src, _ in toy_sentences(8, 7)]
    translator = Translator.load(folder)
    engine = opened(translator, export(folder, to, tmp_path / "there")).searcher
    for allowed in (False, True):
        options = TranslateOptions(beam_size=beam_size, length_penalty=0.0, guard=False, allow_unk=allowed)
        ours = translator.plan(options)
        theirs = translator.with_engine(ours, engine)
        texts = [[one.text for one in translator.translate(lines, plan)] for plan in (ours, theirs)]
        for some in texts:
            assert any(MARK in text for text in some) == allowed
        same = sum(a == b for a, b in zip(*texts, strict=True))
        assert same == len(lines) if beam_size == 1 or to in ("onnx", "page") else same >= len(lines) / 2
    text = ComparedText("lines", lines, None)
    certificate = compare_export(translator, tmp_path / "there", text, TranslateOptions(beam_size=1), quiet=True)
    assert certificate.n_identical == len(lines)


@pytest.mark.parametrize(("to", "key"), [("huggingface", "suppress_tokens"), ("onnx", "bad_words_ids")])
def test_the_settings_of_an_export_say_so_to_other_programs(folder: Path, tmp_path: Path, to: str, key: str) -> None:
    export(folder, to, tmp_path / "there")
    said = json.loads((tmp_path / "there/generation_config.json").read_text())[key]
    assert UNK_ID in said or [UNK_ID] in said


def test_ctranslate2_gives_the_models_scores(bundle: Bundle, sources: list[list[int]]) -> None:
    pytest.importorskip("ctranslate2")
    plan = Translator(bundle).plan(engine="ctranslate2")
    settings = SearchSettings(decode=DecodeConfig(beam_size=4), n_best=3)
    found = plan.engine.search([Segment(ids=src) for src in sources], settings).hypotheses
    for src, hypotheses in zip(sources, found, strict=True):
        assert len(hypotheses) == 3
        assert not any(UNK_ID in one.ids for one in hypotheses)
        read = read_all(bundle.model, [(src, one.ids) for one in hypotheses], CPU)
        assert [one.log_prob for one in hypotheses] == pytest.approx([r.log_prob for r in read if r], abs=1e-3)


# --- text ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("changes", [{}, {"beam_size": 1}, {"sample": True}, {"n_best": 3}, {"prefix": "Der"}])
def test_no_translation_holds_its_mark_unless_it_is_allowed(
    bundle: Bundle, toy_sentences: Callable[..., Any], changes: dict[str, Any]
) -> None:
    translator, lines = Translator(bundle), [src for src, _ in toy_sentences(8, 7)]
    for guard in (True, False):
        translations = translator.translate(lines, guard=guard, **changes)
        texts = [each.text for one in translations for each in (one, *one.alternatives)]
        assert any(texts)
        assert not any(MARK in text for text in texts)
    assert any(MARK in one.text for one in translator.translate(lines, allow_unk=True, guard=False, **changes))


def test_the_option_has_no_effect_on_scoring_and_is_refused_there(bundle: Bundle) -> None:
    with pytest.raises(ConfigError, match="allow_unk"):
        Translator(bundle).score("the dog", "der Hund", allow_unk=True)


def test_a_file_begun_before_the_option_is_resumed(bundle: Bundle) -> None:
    translator = Translator(bundle)
    assert "allow_unk" not in translator.facts(translator.plan())
    assert translator.facts(translator.plan(allow_unk=True))["allow_unk"] is True


@pytest.fixture(scope="module")
def without_bytes(bundle: Bundle, toy_sentences: Callable[..., Any]) -> Translator:
    """A translator whose vocabulary cannot spell what it has not seen."""
    lines = [side for pair in toy_sentences(300, 1) for side in pair]
    tokenizer = Tokenizer.learn(lines, TokenizerConfig(vocab_size=200, byte_fallback=False))
    torch.manual_seed(2)
    n = tokenizer.vocab_size
    sizes = dict(d_model=16, d_ff=16, n_heads=2, n_encoder_layers=1, n_decoder_layers=1)
    model = Transformer(ModelConfig(src_vocab_size=n, tgt_vocab_size=n, **sizes)).eval()
    config = bundle.config.model_copy(update={"model": model.config})
    return Translator(bundle._replace(weights=model, config=config, src_tokenizer=tokenizer, tgt_tokenizer=tokenizer))


def test_a_note_names_what_the_model_could_not_read(without_bytes: Translator) -> None:
    plain, strange, twice = without_bytes.translate(["the dog", "the \u65e5\u672c dog", "\u0436 dog \u0436 \u65e5"])
    assert not [note for note in plain.notes if note.kind == "unknown"]
    (note,) = [note for note in strange.notes if note.kind == "unknown"]
    assert note.text == "the model does not know '\u65e5\u672c' in the source"
    (note,) = [note for note in twice.notes if note.kind == "unknown"]
    assert note.text == "the model does not know '\u0436', '\u65e5' in the source"


def test_what_is_carried_over_unchanged_needs_no_note(without_bytes: Translator) -> None:
    line = "the dog \U0001f600"
    carried, read = without_bytes.translate(line), without_bytes.translate(line, protect=False)
    assert "\U0001f600" in carried.text
    assert not [note for note in carried.notes if note.kind == "unknown"]
    assert [note.text for note in read.notes if note.kind == "unknown"] == [
        "the model does not know '\U0001f600' in the source"
    ]


def test_alignments_count_the_words_of_the_text_that_is_shown(without_bytes: Translator) -> None:
    lines = ["the dog \U0001f600! a cat", "a cat \U0001f600.", "the dog 123 sees \u2192 a cat. the dog \U0001f600!"]
    for found in without_bytes.translate(lines, alignments=True):
        assert "\u2047" not in found.text
        assert found.alignment is not None
        assert {tgt for _, tgt in found.alignment} == set(range(len(found.text.split())))


def test_bytes_spell_everything(bundle: Bundle) -> None:
    plan = replace(Translator(bundle).plan())
    translation = Translator(bundle).translate("the \u65e5\u672c dog", plan)
    assert not [note for note in translation.notes if note.kind == "unknown"]
