"use strict";
// Text in, text out: what the page asks, answered beside it in a worker, so that the page never waits. node.js asks the
// same functions.

class Damaged extends Error {}

/** Bytes that are written as base64. */
function fromBase64(text) {
  const letters = atob(text), bytes = new Uint8Array(letters.length);
  for (let i = 0; i < letters.length; i++) bytes[i] = letters.charCodeAt(i);
  return bytes;
}

/**
 * Matrices as the file has them (toolkits/page/write.py), one after the other: float32, or, of rounded ones, a float32 for each
 * row, which one step of its int8 is worth.
 */
function weightsOf(tensors, bytes) {
  const weights = {};
  let at = 0;
  const take = (n) => {
    if (at + n > bytes.length) throw new Damaged("its weights are not whole");
    return bytes.slice(at, at += n).buffer;
  };
  const floats = (n) => new Float32Array(take(4 * n));
  for (const [name, shape, rounded] of tensors) {
    const size = shape.reduce((product, n) => product * n, 1), steps = rounded ? floats(shape[0]) : null;
    const values = rounded ? Float32Array.from(new Int8Array(take(size))) : floats(size);
    if (rounded) for (let i = 0; i < size; i++) values[i] *= steps[Math.floor(i / shape[1])];
    weights[name] = { shape, values };
  }
  if (at !== bytes.length) throw new Damaged("its weights are not whole");
  return weights;
}

/** The locale of a language code, such as zh-CN for zh_CN; English, where a code is none of a language. */
function localeOf(code) {
  try {
    return Intl.getCanonicalLocales((code || "").replaceAll("_", "-"))[0];
  } catch {
    return "en";
  }
}

/** All that the page translates with. content: what toolkits/page/write.py wrote beside the weights, which are base64. */
class Translator {
  constructor(content, weights) {
    this.content = content;
    const { special } = content;
    const subwords = content.subwords.map((one) => new Subwords({ ...one, special, scores: new Float32Array(fromBase64(one.scores).buffer) }));
    const { src_lang: srcLang, tgt_lang: tgtLang, facts: { parameters, step, bleu } } = content;
    const facts = Object.fromEntries(Object.entries({ parameters, step, bleu }).filter(([, value]) => value !== undefined));
    this.page = { src: subwords[0], tgt: subwords[subwords.length - 1], srcLang, tgtLang, facts };
    this.model = new Transformer(content.config, weightsOf(content.tensors, fromBase64(weights)));
  }

  /** Search for the translation of some ids, with the settings of the page or others; model: the page's, or Changed. */
  *search(src, changes = {}, prefix = [], model = this.model) {
    const { decode, special, positions } = this.content, how = { ...decode, nBest: 1, ...changes };
    const most = Math.max(src.length, prefix.length) + decode.maxExtra;
    how.maxLen = Math.min(most, positions ?? most);
    return yield* search(model, [...src, special.eos], how, special, prefix);
  }

  /**
   * What is translated of a text: for each line its sentences { text }, and the spaces and invisible characters around them { gap }.
   * Each has the space that is written in the translation: of a sentence, before it; of a gap at either end of a line, instead of it.
   */
  lines(text, to = "") {
    return text.split("\n").map((line) => this.withSpaces(this.parts(line), to));
  }

  parts(line) {
    return this.sentences(line).flatMap((sentence) => this.pieces(sentence)).flatMap((piece) => {
      const inner = piece.trim(), start = piece.length - piece.trimStart().length;
      if (!this.page.src.encode(inner).length) return piece ? [{ gap: piece }] : []; // nothing that is seen
      const before = piece.slice(0, start), after = piece.slice(start + inner.length);
      return [{ gap: before }, { text: inner }, { gap: after }].filter((one) => one.text || one.gap);
    });
  }

  /** As translation/assemble.py has it: between sentences stand the source's gaps or one space; without spaces in unspaced languages. */
  withSpaces(parts, to) {
    const unspaced = this.content.unspaced.includes(to || this.content.tgt_lang), isText = (part) => part.text !== undefined;
    const first = parts.findIndex(isText), last = parts.findLastIndex(isText);
    let between = "";
    return parts.map((part, i) => {
      if (i < first || i > last) return { ...part, space: part.gap };
      if (!isText(part)) { between += part.gap; return { ...part, space: "" }; }
      const space = i === first ? "" : unspaced ? between.replace(/[ \u00a0]/g, "") : between || " ";
      between = "";
      return { ...part, space };
    });
  }

  sentences(line) {
    const segmenter = new Intl.Segmenter(localeOf(this.content.src_lang), { granularity: "sentence" });
    return [...segmenter.segment(line)].map(({ segment }) => segment);
  }

  /** A sentence, or, if it has more subwords than the model has learned to read, parts of it: cut at spaces if possible. */
  pieces(sentence) {
    if (this.page.src.encode(sentence.trim()).length <= this.content.most || sentence.length < 4) return [sentence];
    const middle = sentence.length / 2, away = (place) => Math.abs(place - middle);
    const spaces = [...sentence.matchAll(/\s+/gu)].map(({ index }) => index).filter((index) => index > 0);
    const places = spaces.length ? spaces : [...sentence.matchAll(/./gsu)].map(({ index }) => index).slice(1);
    const at = places.reduce((best, place) => (away(place) < away(best) ? place : best));
    return [sentence.slice(0, at), sentence.slice(at)].flatMap((half) => this.pieces(half));
  }

