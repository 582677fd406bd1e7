"""A trained model on disk: read exactly, or refused before anything large is made."""

from __future__ import annotations

import gc
import os
import pickle
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dragoman.bundle import find_bundle, load_bundle
from dragoman.config import ModelConfig
from dragoman.errors import BundleError, ConfigError
from dragoman.model.build import build
from dragoman.model.transformer import Transformer
from dragoman.model.weights import adopt, load_into, read_weights, save_weights, shapes, untied
from dragoman.translation.translator import Translator
from model_variants import CHOICES

Reseal = Callable[..., Path]


def test_a_run_and_its_bundle_load_alike(tiny_run: Path) -> None:
    run, bundle = load_bundle(tiny_run), load_bundle(tiny_run / "bundle")
    stored = read_weights(tiny_run / "bundle/model.safetensors")
    for loaded in (run, bundle):
        torch.testing.assert_close(untied(loaded.model), stored, rtol=0, atol=0)
        assert not loaded.model.training
        assert loaded.tgt_tokenizer is loaded.src_tokenizer.for_targets
    assert run.config == bundle.config
    assert (run.manifest["src_lang"], run.manifest["tgt_lang"], run.manifest["format"]) == ("en", "de", 1)


def test_of_tied_tensors_only_the_first_is_stored_and_loading_ties_them_again(tiny_run: Path) -> None:
    names = set(read_weights(tiny_run / "bundle/model.safetensors"))
    assert "src_embed.weight" in names
    assert not {"tgt_embed.weight", "generator.weight"} & names
    model = load_bundle(tiny_run).model
    assert model.src_embed.weight is model.tgt_embed.weight is model.generator.weight


@pytest.mark.parametrize("share", CHOICES["share_embeddings"])
def test_weights_survive_the_disk_in_every_sharing(tmp_path: Path, share: str) -> None:
    sizes: dict[str, Any] = dict(d_model=6, n_heads=2, d_ff=7, n_encoder_layers=1, n_decoder_layers=2)
    config = ModelConfig(**sizes, share_embeddings=share, src_vocab_size=11, tgt_vocab_size=11)
    old, new = Transformer(config), Transformer(config)
    save_weights(tmp_path / "x", untied(old))
    load_into(new, read_weights(tmp_path / "x", shapes(config)))
    torch.testing.assert_close(new.state_dict(), old.state_dict(), rtol=0, atol=0)
    assert new.state_dict().keys() == old.state_dict().keys()


@pytest.mark.parametrize("share", CHOICES["share_embeddings"])
@pytest.mark.parametrize("variant", [{}, {"positions": "learned", "norm": "pre"}, {"generator_bias": True}])
def test_adopted_weights_equal_copied_ones_and_are_not_copied(share: str, variant: dict[str, Any]) -> None:
    sizes: dict[str, Any] = dict(d_model=6, n_heads=2, d_ff=7, n_encoder_layers=1, n_decoder_layers=2, **variant)
    config = ModelConfig(**sizes, share_embeddings=share, src_vocab_size=11, tgt_vocab_size=11)
    weights = {name: tensor.clone() for name, tensor in untied(Transformer(config)).items()}
    copied, adopted = Transformer(config), Transformer(config)
    load_into(copied, weights)
    adopt(adopted, weights)
    torch.testing.assert_close(adopted.state_dict(), copied.state_dict(), rtol=0, atol=0)
    ids = torch.tensor([[4, 5, 6, 3]])
    assert torch.equal(adopted.eval()(ids, ids), copied.eval()(ids, ids))
    assert untied(adopted).keys() == weights.keys()  # tied as before
    assert all(tensor.data_ptr() == weights[name].data_ptr() for name, tensor in untied(adopted).items())
    with pytest.raises(KeyError):
        adopt(adopted, {"src_embed.wight": torch.zeros(11, 6)})


@pytest.mark.parametrize("name", ["config.yaml", "joint.spm", "model.safetensors"])
@pytest.mark.parametrize("content", [b"", b"garbage"])
def test_a_damaged_file_is_named_before_what_came_of_it(
    tiny_run: Path, tmp_path: Path, name: str, content: bytes
) -> None:
    shutil.copytree(tiny_run / "bundle", tmp_path / "b")
    (tmp_path / "b" / name).write_bytes(content)
    with pytest.raises(BundleError, match=rf"b/{name}: damaged \(its SHA-256 is not the manifest's\)"):
        load_bundle(tmp_path / "b")


