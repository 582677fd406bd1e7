"""A translator in one HTML file computes, searches and cuts as ours does; node runs what is in the file."""

from __future__ import annotations

import base64
import dataclasses
import io
import json
import random
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sentencepiece
import torch

import dragoman
from dragoman.bundle import Bundle, load_bundle
from dragoman.config import DecodeConfig, ModelConfig, TokenizerConfig
from dragoman.data.tokenizer import EOS_ID, Tokenizer
from dragoman.decoding.request import SearchSettings, Segment
from dragoman.errors import BundleError, ConfigError, DecodeError
from dragoman.explanation.explain import explain
from dragoman.explanation.page import trace_data
from dragoman.reference import transformer as numpy_transformer
from dragoman.toolkits.page import write as page_writer
from dragoman.toolkits.page.search import Page
from dragoman.toolkits.page.write import why_not, write
from dragoman.translation.translator import Translator
from model_variants import VARIANTS
from searching import search_all

pytestmark = pytest.mark.skipif(shutil.which("node") is None, reason="needs node")

CPU = torch.device("cpu")
SIZES = dict(d_model=24, n_heads=3, d_ff=40, n_encoder_layers=2, n_decoder_layers=2, max_len=60)
FIELDS = {name: fields for name, fields in VARIANTS.items()
          if fields.get("n_encoder_layers", 2) and "pad_id" not in fields}  # fmt: skip
PAIRS = [([9, 7, 300], [5, 31, 8, 100]), ([4] * 21, [11]), ([8], list(range(4, 30))), ([44, 10, 6, 7, 8, 9], [])]

Make = Callable[..., Bundle]


def paged(bundle: Bundle, folder: Path, quantization: str = "float32") -> Page:
    folder.mkdir(exist_ok=True)
    write(bundle, folder, quantization)
    return Page(folder / "translator.html")


def numpy_logits(bundle: Bundle, src: list[int], tgt: list[int]) -> np.ndarray:
    params = {name: tensor.double().numpy() for name, tensor in bundle.model.state_dict().items()}
    config = bundle.model.config.model_dump()
    logits, _ = numpy_transformer.forward(params, config, np.array([[*src, EOS_ID]]), np.array([[2, *tgt]]))
    return logits[0]


@pytest.mark.parametrize("fields", FIELDS.values(), ids=list(FIELDS))
def test_a_model_computes_the_same_there(make: Make, tmp_path: Path, fields: dict[str, Any]) -> None:
    bundle = make(**fields)
    assert why_not(bundle.model.config) == ""
    (found,) = paged(bundle, tmp_path).answers([{"task": "read", "pairs": PAIRS, "logits": True}])
    for (src, tgt), one in zip(PAIRS, found, strict=True):
        np.testing.assert_allclose(one["logits"], numpy_logits(bundle, src, tgt), atol=1e-4)


DECODES = [
    dict(beam_size=1),
    dict(beam_size=4),
    dict(beam_size=3, length_penalty=1.0, length_penalty_form="power"),
    dict(beam_size=5, length_penalty=0.0),
    dict(beam_size=2, patience=1.0, length_penalty=2.0),
]


@pytest.mark.parametrize("decode", DECODES, ids=str)
def test_the_search_is_ours(make: Make, tmp_path: Path, decode: dict[str, Any]) -> None:
    """40 random sources each; ids may differ only where scores are as good as equal."""
    bundle, chance = make(), random.Random(1)
    sources = [[chance.randrange(4, bundle.model.config.src_vocab_size) for _ in range(chance.randrange(1, 15))]
               for _ in range(40)]  # fmt: skip
    config = DecodeConfig(max_extra_tokens=5, **decode)
    n_best = config.beam_size
    ours = search_all(bundle.model, sources, config, CPU, n_best)
    settings = SearchSettings(decode=config, n_best=n_best)
    told: list[int] = []
    content = bundle._replace(config=bundle.config.model_copy(update={"decode": config}))
    theirs = paged(content, tmp_path).search(
        [Segment(ids=ids) for ids in sources], settings, progress=lambda done, of, what: told.append(done)
    )
    assert told == list(range(1, 41))
    different = 0
    for one, other in zip(ours, theirs.hypotheses, strict=True):
        assert [h.score for h in other] == pytest.approx([h.score for h in one], rel=1e-6, abs=1e-5)
        different += [h.ids for h in one] != [h.ids for h in other]
    assert different <= 1


