"""The wheel, installed into an empty environment: how large it is, how long it takes, and whether it does what README
shows first, with the ready bundle inside. Target: less than 1.3 GB with the CPU build of torch, and two minutes from
nothing to the first translation.

``--torch`` is what pip is given for torch; where pip finds it is pip's own configuration (``PIP_EXTRA_INDEX_URL``).
``--checkout`` measures README's first two commands instead, in a fresh copy of this checkout: target two commands and
three minutes. ``--index`` is where ``make install`` looks for torch; without it, where the Makefile says.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.record import save
from dragoman.data import phrasebook

ROOT = Path(__file__).resolve().parent.parent
TEXT = "The child sees the dog."


def run(command: Sequence[str | Path], folder: Path, text: str = "") -> tuple[str, float]:
    """What a command writes to stdout, and seconds; it must succeed."""
    started = time.perf_counter()
    done = subprocess.run(command, cwd=folder, input=text, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, command))}: exit {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout, time.perf_counter() - started


def first_screen(dragoman: Path, model: Path, folder: Path) -> float:
    """README's commands, without any extra; returns the seconds of the first translation."""
    phrasebook.write(300, folder / "test.en", folder / "test.de")
    first, seconds = run([dragoman, "translate", model], folder, TEXT + "\n")
    whole, _ = run([dragoman, "translate", model, "test.en"], folder)
    scores, _ = run([dragoman, "evaluate", model, "--src", "test.en", "--ref", "test.de"], folder)
    run([dragoman, "explain", model, TEXT], folder)
    run([dragoman, "doctor", "--src", "test.en", "--tgt", "test.de", "--out", "doctor"], folder)
    small = ["--set", "model.preset=tiny", "--set", "train.max_steps=2", "--set", "train.warmup_steps=1"]
    run([dragoman, "train", "--src", "test.en", "--tgt", "test.de", "--out", "run", *small], folder)
    assert len(first.splitlines()) == 1
    assert len(whole.splitlines()) == 300
    assert scores.startswith("BLEU ")
    assert all(
        (folder / name).is_file() for name in ("explanation.html", "doctor/doctor.html", "run/bundle/config.yaml")
    )
    return seconds


def first_two_commands(folder: Path, index: str | None) -> dict[str, object]:
    """Run README's first two commands in a copy of the checkout; return seconds and the translation."""
    files = subprocess.run(["git", "archive", "HEAD"], cwd=ROOT, check=True, capture_output=True).stdout
    subprocess.run(["tar", "-x", "-C", folder], input=files, check=True)
    _, install_s = run(["make", "install", *([] if index is None else [f"TORCH_INDEX={index}"])], folder)
    first, translate_s = run([folder / ".venv/bin/dragoman", "translate", "demo"], folder, "Can you help me?\n")
    again, again_s = run([folder / ".venv/bin/dragoman", "translate", "demo"], folder, "Can you help me?\n")
    assert first == again
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return {
        "commands": 2, "make_install_s": round(install_s, 1), "first_translation_s": round(translate_s, 1),
        "second_translation_s": round(again_s, 1), "minutes": round((install_s + translate_s) / 60, 2),
        "processor_s": round(used.ru_utime + used.ru_stime, 1),
        "programs_that_wanted_a_core": round(os.getloadavg()[1], 1), "Can you help me?": first.strip(),
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--wheel", type=Path, help="default: built from this checkout")
    parser.add_argument("--run", type=Path, help="a trained run (default: the ready bundle `demo`)")
    parser.add_argument("--torch", default="torch")
    parser.add_argument("--checkout", action="store_true", help="README's first two commands")
    parser.add_argument("--index", help="TORCH_INDEX of `make install`")
    parser.add_argument("--save", action="store_true", help="write results/install.json")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if given.checkout:
            figures = first_two_commands(folder, given.index)
            print(json.dumps(figures, indent=2, ensure_ascii=False))
            if given.save:
                save("newcomer/install", figures, "python -m benchmarks.install --checkout --save")
            return
        wheel, model = given.wheel and given.wheel.resolve(), given.run and given.run.resolve()
        if wheel is None:
            run([sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", "dist", ROOT], folder)
            [wheel] = (folder / "dist").iterdir()
        _, venv_s = run([sys.executable, "-m", "venv", "venv"], folder)
        pip = folder / "venv/bin/python", "-m", "pip"
        _, install_s = run([*pip, "install", "--quiet", "--no-cache-dir", given.torch, wheel], folder)
        ready = run([folder / "venv/bin/dragoman", "translate", "demo-zh"], folder, "Can you help me?\n")[0].strip()
        packages = {one["name"]: one["version"] for one in json.loads(run([*pip, "list", "--format=json"], folder)[0])}
        assert "ctranslate2" in packages  # decision 0074
        assert not {"matplotlib", "zstandard", "pytest"} & packages.keys()
        n_bytes = sum(path.lstat().st_size for path in (folder / "venv").rglob("*") if path.is_file())
        translate_s = first_screen(folder / "venv/bin/dragoman", model or Path("demo"), folder)
        figures = {
            "environment_mb": round(n_bytes / 1e6),
            "wheel_kb": round(wheel.stat().st_size / 1e3),
            "venv_s": round(venv_s, 1),
            "pip_install_s": round(install_s, 1),
            "first_translation_s": round(translate_s, 1),
            "from_nothing_to_first_translation_s": round(venv_s + install_s + translate_s, 1),
            "demo-zh, Can you help me?": ready,
            "packages": packages,
        }
    if given.save:
        save("install", figures, "python -m benchmarks.install --save")
    else:
        print(json.dumps(figures, indent=2))


if __name__ == "__main__":
    main()
