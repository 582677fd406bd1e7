"""The engine of CTranslate2: our search's results by another's kernels, within every sentence's own limit."""

from __future__ import annotations

import copy
import random
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch

from dragoman.bundle import Bundle, load_bundle
from dragoman.config import DecodeConfig, LengthPenalty
from dragoman.data.tokenizer import BOS_ID, PAD_ID, UNK_ID
from dragoman.decoding.cancellation import Cancellation
from dragoman.decoding.constraints import Rules, Spelling
from dragoman.decoding.request import Hypothesis, Progress, SearchResult, SearchSettings, Segment
from dragoman.decoding.scoring import attend_all, read_all
from dragoman.errors import ConfigError, DecodeError
from dragoman.model.transformer import Transformer
from dragoman.toolkits.ctranslate2 import search as ctranslate2_engine
from dragoman.toolkits.ctranslate2.search import CTranslate2, open_folder
from dragoman.toolkits.ctranslate2.write import write
from dragoman.toolkits.engine import Models
from dragoman.translation.translator import Translator
from model_variants import fill
from searching import search_all, segments_of

CPU = torch.device("cpu")


class Both(NamedTuple):
    """One model in both engines, and sources for it."""

    bundle: Bundle
    engine: CTranslate2
    sources: list[list[int]]


def load(bundle: Bundle, folder: Path) -> CTranslate2:
    write(bundle, folder)
    return CTranslate2(open_folder(folder, "float32"), bundle.src_tokenizer, bundle.tgt_tokenizer)


def search(
    engine: CTranslate2, sources: Sequence[Sequence[int]], config: DecodeConfig, n_best: int = 1, *,
    alive: Callable[[int], bool] | None = None, progress: Progress | None = None, longest: int | None = None,
) -> list[list[Hypothesis]]:  # fmt: skip
    """What it finds for sources, none of which runs out of memory."""
    settings = SearchSettings(decode=config, n_best=n_best, longest=longest)
    found = engine.search(segments_of(sources, alive=alive), settings, progress)
    assert found.out_of_memory == []
    return found.hypotheses


def changed(engine: CTranslate2, **changes: Any) -> CTranslate2:
    """An engine that is another one but for some attributes."""
    other = copy.copy(engine)
    vars(other).update(changes)
    return other


@pytest.fixture(scope="module")
def both(tiny_run: Path, tmp_path_factory: pytest.TempPathFactory, toy_sentences: Callable[..., Any]) -> Both:
    bundle = load_bundle(tiny_run)
    sources = bundle.src_tokenizer.encode([src for src, _ in toy_sentences(60, 3)])
    return Both(bundle, load(bundle, tmp_path_factory.mktemp("trained")), sources)