def test_200_sentences_of_a_trained_model_are_translated_alike(
    tiny_run: Path, tmp_path: Path, toy_sentences: Callable[[int, int], list[tuple[str, str]]]
) -> None:
    bundle = load_bundle(tiny_run)
    page, lines = paged(bundle, tmp_path), [src for src, _ in toy_sentences(200, 7)]
    ids = bundle.src_tokenizer.encode(lines)
    assert not any(page.cut_differently(lines, ids))
    for beam_size in (1, 4):
        decode = dataclasses.replace(bundle.config.decode, beam_size=beam_size)
        ours = search_all(bundle.model, ids, decode, CPU)
        theirs = page.search([Segment(ids=row) for row in ids], SearchSettings(decode=decode)).hypotheses
        assert sum(a[0].ids == b[0].ids for a, b in zip(ours, theirs, strict=True)) == 200
        (texts,) = page.answers([{"task": "decode", "rows": [one[0].ids for one in theirs], "side": "tgt"}])
        assert texts == bundle.tgt_tokenizer.decode([one[0].ids for one in ours])


def test_rounded_weights_stay_near(make: Make, tmp_path: Path) -> None:
    bundle = make()
    whole, rounded = paged(bundle, tmp_path / "a"), paged(bundle, tmp_path / "b", "int8")
    assert rounded.file.stat().st_size < whole.file.stat().st_size
    one, other = (np.concatenate(page.read(PAIRS)) for page in (whole, rounded))
    assert 1e-4 < np.abs(one - other).max() < 1


# --- subwords ---------------------------------------------------------------------------------------------------------

LETTERS = "abcdeghinorst  ABC.,!?'-0123456789äöüßéñ中文字的鱼😀\u0301\u200b\u00a0\t\u2581\ufeffабв𝒳"


def texts(n: int, seed: int) -> list[str]:
    chance = random.Random(seed)
    words = ["the dog", "sees", " a cat ", "houses", "rennt", "schlaeft", "<s>", "<0x41>", "</s>", "<unk>"]
    return [
        "".join(chance.choice(words) if chance.random() < 0.3 else chance.choice(LETTERS)
                for _ in range(chance.randrange(30)))
        for _ in range(n)
    ]  # fmt: skip


@pytest.mark.parametrize("byte_fallback", [True, False])
@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_texts_are_cut_as_sentencepiece_cuts_them(
    tiny_run: Path, tmp_path: Path, corpus: Any, kind: str, byte_fallback: bool
) -> None:
    lines = corpus.src.read_text().split("\n") + corpus.tgt.read_text().split("\n") + texts(300, 1)
    tokenizer = Tokenizer.learn(lines, TokenizerConfig(kind=kind, vocab_size=500, byte_fallback=byte_fallback))
    bundle = load_bundle(tiny_run)._replace(src_tokenizer=tokenizer, tgt_tokenizer=tokenizer)
    page, asked = paged(bundle, tmp_path), [text for text in texts(1500, 2) if "\n" not in text] + lines
    (found,) = page.answers([{"task": "encode", "texts": asked, "side": "src"}])
    assert found == tokenizer.encode(asked)
    chance = random.Random(3)
    rows = [[chance.randrange(tokenizer.vocab_size) for _ in range(chance.randrange(12))] for _ in range(1500)]
    (back,) = page.answers([{"task": "decode", "rows": [*found, *rows], "side": "tgt"}])
    assert back == tokenizer.decode([*found, *rows])


NORMALIZERS = ("identity", "nmt_nfkc", "nfkc", "nmt_nfkc_cf", "nfkc_cf")
SWITCHES = [{}, dict(remove_extra_whitespaces=False), dict(add_dummy_prefix=False)]


