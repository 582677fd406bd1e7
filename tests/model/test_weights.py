"""safetensors read by our own reader: as the library reads them, or refused."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file

from dragoman.errors import BundleError
from dragoman.model.weights import MAX_HEADER_BYTES, read_header, read_tensor, save_weights

DTYPES = [
    torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.int16, torch.int8,
    torch.uint8,
]  # fmt: skip


def read(path: Path) -> dict[str, torch.Tensor]:
    with path.open("rb") as file:
        return {name: read_tensor(file, path, entry) for name, entry in read_header(file, path).items()}


def tensor(dtype: torch.dtype, shape: list[int]) -> torch.Tensor:
    return (torch.arange(torch.Size(shape).numel()) % 100).to(dtype).reshape(shape)


tensors = st.dictionaries(
    st.text(st.characters(codec="utf-8"), max_size=9).filter(lambda name: name != "__metadata__"),
    st.builds(tensor, st.sampled_from(DTYPES), st.lists(st.integers(0, 4), max_size=4)),
    max_size=5,
)


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(tensors, st.none() | st.just({"format": "pt"}))
def test_what_the_library_writes_is_read_as_the_library_reads_it(
    tmp_path: Path, written: dict[str, torch.Tensor], metadata: dict[str, str] | None
) -> None:
    path = tmp_path / "x"
    save_file(written, path, metadata)
    ours, theirs = read(path), load_file(path)
    assert ours.keys() == theirs.keys()
    for name, one in ours.items():
        assert one.dtype == theirs[name].dtype
        assert one.shape == theirs[name].shape
        assert torch.equal(one, theirs[name])


def test_a_training_checkpoint_of_the_big_model_fits_the_header_many_times() -> None:
    from dragoman.config import ModelConfig
    from dragoman.model.weights import shapes

    names = shapes(ModelConfig(preset="big", src_vocab_size=37_000, tgt_vocab_size=37_000))
    entry = {"dtype": "F32", "shape": [4096, 1024], "data_offsets": [2**31, 2**31]}
    header = {f"{key}.{name}": entry for name in names for key in ("exp_avg", "exp_avg_sq", "step")}
    assert len(header) == 3 * len(names) == 759
    assert len(json.dumps(header)) * 6 < MAX_HEADER_BYTES


def test_a_file_that_becomes_shorter_while_it_is_read_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "x"
    save_file({"a": torch.ones(100_000)}, path)
    with path.open("rb") as file:
        entry = read_header(file, path)["a"]
        with path.open("r+b") as other:
            other.truncate(entry.start + 100_000)
        with pytest.raises(BundleError, match="was truncated while it was read"):
            read_tensor(file, path, entry)


@pytest.mark.skipif(
    not Path("/proc/self/maps").exists(), reason="looks at the memory of the process, as Linux shows it"
)
def test_nothing_is_mapped(tmp_path: Path) -> None:
    def is_mapped() -> bool:
        return "weights.x" in Path("/proc/self/maps").read_text(encoding="utf-8")

    path = tmp_path / "weights.x"
    save_file({"a": torch.ones(300_000)}, path)
    with path.open("rb") as file:
        entry = read_header(file, path)["a"]
        assert not is_mapped()
        tensor = read_tensor(file, path, entry)
        assert not is_mapped()
    assert tensor.sum() == 300_000
    mapped = load_file(path)  # of the library, to see that this would be seen
    assert is_mapped()
    del mapped


@pytest.mark.parametrize(
    ("header", "data", "says"),
    [
        ('{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}', 5, "should have 66 bytes and has 67"),
        ('{"a":{"dtype":"F32","shape":[1],"data_offsets":[1,5]}}', 5, "'a' does not start where"),
        ('{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}}', 4, "'a' needs 8 bytes but has a different range"),
        ('{"a":{"dtype":"BOOL","shape":[4],"data_offsets":[0,4]}}', 4, "'a' has the dtype 'BOOL'"),
        ('{"a":{"dtype":"F32","shape":[true],"data_offsets":[0,4]}}', 4, "'a' has an impossible shape or place"),
        ('{"a":{"dtype":"F32","shape":[1]}}', 4, "'a' is not described by dtype, shape and data_offsets"),
        ('{"a":1,"a":1}', 0, "a name appears twice"),
        ("[]", 0, "its header is no JSON object"),
    ],
)
def test_what_is_wrong_is_said(tmp_path: Path, header: str, data: int, says: str) -> None:
    path = tmp_path / "x"
    path.write_bytes(len(header).to_bytes(8, "little") + header.encode() + bytes(data))
    with pytest.raises(BundleError, match="x: cannot be read as safetensors") as caught:
        read(path)
    assert says in str(caught.value)


def test_rounding_of_shapes_alone_gives_shapes_alone_and_does_not_load_the_compiler_of_torch() -> None:
    script = """
import sys, torch
from dragoman.model.weights import rounded
weights = {"a": torch.randn(5, 3), "b": torch.randn(4), "c": torch.zeros(2, 3, dtype=torch.int64)}
shapes = rounded({name: tensor.to("meta") for name, tensor in weights.items()})
for name, tensor in rounded(weights).items():
    assert (shapes[name].is_meta, shapes[name].shape, shapes[name].dtype) == (True, tensor.shape, tensor.dtype)
assert "torch._dynamo" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", script], check=True)


def test_a_file_system_without_modes_of_files_takes_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path, mode: int) -> None:
        raise PermissionError(1, "Operation not permitted", str(path))

    monkeypatch.setattr(Path, "chmod", refuse)
    save_weights(tmp_path / "x", {"a": torch.arange(3)})
    assert load_file(tmp_path / "x")["a"].tolist() == [0, 1, 2]
