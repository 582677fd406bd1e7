"use strict";
// The Transformer of "Attention Is All You Need" and its common variants in plain typed arrays: model/ once more, to be
// read beside it. Names of weights are those of the state dict; matrices are (out, in).
//
// A sequence is a list of rows, each a Float32Array: x is S rows of d_model numbers. One sentence is translated at a
// time, so there is no padding, and as a decoder is only ever given the past, no mask; lab.js reads whole targets and masks
// them. Sums are made in double precision.

/** The maps that a model is made of: x W^T + b for each row of x. */
function linear({ weight, bias }, x) {
  const { values, shape: [nOut, nIn] } = weight;
  const y = x.map(() => new Float32Array(nOut));
  let row = 0;
  for (; row + 4 <= x.length; row += 4) { // four rows share each weight that is read
    const [x0, x1, x2, x3] = x.slice(row, row + 4), [y0, y1, y2, y3] = y.slice(row, row + 4);
    for (let i = 0, at = 0; i < nOut; i++) {
      let sum0 = 0, sum1 = 0, sum2 = 0, sum3 = 0;
      for (let j = 0; j < nIn; j++, at++) {
        const w = values[at];
        sum0 += w * x0[j];
        sum1 += w * x1[j];
        sum2 += w * x2[j];
        sum3 += w * x3[j];
      }
      const b = bias ? bias.values[i] : 0;
      y0[i] = sum0 + b;
      y1[i] = sum1 + b;
      y2[i] = sum2 + b;
      y3[i] = sum3 + b;
    }
  }
  for (; row < x.length; row++) {
    const [one, into] = [x[row], y[row]];
    for (let i = 0, at = 0; i < nOut; i++, at += nIn) {
      let even = 0, odd = 0, j = 0; // two sums: an addition need not wait for the one before
      for (; j + 1 < nIn; j += 2) {
        even += values[at + j] * one[j];
        odd += values[at + j + 1] * one[j + 1];
      }
      if (j < nIn) even += values[at + j] * one[j];
      into[i] = even + odd + (bias ? bias.values[i] : 0);
    }
  }
  return y;
}

/** Layer normalisation of each row. */
function layerNorm({ weight, bias }, x, eps) {
  return x.map((row) => {
    const n = row.length;
    let mean = 0, variance = 0;
    for (let i = 0; i < n; i++) mean += row[i] / n;
    for (let i = 0; i < n; i++) variance += (row[i] - mean) ** 2 / n;
    const scale = 1 / Math.sqrt(variance + eps);
    return row.map((value, i) => (value - mean) * scale * weight.values[i] + bias.values[i]);
  });
}

/** x + y, row by row: the residual connection. */
function add(x, y) {
  return x.map((row, r) => row.map((value, i) => value + y[r][i]));
}

// --- attention.py -----------------------------------------------------------------------------------------------------

/** The softmax of scores, in place; a query that may look nowhere, whose scores are all -Infinity, gives zeros. */
function softmax(scores) {
  let peak = -Infinity, total = 0;
  for (let key = 0; key < scores.length; key++) peak = Math.max(peak, scores[key]);
  if (peak === -Infinity) return scores.fill(0);
  for (let key = 0; key < scores.length; key++) total += scores[key] = Math.exp(scores[key] - peak);
  for (let key = 0; key < scores.length; key++) scores[key] /= total;
  return scores;
}

/** Weights of one query from its products with the keys: softmax(products / sqrt(d_k)). */
function weigh(products, dK) {
  const scores = new Float32Array(products.length);
  for (let key = 0; key < products.length; key++) scores[key] = products[key] / Math.sqrt(dK);
  return softmax(scores);
}

/**
 * Scaled dot-product attention, Eq. (1), of one position: softmax(q K^T / sqrt(d_k)) V, head by head.
 * q: H * d_k numbers. keys, values: K rows of H * d_k and of H * d_v. weighing(products, d_k, head): the weights.
 * record: receives a list of H rows of K weights. Returns the heads' contexts side by side, H * d_v numbers.
 */
