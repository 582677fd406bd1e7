"""Files that the first version wrote are still read, and mean what they did: ``bundle-v1`` and ``config-v1.yaml``."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import yaml

import dragoman

HERE = Path(__file__).parent
BUNDLE = HERE / "bundle-v1"
EXPECTED = json.loads((HERE / "bundle-v1.json").read_text(encoding="utf-8"))


def test_a_bundle_of_the_first_version_translates_as_it_did() -> None:
    translator = dragoman.Translator.load(BUNDLE, "cpu")
    found = translator.translate([one["src"] for one in EXPECTED], protect=False)  # it made 53 of 7
    assert [one.text for one in found] == [one["text"] for one in EXPECTED]
    assert [one.score for one in found] == pytest.approx([one["score"] for one in EXPECTED], abs=1e-4)
    assert [one.confidence for one in found] == pytest.approx([one["confidence"] for one in EXPECTED], abs=1e-3)


def test_a_bundle_of_the_first_version_is_whole_by_its_own_sums(tmp_path: Path) -> None:
    copy = tmp_path / "bundle"
    shutil.copytree(BUNDLE, copy)
    dragoman.Translator.load(copy, "cpu")  # checks every file
    for name in json.loads((copy / "manifest.json").read_text(encoding="utf-8"))["files"]:
        content = (copy / name).read_bytes()
        (copy / name).write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
        with pytest.raises(dragoman.BundleError, match="damaged"):
            dragoman.Translator.load(copy, "cpu")
        (copy / name).write_bytes(content)


def test_a_configuration_of_the_first_version_is_read_with_every_value() -> None:
    path = HERE / "config-v1.yaml"
    config = dragoman.Config.from_yaml(path)
    old, new = yaml.safe_load(path.read_text(encoding="utf-8")), yaml.safe_load(config.to_yaml())

    def check(old: dict[str, object], new: dict[str, object], where: str = "") -> None:
        for key, value in old.items():
            if isinstance(value, dict):
                check(value, new[key], f"{where}{key}.")  # type: ignore[arg-type]
            else:
                assert new[key] == value, f"{where}{key}"

    check(old, new)


def test_the_old_configuration_gives_every_setting_another_value_than_its_default() -> None:
    config = yaml.safe_load((HERE / "config-v1.yaml").read_text(encoding="utf-8"))
    plain = yaml.safe_load(dragoman.Config.from_mapping({"data": {"train": {"src": "a", "tgt": "b"}}}).to_yaml())
    only_default_fits = {"model.architecture", "model.kernel_width"}  # beside the other settings of a transformer
    same = [
        f"{section}.{key}"
        for section in ("model", "data", "train", "decode")
        for key, value in config[section].items()
        if value == plain[section][key]
    ]
    assert set(same) == only_default_fits