@pytest.mark.parametrize(  # each pair of name, switches and kind of model once
    ("name", "switches", "model_type"),
    [(name, switches, ("bpe", "unigram")[(i + j) % 2]) for i, name in enumerate(NORMALIZERS)
     for j, switches in enumerate(SWITCHES)],
    ids=str,
)  # fmt: skip
def test_texts_are_normalised_as_sentencepiece_does_it(
    tiny_run: Path, tmp_path: Path, corpus: Any, name: str, switches: dict[str, bool], model_type: str
) -> None:
    lines = corpus.src.read_text().split("\n") + texts(300, 1)
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(line.replace("\0", "") for line in lines), model_writer=model, model_type=model_type,
        vocab_size=500, hard_vocab_limit=False, byte_fallback=True, normalization_rule_name=name, pad_id=0, unk_id=1,
        bos_id=2, eos_id=3, minloglevel=2, **switches,
    )  # fmt: skip
    tokenizer = Tokenizer(model.getvalue())
    bundle = load_bundle(tiny_run)._replace(src_tokenizer=tokenizer, tgt_tokenizer=tokenizer)
    chance = random.Random(4)
    odd = ["".join(chr(chance.choice(ODD)) for _ in range(9)) for _ in range(1000)]
    page, asked = paged(bundle, tmp_path), [*odd, *texts(500, 5), "", " ", "\u3000", "　ﬁ①ｶﾞ Å  "]
    (found,) = page.answers([{"task": "encode", "texts": asked, "side": "src"}])
    assert found == tokenizer.encode(asked)
    rows = [[chance.randrange(tokenizer.vocab_size) for _ in range(chance.randrange(12))] for _ in range(500)]
    (back,) = page.answers([{"task": "decode", "rows": [*found, *rows], "side": "tgt"}])
    assert back == tokenizer.decode([*found, *rows])


ODD = [code for first, last in ((32, 0x250), (0x300, 0x36F), (0x1E00, 0x2200), (0x2460, 0x24FF), (0x3000, 0x3400),
                                (0xAC00, 0xAC80), (0xF900, 0xFB4F), (0xFE00, 0xFFFD), (0x1D400, 0x1D800), (32, 33))
       for code in range(first, last)]  # fmt: skip

# --- what the page shows ----------------------------------------------------------------------------------------------


def unpacked(view: dict[str, Any]) -> dict[str, np.ndarray]:
    return {
        kind: np.frombuffer(base64.b64decode(one.pop("weights")), "<u2").reshape(one["shape"]) / 65535
        for kind, one in view["kinds"].items()
    }


ODD_TEXT = (
    "\ufeff the\u00a0dog  doesn't se\u00ade ３ ｃats\u200b - cafe\u0301 a\u0302\u0323x "
    "한\u1112\u1161\u11ab \u0915\u093c 中文!\u2028"
)


@pytest.mark.parametrize(
    ("text", "prefix"),
    [(text, prefix) for text in ("the dog doesn't see 3 cats - 中文!", ODD_TEXT) for prefix in ((), (5,), (5, EOS_ID))],
    ids=ascii,
)
def test_a_trace_is_that_of_explain(tiny_run: Path, tmp_path: Path, text: str, prefix: tuple[int, ...]) -> None:
    translator = Translator.load(tiny_run)
    want = json.loads(json.dumps(trace_data(explain(translator, text, prefix=prefix))))
    page = paged(translator.bundle, tmp_path)
    (found,) = page.answers([{"task": "trace", "text": text, "prefix": prefix}])
    ours, theirs = unpacked(want["views"][-1]), unpacked(found["views"][-1])
    for kind, weights in ours.items():
        np.testing.assert_allclose(theirs[kind], weights, atol=2 / 65535)
    for one, other in zip(want.pop("steps"), found.pop("steps"), strict=True):
        assert one.pop("probability") == pytest.approx(other.pop("probability"), abs=1e-5)
        assert [share for _, share in one.pop("best")] == pytest.approx([s for _, s in other.pop("best")], abs=1e-5)
        assert one == other
    assert found == want


