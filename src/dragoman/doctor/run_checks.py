"""What the log of a run says, in plain words, with what to try."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from dragoman.doctor.findings import Finding, Level, percent, shortened
from dragoman.languages.codes import primary
from dragoman.languages.stopwords import another_language, words_of
from dragoman.training.log import EARLY_TOKENS, SENSE
from dragoman.training.record import Record
from dragoman.training.task import task_of

FEW_PAIRS = 200  # a BLEU of fewer validation pairs jumps about
LATE = 0.2  # the last part of a run
NO_BLEU = 2.0  # below it more may be amiss than that a model has learned too little


def diagnose(run: Record) -> list[Finding]:
    """All that is wrong with a run; nothing for a healthy one."""
    checks = [check for check in CHECKS if task_of(run.config).quality == "bleu" or check not in BY_BLEU]
    return [finding for check in checks for finding in check(run)]


def _finding(level: Level, name: str, what: str, advice: str) -> Iterator[Finding]:
    yield Finding(level, name, what, advice)


def unfinished(run: Record) -> Iterator[Finding]:
    """The log does not end, or training was stopped."""
    go_on = f"resume with: dragoman train --out {run.folder} --resume"
    if not run.reports and not run.validations:
        yield from _finding("error", "no-steps", "the log has no report yet", f"wait for the first, or {go_on}")
    elif run.end is None:
        of = f"step {run.step:,} of {run.config.train.max_steps:,}"
        yield from _finding("warning", "unfinished", f"the log ends at {of}: still running, or killed", go_on)
    elif run.end.get("reason") == "signal":
        yield from _finding("warning", "stopped", f"a signal stopped it at step {run.step:,}", go_on)
    elif not run.has_bundle:
        yield from _finding("error", "no-bundle", "training ended but there is no bundle to translate with", go_on)


def skipped(run: Record) -> Iterator[Finding]:
    """Updates with a loss or gradient that was not finite."""
    n = len(run.skipped)
    if not n:
        return
    limit = run.config.train.max_bad_steps
    steps = [event["step"] for event in run.skipped]
    in_a_row = n >= limit and steps[-1] - steps[-limit] == limit - 1
    lower = _lower_rate(run)
    if in_a_row and run.end is None:
        yield from _finding(
            "error", "not-finite", f"training stopped at step {steps[-1]:,}: {limit} updates in a row were NaN or "
            f"infinite, {n:,} in all", f"{lower}; if they began at once, try train.precision=fp32",
        )  # fmt: skip
    else:
        share = n / max(run.step, 1)
        yield from _finding(
            "warning" if share > 0.001 else "note", "skipped",
            f"{n:,} updates ({percent(share)}) were NaN or infinite and were skipped, the first at step {steps[0]:,}",
            f"a few do no harm; if they become more: {lower}",
        )  # fmt: skip


def _lower_rate(run: Record) -> str:
    train = run.config.train
    factor = 1.0 if train.lr is None else train.lr
    parts = [f"train.lr={factor / 2:g}"]
    parts += [] if train.clip_norm else ["train.clip_norm=1"]
    return f"a new run with {', '.join(parts)} or train.warmup_steps={2 * train.warmup_steps}"


def diverged(run: Record) -> Iterator[Finding]:
    """The training loss has risen far above its best, or above that of guessing."""
    losses = run.losses()
    if len(losses) < 6:
        return
    means = _smooth(losses)
    best, guessing = min(means), math.log(run.config.data.tokenizer.vocab_size)
    if means[-1] > 1.5 * guessing:
        yield from _finding(
            "error", "diverged", f"the training loss is {means[-1]:,.1f} nats; to guess any subword would have "
            f"{guessing:.1f}", f"the learning rate is too high: {_lower_rate(run)}",
        )  # fmt: skip
    elif means[-1] > best + max(0.5, 0.25 * best):
        at = run.finite_reports()[means.index(best)]["step"]
        yield from _finding(
            "error", "diverged", f"the training loss rose from {best:.2f} nats (about step {at:,}) to {means[-1]:.2f}: "
            "it diverged", f"the learning rate is too high: {_lower_rate(run)}",
        )  # fmt: skip


def stuck(run: Record) -> Iterator[Finding]:
    """The training loss has hardly moved for half of the run, and is high."""
    losses = run.losses()
    after_warmup = [e["loss"] for e in run.reports if e["step"] > run.config.train.warmup_steps]
    if len(losses) < 10 or len(after_warmup) < 6 or any(diverged(run)):
        return
    half, now = statistics.mean(losses[len(losses) // 2 :][:3]), statistics.mean(losses[-3:])
    if now < 4.0 or half - now > 0.05 * half:
        return
    peak = max(event["lr"] for event in run.reports)
    what = f"the training loss stays at {now:.1f} nats (perplexity {math.exp(now):,.0f}) since half of the run"
    if peak < 1e-4:
        yield from _finding(
            "error", "rate-too-low", f"{what}, with a learning rate of {peak:.1e} at its peak: too low",
            "raise train.lr (1e-3 is usual for cosine and inverse_sqrt, 1 for noam)",
        )  # fmt: skip
    else:
        yield from _finding(
            "error", "stuck", f"{what}, with a learning rate of {peak:.1e} at its peak: probably too high",
            f"{_lower_rate(run)}{_or_pre_norm(run)}",
        )  # fmt: skip


def _or_pre_norm(run: Record) -> str:
    """More to try, where it is not what was done: docs/decisions/0030-pre-norm-by-default.md."""
    model = run.config.model
    is_post = model.architecture == "transformer" and model.norm == "post"
    return "; or model.norm=pre, which learns from fewer epochs, and trains deep models more easily" if is_post else ""


def spikes(run: Record) -> Iterator[Finding]:
    """The gradient's norm jumps, and nothing clips it."""
    norms = [e["grad_norm"] for e in run.reports if math.isfinite(e.get("grad_norm", math.nan))][5:]
    if len(norms) < 20 or run.config.train.clip_norm is not None:
        return
    usual = statistics.median(norms)
    n = sum(norm > 10 * usual for norm in norms)
    if n >= max(3, 0.02 * len(norms)):
        yield from _finding(
            "warning", "gradient-spikes", f"the gradient jumped to more than ten times its usual norm ({usual:.2g}) in "
            f"{n} of {len(norms)} reports", f"{_lower_rate(run)}",
        )  # fmt: skip