function attend(q, { keys, values }, nHeads, weighing, record) {
  const dK = q.length / nHeads, dV = values[0].length / nHeads, context = new Float32Array(values[0].length), seen = [];
  for (let head = 0; head < nHeads; head++) {
    const products = new Float64Array(keys.length), [k0, v0] = [head * dK, head * dV];
    for (let key = 0; key < keys.length; key++)
      for (let i = k0; i < k0 + dK; i++) products[key] += q[i] * keys[key][i];
    const weights = weighing(products, dK, head);
    for (let key = 0; key < keys.length; key++)
      for (let i = v0; i < v0 + dV; i++) context[i] += weights[key] * values[key][i];
    seen.push(weights);
  }
  if (record) record(seen);
  return context;
}

// --- embedding.py -----------------------------------------------------------------------------------------------------

/** pos / 10000^(2i / width), in radians, for each pair of channels. */
function positionAngles(position, width) {
  return Float64Array.from({ length: Math.ceil(width / 2) }, (_, i) => position / 10000 ** (2 * i / width));
}

/** Sinusoidal position (section 3.5): sines on even channels, cosines on odd ones. */
function sinusoid(position, width) {
  const angles = positionAngles(position, width);
  return Float32Array.from({ length: width }, (_, i) => (i % 2 ? Math.cos(angles[i >> 1]) : Math.sin(angles[i >> 1])));
}

/** Rotary position (RoFormer, Eq. 15): the channel pairs (0, 1), (2, 3), ... of each head turned by their angles. */
function rotate(row, nHeads, position) {
  const width = row.length / nHeads, angles = positionAngles(position, width), turned = new Float32Array(row.length);
  for (let at = 0; at < row.length; at += 2) {
    const angle = angles[(at % width) >> 1], [cos, sin] = [Math.fround(Math.cos(angle)), Math.fround(Math.sin(angle))];
    turned[at] = row[at] * cos - row[at + 1] * sin;
    turned[at + 1] = row[at] * sin + row[at + 1] * cos;
  }
  return turned;
}

// --- feed_forward.py --------------------------------------------------------------------------------------------------

/** The error function by its series, Abramowitz and Stegun 7.1.6: all terms have one sign, so that no digit is lost. */
function erf(x) {
  if (Math.abs(x) > 6) return Math.sign(x); // to the last digit
  let term = x, sum = x;
  for (let n = 1; Math.abs(term) > 1e-17 * Math.abs(sum); n++) sum += term *= 2 * x * x / (2 * n + 1);
  return 2 / Math.sqrt(Math.PI) * Math.exp(-x * x) * sum;
}

const ACTIVATIONS = {
  relu: (x) => Math.max(0, x),
  gelu: (x) => x * (1 + erf(x / Math.SQRT2)) / 2,
  swish: (x) => x / (1 + Math.exp(-x)),
};
ACTIVATIONS.swiglu = ACTIVATIONS.swish; // of the gate

// --- transformer.py ---------------------------------------------------------------------------------------------------

/**
 * An encoder and a decoder, with start, step and select for the search, and teach for a whole target at once.
 * config: the fields of ModelConfig. weights: by name { shape, values }; of tied ones the first.
 *
 * Whoever looks inside gives a watch, all of whose fields may be left out (lab.js has them all):
 *   record(name, weights)                           called for each position of each attention
 *   weigh(name, row, products, dK, head)            the weights, in place of weigh above; row: counted in this call
 *   project(name, queries, { keys, values })        called with the projections of all rows
 *   after(side, layer, rows)                        the rows to go on with after a layer; 0: after the embeddings
 *   unplaced                                        true: positions are left out
 */
class Transformer {
  constructor(config, weights) {
    this.config = config;
    this.weights = weights;
    this.preNorm = { pre: true, post: false }[config.norm];
    this.activate = ACTIVATIONS[config.activation];
    if (this.preNorm === undefined || !this.activate || !["sinusoidal", "learned", "rotary"].includes(config.positions))
      throw new Error(`unknown variant: ${config.norm}-norm, ${config.activation}, ${config.positions} positions`);
    const { src, tgt, generator } = {
      all: { src: "src_embed", tgt: "src_embed", generator: "src_embed" },
      decoder: { src: "src_embed", tgt: "tgt_embed", generator: "tgt_embed" },
      none: { src: "src_embed", tgt: "tgt_embed", generator: "generator" },
    }[config.share_embeddings];
    this.embeddings = { src: weights[`${src}.weight`], tgt: weights[`${tgt}.weight`] };
    this.generator = { weight: weights[`${generator}.weight`], bias: weights["generator.bias"] };
  }