def test_what_is_not_seen_is_no_sentence(tiny_run: Path, tmp_path: Path) -> None:
    page, text = paged(load_bundle(tiny_run), tmp_path), "the house\n\u200b\n\u00ad \ufeff\nthe dog"
    (found,) = page.answers([{"task": "translate", "text": text}])
    assert found.split("\n")[1:3] == ["\u200b", "\u00ad \ufeff"]


def test_lines_and_the_spaces_around_sentences_stay(tiny_run: Path, tmp_path: Path) -> None:
    page = paged(load_bundle(tiny_run), tmp_path)
    text = "  the dog sees. a cat!  the man.\n\n \t\nthe house"
    (found,) = page.answers([{"task": "translate", "text": text}])
    rows = found.split("\n")
    assert rows[1:3] == ["", " \t"]
    assert re.match(r"  \S", rows[0])
    translator = Translator.load(tiny_run)
    assert rows[3] == translator.translate(["the house"], guard=False)[0].text
    long = " ".join(["the dog sees a cat"] * 100)  # more than the model has learned to read: in parts
    (parts,), (found,) = (
        page.answers([{"task": "lines", "text": long}]),
        page.answers([{"task": "translate", "text": long}]),
    )
    assert "".join(one.get("text", one.get("gap")) for one in parts[0]) == long
    sizes = [len(ids) for ids in translator.src_tokenizer.encode([one["text"] for one in parts[0] if "text" in one])]
    assert len(sizes) > 4
    assert max(sizes) <= 2 * translator.usual_tokens
    assert found.count(" ") >= len(sizes) - 1
    (parts,) = page.answers([{"task": "lines", "text": "x😀" * 200}])
    assert "".join(one["text"] for one in parts[0]) == "x😀" * 200
    assert "\ufffd" not in json.dumps(parts, ensure_ascii=False).encode("utf-16", "surrogatepass").decode("utf-16")


@pytest.mark.parametrize(
    ("tgt_lang", "text", "expected"),
    [
        ("de", "the dog。the cat。  the man", ["the dog。", " ", "the cat。", "  ", "the man"]),
        ("zh", " The dog. The cat!\u3000The man. ", [" ", "The dog.", "", "The cat!", "\u3000", "The man.", " "]),
    ],
)
def test_between_sentences_stands_what_the_target_language_has(
    make: Make, tmp_path: Path, tgt_lang: str, text: str, expected: list[str]
) -> None:
    """As in ``assemble``: one space where the source has none, and none where the target language has none."""
    bundle = make()
    data = bundle.config.data.model_copy(update={"tgt_lang": tgt_lang})
    page = paged(bundle._replace(config=bundle.config.model_copy(update={"data": data})), tmp_path)
    ((parts,),) = page.answers([{"task": "lines", "text": text}])
    assert "".join(part.get("text", part.get("gap")) for part in parts) == text
    written = [piece for part in parts for piece in (part["space"], part.get("text", ""))]
    assert "".join(written) == "".join(expected)


@pytest.mark.parametrize("src_lang", ["zh_CN", "pt_BR", "en_US.UTF-8", None])
def test_sentences_are_found_whatever_the_code_of_their_language(
    make: Make, tmp_path: Path, src_lang: str | None
) -> None:
    bundle = make()
    data = bundle.config.data.model_copy(update={"src_lang": src_lang})
    page = paged(bundle._replace(config=bundle.config.model_copy(update={"data": data})), tmp_path)
    ((parts,),) = page.answers([{"task": "lines", "text": "The dog. The cat."}])
    assert [part["text"] for part in parts if "text" in part] == ["The dog.", "The cat."]


def test_what_the_page_cannot_hold_is_refused(make: Make, tiny_run: Path, tmp_path: Path) -> None:
    for fields, said in (
        (dict(n_encoder_layers=0), "it has no model without encoder"),
        (dict(architecture="gru"), "it has Transformers only, and here model.architecture is gru"),
    ):
        sizes = dict(src_vocab_size=9, tgt_vocab_size=9)
        assert said in why_not(ModelConfig(**{**sizes, **fields}))
    words = Tokenizer.learn_words(["S NP VP"])
    bundle = load_bundle(tiny_run)
    with pytest.raises(ConfigError, match="cannot be written for an HTML page: it is a parser"):
        write(bundle._replace(tgt_tokenizer=words), tmp_path, "float32")
    assert list(tmp_path.iterdir()) == []