def overfitted(run: Record) -> Iterator[Finding]:
    """The validation loss rises while the training loss falls."""
    found = [v for v in run.validations if math.isfinite(v["loss"])]
    if len(found) < 4 or any(diverged(run)):
        return
    best = min(found, key=lambda v: v["loss"])
    last = found[-1]
    before, after = _loss_at(run, best["step"]), _loss_at(run, last["step"])
    if last["loss"] > best["loss"] + 0.1 and after < before - 0.05:
        best_bleu = max(found, key=lambda v: v["bleu"])
        what = (
            f"validation perplexity rose from {math.exp(best['loss']):.2f} (step {best['step']:,}) to "
            f"{math.exp(last['loss']):.2f} while the training perplexity fell from {math.exp(before):.2f} to "
            f"{math.exp(after):.2f}: it overfits"
        )
        higher = min(0.5, run.config.model.dropout + 0.1)
        advice = (
            f"more text; or model.dropout={higher:.1f}, data.tokenizer.sampling=0.1, a smaller model; or stop by "
            f"train.patience=5 (the best BLEU was at step {best_bleu['step']:,})"
        )
        yield from _finding("warning", "overfitting", what, advice)


def _loss_at(run: Record, step: int) -> float:
    """Mean training loss of the five reports nearest before a step, in nats."""
    before = [e["loss"] for e in run.reports if e["step"] <= step and math.isfinite(e["loss"])]
    return statistics.mean(before[-5:]) if before else math.nan


def plateau(run: Record) -> Iterator[Finding]:
    """No better validation for more than half of the run."""
    found = run.validations
    if len(found) < 8 or any(f for check in (overfitted, no_translations, diverged, stuck) for f in check(run)):
        return
    best = max(range(len(found)), key=lambda i: found[i]["bleu"])
    since = len(found) - 1 - best
    if since >= 5 and since >= len(found) / 2:
        yield from _finding(
            "note", "plateau", f"no better BLEU than {found[best]['bleu']:.2f} (step {found[best]['step']:,}) in the "
            f"{since} validations since", "training can end earlier: train.patience=5; more comes from more text, "
            "another learning rate or a larger model",
        )  # fmt: skip