  /** What a map or a norm is made of. */
  part(name) {
    return { weight: this.weights[`${name}.weight`], bias: this.weights[`${name}.bias`] };
  }

  /** Tokens and where they stand (sections 3.4 and 3.5): a row for each id, the first at position start. */
  embed(side, ids, start, watch = {}) {
    const { d_model: width, scale_embeddings: scaled, positions } = this.config, table = this.embeddings[side].values;
    return ids.map((id, i) => {
      const row = table.slice(id * width, (id + 1) * width).map((value) => value * (scaled ? Math.sqrt(width) : 1));
      if (positions === "rotary" || watch.unplaced) return row; // rotary ones enter in self-attention
      const at = positions === "sinusoidal" ? sinusoid(start + i, width) : this.learnedPosition(side, start + i);
      return row.map((value, channel) => value + at[channel]);
    });
  }

  learnedPosition(side, position) {
    const { shape: [length, width], values } = this.weights[`${side}_positions.weight`];
    if (position >= length) throw new Error(`a text of more than ${length} subwords is longer than this model's positions`);
    return values.subarray(position * width, (position + 1) * width);
  }

  /** What queries look at: the keys and values of x, whose rows stand at these positions (null: they do not matter). */
  keysValues(name, x, positions) {
    const keys = linear(this.part(`${name}.w_k`), x), values = linear(this.part(`${name}.w_v`), x);
    return { keys: this.turned(keys, positions), values };
  }

  turned(rows, positions) {
    if (positions === null || this.config.positions !== "rotary") return rows;
    return rows.map((row, r) => rotate(row, this.config.n_heads, positions[r]));
  }

  /** Multi-head attention (section 3.2.2): each row of x gathers from the keys and values that are its own. */
  attention(name, x, seen, positions, watch) {
    const queries = this.turned(linear(this.part(`${name}.w_q`), x), watch.unplaced ? null : positions);
    if (watch.project) watch.project(name, queries, seen[0]);
    const record = watch.record && ((weights) => watch.record(name, weights));
    const heads = queries.map((q, row) => {
      const weighing = watch.weigh ? (products, dK, head) => watch.weigh(name, row, products, dK, head) : weigh;
      return attend(q, seen[row], this.config.n_heads, weighing, record);
    });
    return linear(this.part(`${name}.w_o`), heads);
  }

  /** FFN(x) = max(0, x W_1 + b_1) W_2 + b_2, Eq. (2), or with another activation; SwiGLU's gate is W_3. */
  feedForward(name, x) {
    const hidden = linear(this.part(`${name}.w_1`), x);
    const gate = this.config.activation === "swiglu" ? linear(this.part(`${name}.w_3`), x) : null;
    const active = hidden.map((row, r) => row.map((value, i) => (gate ? this.activate(gate[r][i]) * value : this.activate(value))));
    return linear(this.part(`${name}.w_2`), active);
  }

  norm(name, x) {
    return layerNorm(this.part(name), x, this.config.norm_eps);
  }

  encoderLayer(name, x, positions, watch) {
    let y = this.preNorm ? this.norm(`${name}.norm1`, x) : x;
    const seen = this.keysValues(`${name}.self_attn`, y, watch.unplaced ? null : positions);
    x = add(x, this.attention(`${name}.self_attn`, y, x.map(() => seen), positions, watch));
    x = this.preNorm ? x : this.norm(`${name}.norm1`, x);

    y = this.preNorm ? this.norm(`${name}.norm2`, x) : x;
    x = add(x, this.feedForward(`${name}.feed_forward`, y));
    return this.preNorm ? x : this.norm(`${name}.norm2`, x);
  }