def test_a_page_of_an_earlier_version_has_no_sums(make: Make, tmp_path: Path) -> None:
    page = paged(make(), tmp_path)
    text = re.sub(r'<script id="sums">.*?</script>', "", page.file.read_text(encoding="utf-8"), flags=re.DOTALL)
    page.file.write_text(text.replace("SUMS", "NONE"), encoding="utf-8")
    assert len(list(page.answers([{"task": "encode", "texts": ["a dog"], "side": "src"}]))) == 1


def test_a_damaged_model_is_one_clear_line(make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bundle = make()
    tensors, weights = page_writer.packed(bundle, "float32")
    nothing = base64.b64encode(np.full_like(np.frombuffer(base64.b64decode(weights), "<f4"), np.nan)).decode()
    for damaged, error, said in (
        (nothing, DecodeError, "not finite"),
        (weights[:-400], BundleError, "translator.html: its weights are not whole; export it again"),
    ):
        # written so: the sums of the page are those of the damaged weights
        monkeypatch.setattr(page_writer, "packed", lambda *_, damaged=damaged: (tensors, damaged))
        page = paged(bundle, tmp_path)
        with pytest.raises(error, match=said):
            page.search([Segment(ids=[5])], SearchSettings(decode=DecodeConfig()))


def test_the_certificate_of_a_page(tiny_run: Path, tmp_path: Path, corpus: Any) -> None:
    shutil.copytree(tiny_run / "bundle", tmp_path / "run/bundle")
    folder = dragoman.export(tmp_path / "run", "page")
    asked = dict(src=corpus.valid_src, ref=corpus.valid_tgt, quiet=True, device="cpu")
    whole = dragoman.certify(tmp_path / "run", folder, **asked)
    assert (whole.export, whole.n_identical, whole.n_cut_differently, whole.why) == ("page", 20, 0, ())
    assert 0 < whole.most_nats < 1e-4
    assert all(one.difference == 0 for one in whole.comparisons)
    assert json.loads((folder / "certificate.json").read_text())["versions"].keys() == {
        "dragoman", "node", "torch", "sacrebleu"
    }  # fmt: skip
    file = dragoman.export(tmp_path / "run", "page", tmp_path / "alone.html", "int8")
    rounded = dragoman.certify(tmp_path / "run", file, **asked)
    assert rounded.why == ("B's numbers are rounded to int8",)
    assert whole.most_nats < rounded.most_nats < 1
    assert rounded.n_bytes[1] == file.stat().st_size
    assert json.loads((tmp_path / "alone.certificate.json").read_text()) == json.loads(rounded.to_json())
    dragoman.certify(tmp_path / "run", file, **asked)  # replaces it
    (tmp_path / "alone.certificate.json").write_text('{"subject": "CN=example.org"}', encoding="utf-8")
    with pytest.raises(ConfigError, match=r"alone.certificate.json: .* which is not one of dragoman; move it away"):
        dragoman.certify(tmp_path / "run", file, **asked)
    assert "example.org" in (tmp_path / "alone.certificate.json").read_text()
    (tmp_path / "other.html").write_text("<p>a page</p>", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"other.html: is no page of `dragoman export --format page`"):
        dragoman.certify(tmp_path / "run", tmp_path / "other.html", **asked)


def test_node_may_be_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(ConfigError, match="comparing a page needs node, which is not installed"):
        Page(tmp_path / "translator.html")


def test_the_file_has_no_address_of_another_host(tiny_run: Path, tmp_path: Path) -> None:
    file = dragoman.export(tiny_run, "page", tmp_path / "x.html", "int8")
    text = file.read_text(encoding="utf-8")
    assert [path.name for path in tmp_path.iterdir()] == ["x.html"]
    code = re.sub(r"^\s*(//|/?\*).*$", "", text, flags=re.MULTILINE)
    assert set(re.findall(r"https?://[\w./-]+", code)) <= {"http://www.w3.org/2000/svg"}
    assert not re.search(r"\b(src|href)\s*=\s*\"", code)
