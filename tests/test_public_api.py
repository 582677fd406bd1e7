"""The public names: complete, sorted, lazily imported, as design and docs promise."""

from __future__ import annotations

import importlib
import inspect
import json
import os
import re
import subprocess
import sys

import pytest

import dragoman


def test_the_public_names_are_sorted_and_each_can_be_imported() -> None:
    assert dragoman.__all__ == sorted(dragoman.__all__)
    assert len(set(dragoman.__all__)) == len(dragoman.__all__)
    for name in dragoman.__all__:
        value = getattr(dragoman, name)
        assert value.__name__ == name
        assert inspect.getdoc(value)
        assert getattr(importlib.import_module(value.__module__), name) is value
    assert set(dragoman.__all__) <= set(dir(dragoman))
    assert {"ModelConfig", "Transformer", "Translator", "evaluate", "train"} <= set(dragoman.__all__)


def test_the_first_page_of_help_has_every_name() -> None:
    said = inspect.getdoc(dragoman) or ""
    assert [name for name in dragoman.__all__ if not re.search(rf"\b{name}\b", said)] == []
    assert len(said.splitlines()) <= 24


def test_the_names_for_type_checkers_are_those_at_run_time() -> None:
    source = inspect.getsource(dragoman)
    checked = [line.split(" as ")[-1] for line in source.split("\n") if line.startswith("    from dragoman.")]
    assert sorted(checked) == dragoman.__all__


def test_a_name_that_is_not_public_says_which_are() -> None:
    with pytest.raises(AttributeError, match=r"no attribute 'Transfromer'; its public names are .*Transformer"):
        dragoman.Transfromer  # noqa: B018


def test_importing_dragoman_and_its_errors_loads_nothing_heavy() -> None:
    script = """
import json, sys
import dragoman
dragoman.DragomanError, dragoman.__version__, dir(dragoman)
print(json.dumps([name for name in ("torch", "numpy", "pydantic", "yaml", "typer") if name in sys.modules]))
dragoman.ModelConfig
print(json.dumps([name for name in ("torch", "numpy") if name in sys.modules]))
dragoman.Transformer
print("torch" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout == "[]\n[]\nTrue\n", done.stderr


def test_every_error_is_a_dragoman_error_and_a_wrong_setting_a_value_error_too() -> None:
    errors = [getattr(dragoman, name) for name in dragoman.__all__ if name.endswith("Error")]
    assert len(errors) == 6
    assert all(issubclass(error, dragoman.DragomanError) for error in errors)
    assert issubclass(dragoman.ConfigError, ValueError)
    with pytest.raises(ValueError, match="did you mean n_heads"):
        dragoman.ModelConfig(src_vocab_size=9, tgt_vocab_size=9, n_head=3)  # type: ignore[call-arg]


def test_train_and_evaluate_take_what_the_design_says() -> None:
    given = inspect.signature(dragoman.train).parameters
    assert {"config", "src", "tgt", "valid_src", "valid_tgt", "out", "resume"} <= set(given)
    assert all(parameter.default is not inspect.Parameter.empty for parameter in given.values())
    given = inspect.signature(dragoman.Translator.translate).parameters
    assert {"texts", "beam_size", "length_penalty", "deterministic"} <= set(given)


def test_the_distribution_is_typed_and_its_version_is_the_packages() -> None:
    from importlib.metadata import version
    from importlib.resources import files

    assert version("dragoman") == dragoman.__version__
    assert json.dumps(files("dragoman").joinpath("py.typed").is_file()) == "true"


def test_importing_the_library_changes_nothing_in_its_host() -> None:
    """In a process of its own, where nothing of ours has been imported yet."""
    code = """
import json, locale, logging, os, signal, sys, warnings
import numpy, pydantic, sentencepiece, torch, yaml  # what these change is theirs
import sacrebleu

def host():
    return {
        "environment": dict(os.environ),
        "warnings": [repr(each) for each in warnings.filters],
        "signals": {str(number): repr(signal.getsignal(number)) for number in signal.valid_signals()},
        "threads": [torch.get_num_threads(), torch.get_num_interop_threads()],
        "locale": locale.setlocale(locale.LC_ALL),
        "logging": [
            logging.root.level, repr(logging.root.handlers), logging.getLogger("dragoman").level,
            repr(logging.getLogger("dragoman").handlers),
        ],
        "torch": [str(torch.get_default_dtype()), torch.is_grad_enabled()],
        "numpy": repr(numpy.geterr()),
        "streams": [id(sys.stdout), id(sys.stderr), id(sys.excepthook)],
        "folder": os.getcwd(),
    }

before = host()
import dragoman
for name in dragoman.__all__:
    getattr(dragoman, name)
after = host()
print(json.dumps({name: [before[name], after[name]] for name in before if before[name] != after[name]}))
"""
    environment = {name: value for name, value in os.environ.items() if not name.endswith("_CACHE_CAPACITY")}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    assert json.loads(done.stdout) == {}
