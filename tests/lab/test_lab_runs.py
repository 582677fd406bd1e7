"""Trainings as evidence: kept, resumed, measured as the ordinary commands do, compared over seeds."""

from __future__ import annotations

import math
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dragoman.config import Config
from dragoman.errors import ConfigError
from dragoman.evaluation.evaluate import evaluate
from dragoman.lab.experiment import Lab
from dragoman.lab.runs import (
    Interval,
    Variant,
    changed,
    corpus_config,
    difference,
    finished,
    holds,
    interval,
    mean_curve,
    measured,
    prediction_interval,
    run_of,
    t_quantile,
    trained,
    trial,
)
from dragoman.locks import locked
from dragoman.training.record import read_run
from dragoman.training.run import Trained

Tiny = Callable[..., dict[str, Any]]


@pytest.fixture
def config(tiny: Tiny) -> Config:
    return Config.from_mapping(tiny(max_steps=20, validate_every=20, save_every=10))


@pytest.fixture
def said() -> list[str]:
    return []


@pytest.fixture
def lab(tmp_path: Path, said: list[str]) -> Lab:
    return Lab(out=tmp_path / "lab", say=said.append)


def test_a_training_is_known_by_what_differs_from_the_defaults(lab: Lab, config: Config) -> None:
    spelled_out = Config.from_mapping({**config.model_dump(), "train": {**config.train.model_dump(), "r_drop": 0.0}})
    assert run_of(lab, Variant("plain", spelled_out), 1) == run_of(lab, Variant("plain", config), 1)
    other = changed(config, train={"r_drop": 1.0})
    assert run_of(lab, Variant("plain", other), 1) != run_of(lab, Variant("plain", config), 1)