def test_a_bit_that_only_the_sum_notices_is_noticed(tiny_run: Path, tmp_path: Path) -> None:
    shutil.copytree(tiny_run / "bundle", tmp_path / "b")
    path = tmp_path / "b/model.safetensors"
    whole = path.read_bytes()
    path.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    read_weights(path, read_weights(tiny_run / "bundle/model.safetensors"))  # as far as its form goes it is whole
    with pytest.raises(BundleError, match="damaged"):
        load_bundle(tmp_path / "b")


def test_loading_draws_no_random_numbers_and_does_not_load_the_compiler(tiny_run: Path) -> None:
    before = torch.get_rng_state()
    load_bundle(tiny_run)
    assert torch.equal(torch.get_rng_state(), before)
    script = "import sys; from dragoman import Translator; Translator.load(sys.argv[1], 'cpu').translate(['a dog']); "
    heavy = ("torch._dynamo", "sympy", "sacrebleu", "matplotlib", "ctranslate2")
    script += f"print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script, str(tiny_run)], capture_output=True, text=True)
    assert done.stdout == "[]\n", done.stderr


@pytest.fixture
def default_dtype(request: pytest.FixtureRequest) -> Iterator[torch.dtype]:
    """Set the dtype that torch gives new tensors during the test, as a program around ours may do."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(request.param)
    yield request.param
    torch.set_default_dtype(before)


@pytest.mark.parametrize("architecture", get_args(ModelConfig.model_fields["architecture"].annotation))
@pytest.mark.parametrize("default_dtype", [torch.float64, torch.bfloat16], indirect=True)
def test_models_are_built_in_float32_whatever_the_default_of_torch(
    default_dtype: torch.dtype, architecture: str
) -> None:
    fields: dict[str, Any] = dict(architecture=architecture, d_model=6, d_ff=7, generator_bias=True)
    fields |= dict(n_heads=2) if architecture == "transformer" else {}
    config = ModelConfig(**fields, src_vocab_size=11, tgt_vocab_size=11)
    built = build(config).state_dict()
    assert {tensor.dtype for tensor in (*built.values(), *shapes(config).values())} == {torch.float32}
    with pytest.raises(ConfigError):
        build(config.model_copy(update={"architecture": "none"}))
    assert torch.get_default_dtype() == torch.empty(1).dtype == default_dtype


@pytest.mark.parametrize("default_dtype", ["float64", "bfloat16"])
def test_a_bundle_translates_alike_whatever_the_default_of_torch(default_dtype: str, tiny_run: Path) -> None:
    texts = ["the dog sees a red house", "a man", ""]
    # in a process of its own: what torch can do is tried once and remembered, and some of it fails with this default
    script = "import sys, torch; torch.set_default_dtype(getattr(torch, sys.argv[1])); "
    script += "from dragoman import Translator; "
    script += "print(*Translator.load(sys.argv[2], 'cpu').translate(sys.argv[3:]), sep='\\n')"
    command = [sys.executable, "-c", script, default_dtype, str(tiny_run), *texts]
    done = subprocess.run(command, capture_output=True, text=True)
    here = Translator.load(tiny_run, "cpu").translate(texts)
    assert done.stdout == "".join(f"{translation}\n" for translation in here), done.stderr


def test_sizes_that_are_impossible_are_refused_before_memory_is_asked_for(reseal: Reseal, tiny_run: Path) -> None:
    config = (tiny_run / "bundle/config.yaml").read_text(encoding="utf-8")
    huge = config.replace("d_model: 48", "d_model: 65536").replace("d_ff: 64", "d_ff: 1048576")
    with pytest.raises(BundleError, match=r"model\.safetensors: .* is \(\d+, 48\), but the configuration says \("):
        load_bundle(reseal(config=huge.encode()))


@pytest.mark.parametrize(
    ("facts", "says"),
    [
        ({"format": 2}, "bundle format 2, this dragoman reads 1: upgrade it"),
        ({"format": None}, "bundle format None"),
        ({"format": True}, "bundle format True"),
        *[
            ({"usual_src_tokens": wrong}, f"usual_src_tokens must be {rule}, got .* in its manifest")
            for wrong, rule in (
                ("x", "a whole number"),
                (None, "a value"),
                ([1], "a whole number"),
                (0, "1 or more"),
                (True, "a whole number"),
                (2.5, "a whole number"),
            )
        ],
        ({"src_vocab_size": 7}, "its configuration cannot be used|subword models are not the ones"),
        ({"src_vocab_size": "many"}, "its configuration cannot be used"),
        ({"src_vocab_size": [3]}, "its configuration cannot be used"),
        ({"src_vocab_size": 10**30, "tgt_vocab_size": 10**30}, "its configuration cannot be used"),
        ({"src_vocab_size": 5000, "tgt_vocab_size": 5000}, "subword models are not the ones"),
    ],
)
def test_facts_that_do_not_fit_are_refused(reseal: Reseal, facts: dict[str, Any], says: str) -> None:
    with pytest.raises(BundleError, match=says):
        load_bundle(reseal(facts))


@pytest.mark.parametrize("name", ["config.yaml", "joint.spm", "model.safetensors"])
def test_a_file_that_the_manifest_does_not_have_is_not_read_be_it_a_pipe(
    name: str, reseal: Reseal, tiny_run: Path
) -> None:
    bundle = reseal(**{name.partition(".")[0]: None})
    os.mkfifo(bundle / name)
    with pytest.raises(BundleError, match=r"missing from this bundle|neither a run nor a bundle"):
        load_bundle(bundle)
    (bundle / name).unlink()
    shutil.copy(tiny_run / "bundle" / name, bundle)
    with pytest.raises(BundleError, match="missing from this bundle"):
        load_bundle(bundle)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("config", b""), ("config", b"model: ["), ("config", b"model: {d_model: -1}"), ("config", None),
        ("config", b"\xff"), ("config", b"!!python/object/apply:os.system ['true']"), ("joint", b""),
        ("joint", b"garbage" * 99), ("joint", None), ("model", None), ("model", b""), ("model", b"\0" * 7),
        ("model", (20 * 2**20).to_bytes(8, "little") + bytes(100)),
    ],
)  # fmt: skip
def test_a_file_that_is_missing_or_none_of_ours_is_one_clear_error(
    reseal: Reseal, name: str, content: bytes | None
) -> None:
    with pytest.raises(BundleError) as caught:
        load_bundle(reseal(**{name: content}))
    assert "resealed" in str(caught.value)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(st.data())
def test_mutated_safetensors_are_read_whole_or_refused(tiny_run: Path, tmp_path: Path, data: st.DataObject) -> None:
    whole = (tiny_run / "bundle/model.safetensors").read_bytes()
    expected = read_weights(tiny_run / "bundle/model.safetensors")
    n_header = 8 + int.from_bytes(whole[:8], "little")
    content = bytearray(whole)
    for _ in range(data.draw(st.integers(1, 3))):
        content[data.draw(st.integers(0, n_header - 1))] = data.draw(st.integers(0, 255))
    (tmp_path / "x").write_bytes(content)
    try:
        found = read_weights(tmp_path / "x", expected)
    except BundleError as error:
        assert str(tmp_path / "x") in str(error)  # noqa: PT017
    else:  # only spaces of the header, or the order of what is in it
        assert {name: tensor.shape for name, tensor in found.items()} == {n: t.shape for n, t in expected.items()}


def test_other_names_shapes_and_dtypes_are_refused(tmp_path: Path) -> None:
    path, good = tmp_path / "x", {"a": torch.zeros(2, 3), "b": torch.zeros(5)}
    for bad, says in (
        ({"a": good["a"]}, r"missing \['b'\], unexpected \[\]"),
        ({**good, "c": torch.zeros(1)}, r"missing \[\], unexpected \['c'\]"),
        ({**good, "a": torch.zeros(3, 2)}, r"a is \(3, 2\), but the configuration says \(2, 3\)"),
        ({**good, "b": torch.zeros(5, dtype=torch.float64)}, r"b is torch.float64, expected torch.float32"),
    ):
        save_weights(path, bad)
        with pytest.raises(BundleError, match=says):
            read_weights(path, good)
    save_weights(path, good)
    assert read_weights(path, good).keys() == good.keys()
    with pytest.raises(BundleError, match="nowhere"):
        read_weights(tmp_path / "nowhere")


def test_weights_in_memory_do_not_change_with_the_file(tiny_run: Path, tmp_path: Path) -> None:
    """A server goes on when its model's file is replaced or cut: nothing stays mapped."""
    shutil.copy(tiny_run / "bundle/model.safetensors", tmp_path / "x")
    weights = read_weights(tmp_path / "x")
    before = {name: tensor.clone() for name, tensor in weights.items()}
    with (tmp_path / "x").open("r+b") as file:
        file.truncate(0)
    torch.testing.assert_close(weights, before, rtol=0, atol=0)


