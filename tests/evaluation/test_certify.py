"""The certificate: what it measures, where it stands, and exports that it refuses to compare."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import dragoman
from dragoman.errors import BundleError, ConfigError, DragomanError
from dragoman.evaluation.certify import CERTIFICATE, required, token_differences
from dragoman.files import MANIFEST, check_sealed, sealed_folder
from dragoman.translation.translator import Translation, Translator


@pytest.fixture(scope="module")
def run(tiny_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("certified") / "run"
    shutil.copytree(tiny_run / "bundle", folder / "bundle")
    return folder


def test_float32_is_the_same_model(run: Path, corpus: Any) -> None:
    folder = dragoman.export(run)
    found = dragoman.certify(run, folder, src=corpus.valid_src, ref=corpus.valid_tgt, quiet=True, device="cpu")
    assert (found.export, found.quantization, found.computed_in) == ("ctranslate2", "float32", "float32")
    assert (found.n_lines, found.n_identical) == (20, 20)
    assert found.n_tokens > 100
    assert 0 < found.mean_nats <= found.most_nats < 1e-4
    assert [one.metric for one in found.comparisons] == ["BLEU", "chrF2", "TER"]
    assert all(one.difference == 0 and one.p_randomisation == 1 for one in found.comparisons)
    ours = dragoman.evaluate(run, src=corpus.valid_src, ref=corpus.valid_tgt, quiet=True, guard=False, device="cpu")
    assert found.comparisons[0].a == pytest.approx(ours.scores[0].value)
    assert "identical translations: 20 of 20 (100.0%)" in str(found)
    assert "BLEU: no difference shown between A and B" in str(found)
    written = json.loads((folder / CERTIFICATE).read_text(encoding="utf-8"))
    assert written == json.loads(found.to_json())
    assert written["versions"].keys() == {"dragoman", "ctranslate2", "torch", "sacrebleu"}
    check_sealed(folder, "conversion")


def test_int8_differs_and_the_certificate_says_by_how_much(run: Path, corpus: Any, tmp_path: Path) -> None:
    (tmp_path / "text").write_text(f"\n{corpus.valid_src.read_text()}{'the dog sees ' * 200}\n", encoding="utf-8")
    folder = dragoman.export(run, quantization="int8")
    found = dragoman.certify(run, folder, src=tmp_path / "text", beam_size=2, quiet=True, device="cpu")
    assert (found.quantization, found.computed_in, found.beam_size) == ("int8", "int8", 2)
    assert found.n_lines == 22  # a blank one and a long one among them, which are not read
    assert 1e-4 < found.mean_nats < found.most_nats
    assert 10 < found.n_identical <= 22
    assert found.comparisons == ()
    assert "BLEU" not in str(found)


def test_our_model_is_that_of_float32_and_torch(run: Path, corpus: Any) -> None:
    folder = dragoman.export(run)
    for changes in ({"fast": True}, {"engine": "ctranslate2"}, {"precision": "bf16"}):
        with pytest.raises(ConfigError, match="compared in float32 and by torch: leave out fast, engine and precision"):
            dragoman.certify(run, folder, src=corpus.valid_src, quiet=True, device="cpu", **changes)


def test_a_difference_that_is_no_number_keeps_no_limit(run: Path, corpus: Any) -> None:
    found = dragoman.certify(run, dragoman.export(run), src=corpus.valid_src, quiet=True, device="cpu")
    with pytest.raises(DragomanError, match="nats must be at most 1, got nan"):
        found._replace(most_nats=math.nan).require({"nats": 1.0})
    for limit in ("nats=nan", "identical=inf"):
        with pytest.raises(ConfigError, match="must be a finite number"):
            required([limit], has_references=False)


def test_a_line_of_several_sentences_is_read_in_one_piece_by_both(run: Path) -> None:
    translator = Translator.load(run, "cpu")
    engine: Any = SimpleNamespace(read=lambda pairs: [[0.0] * (len(target) + 1) for _, target in pairs])
    lines, texts = ["The dog sleeps. The man sees a cat."], ["Der Hund schläft. Der Mann sieht eine Katze."]
    assert translator.usual_sentences == 1
    assert translator.score(lines, texts)[0].tokens.count("</s>") == 2
    differences = token_differences(translator, translator.plan(), engine, lines, texts)
    assert len(differences) == len(translator.tgt_tokenizer.encode(texts)[0]) + 1


def test_another_stopping_rule_is_named_only_where_it_is_another(run: Path, corpus: Any) -> None:
    folder = dragoman.export(run)
    why = [
        dragoman.certify(
            run, folder, src=corpus.valid_src, beam_size=2, patience=patience, quiet=True, device="cpu"
        ).why
        for patience in (None, 1.0)
    ]  # fmt: skip
    assert [len(reasons) for reasons in why] == [1, 0]
    assert "stops a sentence" in why[0][0]


def test_what_cannot_be_compared_is_refused(
    run: Path, corpus: Any, tmp_path: Path, reseal: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = dragoman.export(run, out=tmp_path / "out")
    with pytest.raises(ConfigError, match=r"was not made from the bundle that .* holds now; export it again"):
        dragoman.certify(reseal({"step": 3}), folder, src=corpus.valid_src, quiet=True)
    with pytest.raises(ConfigError, match="must be an export to ctranslate2"):
        dragoman.certify(run, run / "bundle", src=corpus.valid_src, quiet=True)
    with sealed_folder(tmp_path / "marian", {"export": "marian"}) as aside:
        (aside / "model.npz").write_bytes(b"")
    with pytest.raises(ConfigError, match="must be an export to ctranslate2"):
        dragoman.certify(run, tmp_path / "marian", src=corpus.valid_src, quiet=True)
    (tmp_path / "blank").write_text("\n \n", encoding="utf-8")
    with pytest.raises(dragoman.DataError, match="nothing to compare: all lines are blank"):
        dragoman.certify(run, folder, src=tmp_path / "blank", quiet=True)
    (tmp_path / "long").write_text("the dog sees " * 200 + "\n", encoding="utf-8")
    with pytest.raises(dragoman.DataError, match="nothing to compare: all lines are longer than"):
        dragoman.certify(run, folder, src=tmp_path / "long", quiet=True)
    with monkeypatch.context() as patch:
        patch.setattr(Translator, "translate_planned", lambda self, texts, *args: [Translation("", 0.0)] * len(texts))
        with pytest.raises(dragoman.DataError, match="nothing to compare: all translations are empty; the model is"):
            dragoman.certify(run, folder, src=corpus.valid_src, quiet=True)
    with pytest.raises(dragoman.DataError, match="has 20 lines but"):
        dragoman.certify(run, folder, src=corpus.valid_src, ref=corpus.tgt, quiet=True)
    (folder / "model.bin").write_bytes(b"")
    with pytest.raises(BundleError, match="damaged"):
        dragoman.certify(run, folder, src=corpus.valid_src, quiet=True)
    (folder / MANIFEST).unlink()
    with pytest.raises(BundleError, match="not a conversion of dragoman"):
        dragoman.certify(run, folder, src=corpus.valid_src, quiet=True)
    assert not (folder / CERTIFICATE).exists()