  /** The ids of a text; before them, of a model with several target languages, the one that says which. */
  source(text, to) {
    const ids = this.page.src.encode(text);
    return ids.length && to ? [this.content.targets[to], ...ids] : ids;
  }

  /** The translation of one sentence: its text and ids. */
  *sentence(text, to = "", prefix = []) {
    const src = this.source(text, to), [found] = yield* this.search(src, {}, prefix);
    return { src, ids: found.ids, text: this.page.tgt.decode(found.ids).replaceAll("\n", " ") };
  }

  /** What the explorer shows of a sentence and its translation, which begins with these ids or, if they end in eos, is these. */
  *trace(text, to, prefix, nForced = prefix.length, tgtLang = this.page.tgtLang) {
    const { src, ids, text: translation } = yield* this.sentence(text, to, prefix);
    return traceOf(this.model, { ...this.page, tgtLang }, text, translation, src, ids, nForced);
  }

  // --- the model with changes (changes.js) ------------------------------------------------------------------------------

  /** What is inside one head while the model reads a text and the ids of its translation; head: { name, head, step }. */
  *inside(text, to, ids, changes, head) {
    const src = [...this.source(text, to), this.content.special.eos], patched = yield* this.withRow(changes, to);
    const plain = this.reading("plain", src, ids, {});
    const changed = Object.keys(changes).length ? this.reading("changed", src, ids, patched) : plain;
    return insideOf(plain, changed, this.page, ids, head);
  }

  /** The translation that the changed model writes. */
  *rewrite(text, to, changes) {
    const src = this.source(text, to), { special } = this.content;
    const changed = new Changed(this.model, [...src, special.eos], yield* this.withRow(changes, to), special);
    const [found] = yield* this.search(src, {}, [], changed);
    return { ids: found.ids, text: this.page.tgt.decode(found.ids).replaceAll("\n", " ") };
  }

  /** The tokens of another sentence and of its translation, with its ids, whose rows can be put into the first one. */
  *other(text, to) {
    const { ids, reading } = yield* this.donor(text, to);
    return { ...tokensOf(reading, this.page, ids), ids };
  }

  *withRow(changes, to) {
    if (!changes.patch) return changes;
    const { text, side, layer, from } = changes.patch, { reading } = yield* this.donor(text, to);
    return { ...changes, patch: { ...changes.patch, row: reading.changed.states[side][layer][from] } };
  }

  *donor(text, to) {
    const { src, ids } = yield* this.sentence(text, to);
    return { ids, reading: this.reading("donor", [...src, this.content.special.eos], ids, {}) };
  }

  /** A reading, remembered until another one is made for the same purpose. */
  reading(purpose, src, ids, changes) {
    const key = JSON.stringify([src, ids, changes], (name, value) => (name === "row" ? undefined : value));
    this.readings ||= {};
    if (this.readings[purpose]?.key !== key)
      this.readings[purpose] = { key, reading: readingOf(this.model, src, ids, changes, this.content.special) };
    return this.readings[purpose].reading;
  }
}

const BREATH_MS = 20; // a worker hears what it is told only between its tasks

if (typeof WorkerGlobalScope !== "undefined") {
  let translator = null, latest = 0, newest = 0, heard = Promise.resolve(); // jobs are done one after the other
  const isLate = ({ turn, change }) => turn < latest || change < newest; // text or changes are others: nobody waits for the answer
  /** Finish a search, unless its answer is needless by now. */
  const finish = async (searching, job) => {
    for (let begun = performance.now(); ;) {
      const { done, value } = searching.next();
      if (done) return value;
      if (performance.now() - begun < BREATH_MS) continue;
      await new Promise((resume) => setTimeout(resume));
      if (isLate(job)) return null;
      begun = performance.now();
    }
  };
  const tasks = {
    load: ({ content, weights }) => { translator = new Translator(content, weights); },
    lines: ({ text, to }) => translator.lines(text, to),
    sentence: (job) => finish(translator.sentence(job.text, job.to), job),
    trace: (job) => finish(translator.trace(job.text, job.to, job.prefix, job.nForced, job.lang), job),
    inside: (job) => finish(translator.inside(job.text, job.to, job.ids, job.changes, job.head), job),
    rewrite: (job) => finish(translator.rewrite(job.text, job.to, job.changes), job),
    other: (job) => finish(translator.other(job.text, job.to), job),
  };
  /** Each job { number, turn, task, ... } is answered by its number and what was found (null: it came too late) or an error. */
  onmessage = ({ data: job }) => {
    latest = Math.max(latest, job.turn);
    newest = Math.max(newest, job.change || 0);
    heard = heard.then(async () => {
      try {
        postMessage({ number: job.number, found: isLate(job) ? null : await tasks[job.task](job) });
      } catch (error) {
        postMessage({ number: job.number, error: error.message });
      }
    });
  };
}