def test_weights_that_are_left_in_their_file_are_those_of_the_bundle_that_was_opened(
    reseal: Reseal, tiny_run: Path
) -> None:
    folder, kept = reseal(), load_bundle(tiny_run)
    left = load_bundle(folder, read=False)
    assert not left.is_read
    assert (left.sizes, left.device_type) == (kept.model.config, "cpu")
    reseal(model=b"of another training")  # a new folder of this name
    torch.testing.assert_close(untied(left.model), untied(kept.model), rtol=0, atol=0)
    assert left.is_read
    assert left.model is left.model
    again = pickle.loads(pickle.dumps(load_bundle(tiny_run, read=False)))
    torch.testing.assert_close(untied(again.model), untied(kept.model), rtol=0, atol=0)


def test_weights_that_are_left_in_their_file_are_checked_when_they_are_read(
    reseal: Reseal, tiny_run: Path, tmp_path: Path
) -> None:
    weights = read_weights(tiny_run / "bundle/model.safetensors")
    save_weights(tmp_path / "odd", {name: tensor[:1] for name, tensor in weights.items()})
    odd = reseal(model=(tmp_path / "odd").read_bytes())
    with pytest.raises(BundleError, match="but the configuration says"):
        load_bundle(odd)
    left = load_bundle(odd, read=False)
    with pytest.raises(BundleError, match="but the configuration says"):
        left.model  # noqa: B018
    cut = load_bundle(folder := reseal(), read=False)
    os.truncate(folder / "model.safetensors", 1000)
    with pytest.raises(BundleError, match=r"model\.safetensors"):
        cut.model  # noqa: B018


