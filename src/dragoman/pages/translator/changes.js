"use strict";
// What a reader changes inside the model, and what becomes of one sentence: Changed is the watch of model.js, and a model
// that can be searched with. With UNCHANGED it computes what the model computes.
//
//   scaled       false: the products are not divided by sqrt(d_k)
//   temperature  what the scores are divided by as well
//   mask         "right", true = may look; "inverted": handed over the wrong way round; "none": left out
//   fill         what a hidden score becomes: "infinity", or "billion", which is -1e9
//   padding      how many pad tokens follow the source
//   positions    false: no word knows where it stands
//   removed      heads that give nothing: [[name of the attention, head], ...]
//   hidden       { src, tgt }: positions that nothing looks at, whatever the mask
//   patch        null, or { side, layer, at, row }: the row of another sentence that replaces one after a layer

const UNCHANGED = {
  scaled: true, temperature: 1, mask: "right", fill: "infinity", padding: 0, positions: true, removed: [],
  hidden: { src: [], tgt: [] }, patch: null,
};
const PADDING = "(padding)";
const FILLS = { infinity: -Infinity, billion: -1e9 };

class Changed {
  /** src: ids and eos, as model.encode takes them. kept: what each attention computed, by its name, if it is to be shown. */
  constructor(model, src, changes, special, kept = null) {
    Object.assign(this, { model, changes: { ...UNCHANGED, ...changes }, special, kept });
    this.src = [...model.read(src), ...Array(this.changes.padding).fill(special.pad)];
    this.unplaced = !this.changes.positions;
    this.states = { encoder: [], decoder: [] }; // the rows after each layer
    this.first = null; // the position of all rows of a step; null where each row of the target has its own
  }

  /** Whether a query may look at a key. */
  isOpen(name, query, key) {
    const { mask, hidden } = this.changes, isTarget = name.startsWith("decoder.") && name.endsWith("self_attn");
    const fits = isTarget ? key <= query : this.src[key] !== this.special.pad;
    const isHanded = { right: fits, inverted: !fits, none: true }[mask];
    return isHanded && !(isTarget ? hidden.tgt : hidden.src).includes(key);
  }

  weigh(name, row, products, dK, head) {
    const { scaled, temperature, fill, removed } = this.changes;
    const query = this.first === null ? row : this.first;
    const divisor = (scaled ? Math.sqrt(dK) : 1) * temperature, scores = new Float32Array(products.length);
    for (let key = 0; key < products.length; key++)
      scores[key] = this.isOpen(name, query, key) ? products[key] / divisor : FILLS[fill];
    const shown = this.kept ? scores.slice() : null, weights = softmax(scores);
    if (removed.some(([other, which]) => other === name && which === head)) weights.fill(0);
    if (this.kept) this.kept[name].rows.push({ products, scores: shown, weights });
    return weights;
  }

  project(name, queries, { keys, values }) {
    if (this.kept) this.kept[name] = { queries, keys, values, rows: [] };
  }

  after(side, layer, rows) {
    const { patch } = this.changes;
    if (patch && patch.side === side && patch.layer === layer) {
      const first = side === "decoder" ? this.first : null;
      rows = rows.map((row, r) => ((first === null ? r : first) === patch.at ? patch.row : row));
    }
    if (this.kept) this.states[side][layer] = rows;
    return rows;
  }

  get watch() {
    return {
      unplaced: this.unplaced, weigh: (...of) => this.weigh(...of), project: (...of) => this.project(...of),
      after: (...of) => this.after(...of),
    };
  }

  /** The logits after each id of a target that is given, bos first. */
  teach(tgtIn) {
    this.first = null;
    const state = this.model.start(this.src, this.watch);
    return this.model.teach(state, tgtIn, this.watch);
  }

  // --- a model to search with: where the past stays as it was, its keys and values are kept -----------------------------

  start() {
    this.first = null;
    return { ...this.model.start(this.src, this.watch), written: [[]] };
  }

  step(state, lastIds) {
    const written = state.written.map((ids, r) => [...ids, lastIds[r]]);
    if (this.changes.mask !== "right") { // what was read looks at what comes later: all is read again
      this.first = null;
      return [written.map((ids) => this.model.teach(state, ids, this.watch).pop()), { ...state, written }];
    }
    this.first = state.length;
    const [logits, next] = this.model.step(state, lastIds, this.watch);
    return [logits, { ...next, written }];
  }

  select(state, rows) {
    return { ...this.model.select(state, rows), written: rows.map((row) => state.written[row]) };
  }
}

/** One sentence and its translation, read with some changes: all that can be shown of it. src: ids and eos; tgt: ids. */
function readingOf(model, src, tgt, changes, special) {
  const changed = new Changed(model, src, changes, special, {}), logits = changed.teach([special.bos, ...tgt]);
  return { changed, probabilities: logits.map(probabilitiesOf) };
}

/** Probabilities of V logits. */
function probabilitiesOf(logits) {
  const scores = Float64Array.from(logits);
  return softmax(scores);
}

/** The matrices of one head, rows of numbers: Q rows of queries, scores and weights, K rows of keys and values. */
function headOf({ changed }, name, head) {
  const { queries, keys, values, rows } = changed.kept[name], { n_heads: nHeads } = changed.model.config;
  const [dK, dV] = [queries[0].length / nHeads, values[0].length / nHeads];
  const part = (width) => (row) => row.slice(head * width, (head + 1) * width);
  const ofHead = rows.filter((_, i) => i % nHeads === head);
  const [v, weights] = [values.map(part(dV)), ofHead.map((one) => one.weights)];
  return {
    dK, dV, q: queries.map(part(dK)), k: keys.map(part(dK)), v, products: ofHead.map((one) => one.products),
    scores: ofHead.map((one) => one.scores), weights,
    open: ofHead.map((one, query) => [...one.weights.keys()].map((key) => changed.isOpen(name, query, key))),
    out: weights.map((row) => v[0].map((_, i) => row.reduce((sum, weight, key) => sum + weight * v[key][i], 0))),
  };
}

/** What the page shows: one head, the probabilities of the translation before and after the changes, and the candidates. */
function insideOf(plain, changed, page, tgt, looked) {
  const { tgt: subwords } = page, { special: { eos } } = subwords, [before, after] = [plain.probabilities, changed.probabilities];
  const best = (all) => [...all.keys()].sort((a, b) => all[b] - all[a] || a - b).slice(0, CANDIDATES).map((id) => [readable(subwords, id), all[id]]);
  return {
    tokens: tokensOf(changed, page, tgt), head: headOf(changed, looked.name, looked.head),
    steps: [...tgt, eos].map((id, i) => ({ chosen: readable(subwords, id), before: before[i][id], after: after[i][id] })),
    best: { before: best(before[looked.step]), after: best(after[looked.step]) },
  };
}

/** What is read of a sentence and of its translation, the start of the translation included. */
function tokensOf({ changed }, { src, tgt: subwords }, tgt) {
  const { pad, bos } = subwords.special, named = (side, id) => ({ [pad]: PADDING, [bos]: START })[id] || readable(side, id);
  return { src: changed.src.map((id) => named(src, id)), tgt: [bos, ...tgt].map((id) => named(subwords, id)) };
}
