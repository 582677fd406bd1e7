"""Assessment from Python: systems of any kind, and that nothing is compared which cannot be."""

from __future__ import annotations

import math
import os
import shutil
import threading
from pathlib import Path
from typing import Any

import pytest

import dragoman
from dragoman.errors import ConfigError, DataError
from dragoman.evaluation.metrics import bleu, chrf, scores, select_metrics
from dragoman.evaluation.stress import CLEAN, is_guarded, variants
from dragoman.translation.translator import Translator


def test_a_system_is_a_run_a_translator_or_a_file(tiny_run: Path, corpus: Any, tmp_path: Path) -> None:
    files: dict[str, Any] = {"src": corpus.valid_src, "ref": corpus.valid_tgt, "quiet": True}
    translator = dragoman.Translator.load(tiny_run)
    run, loaded = dragoman.evaluate(tiny_run, **files), dragoman.evaluate(translator, **files)
    texts = [translation.text for translation in run.translations]
    (tmp_path / "hyp").write_text("".join(text + "\n" for text in texts), encoding="utf-8")
    read = dragoman.evaluate(tmp_path / "hyp", ref=corpus.valid_tgt, quiet=True)
    assert run.scores == loaded.scores == read.scores == scores(texts, _lines(corpus.valid_tgt), "de", select_metrics())
    assert [translation.text for translation in read.translations] == texts
    assert all(math.isnan(translation.score) for translation in read.translations)
    assert repr(run).startswith(f"<Evaluation of 20 lines: BLEU {run.scores[0].value:.2f}, chrF2 ")
    assert f'<td style="text-align: left">{run.scores[1].value:.2f}</td>' in run._repr_html_()
    compared = dragoman.compare(translator, tmp_path / "hyp", n_samples=20, **files)
    assert compared.a.scores == compared.b.scores == run.scores
    assert "no difference shown between A and B" in compared._repr_html_()
    assert [one.p_randomisation for one in compared.comparisons] == [1, 1, 1]
    assert {(one.n_samples, one.seed) for one in compared.comparisons} == {(20, 12345)}


def _lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").split("\n")[:-1]