def test_weights_of_a_file_that_was_changed_itself_are_refused(reseal: Reseal) -> None:
    """Those of another training were taken beside the subwords of the first one."""
    folder = reseal()
    left = load_bundle(folder, read=False)
    with (folder / "model.safetensors").open("r+b") as file:
        file.seek(-100, os.SEEK_END)
        file.write(b"\0" * 100)
    with pytest.raises(
        BundleError, match=r"model\.safetensors: was changed after it was opened; load the bundle again"
    ):
        left.model  # noqa: B018


def test_forked_processes_that_read_weights_at_once_have_the_same(tiny_run: Path) -> None:
    """They share the place of an open file; some had other weights, without an error."""
    want, left = untied(load_bundle(tiny_run).model), load_bundle(tiny_run, read=False)
    children = []
    for _ in range(6):
        if not (child := os.fork()):
            try:
                same = all(torch.equal(weight, want[name]) for name, weight in untied(left.model).items())
                os._exit(0 if same else 1)
            finally:
                os._exit(2)
        children.append(child)
    assert [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children] == [0] * 6


def test_a_bundle_whose_weights_nobody_reads_leaves_no_file_open(tiny_run: Path) -> None:
    gc.collect()
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(5):
        load_bundle(tiny_run, read=False)
    gc.collect()
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_the_bundle_is_found_or_what_is_there_instead_is_said(tiny_run: Path, tmp_path: Path) -> None:
    assert find_bundle(tiny_run) == find_bundle(tiny_run / "bundle") == tiny_run / "bundle"
    with pytest.raises(BundleError, match="neither a run nor a bundle"):
        find_bundle(tmp_path)
    with pytest.raises(BundleError, match="no such run"):
        find_bundle(tmp_path / "nowhere")
    with pytest.raises(BundleError, match="a checkpoint, not a bundle"):
        load_bundle(tiny_run / "checkpoints/best")
