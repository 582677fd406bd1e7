"use strict";
// What the explorer shows of one translation: explanation/trace.py and explanation/words.py once more, with the same
// fields as trace_data in explanation/page.py.

const [START, END] = ["(start)", "(end)"];
const CANDIDATES = 5;
const REACH = 64; // bytes on each side of a place that tell if a word may end there
const GRAPHEMES = new Intl.Segmenter("en", { granularity: "grapheme" });
const UNSPACED = /[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\u30ff\u31f0-\u31ff\u3400-\u9fff\uf900-\ufaff\u{20000}-\u{3ffff}]/u;

/** Whether a character belongs to a word that ends only where another kind of character stands (languages/words.py). */
function inWord(character) {
  return character !== undefined && /[\p{L}\p{N}\p{M}\u200c\u200d\u00ad\u2060]/u.test(character) && !UNSPACED.test(character);
}

/** Bytes, one list after the other. */
function joined(lists) {
  const all = new Uint8Array(lists.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const list of lists) {
    all.set(list, at);
    at += list.length;
  }
  return all;
}

/** Whether a word may end between these bytes. */
function mayPart(before, after) {
  if (after.length && after[0] >= 0x80 && after[0] < 0xc0) return false; // inside a character
  const loose = new TextDecoder("utf-8", { ignoreBOM: true });
  const [start, end] = [loose.decode(before.slice(-REACH)), loose.decode(after.slice(0, REACH))];
  const left = [...start].slice(-2), right = [...end].slice(0, 2);
  const last = left[left.length - 1];
  if (last === undefined || /\s/u.test(last)) return false; // a space belongs to the word that follows it
  if (right.length && /[\p{M}\u200c\u200d]/u.test(right[0])) return false; // a mark belongs to the character before it
  if (end && GRAPHEMES.segment(start + end).containing(start.length).index < start.length) return false; // one sign of several characters
  const joins = (character) => character !== undefined && "'’-".includes(character);
  if ((joins(right[0]) && inWord(right[1])) || (joins(last) && left.length > 1 && inWord(left[0]))) return !(inWord(last) || inWord(right[0]));
  return !(inWord(last) && inWord(right[0]));
}

/** Which tokens are one word: the first of each and the one after its last. A token that spells nothing is one by itself. */
function wordSpans(spelled) {
  const spans = [];
  let start = 0;
  for (let i = 1; i <= spelled.length; i++)
    if (i === spelled.length || !spelled[i - 1].length || !spelled[i].length || mayPart(joined(spelled.slice(0, i)), joined(spelled.slice(i)))) {
      spans.push([start, i]);
      start = i;
    }
  return spans;
}

/** The words as they are written in a text, of which the model reads a normalised form; as it reads them if it reads others. */
function writtenWords(subwords, text, spelled, spans) {
  const loose = new TextDecoder("utf-8", { ignoreBOM: true });
  const read = spans.map(([first, stop]) => loose.decode(joined(spelled.slice(first, stop))));
  const located = subwords.normaliser.located(text);
  if (read.join("").replaceAll(" ", SPACE) !== located.map(([character]) => character).join("")) return read.map((word) => word.trim() || "·");
  const places = [...located.map(([, place]) => place), text.length];
  let end = 0;
  return read.map((word) => {
    const start = end;
    end += [...word].length;
    return text.slice(places[start], places[end]).trim() || "·";
  });
}

/** One text as the model reads or writes it: its tokens and words, and the end of the sentence where it has one. */
function side(subwords, text, ids, lang, ends = true) {
  // An unknown subword is decoded between two spaces; these are not in the text.
  const spelled = ids.map((id) => (id === subwords.special.unk ? new TextEncoder().encode("\u2047") : subwords.spelled(id)));
  const tokens = ids.map((id) => readable(subwords, id)), spans = wordSpans(spelled);
  const words = writtenWords(subwords, text, spelled, spans).map((word, i) => (spelled[spans[i][0]].length ? word : tokens[spans[i][0]]));
  if (ends) for (const [list, last] of [[tokens, END], [words, END], [spans, [ids.length, ids.length + 1]]]) list.push(last);
  return { lang, tokens, singles: tokens.map((_, i) => [i, i + 1]), words, spans };
}