def underfitted(run: Record) -> Iterator[Finding]:
    """Still getting better when training ended."""
    found = run.validations
    if len(found) < 4 or run.end is None or run.end.get("reason") == "signal":
        return
    last = found[-1]
    start = [v for v in found if v["step"] <= (1 - LATE) * last["step"]]
    if not start or any(no_translations(run)):
        return
    gained = last["bleu"] - max(v["bleu"] for v in start)
    if gained > max(1.0, 0.05 * last["bleu"]) and last["bleu"] >= max(v["bleu"] for v in found):
        yield from _finding(
            "note", "still-learning", f"BLEU rose by {gained:.1f} to {last['bleu']:.1f} in the last fifth of the run: "
            "it was still learning",
            f"train longer: a new run with {_longer(run, 2)}{_or_pre_norm(run)}",
        )  # fmt: skip


def _longer(run: Record, times: int) -> str:
    """The settings that make a run ``times`` as long."""
    train, end = run.config.train, run.end or {}
    reason, steps, minutes = end.get("reason"), times * run.step, times * end.get("seconds", 0.0) / 60
    wanted = {}
    if reason == "patience" and train.patience is not None:
        wanted["patience"] = times * train.patience
    if reason == "max_epochs" and train.max_epochs is not None:
        wanted["max_epochs"] = times * train.max_epochs
    if train.max_minutes is not None and (reason == "max_minutes" or minutes > train.max_minutes):
        wanted["max_minutes"] = math.ceil(max(minutes, times * train.max_minutes))
    if not wanted or reason == "max_steps" or steps > train.max_steps:
        wanted["max_steps"] = steps
    return ", ".join(f"train.{name}={value}" for name, value in wanted.items())


def no_translations(run: Record) -> Iterator[Finding]:
    """The translations are worth nothing: training was too short, or the next word is predicted well and yet so."""
    found = run.validations
    losses = run.losses()
    best = max((v["bleu"] for v in found), default=SENSE)
    if not losses or best >= SENSE:
        return
    last, train_loss = found[-1], statistics.mean(losses[-5:])
    if train_loss > math.log(10) and run.tokens <= EARLY_TOKENS:
        if run.end is not None and run.end.get("reason") != "signal":
            yield from _finding(
                "warning", "too-short", f"BLEU is {last['bleu']:.1f}: training ended after {run.tokens:,} target "
                f"tokens; sense takes about {EARLY_TOKENS:,}",
                f"train longer: {_longer(run, max(2, math.ceil(EARLY_TOKENS / max(1, run.tokens))))}",
            )  # fmt: skip
        return
    if train_loss > math.log(10):
        if run.end is not None and not any(stuck(run)) and not any(diverged(run)):
            yield from _finding(
                *(("error", "bleu-zero") if best < NO_BLEU else ("warning", "bleu-low")),
                f"BLEU is {last['bleu']:.1f} after {run.tokens:,} target tokens, at a training perplexity of "
                f"{math.exp(train_loss):.0f}: it has learned too little to translate",
                "train longer, or on more text; if the perplexity hardly falls, see whether the pairs belong "
                f"together: dragoman doctor {run.folder / 'config.yaml'}",
            )  # fmt: skip
        return
    if best >= NO_BLEU:
        return
    what = f"training perplexity is {math.exp(train_loss):.1f}, but BLEU is {last['bleu']:.1f}"
    yield Finding("error", "accurate-but-bleu-zero", f"{what}: {_why_no_bleu(run, last, train_loss)[0]}",
                  _why_no_bleu(run, last, train_loss)[1])  # fmt: skip