def test_settings_reach_every_search(tiny_run: Path, corpus: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    translate = dragoman.Translator.translate_planned

    def noted(self: Any, texts: Any, plan: Any, *args: Any) -> Any:
        decode = plan.search.decode
        seen.append([decode.beam_size, decode.length_penalty, decode.patience, plan.options.guard])
        return translate(self, texts, plan, *args)

    monkeypatch.setattr(dragoman.Translator, "translate_planned", noted)
    settings: dict[str, Any] = {
        "beam_size": 2, "length_penalty": 0.3, "patience": 1.5, "guard": False, "quiet": True,
    }  # fmt: skip
    files = {"src": corpus.valid_src, "ref": corpus.valid_tgt}
    dragoman.evaluate(tiny_run, **files, **settings)
    dragoman.compare(tiny_run, tiny_run, **files, **settings, n_samples=10)
    dragoman.stress(tiny_run, **files, **settings)
    assert seen == [[2, 0.3, 1.5, False]] * (1 + 2 + 12)


def test_stress_measures_the_variants(tiny_run: Path, corpus: Any) -> None:
    translator = dragoman.Translator.load(tiny_run)
    found = dragoman.stress(translator, src=corpus.valid_src, ref=corpus.valid_tgt, quiet=True)
    wanted = variants(_lines(corpus.valid_src), _lines(corpus.valid_tgt), "en", "de")
    assert [one.name for one in found] == [variant.name for variant in wanted]
    assert found[0].name == CLEAN
    for one, variant in zip(found, wanted, strict=True):
        hyps = translator.translate(variant.sources)
        assert one.lines == len(hyps)
        if variant.references is not None:
            texts = [hyp.text for hyp in hyps]
            caseless = variant.caseless
            by_bleu = bleu(texts, variant.references, "de", lowercase=caseless).value
            by_chrf = chrf(texts, variant.references, lowercase=caseless).value
            assert (one.bleu, one.chrf) == pytest.approx((by_bleu, by_chrf))
    other = dragoman.stress(translator, src=corpus.valid_src, ref=corpus.valid_tgt, quiet=True, noise_seed=2)
    assert other[:4] == found[:4]
    assert other[4] != found[4]


def test_a_run_of_unknown_language_is_stressed_in_that_of_its_references(
    tiny_run: Path, corpus: Any, tmp_path: Path
) -> None:
    bundle = Translator.load(tiny_run).bundle
    data = bundle.config.data.model_copy(update={"tgt_lang": None})
    unknown = Translator(bundle._replace(config=bundle.config.model_copy(update={"data": data})))
    (tmp_path / "ref.zh").write_text("".join(f"他在{i}年买了 USB 盘。\n" for i in range(20)), encoding="utf-8")
    files: dict[str, Any] = {"src": corpus.valid_src, "ref": tmp_path / "ref.zh", "quiet": True}
    by_name = {score.name: score for score in dragoman.evaluate(unknown, **files).scores}
    assert "tok:zh" in by_name["BLEU"].signature
    clean = dragoman.stress(unknown, **files)[0]
    assert (clean.bleu, clean.chrf) == pytest.approx((by_name["BLEU"].value, by_name["chrF2"].value))


def test_systems_of_different_languages_are_not_compared_nor_translated(
    tiny_run: Path, corpus: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bundle = Translator.load(tiny_run).bundle
    data = bundle.config.data.model_copy(update={"tgt_lang": "fr"})
    other = Translator(bundle._replace(config=bundle.config.model_copy(update={"data": data})))
    monkeypatch.setattr(Translator, "translate", None)
    ref = shutil.copy(corpus.valid_tgt, tmp_path / "ref")  # whose name tells no language
    with pytest.raises(ConfigError, match=r"into de and .* into fr: compare systems of one language"):
        dragoman.compare(tiny_run, other, src=corpus.valid_src, ref=ref, quiet=True)
    (tmp_path / "hyp").write_text("Hund\n", encoding="utf-8")
    with pytest.raises(DataError, match="hyp has 1 lines but"):
        dragoman.compare(tiny_run, tmp_path / "hyp", src=corpus.valid_src, ref=corpus.valid_tgt, quiet=True)


@pytest.mark.parametrize("run_first", [True, False])
def test_a_comparison_begins_its_list_of_warnings_whichever_system_is_translated(
    run_first: bool, tiny_run: Path, corpus: Any, tmp_path: Path
) -> None:
    listed = tmp_path / "warnings"
    listed.write_text("of an earlier command\n", encoding="utf-8")
    systems = (tiny_run, corpus.valid_tgt) if run_first else (corpus.valid_tgt, tiny_run)
    dragoman.compare(
        *systems, src=corpus.valid_src, ref=corpus.valid_tgt, quiet=True, n_samples=9, warnings=listed
    )  # fmt: skip
    assert "earlier" not in listed.read_text(encoding="utf-8")


def test_translations_in_two_languages_by_their_names_are_not_compared(
    tiny_run: Path, corpus: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a.de", "b.fr", "c.txt", "in.txt", "ref.txt"):
        shutil.copy(corpus.valid_tgt, name)
    files: dict[str, Any] = {"ref": "ref.txt", "quiet": True, "n_samples": 9}
    with pytest.raises(ConfigError, match=r"a.de: German \(de\) by its name, but b.fr is in .*or name the language"):
        dragoman.compare("a.de", "b.fr", **files)
    with pytest.raises(ConfigError, match=r"b.fr: French \(fr\) by its name, but .* translates into German"):
        dragoman.compare(tiny_run, "b.fr", src=corpus.valid_src, **files)
    assert dragoman.compare("a.de", "b.fr", to="de", **files).b.scores[0].value == pytest.approx(100)
    for other in ("c.txt", "in.txt", ["Hund"] * len(Path("ref.txt").read_text(encoding="utf-8").splitlines())):
        dragoman.compare("b.fr", other, **files)


def test_the_end_of_a_files_name_is_no_language_beside_what_a_run_says(
    tiny_run: Path, corpus: Any, tmp_path: Path
) -> None:
    (tmp_path / "test.dev").write_bytes(corpus.valid_tgt.read_bytes())
    files = {"src": corpus.valid_src, "ref": tmp_path / "test.dev"}
    found = dragoman.compare(tiny_run, corpus.valid_tgt, **files, quiet=True)
    assert found.b.scores[0].value == pytest.approx(100)
    assert found.a.scores == dragoman.evaluate(tiny_run, **files, quiet=True).scores


def test_empty_and_unequal_files_are_refused(tiny_run: Path, corpus: Any, tmp_path: Path) -> None:
    (tmp_path / "hyp").write_text("Hund\n", encoding="utf-8")
    with pytest.raises(DataError, match="hyp has 1 lines but"):
        dragoman.compare(corpus.valid_tgt, tmp_path / "hyp", ref=corpus.valid_tgt, quiet=True)
    with pytest.raises(ConfigError, match="with --src"):
        dragoman.compare(corpus.valid_tgt, tiny_run, ref=corpus.valid_tgt, quiet=True)


def test_a_pipe_cannot_be_read_for_each_of_two(corpus: Any, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(DataError, match="pipe: a pipe, but it is read more than once"):
        dragoman.compare(corpus.valid_tgt, corpus.valid_tgt, ref=tmp_path / "pipe", quiet=True)


def test_what_the_guard_did_is_counted(tiny_run: Path) -> None:
    translator = dragoman.Translator.load(tiny_run)
    texts = [
        "THE DOG SEES A CAT",
        "XYZ 17 %%% QQQ",
        "zzz zzz zzz zzz",
        "the dog sees a cat",
        "@@@@ !!!! ????",
        "9 8 7 6 5 4 3",
    ]
    guarded, plain = translator.translate(texts), translator.translate(texts, guard=False)
    touched = [one for one in guarded if one.notes]
    assert touched  # a model of a toy language loses its way here
    assert all(is_guarded(one) for one in touched)
    assert not any(is_guarded(one) for one in plain)
    assert all(is_guarded(one) for one, other in zip(guarded, plain, strict=True) if one.text != other.text)


def test_translations_may_come_through_a_pipe(corpus: Any, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(target=lambda: (tmp_path / "pipe").write_bytes(corpus.valid_tgt.read_bytes()))
    writer.start()
    found = dragoman.evaluate(tmp_path / "pipe", ref=corpus.valid_tgt, quiet=True)
    writer.join()
    assert found.scores[0].value == pytest.approx(100)


def test_a_test_set_whose_sides_are_one_file_is_refused_as_a_table_and_else_named(
    tiny_run: Path, corpus: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sides = zip(_lines(corpus.valid_src), _lines(corpus.valid_tgt), strict=True)
    table = tmp_path / "pairs.tsv"
    table.write_text("".join("\t".join(pair) + "\n" for pair in sides), encoding="utf-8")
    with pytest.raises(DataError, match=r"pairs\.tsv is a table, and source and references are the same: .* cut -f1"):
        dragoman.evaluate(tiny_run, src=table, ref=table)
    with pytest.raises(DataError, match="is a table"):
        dragoman.compare(tiny_run, tiny_run, src=table, ref=[corpus.valid_tgt, table])
    text = shutil.copy(corpus.valid_src, tmp_path / "text")
    dragoman.evaluate(tiny_run, src=text, ref=text)
    assert f"{text}: the same text as the source; is it a file of references?" in capsys.readouterr().err
    dragoman.evaluate(tiny_run, src=corpus.valid_src, ref=corpus.valid_tgt)
    assert "the same text as the source" not in capsys.readouterr().err


def test_options_of_translating_are_refused_for_translations_and_to_is_their_language() -> None:
    hyps, refs = ["他在2016年买了手机。"] * 2, ["他在2016年买了一部手机。"] * 2
    with pytest.raises(ConfigError, match="beam_size has no effect on texts that are translated already"):
        dragoman.evaluate(hyps, ref=refs, beam_size=9, quiet=True)
    with pytest.raises(ConfigError, match="src has no effect on texts that are translated already"):
        dragoman.evaluate(hyps, src=["He bought a phone."] * 2, ref=refs, quiet=True)
    with pytest.raises(ConfigError, match="glossary has no effect"):
        dragoman.compare(hyps, refs, ref=refs, glossary={"a": "b"}, quiet=True)
    for lang, tokenizer in (("zh", "tok:zh"), ("ja", "tok:char"), (None, "tok:zh")):
        found = dragoman.evaluate(hyps, ref=refs, to=lang, quiet=True, metrics=["bleu"])
        assert tokenizer in found.scores[0].signature


def test_the_language_of_translations_is_that_of_to_or_of_their_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("newstest2019.SYS.6862.en-de", "out.it", "out.mt", "out.zh"):
        Path(name).write_text("Ein Hund rennt durch den Wald.\n", encoding="utf-8")
    Path("ref.de").write_text("Ein Hund rennt durch den Wald.\n", encoding="utf-8")
    Path("ref.txt").write_text("他买了手机。\n", encoding="utf-8")
    for name in ("newstest2019.SYS.6862.en-de", "out.it"):
        with pytest.raises(ConfigError, match="or name the language with --to if a name misleads"):
            dragoman.evaluate(name, ref="ref.de", quiet=True)
        assert dragoman.evaluate(name, ref="ref.de", to="de", quiet=True).scores[0].value == pytest.approx(100)
    with pytest.raises(ConfigError, match=r"ref.de: German \(de\) by its name, but --to says French"):
        dragoman.evaluate("out.mt", ref="ref.de", to="fr", quiet=True)
    assert "tok:zh" in dragoman.evaluate("out.zh", ref="ref.txt", quiet=True).scores[0].signature
    assert (
        "tok:zh" in dragoman.compare("out.zh", "out.zh", ref="ref.txt", quiet=True, n_samples=9).a.scores[0].signature
    )
    pytest.importorskip("sacremoses")
    capsys.readouterr()
    dragoman.evaluate(["l'homme"], ref=["l'homme"], old_style=True)
    assert "the target language is not known: old-style BLEU takes Moses' rules for English" in capsys.readouterr().err


def test_mt_is_machine_translation_unless_references_or_to_say_maltese(
    tiny_run: Path, corpus: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("hyp.mt", "HYP.MT", "other.mt.txt", "hyp.zh", "hyp.sys", "ref.zh", "ref.txt", "ref.mt"):
        Path(name).write_text("他在2016年买了 USB 盘。\n", encoding="utf-8")

    def tokenizer(*systems: str, ref: Any, **changes: Any) -> str:
        how: dict[str, Any] = {"ref": ref, "quiet": True, "metrics": ["bleu"], **changes}
        two = len(systems) == 2
        found = dragoman.compare(*systems, n_samples=9, **how).a if two else dragoman.evaluate(*systems, **how)
        return found.scores[0].signature.partition("|tok:")[2].partition("|")[0]

    for name in ("hyp.mt", "HYP.MT", "other.mt.txt", "hyp.sys"):  # sys is a code too, of a language of Chad
        assert tokenizer(name, ref="ref.zh") == tokenizer(name, "hyp.zh", ref="ref.zh") == "zh"
        assert tokenizer(name, ref="ref.zh", to="zh") == "zh"
    assert tokenizer("hyp.mt", ref="ref.txt") == tokenizer("hyp.mt", "hyp.zh", ref="ref.txt") == "zh"
    assert tokenizer("hyp.mt", ref="ref.mt") == tokenizer("hyp.mt", ref="ref.txt", to="mt") == "char"
    for names in (("hyp.zh",), ("hyp.mt", "hyp.zh"), ("hyp.zh", "hyp.mt")):
        with pytest.raises(ConfigError, match=r"ref.mt: Maltese \(mt\) by its name, but hyp.zh is in Chinese"):
            tokenizer(*names, ref="ref.mt")
    with pytest.raises(ConfigError, match=r"ref.mt: Maltese \(mt\) by its name, but ref.txt is in Chinese"):
        tokenizer("ref.txt", ref=["ref.zh", "ref.mt"])
    shutil.copy(corpus.valid_tgt, "out.mt")
    found = dragoman.compare(tiny_run, "out.mt", src=corpus.valid_src, ref=corpus.valid_tgt, quiet=True, n_samples=9)
    assert found.b.scores[0].value == pytest.approx(100)


def test_stress_refuses_sides_that_are_swapped_as_evaluate_does(tiny_run: Path, corpus: Any, tmp_path: Path) -> None:
    src, ref = tmp_path / "test.de", tmp_path / "test.en"
    shutil.copy(corpus.valid_tgt, src)
    shutil.copy(corpus.valid_src, ref)
    with pytest.raises(ConfigError, match="swap the two files"):
        dragoman.stress(tiny_run, src=src, ref=ref, quiet=True)