/** A subword as people read it: · is a space. */
function readable(subwords, id) {
  return id === subwords.special.eos ? END : subwords.pieces[id].replaceAll(SPACE, "·");
}

/** Weights (layers, H, Q, K), of which each row is given as long as it is, in two bytes each, low byte first, as base64. */
function packed(layers, nHeads, nColumns) {
  let text = "";
  for (const rows of layers)
    for (let head = 0; head < nHeads; head++)
      for (const row of rows)
        for (let column = 0; column < nColumns; column++) {
          const value = Math.round(65535 * (row[head][column] ?? 0));
          text += String.fromCharCode(value & 255, value >> 8);
        }
  return btoa(text);
}

/** What one step thought likeliest, and what was taken. Pad, unk and bos, which no translation holds, are no candidates. */
function stepOf(subwords, logits, chosen) {
  const peak = logits.reduce((most, logit) => Math.max(most, logit), -Infinity);
  const total = logits.reduce((sum, logit) => sum + Math.exp(logit - peak), 0);
  const probability = (id) => Math.exp(logits[id] - peak) / total;
  const offered = [...logits.keys()].filter((id) => id >= subwords.special.eos);
  const order = offered.sort((a, b) => logits[b] - logits[a] || a - b);
  const best = order.slice(0, CANDIDATES);
  return {
    chosen: readable(subwords, chosen), probability: probability(chosen), rank: 1 + order.filter((id) => logits[id] > logits[chosen]).length,
    best: best.map((id) => [readable(subwords, id), probability(id)]), id: chosen, best_ids: best,
  };
}

/**
 * Read a translation with the model once more, and keep all that it attends to and considers.
 * src, tgt: ids without eos; page: { src, tgt subwords, srcLang, tgtLang, facts }; nForced: how many ids were given.
 */
function traceOf(model, page, text, translation, src, tgt, nForced) {
  const { special } = page.tgt, seen = {};
  const record = (name, weights) => (seen[name] ||= []).push(weights);
  let state = model.start([...src, special.eos], { record }), logits;
  const steps = [...tgt, special.eos].map((id, i) => {
    [logits, state] = model.step(state, [i ? tgt[i - 1] : special.bos], { record });
    return stepOf(page.tgt, logits[0], id);
  });
  const [from, to] = [side(page.src, text, src, page.srcLang, model.config.src_eos !== false), side(page.tgt, translation, tgt, page.tgtLang)];
  const sides = { cross: [to, from], encoder: [from, from], decoder: [to, to] };
  const layers = (kind) => {
    const [part, name] = kind === "cross" ? ["decoder", "cross_attn"] : [kind, "self_attn"];
    return [...Array(model.config[`n_${part}_layers`]).keys()].map((i) => seen[`${part}.layers.${i}.${name}`]);
  };
  const view = (name, tokens, spans) => ({
    name,
    kinds: Object.fromEntries(Object.entries(sides).map(([kind, [rows, columns]]) => {
      const soFar = kind === "decoder"; // columns are what was read: the start, and all but the last
      const behind = [[0, 1], ...columns[spans].slice(0, -1).map(([first, stop]) => [first + 1, stop + 1])];
      const shape = [layers(kind).length, model.config.n_heads, rows[tokens].length, columns[tokens].length];
      return [kind, {
        rows: rows[tokens], rows_lang: rows.lang, columns: soFar ? [START, ...columns[tokens].slice(0, -1)] : columns[tokens],
        columns_lang: columns.lang, row_spans: rows[spans], column_spans: soFar ? behind : columns[spans], shape,
        ...(name === "subwords" ? { weights: packed(layers(kind), model.config.n_heads, shape[3]) } : {}),
      }];
    })),
    steps: to[spans].flatMap(([first, stop], i) => Array(stop - first).fill(i)),
  });
  return {
    source: text, translation, src_lang: page.srcLang, tgt_lang: page.tgtLang, model: page.facts, forced: nForced,
    views: [view("words", "words", "spans"), view("subwords", "tokens", "singles")], steps,
  };
}
