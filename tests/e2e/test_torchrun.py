"""Two processes train as one does: the same pairs, the same weights, resumed and restarted too."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import dragoman
from outcomes import read_log, write_config
from rank_runs import batches_of, difference, forked, train

Tiny = Callable[..., dict[str, Any]]


def test_two_ranks_follow_one_process(tiny: Tiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same pairs in the same order, also where epochs end in uneven batches; the same weights up to rounding."""
    from dragoman.training import loop

    mapping = tiny(max_steps=50, batch_tokens=200, accumulate=3, validate_every=25, save_every=50, lr=2e-3)
    mapping["model"]["dropout"] = 0.0
    config = write_config(tmp_path / "config.yaml", mapping)
    want: list[list[list[int]]] = []
    train_step = loop.train_step

    def noted(model: Any, batches: Any, *args: Any) -> Any:
        want.append([batch.indices.tolist() for batch in batches])
        return train_step(model, batches, *args)

    monkeypatch.setattr(loop, "train_step", noted)
    dragoman.train(config, out=tmp_path / "one", overrides=["train.accumulate=6"], quiet=True)
    done = train(forked(2), config, "--out", tmp_path / "two", RANKS_IDS=str(tmp_path / "ids"))
    assert (done.statuses, done.out) == ([0, 0], [str(tmp_path / "two")]), done.err
    assert list(batches_of(tmp_path / "ids").items()) == list(enumerate(want, start=1))
    sizes = [len(batch) for batches in want for batch in batches]
    assert sum(sizes) > 10 * 400
    assert min(sizes) < max(sizes) / 2
    found = difference(tmp_path / "one", tmp_path / "two")
    print(f"largest difference of a weight after 50 steps: {found:.1e}")
    assert found <= 1e-5
    one, two = (read_log(tmp_path / name) for name in ("one", "two"))
    for mine, other in zip(one, two, strict=True):
        assert (mine["event"], mine["step"]) == (other["event"], other["step"])
        if "loss" in mine:
            assert mine["loss"] == pytest.approx(other["loss"], abs=1e-5)
    assert [e["tokens"] for e in one if e["event"] == "train"] == [e["tokens"] for e in two if e["event"] == "train"]
    assert one[-2]["flops"] == pytest.approx(two[-2]["flops"], rel=1e-12)  # the event "end"


@pytest.mark.parametrize(
    ("limit", "lr", "reason"),
    [("patience=1", 1e-9, "patience"), ("max_minutes=0.01", 1e-9, "max_minutes"), ("goal=0.01", 1e-2, "goal")],
)
def test_a_limit_that_rank_0_alone_knows_of_ends_all_at_the_same_step(
    limit: str, lr: float, reason: str, tiny: Tiny, tmp_path: Path
) -> None:
    config = write_config(tmp_path / "config.yaml", tiny(max_steps=10_000, validate_every=2, lr=lr))
    run = tmp_path / "run"
    done = train(forked(2), config, "--out", run, "--set", f"train.{limit}", RANKS_IDS=str(tmp_path / "ids"))
    assert done.statuses == [0, 0], done.err
    (end,) = [event for event in read_log(run) if event["event"] == "end"]
    assert end["reason"] == reason
    assert max(batches_of(tmp_path / "ids")) == end["step"]


def test_what_rank_0_refuses_is_said_by_all_with_one_line_each(tmp_path: Path) -> None:
    done = train(forked(2), tmp_path / "none.yaml", "--out", tmp_path / "run")
    why = f"{tmp_path}/none.yaml: no such file; give the path of a .yaml configuration"
    assert done.statuses == [2, 2]
    assert sorted(done.errors) == [f"error: rank 0: {why}", f"error: rank 1: rank 0 failed: {why}"]
    assert "Traceback" not in done.err
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("what", ["text", "subwords", "settings"])
def test_T11_ranks_whose_folders_are_not_one_are_refused(
    what: str, tiny: Tiny, tmp_path: Path, figure: Callable[[str, str], None]
) -> None:
    """Another machine may have an older run of this name on a disk of its own."""
    mapping, other = tiny(max_steps=2), tiny(max_steps=2)
    if what == "text":  # without its last line
        for side, path in mapping["data"]["train"].items():
            lines = Path(path).read_text(encoding="utf-8").splitlines(keepends=True)
            (tmp_path / Path(path).name).write_text("".join(lines[:-1]), encoding="utf-8")
            other["data"]["train"][side] = str(tmp_path / Path(path).name)
    elif what == "subwords":
        other["data"]["tokenizer"]["vocab_size"] = 390
    else:
        other["model"]["dropout"] = 0.3
    config, older = write_config(tmp_path / "new.yaml", mapping), write_config(tmp_path / "older.yaml", other)
    for rank in (0, 1):
        (tmp_path / str(rank)).mkdir()
    dragoman.train(older, out=tmp_path / "1/run", quiet=True)
    done = train(forked(2), config, "--out", "run", RANKS_APART=str(tmp_path))
    why = (
        "the run folder of rank 1 is another one, with other settings, subwords or text than that of rank 0: run must "
        "be on a file system that all machines share"
    )
    assert done.statuses == [2, 2]
    assert sorted(done.errors) == [f"error: rank {rank}: {why}" for rank in (0, 1)]
    assert not (tmp_path / "0/run/bundle").exists()
    figure("T11", f"another {what} on rank 1: both ranks end with one line and status 2, no bundle")
