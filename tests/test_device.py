"""Which device and which precision are taken, and what is refused."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from dragoman import device
from dragoman.device import resolve_device, resolve_precision
from dragoman.errors import ConfigError


def test_an_unknown_or_absent_device_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert resolve_device("auto").type == resolve_device("cpu").type == "cpu"
    with pytest.raises(ConfigError, match="device = 'cuda', but torch sees no GPU"):
        resolve_device("cuda")
    with pytest.raises(ConfigError, match="device must be auto, cpu or cuda, got 'gpu'"):
        resolve_device("gpu")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert [resolve_device(name).type for name in ("auto", "cuda", "cpu")] == ["cuda", "cuda", "cpu"]


def test_nobody_asks_torch_for_a_gpu_where_there_can_be_none(tmp_path: Path) -> None:
    script = "import sys; from dragoman import device; device.GPU_NODES = sys.argv[1:]; print(device.device_type(), {})"
    known = "'torch' in sys.modules"
    for node, is_asked in ((tmp_path / "none", False), (tmp_path, True)):
        done = subprocess.run([sys.executable, "-c", script.format(known), str(node)], capture_output=True, text=True)
        found = "cuda" if is_asked and torch.cuda.is_available() else "cpu"
        assert done.stdout.strip() == f"{found} {is_asked}", done.stderr


@pytest.mark.parametrize(
    "setting",
    [
        {},
        {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "2"},
        {"OMP_NUM_THREADS": "2", "MKL_NUM_THREADS": "1"},
        *({name: value} for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS") for value in ("1", "500", "0")),
    ],
)
def test_the_number_of_threads_is_what_torch_will_have(setting: dict[str, str]) -> None:
    script = "from dragoman.device import n_threads; n = n_threads(); import torch; print(n, torch.get_num_threads())"
    bare = {name: value for name, value in os.environ.items() if not name.endswith("_NUM_THREADS")}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=bare | setting)
    mine, torchs = done.stdout.split()
    assert mine == torchs


@pytest.mark.parametrize(
    ("facts", "seconds_of_bf16", "auto"),
    [
        ({"avx512_bf16": True, "amx_bf16": True}, 0.1, "bf16"),
        ({"avx512_bf16": True}, 0.4, "bf16"),
        ({"avx512_bf16": True}, 0.9, "fp32"),  # not worth its rounding
        ({"avx512_bf16": True}, 1.7, "fp32"),  # Intel without AMX
        ({"avx2": True}, 0.1, "fp32"),  # not asked: it would be emulated
    ],
)
def test_precision_auto_takes_bf16_where_the_processor_knows_it_and_is_faster_in_it(
    facts: dict[str, bool], seconds_of_bf16: float, auto: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    seconds = {torch.bfloat16: seconds_of_bf16, torch.float32: 1.0}
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: facts)
    monkeypatch.setattr(device, "seconds_of_a_product", seconds.__getitem__)
    device.bf16_is_faster.cache_clear()
    try:
        found = [resolve_precision(name, torch.device("cpu")) for name in ("auto", "fp32", "bf16")]
    finally:
        device.bf16_is_faster.cache_clear()
    assert found == [auto, "fp32", "bf16"]


@pytest.mark.parametrize("has_bf16", [True, False])
def test_bf16_that_is_asked_for_warns_once_where_the_processor_has_none(
    has_bf16: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    facts = dict.fromkeys(("avx512_bw", "avx512_vl", "avx512_dq"), has_bf16)
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: facts)
    device.warn_of_emulated_bf16.cache_clear()
    try:
        assert {resolve_precision(name, torch.device("cpu")) for name in ("fp32", "bf16", "bf16")} == {"fp32", "bf16"}
    finally:
        device.warn_of_emulated_bf16.cache_clear()
    assert [record.message for record in caplog.records] == ([] if has_bf16 else [
        "precision = 'bf16', but this CPU does not support bf16 natively: fp32 is many times as fast"
    ])  # fmt: skip


def test_products_are_timed_in_either_precision() -> None:
    assert all(device.seconds_of_a_product(dtype) > 0 for dtype in (torch.float32, torch.bfloat16))


def test_bf16_is_refused_where_the_gpu_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    cuda = torch.device("cuda")
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation: False)
    assert resolve_precision("auto", cuda) == "fp32"
    with pytest.raises(ConfigError, match="this GPU does not support bf16"):
        resolve_precision("bf16", cuda)


@pytest.mark.parametrize("where", ["cuda", "cpu"])
@pytest.mark.parametrize("name", ["fp16", "int8", "", "BF16"])
def test_an_unknown_precision_is_refused_and_not_taken_for_another(where: str, name: str) -> None:
    with pytest.raises(ConfigError, match=f"precision must be auto, fp32 or bf16, got '{name}'"):
        resolve_precision(name, torch.device(where))