def _why_no_bleu(run: Record, last: dict[str, Any], train_loss: float) -> tuple[str, str]:
    """The likeliest cause of a BLEU near 0, and what to do."""
    samples = [s for s in last.get("samples", []) if isinstance(s, dict) and {"src", "ref", "hyp"} <= s.keys()]
    data = run.config.data
    swapped = [s for s in samples if another_language(words_of(s["src"]), data.src_lang) == primary(data.tgt_lang)]
    if swapped and 2 * len(swapped) >= len(samples):
        return "the validation sources are in the target language", "swap data.valid.src and data.valid.tgt"
    if last["loss"] > train_loss + math.log(10):
        high = math.exp(min(last["loss"], 700))
        return (
            f"validation perplexity is {high:,.0f}: the validation set is from another domain, or its lines are not "
            "aligned",
            f"look at {run.folder}/samples.txt, and at the files: dragoman doctor {run.folder / 'config.yaml'}",
        )
    if samples and not any(s["hyp"].strip() for s in samples):
        return "the translations are empty", "look for empty targets: dragoman doctor on the training text"
    if len(samples) > 1 and len({s["hyp"] for s in samples}) == 1:
        return (
            f"every translation is the same ({shortened(samples[0]['hyp'], 40)!r}): the model ignores the source",
            "check that source and target lines belong together: dragoman doctor on the training text",
        )
    if last.get("chrf", 0.0) >= 20:
        return (
            f"chrF is {last['chrf']:.0f}, so the characters are right and the words are cut otherwise",
            "set data.tgt_lang (BLEU cuts zh, ja, th and others into characters), and give references as raw text, "
            "neither tokenised nor cut into subwords",
        )
    return (
        "with teacher forcing it predicts the next word, but its own translations fail: as when the target is not "
        "shifted, so that the answer is in the input",
        "feed tgt_in = bos + ids and compare with tgt_out = ids + eos; check that the decoder's mask hides what comes "
        "after; compare samples.txt with the references",
    )


def small_validation(run: Record) -> Iterator[Finding]:
    """Too few pairs to tell two checkpoints apart."""
    n = run.stores.get("valid", {}).get("pairs")
    if isinstance(n, int) and n < FEW_PAIRS:
        yield from _finding(
            "note", "small-validation", f"the validation set has {n} pairs: its BLEU moves by several points by chance",
            "give 500 pairs or more with data.valid",
        )  # fmt: skip


def dropped(run: Record) -> Iterator[Finding]:
    """Cleaning took much of the corpus."""
    report = run.stores.get("train", {}).get("report", {})
    read, kept = report.get("read", 0), report.get("kept", 0)
    if not read or (read - kept) / read <= 0.05:
        return
    reasons = {
        "empty": "with a blank side",
        "too_long": "too long",
        "ratio": "of unlike lengths",
        "duplicates": "repeated",
    }
    parts = ", ".join(f"{report[name]:,} {words}" for name, words in reasons.items() if report.get(name))
    yield Finding(
        "warning" if (read - kept) / read > 0.2 else "note", "dropped", f"were dropped before training: {parts}",
        "if that is too much: data.max_tokens, data.max_ratio and data.drop_duplicates decide it", read - kept, read,
    )  # fmt: skip


def odd_vocabulary(run: Record) -> Iterator[Finding]:
    """A vocabulary of an odd size was lowered because the text has fewer subwords."""
    size = run.config.data.tokenizer.vocab_size
    if size % 10 and size % 64:
        yield from _finding(
            "note", "vocabulary", f"the vocabulary has {size:,} subwords, probably fewer than requested: the corpus "
            "yields no more", "nothing if the corpus is small on purpose; else give more text",
        )  # fmt: skip


def slower(run: Record) -> Iterator[Finding]:
    """Tokens a second fell."""
    speeds = [e["tokens_per_s"] for e in run.reports if e.get("tokens_per_s", 0) > 0][1:]
    if len(speeds) < 10:
        return
    fifth = max(3, len(speeds) // 5)
    first, last = statistics.median(speeds[:fifth]), statistics.median(speeds[-fifth:])
    if last < 0.6 * first:
        yield from _finding(
            "note", "slower", f"training slowed down from {first:,.0f} to {last:,.0f} target tokens/s",
            "see what else runs on the machine, whether it swaps (memory) and whether it is too hot",
        )  # fmt: skip


def _smooth(values: Sequence[float]) -> list[float]:
    """Means of five neighbours."""
    return [statistics.mean(values[max(0, i - 2) : i + 3]) for i in range(len(values))]


CHECKS: tuple[Callable[[Record], Iterator[Finding]], ...] = (
    unfinished, skipped, diverged, stuck, spikes, no_translations, overfitted, plateau, underfitted, small_validation,
    dropped, odd_vocabulary, slower,
)  # fmt: skip
BY_BLEU = (no_translations, overfitted, plateau, underfitted, small_validation)
"""Checks that make no sense of a parser."""
