"""Translates text: N lines in, N lines out, in order.

    translator = Translator.load("runs/x")
    translator.translate(["A dog runs."], beam_size=5)    # [Translation('Ein Hund rennt.', ...)]

Blank lines stay blank. A line with more sentences than lines of the training text have is translated in parts. A
sentence longer than those in training is split (at clauses, else at spaces, else anywhere), with a warning. A line that
runs out of memory does not stop the others.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, fields, replace
from functools import cached_property, partial, reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Self, overload

from dragoman.arguments import at_least_1, checked
from dragoman.bundle import Bundle, load_bundle
from dragoman.config import DecodeConfig
from dragoman.data.corpus import Line, read_lines_leniently
from dragoman.data.seen_words import SeenWords
from dragoman.data.tokenizer import EOS_ID, Tokenizer
from dragoman.decoding.request import Progress, Sampling, SearchSettings
from dragoman.device import device_type, n_threads
from dragoman.errors import BundleError, ConfigError, DecodeError
from dragoman.files import pinned
from dragoman.languages.codes import match
from dragoman.languages.known import is_unspaced
from dragoman.options import not_among, takes
from dragoman.progress import Ticker
from dragoman.ready import is_ready
from dragoman.toolkits.choice import Engines
from dragoman.toolkits.engine import Models, Needs, Searcher
from dragoman.translation.assemble import TEXT, LineFormat, assemble, features_of
from dragoman.translation.assemble import Translation as Translation
from dragoman.translation.confidence import Confidence
from dragoman.translation.keeping.glossary import Glossary
from dragoman.translation.language_pairs import Direction, LanguagePairs
from dragoman.translation.notes import QUIET, Events, Note
from dragoman.translation.options import SCORING, TranslateOptions
from dragoman.translation.parser import assemble_trees, segment_sentences
from dragoman.translation.plan import ConstrainedSearch, ModelFacts, Plan, PlannedModel, ScoringPlan
from dragoman.translation.resumable import make_file
from dragoman.translation.scoring import Scored
from dragoman.translation.segment_search import translate_segments
from dragoman.translation.segments import as_texts, segment
from dragoman.translation.streams import seen_by, windows
from dragoman.translation.word_constraints import ConstraintEncoder

if TYPE_CHECKING:
    import torch

    from dragoman.decoding.ensemble import Ensemble
    from dragoman.model.build import EncoderDecoder
    from dragoman.translation.pair_reader import PairReader

logger = logging.getLogger(__name__)

READ_AHEAD = 2048
"""Number of lines that are read, sorted by length and translated together."""

_DIFFER = "some translations differ from those of the exact search in fp32"


class Translator:
    """A trained model, or an ensemble, that translates text."""

    @checked
    def __init__(
        self, model: Bundle | Path | str, *others: Bundle | Path | str, run: Path | None = None, device: str = "auto"
    ) -> None:
        """Take a run, or several for an ensemble, which must have the same subwords; see ``load``.

        Args:
            model: A run folder, a bundle folder, or a loaded bundle.
            others: More members of an ensemble, which takes the settings of the first.
            run: The folder that a loaded bundle was read from, if any.
            device: Device of what is loaded here: auto, cpu or cuda.

        Raises:
            BundleError, ConfigError: As ``load``.
        """
        if run is None and not isinstance(model, Bundle) and not is_ready(model):
            run = model = pinned(model)  # engines and the ledger use its folder later
        members = _opened((model, *others), device)
        bundle = members[0]
        self.config, self.manifest = bundle.config, bundle.manifest
        self.src_tokenizer, self.tgt_tokenizer = bundle.src_tokenizer, bundle.tgt_tokenizer
        self._models = Models(members, run)
        self._engines = Engines(self._models)
        self.languages = LanguagePairs.of(bundle)
        """Languages that it translates between."""
        self._encoders = {unspaced: ConstraintEncoder(self.tgt_tokenizer, unspaced) for unspaced in (False, True)}
        learned = bundle.facts.confidence
        self.confidence = (
            None if learned is None or others else Confidence.from_mapping(learned, "the confidence in the bundle")
        )
        """Quality estimation of its translations; None: not learned, as for an ensemble. May be set."""

    @classmethod
    @checked
    def load(cls, path: Path | str | Sequence[Path | str], device: str = "auto") -> Self:
        """Load a run, a bundle or a ready bundle, ``demo``; several become an ensemble with the settings of the first.

        Raises:
            BundleError: A bundle is missing or damaged, or the subwords of an ensemble differ.
            ConfigError: The device does not exist.
        """
        paths = [path] if isinstance(path, Path | str) else list(path)
        if not paths:
            raise ConfigError("no run to load: name one, or several for an ensemble")
        return cls(*paths, device=device)

    def __reduce__(self) -> Any:
        """Pickle the bundles, weights included; the copy loads its engines again when it first uses them."""
        run = None if self._models.changes else self._models.run
        return _unpickled, (type(self), self.bundles, run, self.confidence)

    def __repr__(self) -> str:
        data, n = self.config.data, sum(weight.numel() for weight in self.model.parameters())
        targets = ", ".join(sorted(self.languages.targets)[:5]) or data.tgt_lang or "target"
        task = "parser" if self.is_parser else f"{', '.join(self.languages.sources) or 'source'} to {targets}"
        what = [task, f"{n:,} parameters", str(self.device), *self._validation()]
        if len(self.bundles) > 1:
            what.insert(1, f"ensemble of {len(self.bundles)}")
        return f"<Translator: {', '.join(what)}>"

    def _validation(self) -> list[str]:
        """Return score and step from the manifest, as text."""
        facts, names = self.bundle.facts, {"bleu": "BLEU", "f1": "bracket F1"}
        scores = [f"{names[key]} {facts.validation[key]:.1f} in validation" for key in names if key in facts.validation]
        return [*scores[:1], *([f"step {facts.step:,}"] if facts.step is not None else [])]

    @overload
    def translate(
        self, texts: str, options: TranslateOptions | Plan | None = None, *, events: Events = QUIET,
        progress: bool | Progress = False, first_number: int = 0, **changes: Any,
    ) -> Translation: ...  # fmt: skip

    @overload
    def translate(
        self, texts: Sequence[str], options: TranslateOptions | Plan | None = None, *, events: Events = QUIET,
        progress: bool | Progress = False, first_number: int = 0, **changes: Any,
    ) -> list[Translation]: ...  # fmt: skip

    @takes(TranslateOptions)
    def translate(
        self, texts: str | Sequence[str], options: TranslateOptions | Plan | None = None, *, events: Events = QUIET,
        progress: bool | Progress = False, first_number: int = 0, **changes: Any,
    ) -> Translation | list[Translation]:  # fmt: skip
        """Translate a text, or several: one translation for each, in order; a parser returns trees.

        Args:
            texts: Raw text. A single string gives a single translation, a list gives a list.
            options: All options; ``changes`` are options by name, such as ``beam_size=5``; see ``TranslateOptions``.
            events: Callbacks for warnings, failures and progress.
            progress: True reports progress on stderr; a function is called like ``events.progress``.
            first_number: Number of the first text; sampling derives its random numbers from it.

        Raises:
            ConfigError: An option is unknown or impossible.
            DataError: An entry is not a text.
            DecodeError: A text ran out of memory (raised when the others are done, unless ``events.failed`` is given).
        """
        plan, events = self.plan(options, **changes), _with_progress(events, progress)
        if isinstance(texts, str):
            return self.translate_planned([texts], plan, events, first_number)[0]
        return self.translate_planned(texts, plan, events, first_number)

    __call__ = translate

    @takes(TranslateOptions)
    def plan(self, options: TranslateOptions | Plan | None = None, **changes: Any) -> Plan:
        """Decide engine, precision and settings once for all texts, and refuse impossible options.

        A plan can be passed wherever options can.

        Raises:
            ConfigError: As ``translate``.
        """
        if isinstance(options, Plan) and not options.model.models.same_as(self._models):
            raise ConfigError("this plan was made by another translator: make one with the method plan of this one")
        if isinstance(options, Plan) and not changes:
            return options
        options = TranslateOptions.of(options.options if isinstance(options, Plan) else options, changes)
        glossary = Glossary.of(options.glossary)
        options, trees = self._fastest(replace(options, glossary=glossary)), self.is_parser
        if trees and (options.constrains or glossary or options.alignments):
            what = "alignments" if options.alignments else "prefix, include, exclude, glossary and no_repeat_ngram"
            raise ConfigError(f"{what}: not supported by a parser, and this run is one; leave them out")
        if options.shortlist and self._models.shortlist is None:
            raise ConfigError("shortlist: this run has none (`dragoman distill` makes one): leave it out")
        src_tokenizer = self.src_tokenizer.towards(options.to)
        direction = self._direction(options)
        encoder = self._encoders[is_unspaced(direction.tgt)]
        encoder.check(options)
        if direction.zero_shot is not None:
            logger.warning("%s", direction.zero_shot)
        decode = self._decode_config(options)
        sampling = None
        if options.sample:
            settings = {name: getattr(options, name) for name in ("temperature", "top_k", "top_p", "seed")}
            sampling = Sampling(**{name: value for name, value in settings.items() if value is not None})
        elif options.n_best > decode.beam_size and not trees:
            raise ConfigError(f"n_best must be at most beam_size = {decode.beam_size}, got {options.n_best}")
        needs, threads = self._needs(options), options.threads or self._usual_threads
        workers = 1 if options.deterministic and not options.threads else threads  # more may change torch's rounding
        name = self._engines.choose(options.chosen_engine, needs)
        engine = self._engines.get(name, options.precision, threads)
        # a parser needs its whole beam, as hypotheses that are trees come first
        n_best = max(options.n_best, decode.beam_size) if trees and not options.sample else options.n_best
        search = SearchSettings(
            decode=decode, n_best=n_best, sampling=sampling, workers=workers,
            with_spare=options.guard and sampling is None and not trees,
            balance=options.batch_tokens is None and self._models.device_type == "cpu", shortlist=options.shortlist,
            allow_unk=options.allow_unk, longest=self._models.longest,
        )  # fmt: skip
        second, second_precision = self._engines.constrained(name, needs)
        return Plan(
            options=options, needs=needs, engine=engine, search=search,
            constrained=ConstrainedSearch(
                lambda: engine if second == name else self._engines.get(second, second_precision, threads),
                replace(search, sampling=None, with_spare=False, shortlist=False),
            ),
            model=PlannedModel(
                models=self._models, src_tokenizer=src_tokenizer, tgt_tokenizer=self.tgt_tokenizer,
                attend=engine.attend,
                open_reader=partial(
                    self._reader, "bf16" if options.precision == "bf16" else "fp32", src_tokenizer, direction
                ),
            ),
            direction=direction, facts=self._facts(), encoder=encoder, confidence=self.confidence,
        )  # fmt: skip

    def _facts(self) -> ModelFacts:
        return ModelFacts(
            max_tokens=self.max_tokens, usual_tokens=self.usual_tokens, usual_sentences=self.usual_sentences,
            least_ratio=self.least_ratio, masks=self.masks, seen_words=self.seen_words,
        )  # fmt: skip

    def _needs(self, options: TranslateOptions) -> Needs:
        return Needs(
            precision=options.precision, sampling=options.sample, alignments=options.alignments, trees=self.is_parser,
            constraints=options.constrains, shortlist=options.shortlist,
        )  # fmt: skip

    @property
    def _usual_threads(self) -> int:
        """Number of threads, each of which decodes a batch: on a CPU one for each core."""
        return n_threads() if self._models.device_type == "cpu" else 1

    def _fastest(self, options: TranslateOptions) -> TranslateOptions:
        """Replace the option ``fast`` by the options that it chooses here, and log them."""
        if not options.fast:
            return options
        engine, precision = self._engines.fastest(self._needs(options))
        if options.sample:
            logger.info("fast: engine %s, precision %s; %s", engine, precision, _DIFFER)
            return replace(options, fast=False, engine=engine, precision=precision)
        chosen = self.bundle.facts.fast
        beam_size = options.beam_size or (chosen.beam_size and max(chosen.beam_size, options.n_best))
        shortlist = options.shortlist or (self._models.shortlist is not None and chosen.shortlist)
        logger.info(
            "fast: engine %s, precision %s%s, patience 1%s; %s",
            engine, precision, "" if beam_size is None else f", beam {beam_size}", ", shortlist" * shortlist, _DIFFER,
        )  # fmt: skip
        return replace(
            options, fast=False, engine=engine, precision=precision, patience=1.0, beam_size=beam_size,
            shortlist=shortlist,
        )  # fmt: skip

    @checked
    def faster(self, plan: Plan) -> str:
        """Return the engine and precision of ``fast`` for what a plan needs; "" if the plan has them already."""
        engine, precision = self._engines.fastest(replace(plan.needs, precision="fp32"))
        return "" if (engine, precision) == (plan.engine.name, plan.needs.precision) else f"{engine} in {precision}"

    @checked
    def with_engine(self, plan: Plan, engine: Searcher) -> Plan:
        """Return a plan with another engine, such as that of an export.

        Raises:
            ConfigError: The engine does not support an option of the plan.
        """
        self._engines.refuse(engine, plan.needs)
        return replace(plan, engine=engine)

    @checked
    def translate_planned(
        self, texts: Sequence[str], plan: Plan, events: Events = QUIET, first_number: int = 0
    ) -> list[Translation]:
        """Translate with a plan: text to segments, segments to results, results to text."""
        if isinstance(texts, str):
            raise DecodeError("translate_planned takes a list of texts: write [text], or translate(text)")
        texts = as_texts(texts)
        if plan.trees:
            segments = segment_sentences(texts, plan, events, first_number)
            results = translate_segments(segments, plan, events.progress)
            translations = assemble_trees(texts, segments, results, plan)
        else:
            segments = segment(texts, plan, events, first_number)
            results = translate_segments(segments, plan, events.progress)
            translations = assemble(texts, segments, results, plan)
        _report(translations, events)
        return translations

    @overload
    def score(
        self, sources: str, targets: str, options: TranslateOptions | None = None, *, events: Events = QUIET,
        progress: bool | Progress = False, **changes: Any,
    ) -> Scored: ...  # fmt: skip

    @overload
    def score(
        self, sources: Sequence[str], targets: Sequence[str], options: TranslateOptions | None = None, *,
        events: Events = QUIET, progress: bool | Progress = False, **changes: Any,
    ) -> list[Scored]: ...  # fmt: skip

    @takes(TranslateOptions)
    def score(
        self, sources: str | Sequence[str], targets: str | Sequence[str], options: TranslateOptions | None = None, *,
        events: Events = QUIET, progress: bool | Progress = False, **changes: Any,
    ) -> Scored | list[Scored]:  # fmt: skip
        """Score a given translation, or several (forced decoding).

        A pair with more sentences than lines of the training text have is scored sentence by sentence, if both sides
        have equally many (``sentence_split``). A pair with a blank side, or one that runs out of memory, is not scored:
        its numbers are nan, and it has a note.

        Args:
            sources, targets: Raw text; target ``i`` translates source ``i``. Two strings give a single score.
            options: Those of ``options.SCORING``; ``alignments`` adds word alignments.

        Raises:
            ConfigError: An option is unknown, impossible, or has no effect on scoring.
            DataError: An entry is not a text.
            DecodeError: The numbers of sources and targets differ.
        """
        plan, events = self.plan_scoring(options, **changes), _with_progress(events, progress)
        if isinstance(sources, str) and isinstance(targets, str):
            return plan.score([sources], [targets], events.progress)[0]
        equal = "score takes two texts, or two lists of equal length: target i translates source i"
        if isinstance(sources, str) or isinstance(targets, str):
            raise DecodeError(equal)
        sources, targets = as_texts(sources, "sources"), as_texts(targets, "targets")
        if len(sources) != len(targets):
            raise DecodeError(equal)
        return plan.score(sources, targets, events.progress)

    @takes(TranslateOptions)
    def plan_scoring(self, options: TranslateOptions | None = None, **changes: Any) -> ScoringPlan:
        """Decide how to score, once for all pairs, and refuse impossible options; the plan has a method ``score``.

        Raises:
            ConfigError: As ``score``.
        """
        options = TranslateOptions.of(options, changes)
        from dragoman.toolkits.ours.search import autocast

        options.refuse_others(SCORING, "scoring")
        if self.is_parser:
            raise ConfigError("a parser cannot score given trees: scoring is for translation runs")
        decode = self._decode_config(options)
        autocast(options.precision, self.device)  # refuses an impossible precision
        src_tokenizer = self.src_tokenizer.towards(options.to)
        reader = self._reader(options.precision, src_tokenizer, self._direction(options))
        return ScoringPlan(replace(reader, never=self._never()), options, decode)

    def _direction(self, options: TranslateOptions) -> Direction:
        """Return the source and target language of a translation.

        Raises:
            ConfigError: The model does not translate from this language.
        """
        to = None if options.to is None else self.src_tokenizer.target(options.to)
        if (
            options.from_lang is not None
            and self.languages.sources
            and match(options.from_lang, self.languages.sources) is None
        ):
            raise not_among("from_lang", options.from_lang, self.languages.sources)
        src, tgt = self.languages.direction(to, options.from_lang)
        return Direction(src, tgt, self.languages.zero_shot(src, tgt))

    @property
    def bundles(self) -> tuple[Bundle, ...]:
        """Bundles of all members."""
        return self._models.bundles

    @property
    def model(self) -> EncoderDecoder | Ensemble:
        """The model, or all members as one; its weights are read when they are first needed.

        Raises:
            BundleError: They do not fit the configuration.
        """
        return self._models.model

    @property
    def device(self) -> torch.device:
        """Device of the weights."""
        return self._models.device

    @property
    def run(self) -> Path | None:
        """Folder from which the first bundle was loaded, if any."""
        return self._models.run

    @property
    def bundle(self) -> Bundle:
        """Bundle; of an ensemble the first."""
        return self._models.bundles[0]

    @property
    def is_parser(self) -> bool:
        """True if it makes trees instead of translations; all code of translation asks here."""
        return self.config.is_parser

    @property
    def max_tokens(self) -> int:
        """Longest source, in subwords, that is ever translated in one piece: ``data.max_tokens`` or less."""
        longest = min(bundle.config.data.max_tokens for bundle in self.bundles)
        if self._models.longest is not None:
            longest = max(1, min(longest, self._models.longest - self.config.decode.max_extra_tokens - 1))
        return longest

    @property
    def masks(self) -> str | None:
        """Form of the masks that all members have learned (``data.noise.inserts``); None: no masks."""
        forms = {bundle.facts.masks for bundle in self.bundles}
        form = forms.pop() if len(forms) == 1 else None
        return form if form is not None and "{}" in form else None

    @cached_property
    def seen_words(self) -> SeenWords | None:
        """Words of the training sources of all members; None: not known of one of them, as of an imported model."""
        known = [bundle.words for bundle in self.bundles if bundle.words is not None]
        return reduce(SeenWords.union, known) if len(known) == len(self.bundles) else None

    @property
    def usual_tokens(self) -> int:
        """Number of subwords that 999 of 1,000 training sources do not exceed; at least 32. Longer texts are split."""
        known = (bundle.facts.usual_src_tokens or self.max_tokens for bundle in self.bundles)
        return min(self.max_tokens, max(32, min(known)))

    @property
    def usual_sentences(self) -> int:
        """Number of sentences that 95 of 100 training sources do not exceed; 1 if unknown."""
        return min(bundle.facts.usual_src_sentences or 1 for bundle in self.bundles)

    @property
    def least_ratio(self) -> float:
        """Least target subwords for each source subword in 975 of 1,000 training pairs; 0 if unknown."""
        return float(min(bundle.facts.least_length_ratio for bundle in self.bundles))

    @checked
    def confidence_features(
        self, texts: Sequence[str], translations: Sequence[Translation], to: str | None = None
    ) -> list[list[float]]:
        """Return the features of translations for ``Confidence.of``; blank lines are left out."""
        return features_of(texts, translations, self.plan(to=to))

    def _reader(self, precision: str, src_tokenizer: Tokenizer, direction: Direction) -> PairReader:
        from dragoman.translation.pair_reader import PairReader

        return PairReader(
            model=self.model, src_tokenizer=src_tokenizer, tgt_tokenizer=self.tgt_tokenizer, device=self.device,
            direction=direction, usual_sentences=self.usual_sentences, max_tokens=self.max_tokens,
            longest=self._models.longest, precision=precision,
        )  # fmt: skip

    def _never(self) -> frozenset[int]:
        from dragoman.model.weights import never_chosen

        biases = [bias for name, bias in self.model.named_parameters() if name.endswith("generator.bias")]
        return frozenset(i for bias in biases for i in never_chosen(bias) if i > EOS_ID)

    def _decode_config(self, options: TranslateOptions) -> DecodeConfig:
        """Return the run's settings of the search, changed by options."""
        decode = self.config.decode.changed_by(options)
        return replace(decode, batch_tokens=1) if options.deterministic else decode

    @takes(TranslateOptions)
    def translate_stream(
        self, stream: BinaryIO, name: str, options: TranslateOptions | Plan | None = None, *, events: Events = QUIET,
        flush: Callable[[], None] | None = None, look: Callable[[Sequence[str]], object] | None = None,
        read_ahead: int = READ_AHEAD, **changes: Any,
    ) -> Iterator[Translation]:  # fmt: skip
        """Translate line by line as text arrives; yields one translation for each line, in order.

        Up to ``read_ahead`` lines (at first fewer) are sorted by length and translated together; when the input pauses,
        all lines so far are translated at once. Bad bytes become U+FFFD, with a warning that names the line.

        Args:
            stream: Raw bytes, such as ``sys.stdin.buffer``.
            name: Name of the stream in warnings.
            options: As for ``translate``.
            flush: Called when all lines so far are translated.
            look: Called with the next lines before they are translated.

        Raises:
            DecodeError: Lines ran out of memory; raised at the end. They are blank, and warnings name them.
        """
        at_least_1("read_ahead", read_ahead)
        plan = self._plan_of_lines(options, changes)
        arriving = windows(read_lines_leniently(stream, name), read_ahead)
        arriving = arriving if look is None else seen_by(look, arriving)
        return self._translated(arriving, name, plan, events, flush)

    def _plan_of_lines(self, options: TranslateOptions | Plan | None, changes: Mapping[str, Any]) -> Plan:
        """Return the plan for any number of lines; a prefix for each text is refused."""
        plan = self.plan(options, **changes)
        if not isinstance(plan.options.prefix, str):
            raise ConfigError("a prefix for each line is for translate(texts): give one prefix for all lines")
        return plan

    def _translated(
        self, arriving: Generator[list[Line]], name: str, plan: Plan, events: Events, flush: Callable[[], None] | None
    ) -> Iterator[Translation]:
        """Yield the translations of windows of lines; raise an error at the end if lines ran out of memory."""
        done, n_failed = 0, 0
        with closing(arriving):
            for lines in arriving:
                failed: list[Note] = []
                _warn_of_input(lines, name, done, events)
                of_window = replace(
                    events, failed=failed.append, label=_numbered(name, done),
                    progress=_in_lines(events, done, len(lines)),
                )  # fmt: skip
                yield from self.translate_planned([line.text for line in lines], plan, of_window, done)
                for note in failed:
                    _warn(note, events)
                if flush is not None:
                    flush()
                done, n_failed = done + len(lines), n_failed + len(failed)
        _raise_if(n_failed, name)

    @takes(TranslateOptions)
    def translate_file(
        self, src: Path | str, out: Path | str, options: TranslateOptions | Plan | None = None, *,
        restart: bool = False, events: Events = QUIET, form: LineFormat | None = None, read_ahead: int = READ_AHEAD,
        **changes: Any,
    ) -> int:  # fmt: skip
        """Translate a file into another, which appears when it is complete; after a kill the same call resumes.

        Args:
            src: Text, plain, ``.gz`` or ``.zst``. Bad bytes become U+FFFD, with a warning that names the line.
            out: Until it is complete, ``out.partial`` and ``out.journal`` are next to it. Compressed if its name ends
                in ``.gz`` or ``.zst``.
            options: As for ``translate``.
            restart: True discards a partial file.
            events: Callbacks; warnings on lines that an earlier process translated are repeated.
            form: Output format of a line; None: the text. A partial file in another format is refused.
            read_ahead: Number of lines that are sorted by length and translated together.

        Returns:
            Number of lines.

        Raises:
            DataError: ``src`` cannot be read.
            DragomanError: ``out`` cannot be written, or was started from another input, model or options.
            DecodeError: Lines ran out of memory; ``out`` is complete, they are blank, and a warning names each.
        """
        at_least_1("read_ahead", read_ahead)
        src, out = pinned(src), pinned(out)
        plan, form = self._plan_of_lines(options, changes), form or TEXT
        n_failed = 0

        def listen(note: Note) -> None:
            nonlocal n_failed
            n_failed += note.kind == "memory"  # now, or in an earlier process
            _warn(note, events)

        def work(lines: list[Line], before: int, say: Callable[[Note], None]) -> list[str]:
            of_window = replace(
                events, warn=say, failed=say, label=_numbered(src, before),
                progress=_in_lines(events, before, len(lines)),
            )  # fmt: skip
            translations = self.translate_planned([line.text for line in lines], plan, of_window, before)
            return [form.line(before + i, translation) for i, translation in enumerate(translations, 1)]

        n_lines = make_file(src, out, self.facts(plan, form.name), work, listen, restart, read_ahead)
        _raise_if(n_failed, f"{src}")
        return n_lines

    @checked
    def facts(self, plan: Plan, form: str = "text") -> dict[str, Any]:
        """Return everything that a file of translations depends on, besides the input."""
        options = {field.name: getattr(plan.options, field.name) for field in fields(plan.options)}
        # fast is already replaced by other options
        del options["fast"]
        if not options["allow_unk"]:
            del options["allow_unk"]  # journals of earlier versions do not have it
        if options["truecase"]:
            del options["truecase"]  # nor this one
        options["engine"] = plan.engine.name  # auto may choose another one in the process that resumes
        models = [bundle.facts.sha256 for bundle in self.bundles]
        # what no option says is from the run's configuration, which may be edited until the run is finished
        options |= asdict(plan.search.decode)
        # these two only change the rounding of scores; a file that a lack of memory ended can go on in smaller batches
        del options["threads"], options["batch_tokens"]
        return {"models": models, "device": self._models.device_type, "form": form, **options}