@pytest.fixture(scope="module")
def noisy(tiny_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Both:
    """A random model that likes pad and bos, and hardly ever ends."""
    bundle = load_bundle(tiny_run)
    config = bundle.model.config.model_copy(update={"generator_bias": True, "share_embeddings": "none"})
    model = type(bundle.model)(config).eval()
    with torch.no_grad():
        model.generator.bias.zero_()
        model.generator.bias[[PAD_ID, BOS_ID]] = 4.0
        model.generator.bias[3] = -3.0
    bundle = bundle._replace(weights=model)
    gen = torch.Generator().manual_seed(0)
    sources = [torch.randint(4, 300, (n,), generator=gen).tolist() for n in (1, 2, 3, 5, 8, 9)]
    return Both(bundle, load(bundle, tmp_path_factory.mktemp("noisy")), sources)


@pytest.mark.parametrize(("beam_size", "alpha", "n_best"), [(1, 0.6, 1), (2, 0.0, 1), (5, 0.6, 3), (4, 1.5, 4)])
def test_the_same_translations_with_the_same_scores(both: Both, beam_size: int, alpha: float, n_best: int) -> None:
    config = DecodeConfig(beam_size=beam_size, length_penalty=alpha, max_extra_tokens=10, batch_tokens=100)
    want = search_all(both.bundle.model, both.sources, config, CPU, n_best)
    found = search(both.engine, both.sources, config, n_best)
    assert [h[0].ids for h in found] == [h[0].ids for h in want]
    same = 0
    for one, other in zip(found, want, strict=True):
        assert len(one) == len(other) == n_best
        known = {tuple(h.ids): h for h in other}
        for h in one:
            if twin := known.get(tuple(h.ids)):
                assert h.score == pytest.approx(twin.score, abs=5e-5)
                assert h.log_prob == pytest.approx(twin.log_prob, abs=5e-5)
                same += 1
    assert same >= 0.95 * n_best * len(want)  # of n best a late one may be missing


@pytest.mark.parametrize("beam_size", [1, 4])
def test_each_translation_keeps_to_its_own_limit(noisy: Both, beam_size: int) -> None:
    config = DecodeConfig(beam_size=beam_size, max_extra_tokens=3, batch_tokens=10_000)  # one batch of many limits
    found = search(noisy.engine, noisy.sources, config, n_best=beam_size)
    alone = [search(noisy.engine, [src], config, beam_size)[0] for src in noisy.sources]
    assert [[h.ids for h in one] for one in found] == [[h.ids for h in one] for one in alone]
    pairs = [(src, h.ids) for src, hypotheses in zip(noisy.sources, found, strict=True) for h in hypotheses]
    assert all(len(ids) + 1 <= len(src) + 3 for src, ids in pairs)
    assert any(len(ids) + 1 == len(src) + 3 for src, ids in pairs)  # cut and ended
    assert not any({PAD_ID, BOS_ID} & set(ids) for _, ids in pairs)
    said = [h for hypotheses in found for h in hypotheses]
    for h, read in zip(said, read_all(noisy.bundle.model, pairs, CPU), strict=True):
        assert read is not None
        assert h.log_prob == pytest.approx(read.log_prob, abs=1e-4)
        assert h.score == pytest.approx(h.log_prob / LengthPenalty(0.6)(len(h.ids) + 1), abs=1e-6)
    assert all([h.score for h in one] == sorted((h.score for h in one), reverse=True) for one in found)
    assert all(len({tuple(h.ids) for h in one}) == len(one) for one in found)


def test_positions_bind_however_many_tokens_are_allowed(noisy: Both) -> None:
    found = search(noisy.engine, noisy.sources, DecodeConfig(beam_size=2), longest=4)
    assert max(len(h[0].ids) for h in found) == 3
    (one,) = search(noisy.engine, [[9, 9]], DecodeConfig(beam_size=2), longest=1)
    assert one[0].ids == []
    (read,) = read_all(noisy.bundle.model, [([9, 9], [])], CPU)
    assert read is not None
    assert one[0].log_prob == pytest.approx(read.log_prob, abs=1e-5)


def test_nothing_in_nothing_out_and_progress_counts(both: Both) -> None:
    config = DecodeConfig(beam_size=2, batch_tokens=60)
    assert search(both.engine, [], config) == []
    assert both.engine.read([]) == []
    said: list[tuple[int, int]] = []
    search(both.engine, both.sources, config, progress=lambda done, total, what: said.append((done, total)))
    assert said[-1] == (60, 60)
    assert len(said) > 5
    assert said == sorted(said)


def test_n_best_is_at_most_the_beam(both: Both) -> None:
    for n_best in (0, 3):
        with pytest.raises(DecodeError, match=f"n_best must be from 1 to beam_size = 2, got {n_best}"):
            search(both.engine, both.sources, DecodeConfig(beam_size=2), n_best)


# --- what may go wrong ------------------------------------------------------------------------------------------------


class Later(NamedTuple):
    """What an asynchronous call returns: here by a function."""

    result: Callable[[], Any]


class Small:
    """Stands for CTranslate2's translator where memory is short: room for so many sources at a time."""

    def __init__(self, real: Any, room: int, error: BaseException) -> None:
        self.real, self.room, self.error, self.sizes = real, room, error, list[int]()

    def translate_batch(self, sources: Sequence[Any], **options: Any) -> list[Later]:
        self.sizes.append(len(sources))
        running = self.real.translate_batch(sources, **options)

        def result(one: Any) -> Any:
            if len(sources) > self.room:
                raise self.error
            return one.result()

        return [Later(lambda one=one: result(one)) for one in running]  # type: ignore[misc]

    def score_batch(self, *given: Any, **options: Any) -> Any:
        return self.real.score_batch(*given, **options)


@pytest.mark.parametrize("error", [MemoryError(), RuntimeError("CUDA failed with error out of memory")])
def test_a_batch_that_runs_out_of_memory_is_halved(both: Both, error: BaseException) -> None:
    config = DecodeConfig(beam_size=2, max_extra_tokens=10)
    want = search(both.engine, both.sources, config)
    small = Small(both.engine.translator, 9, error)
    found = search(changed(both.engine, translator=small), both.sources, config)
    assert [h[0].ids for h in found] == [h[0].ids for h in want]
    assert max(small.sizes) == 60
    none = Small(both.engine.translator, 0, error)
    settings = SearchSettings(decode=config)
    left = changed(both.engine, translator=none).search([Segment(ids=[5]), Segment(ids=[6])], settings)
    assert left == SearchResult([[], []], [0, 1])
    translator = Translator(both.bundle)
    plan = replace(translator.plan(), engine=changed(both.engine, translator=none))
    with pytest.raises(DecodeError, match="line 1: out of memory, even alone in a batch"):
        translator.translate(["the dog", "a cat"], plan)


def test_another_error_is_not_taken_for_that(both: Both) -> None:
    broken = Small(both.engine.translator, 0, RuntimeError("something else"))
    with pytest.raises(RuntimeError, match="something else"):
        search(changed(both.engine, translator=broken), [[5]], DecodeConfig())


def test_scores_that_are_not_finite_are_refused(both: Both) -> None:
    class Result(NamedTuple):
        hypotheses: list[list[str]]
        scores: list[float]

    class Diverged:
        def translate_batch(self, sources: Sequence[Any], **options: Any) -> list[Later]:
            return [Later(lambda: Result([["</s>"]], [float("nan")])) for _ in sources]

    with pytest.raises(DecodeError, match="scores are not finite"):
        search(changed(both.engine, translator=Diverged()), [[5]], DecodeConfig())


def test_what_the_machine_cannot_do_is_named_with_what_it_can(both: Both, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"has the precisions .*float32.*int8.* on this cpu, got float8"):
        open_folder(tmp_path, "float8")
    with pytest.raises(ConfigError, match="CTranslate2 cannot load it"):
        open_folder(tmp_path, "float32")
    if not torch.cuda.is_available():
        with pytest.raises(ConfigError, match="sees no GPU here"):
            open_folder(tmp_path, "float32", "cuda")


@pytest.mark.parametrize(
    ("beam_size", "patience", "n_best"),
    [(4, 0.3, 1), (4, 1.1, 1), (4, 1.2, 1), (4, 2.5, 2), (5, 0.01, 3), (25, 0.01, 7)],
)
def test_any_patience_is_possible(both: Both, beam_size: int, patience: float, n_best: int) -> None:
    config = DecodeConfig(beam_size=beam_size, patience=patience)
    found = search(both.engine, both.sources[:5], config, n_best)
    want = search_all(both.bundle.model, both.sources[:5], config, CPU, n_best)
    assert [len(one) for one in found] == [len(one) for one in want] == 5 * [n_best]
    assert sum(a[0].ids == b[0].ids for a, b in zip(found, want, strict=True)) >= 4


# --- what is cancelled -----------------------------------------------------------------------------------------


class Counted(Small):
    """Stands for CTranslate2's translator: counts the batches that are handed over, and what they hold."""

    def __init__(self, real: Any) -> None:
        super().__init__(real, 10_000, MemoryError())

    @property
    def handed(self) -> int:
        """How many sources were handed over."""
        return sum(self.sizes)


@pytest.mark.parametrize("workers", [1, 3])
def test_what_is_queued_is_dropped_when_nobody_wants_it(both: Both, workers: int) -> None:
    config = DecodeConfig(beam_size=2, batch_tokens=30)
    want, counted, whole = search(both.engine, both.sources, config), Counted(both.engine.translator), Counted(None)
    whole.real = both.engine.translator
    search(changed(both.engine, translator=whole, workers=workers), both.sources, config)
    n_done: list[int] = []
    engine = changed(both.engine, translator=counted, workers=workers)
    found = search(
        engine, both.sources, config, alive=lambda i: not n_done, progress=lambda done, total, what: n_done.append(done)
    )
    assert counted.sizes == whole.sizes[: 2 * workers]  # so many batches had been handed over by then
    assert len(counted.sizes) < len(whole.sizes)
    assert sum(bool(one) for one in found) == counted.handed
    assert all(one in ([], other) for one, other in zip(found, want, strict=True))


def test_batches_are_smaller_where_their_size_is_left_open(both: Both, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctranslate2_engine, "BATCH_TOKENS", 60)
    segments = [Segment(ids=ids) for ids in both.sources]
    found, handed = [], []
    for balance, batch_tokens in ((False, 1000), (True, 1000), (True, 30)):
        counted = Counted(both.engine.translator)
        settings = SearchSettings(decode=DecodeConfig(beam_size=2, batch_tokens=batch_tokens), balance=balance)
        found.append(changed(both.engine, translator=counted).search(segments, settings).hypotheses)
        handed.append(len(counted.sizes))
    assert handed[0] < handed[1] < handed[2]  # what a run's settings say is never exceeded
    for other in found[1:]:
        assert [h[0].ids for h in other] == [h[0].ids for h in found[0]]
        assert [h[0].score for h in other] == pytest.approx([h[0].score for h in found[0]], abs=1e-5)


def test_the_others_are_as_they_were(both: Both) -> None:
    config = DecodeConfig(beam_size=3, batch_tokens=60)
    want = search(both.engine, both.sources, config, 2)
    counted, dropped = Counted(both.engine.translator), {3, 17, 40}
    engine = changed(both.engine, translator=counted)
    found = search(engine, both.sources, config, 2, alive=lambda i: i not in dropped)
    assert [i for i, one in enumerate(found) if not one] == sorted(dropped)
    assert counted.handed == len(both.sources) - len(dropped)
    for i, (one, other) in enumerate(zip(found, want, strict=True)):
        if i not in dropped:
            assert [h.ids for h in one] == [h.ids for h in other]
            assert [h.score for h in one] == pytest.approx([h.score for h in other], abs=1e-5)
    none = changed(both.engine, translator=None)  # which could not search
    assert search(none, both.sources, config, alive=lambda i: False) == [[]] * len(both.sources)


def test_what_is_dropped_counts_as_done(both: Both) -> None:
    told: list[tuple[int, int]] = []
    config = DecodeConfig(beam_size=2, batch_tokens=30)
    search(
        both.engine, both.sources, config, alive=lambda i: i % 2 == 0,
        progress=lambda done, total, what: told.append((done, total)),
    )  # fmt: skip
    assert told == sorted(told)
    assert told[-1] == (60, 60)


def test_loading_it_leaves_torch_its_number_of_threads(tiny_run: Path, tmp_path: Path) -> None:
    shutil.copytree(tiny_run / "bundle", tmp_path / "run/bundle")
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        Translator.load(tmp_path / "run", "cpu").plan(engine="ctranslate2", threads=1)
        assert torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize(
    ("options", "n_workers"),
    [({}, 3), ({"threads": 1}, 1), ({"threads": 2}, 2), ({"threads": 4}, 4), ({"deterministic": True}, 3)],
)
def test_as_many_batches_are_searched_at_a_time_as_there_may_be_threads(
    options: dict[str, Any], n_workers: int, tiny_run: Path, tmp_path: Path
) -> None:
    shutil.copytree(tiny_run / "bundle", tmp_path / "run/bundle")
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        for engine in ({"engine": "ctranslate2"}, {"fast": True}):
            engine_of_plan: Any = Translator.load(tmp_path / "run", "cpu").plan(**engine, **options).engine
            assert engine_of_plan.translator.num_translators == n_workers
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize("n_decoder_layers", [1, 2, 3])
@pytest.mark.parametrize("batch_tokens", [1, 4096])
def test_the_attention_of_given_translations_is_that_of_our_model(
    tiny_run: Path, n_decoder_layers: int, batch_tokens: int
) -> None:
    bundle = load_bundle(tiny_run)
    config = bundle.sizes.model_copy(update={"n_decoder_layers": n_decoder_layers})
    bundle = bundle._replace(weights=fill(Transformer(config).eval(), seed=1, spread=1 / 4))
    chance = random.Random(2)
    sizes = [(1, 0), (3, 1), (9, 4), (4, 9), (12, 12), (2, 17)]  # source and translation: none, shorter, longer
    pairs = [tuple([chance.randrange(4, config.tgt_vocab_size) for _ in range(n)] for n in pair) for pair in sizes]
    pairs.append(([7, 8], [UNK_ID, 9]))
    want = attend_all(bundle.model, pairs, CPU)
    engine = CTranslate2.load(Models((bundle,)), "fp32", 1)
    assert engine.attend is not None
    found = engine.attend(pairs, batch_tokens)
    for ours, theirs, (src, tgt) in zip(want, found, pairs, strict=True):
        assert ours is not None
        assert theirs is not None
        assert theirs.shape == (len(tgt) + 1, len(src))
        np.testing.assert_allclose(theirs, ours[:, : len(src)], atol=2e-6)
    assert engine.attend(pairs, batch_tokens, Cancellation(lambda: True)) == [None] * len(pairs)
    long = engine.attend([([7] * 1023, [8]), ([7], [8] * 1024), ([7] * 1024, [8])], batch_tokens)
    assert [one is None for one in long] == [False, True, True]  # its table of positions has 1,024 rows
    engine.close()


def test_an_export_that_is_compared_is_not_asked_for_attention(both: Both) -> None:
    """It may be of an earlier version, which returns that of another layer."""
    assert both.engine.attend is None


@pytest.mark.parametrize("beam_size", [1, 4])
def test_the_rules_of_the_guard_hold_and_scores_stay_the_models(noisy: Both, both: Both, beam_size: int) -> None:
    decode = DecodeConfig(beam_size=beam_size, max_extra_tokens=12, batch_tokens=10_000)
    for bundle, engine, sources in (noisy, both):
        spelling = Spelling(bundle.tgt_tokenizer.spelled)
        kinds = [None, Rules(spelling), Rules(spelling, no_repeat_ngram=2), Rules(spelling, min_tokens=11),
                 Rules(spelling, no_repeat_ngram=3, min_tokens=1)]  # fmt: skip
        segments = [Segment(ids=src, rules=rules) for src in sources[:6] for rules in kinds]
        assert all(engine.can_search(rules) for rules in kinds if rules is not None)
        settings = SearchSettings(decode=decode, n_best=beam_size)
        found = engine.search(segments, settings).hypotheses
        pairs = [(segment.ids, h.ids) for segment, best in zip(segments, found, strict=True) for h in best]
        reads = iter(read_all(bundle.model, pairs, CPU))
        for segment, best in zip(segments, found, strict=True):
            rules = segment.rules or Rules(spelling)
            assert best
            for h in best:
                assert len(h.ids) >= min(rules.min_tokens, len(segment.ids) + 11)
                if n := rules.no_repeat_ngram:
                    runs = [tuple(h.ids[i : i + n]) for i in range(len(h.ids) - n + 1)]
                    assert len(runs) == len(set(runs))
                read = next(reads)
                assert read is not None
                assert h.log_prob == pytest.approx(read.log_prob, abs=2e-4)
        free = engine.search([Segment(ids=src) for src in sources[:6]], settings).hypotheses
        assert [[h.ids for h in best] for best in found[::5]] == [[h.ids for h in best] for best in free]
    with pytest.raises(ConfigError, match="cannot search with a prefix, or with words to include or exclude"):
        engine.search([Segment(ids=[5], rules=Rules(spelling, exclude=(b"dog",)))], settings)
    words = {"prefix": b" dog", "exclude": (b"dog",), "include": ((5,),), "ids": (5,)}
    assert not any(engine.can_search(Rules(spelling, **{name: value})) for name, value in words.items())  # type: ignore[arg-type]


def test_the_guard_searches_again_with_the_engine_itself_where_it_can(
    tiny_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[int, int]] = []
    real = CTranslate2.search

    def recorded(self: CTranslate2, segments: Sequence[Segment], *rest: Any) -> SearchResult:
        asked.extend((s.rules.no_repeat_ngram, s.rules.min_tokens) for s in segments if s.rules is not None)
        return real(self, segments, *rest)

    monkeypatch.setattr(CTranslate2, "search", recorded)
    monkeypatch.setattr("dragoman.translation.guard.faults", lambda *args, **facts: ("loop",))
    monkeypatch.setattr("dragoman.toolkits.ours.search.Torch.search", lambda *given: pytest.fail("not needed"))
    shutil.copytree(tiny_run / "bundle", tmp_path / "run/bundle")
    translator = Translator.load(tmp_path / "run", "cpu")
    (line,) = translator.translate(["the dog sees a cat"], engine="ctranslate2")
    assert asked == [(3, 1)]
    assert [note.kind for note in line.notes] == ["loop"]
