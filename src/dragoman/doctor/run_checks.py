"""Checks of a run's log: each yields a finding if it sees its problem.

    for finding in check_run(read_run(Path("runs/first"))):
        print(finding.headline(), finding.advice)

To add a check, write a function and append it to ``CHECKS``.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterator
from typing import Any

from dragoman.doctor.findings import Finding, percent, shortened
from dragoman.errors import as_command
from dragoman.languages.codes import primary
from dragoman.languages.stopwords import another_language, words_of
from dragoman.training.advice import divergence, longer, lower_rate_of, retrain, smooth
from dragoman.training.log import EARLY_TOKENS, SENSE
from dragoman.training.record import Record
from dragoman.training.task import task_of

FEW_PAIRS = 200
"""Number of validation pairs below which BLEU varies too much by chance."""

LATE = 0.2
"""Fraction of a run that counts as its end."""

NO_BLEU = 2.0
"""BLEU below which the likely cause is a mistake, and not only too little training."""


def check_run(run: Record) -> list[Finding]:
    """Return the findings of all checks; a healthy run has none."""
    checks = [check for check in CHECKS if task_of(run.config).quality == "bleu" or check not in BY_BLEU]
    return [finding for check in checks for finding in check(run)]


def unfinished(run: Record) -> Iterator[Finding]:
    """Report a run whose log does not end, that was stopped, or that has no bundle."""
    resume = f"resume with: {as_command('dragoman', 'train', '--out', run.folder, '--resume')}"
    if not run.reports and not run.validations:
        yield Finding("error", "no-steps", "the log has no progress report yet", f"wait for the first, or {resume}")
    elif run.end is None:
        progress = f"step {run.step:,} of {run.config.train.max_steps:,}"
        yield Finding("warning", "unfinished", f"the log ends at {progress}: still running, or killed", resume)
    elif run.end.get("reason") == "signal":
        yield Finding("warning", "stopped", f"a signal stopped it at step {run.step:,}", resume)
    elif not run.has_bundle:
        yield Finding("error", "no-bundle", "training ended but there is no bundle to translate with", resume)
    elif run.has_older_bundle:
        what = "training was continued to its end, but the bundle is still the one of before"
        yield Finding("warning", "older-bundle", what, resume)


def skipped(run: Record) -> Iterator[Finding]:
    """Report updates that were skipped because their loss or gradient was not finite."""
    n = len(run.skipped)
    if not n:
        return
    limit = run.config.train.max_bad_steps
    steps = [event["step"] for event in run.skipped]
    in_a_row = n >= limit and steps[-1] - steps[-limit] == limit - 1
    lower = _lower_rate(run)
    if in_a_row and run.end is None:
        yield Finding(
            "error", "not-finite", f"training stopped at step {steps[-1]:,}: {limit} updates in a row were NaN or "
            f"infinite, {n:,} in all", f"{lower}; if they began at the first steps, try --set train.precision=fp32",
        )  # fmt: skip
    else:
        share = n / max(run.step, 1)
        yield Finding(
            "warning" if share > 0.001 else "note", "skipped",
            f"{n:,} updates ({percent(share)}) were NaN or infinite and were skipped, the first at step {steps[0]:,}",
            f"a few do no harm; if there are more and more: {lower}",
        )  # fmt: skip


def _lower_rate(run: Record) -> str:
    """Return the advice to train again with a lower learning rate."""
    return f"train again with a lower learning rate: {lower_rate_of(run.folder, run.config)}"


def diverged(run: Record) -> Iterator[Finding]:
    """Report a training loss that has risen far above its best, or above the loss of guessing."""
    how = divergence(run.losses(), run.config, len(run.skipped), run.step)
    if how is not None and len(run.losses()) >= 6:
        means = smooth(run.losses())
        best_step = run.finite_reports()[means.index(min(means))]["step"]
        what = f"{how} (its best was at about step {best_step:,}): it diverged"
        yield Finding("error", "diverged", what, _lower_rate(run))


def stuck(run: Record) -> Iterator[Finding]:
    """Report a training loss that is high and has hardly moved during the second half of the run."""
    losses = run.losses()
    after_warmup = [e["loss"] for e in run.reports if e["step"] > run.config.train.warmup_steps]
    if len(losses) < 10 or len(after_warmup) < 6 or any(diverged(run)):
        return
    middle, now = statistics.mean(losses[len(losses) // 2 :][:3]), statistics.mean(losses[-3:])
    if now < 4.0 or middle - now > 0.05 * middle:
        return
    peak = max(event["lr"] for event in run.reports)
    what = f"the training loss stays at {now:.1f} nats (perplexity {math.exp(now):,.0f}) since the middle of the run"
    if peak < 1e-4:
        yield Finding(
            "error", "rate-too-low", f"{what}, with a learning rate of {peak:.1e} at its peak: too low",
            "raise train.lr (1e-3 is usual for cosine and inverse_sqrt, 1 for noam)",
        )  # fmt: skip
    else:
        yield Finding(
            "error", "stuck", f"{what}, with a learning rate of {peak:.1e} at its peak: probably too high",
            f"{_lower_rate(run)}{_or_pre_norm(run)}",
        )  # fmt: skip


def _or_pre_norm(run: Record) -> str:
    """Return the advice to try pre-norm too, if the run is post-norm (docs/decisions/0030-pre-norm-by-default.md)."""
    model = run.config.model
    is_post = model.architecture == "transformer" and model.norm == "post"
    return "; or model.norm=pre, which needs fewer epochs and trains deep models more easily" if is_post else ""


def spikes(run: Record) -> Iterator[Finding]:
    """Report a gradient whose norm jumps while clipping is off."""
    norms = [e["grad_norm"] for e in run.reports if math.isfinite(e.get("grad_norm", math.nan))][5:]
    if len(norms) < 20 or run.config.train.clip_norm is not None:
        return
    usual = statistics.median(norms)
    n = sum(norm > 10 * usual for norm in norms)
    if n >= max(3, 0.02 * len(norms)):
        yield Finding(
            "warning", "gradient-spikes", f"the gradient jumped to more than ten times its usual norm ({usual:.2g}) in "
            f"{n} of {len(norms)} reports", _lower_rate(run),
        )  # fmt: skip


def overfitted(run: Record) -> Iterator[Finding]:
    """Report a validation loss that rises while the training loss falls."""
    validations = [v for v in run.validations if math.isfinite(v["loss"])]
    if len(validations) < 4 or any(diverged(run)):
        return
    best = min(validations, key=lambda v: v["loss"])
    last = validations[-1]
    before, after = _loss_at(run, best["step"]), _loss_at(run, last["step"])
    if last["loss"] > best["loss"] + 0.1 and after < before - 0.05:
        best_bleu = max(validations, key=lambda v: v["bleu"])
        what = (
            f"validation perplexity rose from {math.exp(best['loss']):.2f} (step {best['step']:,}) to "
            f"{math.exp(last['loss']):.2f} while the training perplexity fell from {math.exp(before):.2f} to "
            f"{math.exp(after):.2f}: it overfits"
        )
        higher = min(0.5, run.config.model.dropout + 0.1)
        advice = (
            f"use more text; or model.dropout={higher:.1f}, data.tokenizer.sampling=0.1, a smaller model; or stop "
            f"earlier: {retrain(run.folder, {'patience': 5})} (the best BLEU was at step {best_bleu['step']:,})"
        )
        yield Finding("warning", "overfitting", what, advice)


def _loss_at(run: Record, step: int) -> float:
    """Return the mean training loss of the last five reports up to a step, in nats; nan if there is none."""
    before = [e["loss"] for e in run.reports if e["step"] <= step and math.isfinite(e["loss"])]
    return statistics.mean(before[-5:]) if before else math.nan


def plateau(run: Record) -> Iterator[Finding]:
    """Report a BLEU that has not improved during the second half of the validations."""
    validations = run.validations
    if len(validations) < 8 or any(f for check in (overfitted, no_translations, diverged, stuck) for f in check(run)):
        return
    best = max(validations, key=lambda v: v["bleu"])
    since = len(validations) - 1 - validations.index(best)
    if since >= 5 and since >= len(validations) / 2:
        yield Finding(
            "note", "plateau", f"no better BLEU than {best['bleu']:.2f} (step {best['step']:,}) in the "
            f"{since} validations since", f"end training earlier: {retrain(run.folder, {'patience': 5})}; to get "
            "further, use more text, another learning rate or a larger model",
        )  # fmt: skip


def underfitted(run: Record) -> Iterator[Finding]:
    """Report a BLEU that was still rising when training ended."""
    validations = run.validations
    if len(validations) < 4 or run.end is None or run.end.get("reason") == "signal":
        return
    last = validations[-1]
    earlier = [v for v in validations if v["step"] <= (1 - LATE) * last["step"]]
    if not earlier or any(no_translations(run)):
        return
    gained = last["bleu"] - max(v["bleu"] for v in earlier)
    if gained > max(1.0, 0.05 * last["bleu"]) and last["bleu"] >= max(v["bleu"] for v in validations):
        yield Finding(
            "note", "still-learning", f"BLEU rose by {gained:.1f} to {last['bleu']:.1f} in the last fifth of the run: "
            "it was still learning",
            f"train longer: {_longer(run, 2)}{_or_pre_norm(run)}",
        )  # fmt: skip


def _longer(run: Record, times: float) -> str:
    """Return the command for a run that is ``times`` as long."""
    end = run.end or {}
    seconds = end.get("seconds", 0.0)
    return retrain(run.folder, longer(run.config.train, end.get("reason"), run.step, seconds, times))


def no_translations(run: Record) -> Iterator[Finding]:
    """Report a BLEU too low to be useful, with the likeliest cause.

    Either training was too short, or the model learned too little, or it predicts the next word well and still
    translates badly, which points to a mistake in the data or the code.
    """
    validations = run.validations
    losses = run.losses()
    best = max((v["bleu"] for v in validations), default=SENSE)
    if not losses or best >= SENSE:
        return
    last, train_loss = validations[-1], statistics.mean(losses[-5:])
    if train_loss > math.log(10) and run.tokens <= EARLY_TOKENS:
        if run.end is not None and run.end.get("reason") != "signal":
            yield Finding(
                "warning", "too-short", f"BLEU is {last['bleu']:.1f}: training ended after {run.tokens:,} target "
                f"tokens; readable translations take about {EARLY_TOKENS:,}",
                f"train longer: {_longer(run, max(2, math.ceil(EARLY_TOKENS / max(1, run.tokens))))}",
            )  # fmt: skip
        return
    if train_loss > math.log(10):
        if run.end is not None and not any(stuck(run)) and not any(diverged(run)):
            yield Finding(
                *(("error", "bleu-zero") if best < NO_BLEU else ("warning", "bleu-low")),
                f"BLEU is {last['bleu']:.1f} after {run.tokens:,} target tokens, at a training perplexity of "
                f"{math.exp(train_loss):.0f}: it has learned too little to translate",
                "train longer, or on more text; if the perplexity hardly falls, check that the pairs are translations "
                f"of each other: {as_command('dragoman', 'doctor', run.folder / 'config.yaml')}",
            )  # fmt: skip
        return
    if best >= NO_BLEU:
        return
    what = f"training perplexity is {math.exp(train_loss):.1f}, but BLEU is {last['bleu']:.1f}"
    cause, advice = _why_no_bleu(run, last, train_loss)
    yield Finding("error", "accurate-but-bleu-zero", f"{what}: {cause}", advice)


def _why_no_bleu(run: Record, last: dict[str, Any], train_loss: float) -> tuple[str, str]:
    """Return the likeliest cause of a BLEU near 0 at a low perplexity, and the advice.

    Args:
        run: The run.
        last: Its last validation, as the log has it.
        train_loss: Training loss at the end, in nats per token.
    """
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
            f"look at {run.folder}/samples.txt, and at the files: "
            f"{as_command('dragoman', 'doctor', run.folder / 'config.yaml')}",
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
            f"chrF is {last['chrf']:.0f}, so the characters are right, but words are split in another way",
            "set data.tgt_lang (BLEU splits zh, ja, th and others into characters), and give references as raw text, "
            "neither tokenised nor split into subwords",
        )
    return (
        "it predicts the next word of a reference, but cannot translate by itself; the usual cause is that the target "
        "is not shifted, so that the decoder reads the answer",
        "feed tgt_in = bos + ids and compare with tgt_out = ids + eos; check that the decoder's mask hides later "
        "positions; compare samples.txt with the references",
    )


def small_validation(run: Record) -> Iterator[Finding]:
    """Report a validation set too small to tell two checkpoints apart."""
    n = run.stores.get("valid", {}).get("pairs")
    if isinstance(n, int) and n < FEW_PAIRS:
        yield Finding(
            "note", "small-validation",
            f"the validation set has {n} pair{'s' * (n != 1)}: its BLEU moves by several points by chance",
            "name two files of 500 pairs or more: dragoman train ... --valid FILE --valid FILE",
        )  # fmt: skip


def dropped(run: Record) -> Iterator[Finding]:
    """Report that cleaning dropped more than 5% of the training pairs."""
    report = run.stores.get("train", {}).get("report", {})
    n_read, n_kept = report.get("read", 0), report.get("kept", 0)
    if not n_read or (n_read - n_kept) / n_read <= 0.05:
        return
    reasons = {
        "empty": "with a blank side",
        "too_long": "too long",
        "ratio": "with very different lengths",
        "duplicates": "repeated",
    }
    parts = ", ".join(f"{report[name]:,} {words}" for name, words in reasons.items() if report.get(name))
    yield Finding(
        "warning" if (n_read - n_kept) / n_read > 0.2 else "note", "dropped", f"were dropped before training: {parts}",
        "if that is too much, change data.max_tokens, data.max_ratio or data.drop_duplicates", n_read - n_kept, n_read,
    )  # fmt: skip


def odd_vocabulary(run: Record) -> Iterator[Finding]:
    """Report a vocabulary whose odd size shows that the text had fewer subwords than requested."""
    size = run.config.data.tokenizer.vocab_size
    if size % 10 and size % 64:
        yield Finding(
            "note", "vocabulary", f"the vocabulary has {size:,} subwords, probably fewer than requested: the corpus "
            "has no more", "nothing to do if the corpus is small on purpose; else use more text",
        )  # fmt: skip


def slower(run: Record) -> Iterator[Finding]:
    """Report that training became much slower, in target tokens per second."""
    speeds = [e["tokens_per_s"] for e in run.reports if e.get("tokens_per_s", 0) > 0][1:]
    if len(speeds) < 10:
        return
    fifth = max(3, len(speeds) // 5)
    first, last = statistics.median(speeds[:fifth]), statistics.median(speeds[-fifth:])
    if last < 0.6 * first:
        yield Finding(
            "note", "slower", f"training slowed down from {first:,.0f} to {last:,.0f} target tokens/s",
            "check what else runs on the machine, if it swaps memory, and if it is too hot",
        )  # fmt: skip


CHECKS: tuple[Callable[[Record], Iterator[Finding]], ...] = (
    unfinished, skipped, diverged, stuck, spikes, no_translations, overfitted, plateau, underfitted, small_validation,
    dropped, odd_vocabulary, slower,
)  # fmt: skip
"""All checks, in the order in which they run."""

BY_BLEU = (no_translations, overfitted, plateau, underfitted, small_validation)
"""Checks that need BLEU, which a parser does not have."""