def _unpickled(kind: type[Translator], bundles: Sequence[Bundle], run: Path | None, confidence: Any) -> Translator:
    """Return the translator that ``Translator.__reduce__`` pickled."""
    translator = kind(*bundles, run=run)
    translator.confidence = confidence
    return translator


def _report(translations: Sequence[Translation], events: Events) -> None:
    """Report the notes of translations; those on texts that ran out of memory come last.

    Raises:
        DecodeError: A text ran out of memory, and ``failed`` is None.
    """
    lost = []
    for number, translation in enumerate(translations, 1):
        for note in translation.notes:
            placed = replace(note, where=events.label(number))
            if note.kind == "zero_shot":
                continue  # the plan has warned of it once for all texts
            if note.kind == "memory":
                lost.append(placed)
            else:
                _warn(placed, events)
    for note in lost:
        if events.failed is None:
            raise DecodeError(str(note))
        events.failed(note)


def _opened(members: Sequence[Bundle | Path | str], device: str) -> list[Bundle]:
    """Load those members of a translator that are paths.

    Raises:
        BundleError: Their subwords differ.
    """
    bundles = [
        member if isinstance(member, Bundle) else load_bundle(member, device_type(device), read=False)
        for member in members
    ]
    for member, bundle in zip(members[1:], bundles[1:], strict=True):
        if isinstance(member, Bundle):  # who joins loaded bundles knows that they fit
            continue
        if (bundle.src_tokenizer, bundle.tgt_tokenizer) != (bundles[0].src_tokenizer, bundles[0].tgt_tokenizer):
            raise BundleError(
                f"{member}: its subword models differ from those of {members[0]}; ensemble members must "
                "share their subword models (same text, same data.tokenizer)"
            )
    return bundles


def _with_progress(events: Events, progress: bool | Progress) -> Events:
    return replace(events, progress=Ticker() if progress is True else progress or events.progress)


def _warn(note: Note, events: Events) -> None:
    if events.warn is not None:
        events.warn(note)


def _numbered(name: Path | str, before: int) -> Callable[[int], str]:
    """Return the function that names line i (from 1) after ``before`` other lines."""
    return lambda number: f"{name}:{before + number}"


def _in_lines(events: Events, before: int, n_lines: int) -> Callable[[int, int, str], object] | None:
    """Return a progress callback that converts segments of the next ``n_lines`` to lines of the whole file."""
    progress = events.progress
    if progress is None:
        return None
    return lambda done, total, _: progress(before + n_lines * done // total, before + n_lines, "lines translated")


def _warn_of_input(lines: Sequence[Line], name: str, before: int, events: Events) -> None:
    for line in lines:
        if line.warning:
            _warn(Note("input", line.warning), events)


def _raise_if(n_failed: int, name: str) -> None:
    if n_failed:
        raise DecodeError(f"{name}: {n_failed:,} lines ran out of memory and are blank; the warnings name them")
