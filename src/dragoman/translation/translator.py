"""Text to text: N lines in, N lines out, in order.

A blank line stays blank and the model is not asked. A line longer than the model was trained on is split at sentence
ends (or, failing that, at spaces, or anywhere), its parts are translated and joined, and a warning says so. A line for
which there is no memory does not hold up the others.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, nullcontext
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO, Self

import torch
from pydantic import ValidationError

from dragoman.bundle import Bundle, load_bundle
from dragoman.config import DecodeConfig
from dragoman.data.corpus import Line, read_lines_leniently
from dragoman.data.languages import UNSPACED, primary
from dragoman.decoding.batches import NO_MEMORY, search_all
from dragoman.decoding.ensemble import Ensemble, Mean
from dragoman.decoding.sampling import Sampling
from dragoman.decoding.search import Hypothesis, Model
from dragoman.device import check_precision, resolve_device, resolve_precision
from dragoman.engines import choice as engines
from dragoman.engines import ctranslate2 as ctranslate2_engine
from dragoman.engines.ctranslate2 import CTranslate2
from dragoman.errors import BundleError, ConfigError, DecodeError
from dragoman.fast.step import Engine, weight_versions
from dragoman.model.build import EncoderDecoder
from dragoman.model.transformer import Transformer
from dragoman.translation import parser as parsing
from dragoman.translation.confidence import Confidence, features
from dragoman.translation.glossary import Glossary
from dragoman.translation.guard import Guard, Guarded
from dragoman.translation.resumable import make_file
from dragoman.translation.scoring import Pairs, Scored
from dragoman.translation.segments import Part, align, by_part, cut, join, seamless, with_links
from dragoman.translation.segments import Translation as Translation
from dragoman.translation.segments import one_line as one_line
from dragoman.translation.splitting import windows
from dragoman.translation.word_constraints import Wording, WordingEncoder

logger = logging.getLogger(__name__)

READ_AHEAD = 2048
"""How many lines are read before they are sorted by length and translated."""


class Translator:
    """A trained model, or several as one, that translates text."""

    def __init__(self, bundle: Bundle, *others: Bundle) -> None:
        """Take a bundle; others make it an ensemble, and must have the same subwords (``load`` sees to that)."""
        self.config, model, self.src_tokenizer, self.tgt_tokenizer, self.manifest = bundle
        self._bundles = (bundle, *others)
        self.model: EncoderDecoder | Ensemble = Ensemble([each.model for each in self._bundles]) if others else model
        self.device = next(self.model.parameters()).device
        self._unspaced = primary(self.config.data.tgt_lang) in UNSPACED
        self._engines: dict[str, list[Engine]] = {}  # fast twins by precision
        self._making = threading.Lock()
        self._run: Path | None = None  # where it was loaded from, if it was
        self._loaded = self._converted = weight_versions(self.model)  # as they came, and as CTranslate2 has them
        self._foreign: dict[tuple[str, int], engines.Loaded] = {}  # CTranslate2 by precision and workers
        learned = self.manifest.get("confidence")
        self.confidence = (
            None if learned is None or others else Confidence.from_mapping(learned, "the confidence in the bundle")
        )
        """How good its translations are likely to be; None: not known, as for an ensemble. May be set."""

    @classmethod
    def load(cls, path: Path | str | Sequence[Path | str], device: str = "auto") -> Self:
        """Load a run folder or a bundle; of several an ensemble, with the settings of the first.

        Raises:
            BundleError: There is none, it is damaged, or the subwords of an ensemble differ.
            ConfigError: The device is not here.
        """
        paths = [path] if isinstance(path, Path | str) else list(path)
        if not paths:
            raise ConfigError("there is no run to load: name one, or several for an ensemble")
        bundles = [load_bundle(each, resolve_device(device)) for each in paths]
        for other, bundle in zip(paths[1:], bundles[1:], strict=True):
            if (bundle.src_tokenizer, bundle.tgt_tokenizer) != (bundles[0].src_tokenizer, bundles[0].tgt_tokenizer):
                raise BundleError(
                    f"{other}: its subwords are not those of {paths[0]}; an ensemble needs runs that were trained on "
                    "the same text with the same data.tokenizer"
                )
        translator = cls(*bundles)
        translator._run = Path(paths[0])
        return translator

    def translate(
        self,
        texts: Sequence[str],
        *,
        beam_size: int | None = None,
        length_penalty: float | None = None,
        patience: float | None = None,
        batch_tokens: int | None = None,
        n_best: int = 1,
        sampling: Sampling | None = None,
        prefix: str | Sequence[str] = "",
        include: Sequence[str] = (),
        exclude: Sequence[str] = (),
        glossary: Glossary | None = None,
        no_repeat_ngram: int = 0,
        alignments: bool = False,
        precision: str = "fp32",
        engine: str | CTranslate2 = "torch",
        workers: int = 1,
        deterministic: bool = False,
        guard: bool = True,
        first_number: int = 0,
        warn: Callable[[str], None] | None = None,
        failed: Callable[[str], None] | None = None,
        label: Callable[[int], str] = lambda i: f"line {i + 1}",
        progress: Callable[[int, int, str], object] = lambda done, total, what: None,
    ) -> list[Translation]:
        """Translate ``texts``, one translation for each, in order; a parser's are trees, as in the module ``parsing``.

        Args:
            texts: One sentence each, as raw text.
            beam_size: 1 is greedy; None takes the run's setting, as with the others.
            length_penalty: GNMT's alpha.
            patience: End a sentence's search with so many times ``beam_size`` finished translations: 1 as other systems
                do, and sooner than where nothing better can come.
            batch_tokens: Rows x longest source of one batch; not together with ``deterministic``.
            n_best: How many translations of each: ``Translation.alternatives`` holds the others.
            sampling: Draw by chance instead of searching.
            prefix: What each translation begins with: one for all, or one for each.
            include: Words (or phrases) that must stand in each translation.
            exclude: Words that must not.
            glossary: For each of its terms in a text, the term's target must stand in the translation.
            no_repeat_ngram: No so many subwords in a row come twice; 0: they may.
            alignments: Also say which source word each word is a translation of.
            precision: ``fp32``; ``bf16`` is faster where the processor has it, and less exact; ``int8`` (CPU) rounds
                weights to 8 bits, and is less exact still. What is read (``alignments``) is read in fp32 then.
            engine: What searches: ``torch``; ``ctranslate2`` (needs ``dragoman[ctranslate2]``); or ``auto``, which says
                what it took; see the module ``engines``.
            workers: So many batches are searched at a time, by threads that share the weights, on one core each. The
                order stays.
            deterministic: Decode each sentence alone, so that nothing beside it can touch its last bits.
            guard: Search again for a translation that is a loop, a copy of its source, empty or far too long, and
                say so in its ``notes``; see the module ``guard``.
            first_number: The number of the first text, from which sampling derives its random numbers.
            warn: Called with one line for each text that had to be split, and for each note of a translation.
            failed: Called with one line for each text that found no memory; its translation is empty, with a note.
            label: What a warning calls text number ``i``.
            progress: Told after each batch how many sentences are done, of how many.

        Raises:
            ConfigError: A setting is impossible.
            DecodeError: ``texts`` is a string instead of a sequence of strings; words are to be placed in samples; or a
                text found no memory (raised when the others are done, unless ``failed`` is given).
        """
        if isinstance(texts, str):
            raise DecodeError("translate takes a list of texts: write translate([text])")
        if deterministic and batch_tokens is not None:
            raise ConfigError("deterministic decodes each sentence alone: leave it out, or batch_tokens")
        if sampling is not None and (beam_size is not None or patience is not None):
            raise ConfigError("sampling draws tokens without a beam: leave out beam_size and patience, or sampling")
        config = self._decode_config(
            beam_size=beam_size,
            length_penalty=length_penalty,
            batch_tokens=1 if deterministic else batch_tokens,
            patience=patience,
        )
        trees = self.config.task == "parsing"
        if trees:
            _refuse_wishes(any((*prefix, include, exclude, glossary, no_repeat_ngram)), alignments)
        wishes = Wording("", include, exclude, glossary or None, no_repeat_ngram)
        wordings = self._wording.wordings(len(texts), prefix, wishes)
        if sampling is not None and (include or glossary):
            raise DecodeError("sampling cannot place words that must appear (include, glossary): leave out either")
        if trees:
            if n_best < 1:
                raise ConfigError(f"n_best = {n_best} must be 1 or more")
            parts, guard = parsing.cut(texts, self.src_tokenizer, self.max_tokens), False
        else:
            parts = self._parts(texts, wordings, warn, label)
        kept = max(n_best, config.beam_size) if trees and sampling is None else n_best
        asked = engine if isinstance(engine, str) else "ctranslate2"
        chosen = self._chosen(asked, precision, sampling is not None, alignments, wordings is not None)
        foreign = engine if isinstance(engine, CTranslate2) else self._foreign_engine(chosen, precision, workers)
        searcher = self.model if foreign is not None else self._searcher(precision)
        reading = precision if foreign is None and precision != "int8" else "fp32"
        lost: list[int] = []  # parts that found no memory
        with self._precision(reading if searcher is self.model else "fp32"):
            if foreign is not None:
                ids = [part.ids for part in parts]
                found = ctranslate2_engine.search_all(
                    foreign, ids, config, kept, progress, longest=self._longest, failed=lost.append
                )
            else:
                found = self._search(
                    searcher, parts, config, kept, sampling, first_number, workers, progress, lost.append
                )
            looked = self._look(searcher, parts, found, config) if guard else {}
        if trees:
            joined = parsing.join(texts, parts, found, n_best, config.length_penalty, self.tgt_tokenizer)
        else:
            between = "" if self._unspaced else " "
            joined = join(texts, parts, found, looked, config.length_penalty, self.tgt_tokenizer, between)
        result = [seamless(text, one) for text, one in zip(texts, joined, strict=True)] if guard else joined
        result = self._sure(texts, result, parts, looked)
        if alignments:
            with self._precision(reading):
                links = align(texts, parts, found, looked, self._pairs, config.batch_tokens)
            result = [with_links(*each) for each in zip(result, joined, links, strict=True)]
        _tell(result, {parts[i].owner for i in lost}, warn, failed, label)
        return result

    def score(
        self,
        sources: Sequence[str],
        targets: Sequence[str],
        *,
        length_penalty: float | None = None,
        batch_tokens: int | None = None,
        alignments: bool = False,
        precision: str = "fp32",
        progress: Callable[[int, int, str], object] = lambda done, total, what: None,
    ) -> list[Scored]:
        """Say how probable given translations are.

        A pair with a blank side, or one that finds no memory, is not scored: its numbers are nan, and a note says so.

        Args:
            sources, targets: Raw text; target ``i`` translates source ``i``.
            alignments: Also say which source word each target word belongs to.

        Raises:
            ConfigError: A setting is impossible.
            DecodeError: There are not as many targets as sources.
        """
        if self.config.task == "parsing":
            raise ConfigError("a parser does not score trees that are given: it is for translators")
        if isinstance(sources, str) or isinstance(targets, str) or len(sources) != len(targets):
            raise DecodeError("score takes two lists of as many texts: target i translates source i")
        config = self._decode_config(length_penalty=length_penalty, batch_tokens=batch_tokens)
        with self._precision(precision):
            return self._pairs.score(sources, targets, config.batch_tokens, config.length_penalty, alignments, progress)

    @property
    def max_tokens(self) -> int:
        """The longest source, in subwords, that is ever translated in one piece: ``data.max_tokens``."""
        longest = min(bundle.config.data.max_tokens for bundle in self._bundles)
        if self._longest is not None:
            longest = max(1, min(longest, self._longest - self.config.decode.max_extra_tokens - 1))
        return longest

    @property
    def usual_tokens(self) -> int:
        """What 999 of 1,000 training sources do not exceed, or 32; of longer lines a model leaves out a part."""
        known = (bundle.manifest.get("usual_src_tokens", self.max_tokens) for bundle in self._bundles)
        return min(self.max_tokens, max(32, min(known)))

    @property
    def _longest(self) -> int | None:
        """The most tokens that the model has positions for; None where it has them for any."""
        configs = [bundle.model.config for bundle in self._bundles]
        return min((config.max_len for config in configs if config.positions == "learned"), default=None)

    @cached_property
    def _wording(self) -> WordingEncoder:
        return WordingEncoder(self.tgt_tokenizer, self._unspaced)

    @property
    def _pairs(self) -> Pairs:
        src_unspaced = primary(self.config.data.src_lang) in UNSPACED
        return Pairs(
            self.model, self.src_tokenizer, self.tgt_tokenizer, self.device, src_unspaced, self._unspaced,
            self.max_tokens, self._longest,
        )  # fmt: skip

    def _precision(self, name: str) -> AbstractContextManager[Any]:
        """Run what follows in ``fp32`` or ``bf16``; weights, norms and probabilities stay fp32 in either."""
        if name not in ("fp32", "bf16"):
            raise ConfigError(f"precision = {name!r} is unknown: use fp32 or bf16")
        if resolve_precision(name, self.device) == "fp32":
            return nullcontext()
        return torch.autocast(self.device.type, torch.bfloat16)

    def _searcher(self, precision: str) -> Model:
        """The model's fast twin, made when first asked for and when weights have changed; of an ensemble its members'.

        What is no ``Transformer`` has none and searches itself, which is said.

        Raises:
            ConfigError: The precision is unknown, or this machine lacks it.
        """
        members: list[Any] = list(self.model.members) if isinstance(self.model, Ensemble) else [self.model]
        has_twin = all(isinstance(member, Transformer) for member in members)
        if precision == "int8" and not has_twin:
            raise ConfigError("precision = 'int8' is for a Transformer, and this model is none: use fp32 or bf16")
        check_precision(precision, self.device)
        if not has_twin:
            logger.info(
                "no fast engine for this model, which is no Transformer: it searches itself, one batch at a time"
            )
            return self.model
        resolve_precision("fp32" if precision == "int8" else precision, self.device)
        with self._making:
            made = self._engines.get(precision, [])
            if not made or not all(one.is_of(member) for one, member in zip(made, members, strict=True)):
                made = self._engines[precision] = [Engine(member, precision) for member in members]
        return made[0] if len(made) == 1 else Mean(tuple(made))

    def _chosen(self, engine: str, precision: str, sampling: bool, alignments: bool, words: bool) -> str:
        """``torch`` or ``ctranslate2``, by what is asked for alone: whatever the texts are, the answer is the same."""
        wishes = {
            "sampling": sampling, "alignments": alignments, "parsing": self.config.task == "parsing",
            "words prescribed or forbidden": words,
        }  # fmt: skip
        obstacle = "" if engine == "torch" else engines.obstacle(self._bundles, precision, wishes)
        return engines.choose(engine, obstacle, self.device.type)

    def _settled(self, settings: dict[str, Any]) -> dict[str, Any]:
        """The settings of ``translate`` with ``auto`` decided, once for all windows of a text."""
        if settings.get("engine") != "auto":
            return settings
        wishes = {"sampling": settings.get("sampling") is not None, "alignments": bool(settings.get("alignments"))}
        words = any(settings.get(name) for name in Wording._fields)
        return {**settings, "engine": self._chosen("auto", settings.get("precision", "fp32"), **wishes, words=words)}

    def _foreign_engine(self, chosen: str, precision: str, workers: int) -> CTranslate2 | None:
        """CTranslate2 with the same weights, if it is to search; None: our own engine."""
        if chosen == "torch":
            return None
        key, now = (precision, workers), weight_versions(self.model)
        run = self._run if now == self._loaded else None  # an export beside the run has the weights it was loaded with
        with self._making:
            if now != self._converted:
                for made in self._foreign.values():
                    made.close()
                self._foreign, self._converted = {}, now
            if key not in self._foreign:
                self._foreign[key] = engines.load(self._bundles[0], run, precision, self.device.type, workers)
            return self._foreign[key].engine

    def _decode_config(self, **given: Any) -> DecodeConfig:
        update = {name: value for name, value in given.items() if value is not None}
        try:
            return DecodeConfig(**{**self.config.decode.model_dump(), **update})
        except ValidationError as error:
            wrong = (
                f"decode.{problem['loc'][0]} = {problem['input']!r}: {problem['msg']}" for problem in error.errors()
            )
            raise ConfigError("; ".join(wrong)) from None

    def _parts(
        self,
        texts: Sequence[str],
        wordings: Sequence[Wording] | None,
        warn: Callable[[str], None] | None,
        label: Callable[[int], str],
    ) -> list[Part]:
        """What to search for, with its wishes; what each translation must say, its first part says."""
        usual = self.usual_tokens
        parts = cut(texts, self.src_tokenizer, usual, min(self.max_tokens, 2 * usual), warn, label)
        if wordings is None:
            return parts
        glossaries = [wording.glossary for wording in wordings]
        found = [glossary.find(text) if glossary else [] for text, glossary in zip(texts, glossaries, strict=True)]
        asked = [wordings[part.owner] if part.start == 0 else wordings[part.owner].of_a_later_part() for part in parts]
        return [
            part._replace(demand=self._wording.demand(wording, terms))
            for part, wording, terms in zip(parts, asked, by_part(texts, parts, found), strict=True)
        ]

    def _search(
        self, searcher: Model, parts: Sequence[Part], config: DecodeConfig, n_best: int, sampling: Sampling | None,
        first_number: int, workers: int, progress: Callable[[int, int, str], object], failed: Callable[[int], None],
    ) -> list[list[Hypothesis]]:  # fmt: skip
        """Our own search: hypotheses of each part, best first."""
        return search_all(
            searcher, [part.ids for part in parts], config, self.device, n_best, progress=progress, sampling=sampling,
            rules=[part.demand.rules for part in parts if part.demand is not None] or None,
            keys=[(first_number + part.owner, part.start) for part in parts], longest=self._longest, failed=failed,
            workers=workers if searcher is not self.model else 1,  # autocast is one thread's
        )  # fmt: skip

    def _look(
        self, searcher: Model, parts: Sequence[Part], found: list[list[Hypothesis]], config: DecodeConfig
    ) -> dict[int, Guarded]:
        """What the guard has to say of some parts; puts the hypotheses it chose first in ``found``."""
        there = [i for i, hypotheses in enumerate(found) if hypotheses]
        guard = Guard(
            searcher, self.device, self.tgt_tokenizer, self._wording.spelling, self._longest,
            self.config.data.src_lang, self.config.data.tgt_lang,
        )  # fmt: skip
        rules = [demand.rules if (demand := parts[i].demand) is not None else None for i in there]
        sources, ids = [parts[i].text for i in there], [parts[i].ids for i in there]
        seen = guard.look(sources, ids, rules, [found[i][0] for i in there], config)
        looked = {i: one for i, one in zip(there, seen, strict=True) if one.note}
        for i, one in looked.items():
            found[i] = [one.hypothesis, *(other for other in found[i][1:] if other.ids != one.hypothesis.ids)]
        return looked

    def features(self, texts: Sequence[str], found: Sequence[Translation]) -> list[list[float]]:
        """What is known of translations without a reference, for a ``Confidence``; blank lines are left out."""
        rare, rows = self.src_tokenizer.rare_ids, []
        for ids, one in zip(self.src_tokenizer.encode(list(texts)), found, strict=True):
            if one.n_tokens:
                rows.append(features(one.log_prob, one.n_tokens, len(ids), sum(i in rare for i in ids)))
        return rows

    def _sure(
        self, texts: Sequence[str], result: list[Translation], parts: Sequence[Part], looked: Mapping[int, Guarded]
    ) -> list[Translation]:
        """The translations with their confidence, where it is known."""
        if self.confidence is None:
            return result
        unsound = {parts[i].owner for i, one in looked.items() if not one.sound}
        known = iter(self.confidence.of(self.features(texts, result)))
        values = [next(known) if one.n_tokens else None for one in result]
        return [
            one._replace(confidence=0.0 if number in unsound else value)
            for number, (one, value) in enumerate(zip(result, values, strict=True))
        ]

    def translate_stream(
        self,
        stream: BinaryIO,
        name: str,
        warn: Callable[[str], None],
        flush: Callable[[], None] = lambda: None,
        read_ahead: int = READ_AHEAD,
        **settings: Any,
    ) -> Iterator[Translation]:
        """Translate line by line as text arrives; yields one translation for each line, in order.

        Up to ``read_ahead`` lines are sorted by length and translated together; when the input pauses, what has
        come so far is translated at once. Bad bytes become U+FFFD, with a warning that names the line.

        Args:
            stream: Raw bytes, such as ``sys.stdin.buffer``.
            name: What warnings call it.
            warn: Called with one line of text for each oddity.
            flush: Called when all lines that have arrived are translated.
            settings: As for ``translate``.

        Raises:
            DecodeError: Lines found no memory; raised at the end, each being blank and named by a warning.
        """
        settings = self._settled(settings)
        failed: list[str] = []
        done = n_failed = 0
        with closing(windows(read_lines_leniently(stream, name), read_ahead)) as arriving:
            for lines in arriving:
                for line in lines:
                    if line.warning:
                        warn(line.warning)

                def label(i: int, before: int = done) -> str:
                    return f"{name}:{before + i + 1}"

                texts = [line.text for line in lines]
                yield from self.translate(
                    texts, warn=warn, failed=failed.append, label=label, first_number=done, **settings
                )
                for said in failed[n_failed:]:
                    warn(said)
                n_failed = len(failed)
                flush()
                done += len(lines)
        _raise_if(failed, name)

    def translate_file(
        self,
        src: Path | str,
        out: Path | str,
        *,
        restart: bool = False,
        warn: Callable[[str], None] = lambda text: None,
        render: Callable[[int, Translation], str] = lambda number, translation: translation.text,
        form: str = "text",
        read_ahead: int = READ_AHEAD,
        **settings: Any,
    ) -> int:
        """Translate a file into another, which appears when it is whole; after a kill the same call goes on.

        Args:
            src: Text, plain, ``.gz`` or ``.zst``. Bad bytes become U+FFFD, with a warning that names the line.
            out: Until it is whole, ``out.partial`` and ``out.journal`` lie beside it.
            restart: Forget such a partial file.
            warn: Called with one line of text for each oddity; those of an earlier part are repeated.
            render: Makes the line to write of a line's number, from 1, and its translation.
            form: What ``render`` makes; a partial file of another form is refused.
            read_ahead: So many lines are sorted by length and translated together.
            settings: As for ``translate``.

        Returns:
            How many lines there were.

        Raises:
            DataError: ``src`` cannot be read.
            DragomanError: ``out`` cannot be written, or was begun from another input, model or settings.
            DecodeError: Lines found no memory; ``out`` is whole, they are blank, and a warning names each.
        """
        failed: list[str] = []

        def listen(text: str) -> None:
            warn(text)
            if text.endswith(NO_MEMORY):  # now, or in an earlier process
                failed.append(text)

        def work(lines: list[Line], before: int, say: Callable[[str], None]) -> list[str]:
            def label(i: int) -> str:
                return f"{src}:{before + i + 1}"

            texts = [line.text for line in lines]
            found = self.translate(texts, warn=say, failed=say, label=label, first_number=before, **settings)
            return [render(before + i, translation) for i, translation in enumerate(found, 1)]

        settings = self._settled(settings)  # and told: the process that goes on may find another engine installed
        self.translate([], **settings)  # what is impossible is refused before a file is made
        models = [bundle.manifest.get("sha256") for bundle in self._bundles]
        # what changes no translation, or is another object in the process that goes on
        told = {name: value for name, value in settings.items() if name not in ("workers", "progress")}
        facts = {"models": models, "device": self.device.type, "form": form, **told}
        n_lines = make_file(Path(src), Path(out), facts, work, listen, restart, read_ahead)
        _raise_if(failed, str(src))
        return n_lines


def _refuse_wishes(words: bool, alignments: bool) -> None:
    """Refuse what makes no sense of a tree."""
    if words or alignments:
        what = "alignments" if alignments else "prefix, include, exclude, glossary and no_repeat_ngram"
        raise ConfigError(f"{what}: for translators, and this run is a parser; leave them out")


def _tell(
    result: Sequence[Translation],
    lost: Collection[int],
    warn: Callable[[str], None] | None,
    failed: Callable[[str], None] | None,
    label: Callable[[int], str],
) -> None:
    """Pass on what there is to say of some translations, and which texts found no memory.

    Raises:
        DecodeError: One did not, and there is no ``failed`` to be told.
    """
    if warn is not None:
        for number, one in enumerate(result):
            for note in one.notes:
                if note != NO_MEMORY:  # which ``failed`` is for
                    warn(f"{label(number)}: {note}")
    for number in sorted(lost):
        if failed is None:
            raise DecodeError(f"{label(number)}: {NO_MEMORY}")
        failed(f"{label(number)}: {NO_MEMORY}")


def _raise_if(failed: Sequence[str], name: str) -> None:
    if failed:
        raise DecodeError(f"{name}: {len(failed):,} lines found no memory and are blank; the warnings name them")