def test_a_training_that_a_clock_ends_is_known_by_its_hardware_too(
    lab: Lab, config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other threads make other steps of the same minutes."""
    timed = changed(config, train={"max_minutes": 1.0})
    before = [run_of(lab, Variant("x", one), 1) for one in (config, timed)]
    assert [run_of(lab, Variant("x", one), 1) for one in (config, timed)] == before
    monkeypatch.setattr("torch.get_num_threads", lambda: 31)
    after = [run_of(lab, Variant("x", one), 1) for one in (config, timed)]
    assert after[0] == before[0]
    assert after[1] != before[1]


def test_rows_of_other_text_are_measured_again(tmp_path: Path, corpus: Any, tiny: Tiny) -> None:
    files = {
        name: {side: Path(shutil.copy(path, tmp_path)) for side, path in zip(("src", "tgt"), paths, strict=True)}
        for name, paths in (
            ("train", (corpus.src, corpus.tgt)),
            ("valid", (corpus.valid_src, corpus.valid_tgt)),
        )
    }
    settings = tiny(max_steps=20)
    given = Config.from_mapping({**settings, "data": {**settings["data"], **files}})
    lab = Lab(out=tmp_path / "lab", config=given)
    measured_texts: list[str] = []

    def measure() -> int:
        measured_texts.append("a text")
        return len(measured_texts)

    assert [lab.done("row", measure), lab.done("row", measure)] == [1, 1]
    folder = lab.run_folder("row")
    for n, path in enumerate((files["valid"]["tgt"], files["train"]["src"]), start=2):
        with path.open("a", encoding="utf-8") as file:
            file.write("One more.\n")
        assert [lab.done("row", measure), lab.done("row", measure)] == [n, n]
    assert lab.run_folder("row") != folder
    path.unlink()
    assert lab.done("row", measure) == 4  # what is not there is refused by training, not here


def test_results_on_the_embedded_corpus_are_found_by_the_same_name_as_ever(tmp_path: Path) -> None:
    assert Lab(out=tmp_path).run_folder("row", {"steps": 1}).name == "row-3c575c3ef0"


def test_a_trial_says_what_the_run_and_the_ordinary_commands_say(lab: Lab, config: Config, corpus: Any) -> None:
    found = trial(lab, Variant("plain", config), 3, keep=True)
    folder = run_of(lab, Variant("plain", config), 3)
    again = evaluate(folder, src=corpus.valid_src, ref=corpus.valid_tgt, guard=False, quiet=True)
    assert found.bleu == again.scores[0].value
    assert found.chrf == again.scores[1].value
    record = read_run(folder)
    assert record.config.train.seed == found.seed == 3
    assert found.loss == record.validations[-1]["loss"]
    assert found.perplexity == pytest.approx(math.exp(found.loss))
    assert record.end is not None
    assert (found.flops, found.tokens, found.steps) == (record.end["flops"], record.end["tokens"], 20)
    assert found.curve == [[event["step"], event["loss"]] for event in record.reports]


def test_what_was_measured_is_not_trained_again_and_its_run_goes(lab: Lab, config: Config, said: list[str]) -> None:
    found = trial(lab, Variant("plain", config), 1)
    assert not run_of(lab, Variant("plain", config), 1).exists()
    n_lines = len(said)
    assert trial(lab, Variant("plain", config), 1) == found
    assert len(said) == n_lines
    other = trial(lab, Variant("plain", changed(config, model={"n_heads": 1})), 1)
    assert len(said) > n_lines
    assert other.loss != found.loss


def test_a_stopped_training_resumes_where_it_stood(lab: Lab, config: Config) -> None:
    def stop(*_: Any) -> dict[str, Any]:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        finished(lab, Variant("plain", config), 1, stop)
    folder = run_of(lab, Variant("plain", config), 1)
    shutil.rmtree(folder / "checkpoints/step_00000020")  # as if it had been killed after step 10
    straight = trial(lab._replace(out=lab.out / "other"), Variant("plain", config), 1)

    def measure(folder: Path, done: Trained, config: Config) -> dict[str, Any]:
        return measured(folder, done, Variant("plain", config))._asdict()

    found = finished(lab, Variant("plain", config), 1, measure)
    assert [step for step, _ in found["curve"]] == [5, 10, 15, 20]
    assert found["loss"] == straight.loss  # bit for bit on a CPU


def test_one_that_was_stopped_before_its_first_checkpoint_starts_again(tmp_path: Path, config: Config) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run/config.yaml").write_text("of one that died", encoding="utf-8")
    assert trained(tmp_path / "run", Variant("plain", config)).step == 20


def test_one_in_which_another_process_trains_is_not_removed(tmp_path: Path, config: Config) -> None:
    (tmp_path / "config.yaml").touch()
    with locked(tmp_path), pytest.raises(ConfigError, match="is training there"):
        trained(tmp_path, Variant("plain", config))
    assert [path.name for path in tmp_path.iterdir()] == ["config.yaml"]


def test_a_variant_that_cannot_be_is_refused(config: Config) -> None:
    with pytest.raises(ConfigError, match="n_heads"):
        changed(config, model={"n_heads": 7})


def test_the_corpus_is_the_embedded_one_or_that_of_the_configuration(lab: Lab, config: Config) -> None:
    embedded = corpus_config(lab._replace(quick=True))
    assert len(embedded.data.train.src.read_text(encoding="utf-8").splitlines()) == 300
    given = corpus_config(lab._replace(config=changed(config, train={"ema": 0.9, "average": 5, "validate_every": 2})))
    assert given.data == config.data
    limited = changed(config, train={"max_minutes": 5, "max_epochs": 3, "patience": 2})
    assert corpus_config(lab._replace(config=limited)) == corpus_config(lab._replace(config=config))
    with pytest.raises(ConfigError, match="trains translators"):
        corpus_config(lab._replace(config=config.model_copy(update={"task": "parsing"})))
    quick = corpus_config(lab._replace(config=config, quick=True))
    assert len(quick.data.train.src.read_text(encoding="utf-8").splitlines()) == 300
    assert quick.data.valid is not None
    assert config.data.valid is not None
    whole, part = (
        files.tgt.read_text(encoding="utf-8").splitlines() for files in (config.data.valid, quick.data.valid)
    )
    assert part == whole[:12]
    assert (quick.data.src_lang, quick.train.max_steps, quick.model) == ("en", 12, config.model)
    assert (given.train.ema, given.train.average, given.train.validate_every) == (0, 0, given.train.max_steps)


def test_intervals_are_students() -> None:
    found = interval([1.0, 2.0, 3.0])  # standard deviation 1, t = 4.303 for 2 degrees of freedom
    assert found.mean == 2
    assert found.high - 2 == pytest.approx(4.303 / math.sqrt(3), abs=1e-3)
    assert 2 - found.low == pytest.approx(found.high - 2)
    more = prediction_interval([1.0, 2.0, 3.0])
    assert more.high - 2 == pytest.approx(4.303 * math.sqrt(4 / 3), abs=1e-3)
    assert format(found, ".2f") == "2.00 [-0.48, 4.48]"
    assert format(interval([1.0]), ".1f") == "1.0 (one seed)"


@pytest.mark.parametrize(
    ("p", "df", "quantile"),  # https://www.itl.nist.gov/div898/handbook/eda/section3/eda3672.htm
    [(0.975, 1, 12.706), (0.975, 2, 4.303), (0.975, 4, 2.776), (0.975, 10, 2.228), (0.999, 2, 22.327), (0.9, 5, 1.476)],
)
def test_quantiles_are_those_of_the_tables(p: float, df: int, quantile: float) -> None:
    assert t_quantile(p, df) == pytest.approx(quantile, abs=6e-4)


def test_an_interval_for_several_comparisons_is_as_wide_as_their_share_of_chance_asks() -> None:
    alone, of_all = prediction_interval([1.0, 2.0, 3.0, 4.0, 5.0]), prediction_interval([1.0, 2.0, 3.0, 4.0, 5.0], 19)
    assert (of_all.high - 3) / (alone.high - 3) == pytest.approx(t_quantile(1 - 0.025 / 19, 4) / 2.776, rel=1e-3)


def test_differences_are_taken_seed_by_seed() -> None:
    found = difference([1.0, 5.0, 9.0], [1.5, 5.6, 9.4])
    assert found.mean == pytest.approx(0.5)
    assert holds(found, 1) is True
    assert holds(found, -1) is False
    assert holds(difference([1.0, 5.0, 9.0], [1.5, 4.4, 9.4]), 1) is None
    assert holds(interval([3.0]), 1) is None  # of one seed nobody knows
    assert holds(Interval(-1.0, -2.0, -0.5), -1) is True


def test_the_mean_of_curves_is_taken_where_all_have_points() -> None:
    assert mean_curve([[[5, 1.0], [10, 3.0]], [[10, 5.0], [15, 1.0]]]) == ([10], [4.0], [3.0], [5.0])
