"""A device that is no CPU, on any machine: ``meta``, watched for what a GPU would refuse or have to be waited for.

Tensors on it have shapes and dtypes but no numbers, so what is computed means nothing; where the code asks for a number
it is told one. What only a kernel knows (speed, rounding, what it cannot do) is not seen here.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

aten = torch.ops.aten
META = torch.device("meta")


class GpuLike(TorchDispatchMode):
    """Records what was wrong and what would have been waited for.

    Attributes:
        waits: The operators that bring a number from the device, or whose result has a size that only it knows, and
            copies to or from it that are not asynchronous.
        mixed: Operators that were given tensors of both devices.
        norms: Layer norms whose parameters have not the dtype of their input, which CUDA's kernel refuses.
    """

    def __init__(self) -> None:
        super().__init__()
        self.waits: list[str] = []
        self.mixed: list[str] = []
        self.norms: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        tensors = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)]
        on_device = [tensor for tensor in tensors if tensor.device == META]
        moves = func in (aten._to_copy.default, aten.copy_.default)
        if on_device and not moves and any(tensor.device != META and tensor.dim() for tensor in tensors):
            self.mixed.append(str(func))
        if func is aten.native_layer_norm.default and {tensor.dtype for tensor in tensors} != {args[0].dtype}:
            self.norms.append(f"{args[0].dtype} with {[tensor.dtype for tensor in tensors[1:]]}")
        if func is aten._local_scalar_dense.default and on_device:
            self.waits.append(str(func))
            return 1 if not args[0].is_floating_point() else 1.0
        if func is aten.index.Tensor and any(i is not None and i.dtype == torch.bool for i in args[1]) and on_device:
            self.waits.append(str(func))
            return args[0].new_empty((7, *args[0].shape[args[1][0].dim() :]))
        if func is aten.nonzero.default and on_device:
            self.waits.append(str(func))
            return args[0].new_empty((7, args[0].dim()), dtype=torch.int64)
        if func is aten.unique_consecutive.default and on_device:  # as if no two were alike
            self.waits.append(str(func))
            return args[0], torch.empty_like(args[0]), torch.empty_like(args[0])
        target = kwargs.get("device") or (args[0].device if func is aten.copy_.default else None)
        source = (args[1] if func is aten.copy_.default else args[0]) if moves else None
        if source is not None and target is not None and torch.device(target) != source.device:
            asynchronous = kwargs.get("non_blocking") or (len(args) > 2 and args[2])
            if torch.device(target) != META:
                self.waits.append(str(func))
                kept = {key: value for key, value in kwargs.items() if key == "dtype"}
                return torch.ones(source.shape, dtype=kept.get("dtype") or source.dtype)
            if not asynchronous:
                self.waits.append(str(func))
        return func(*args, **kwargs)


def as_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let ``meta`` be asked for autocast, as a GPU may be; which changes no operator there."""
    autocast, enabled, dtype = torch.autocast, torch.is_autocast_enabled, torch.get_autocast_dtype
    cpu = {"meta": "cpu"}
    monkeypatch.setattr(torch, "autocast", lambda device, *args, **kw: autocast(cpu.get(device, device), *args, **kw))
    monkeypatch.setattr(torch, "is_autocast_enabled", lambda device: enabled(cpu.get(device, device)))
    monkeypatch.setattr(torch, "get_autocast_dtype", lambda device: dtype(cpu.get(device, device)))