  /**
   * One decoder layer. x: a row for each hypothesis, or for each position. remember(keys, values): what each row looks at,
   * given its own. memory: cross-attention's keys and values. Returns the rows and what they looked at.
   */
  decoderLayer(name, x, remember, memory, positions, watch) {
    let y = this.preNorm ? this.norm(`${name}.norm1`, x) : x;
    const { keys, values } = this.keysValues(`${name}.self_attn`, y, watch.unplaced ? null : positions);
    const seen = remember(keys, values);
    x = add(x, this.attention(`${name}.self_attn`, y, seen, positions, watch));
    x = this.preNorm ? x : this.norm(`${name}.norm1`, x);

    y = this.preNorm ? this.norm(`${name}.norm2`, x) : x;
    x = add(x, this.attention(`${name}.cross_attn`, y, x.map(() => memory), null, watch));
    x = this.preNorm ? x : this.norm(`${name}.norm2`, x);

    y = this.preNorm ? this.norm(`${name}.norm3`, x) : x;
    x = add(x, this.feedForward(`${name}.feed_forward`, y));
    return [this.preNorm ? x : this.norm(`${name}.norm3`, x), seen];
  }

  /** The source as the model reads it: of a model that does not read the eos (masks.py) without. */
  read(src) {
    return this.config.src_eos === false ? src.filter((id) => id !== this.config.eos_id) : src;
  }

  /** Read the source: ids and eos to the memory, S rows. */
  encode(src, watch = {}) {
    src = this.read(src);
    const positions = [...src.keys()], after = watch.after || ((side, layer, rows) => rows);
    let x = after("encoder", 0, this.embed("src", src, 0, watch));
    for (let i = 0; i < this.config.n_encoder_layers; i++)
      x = after("encoder", i + 1, this.encoderLayer(`encoder.layers.${i}`, x, positions, watch));
    return this.preNorm ? this.norm("encoder.norm", x) : x;
  }

  /** Prepare to decode: a state of one hypothesis. */
  start(src, watch = {}) {
    const memory = this.encode(src, watch), layers = [...Array(this.config.n_decoder_layers).keys()];
    return {
      length: 0,
      past: layers.map(() => [{ keys: [], values: [] }]), // of each layer and hypothesis
      memory: layers.map((i) => this.keysValues(`decoder.layers.${i}.cross_attn`, memory, null)),
    };
  }

  /** Append a token to each hypothesis: the logits of the next, V for each, and the state of the longer ones. */
  step(state, lastIds, watch = {}) {
    const x = lastIds.map((id) => this.embed("tgt", [id], state.length, watch)[0]);
    const longer = (before) => (keys, values) =>
      before.map((one, r) => ({ keys: [...one.keys, keys[r]], values: [...one.values, values[r]] }));
    const [top, past] = this.decode(x, state, x.map(() => state.length), (i) => longer(state.past[i]), watch);
    return [linear(this.generator, top), { length: state.length + 1, past, memory: state.memory }];
  }

  /** Read a whole target at once, bos first, as in training: the logits after each id. Only the watch masks what is later. */
  teach(state, tgtIn, watch) {
    const x = this.embed("tgt", tgtIn, 0, watch), all = (keys, values) => x.map(() => ({ keys, values }));
    return linear(this.generator, this.decode(x, state, [...tgtIn.keys()], () => all, watch)[0]);
  }

  /** The decoder's layers. remember(i): what layer i looks at, as decoderLayer takes it. */
  decode(x, { memory }, positions, remember, watch) {
    const after = watch.after || ((side, layer, rows) => rows);
    x = after("decoder", 0, x);
    const past = memory.map((one, i) => {
      let seen;
      [x, seen] = this.decoderLayer(`decoder.layers.${i}`, x, remember(i), one, positions, watch);
      x = after("decoder", i + 1, x);
      return seen;
    });
    return [this.preNorm ? this.norm("decoder.norm", x) : x, past];
  }

  /** Keep some hypotheses, repeats allowed: what they have in common is not copied. */
  select(state, rows) {
    return { ...state, past: state.past.map((layer) => rows.map((row) => layer[row])) };
  }
}
