"use strict";
// The Transformer of "Attention Is All You Need" and its common variants in plain typed arrays: model/ once more, to be
// read beside it. Names of weights are those of the state dict; matrices are (out, in).
//
// A sequence is a list of rows, each a Float32Array: x is S rows of d_model numbers. One sentence is translated at a
// time, so there is no padding, and as a decoder is only ever given the past, no mask. Sums are made in double precision.

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

/**
 * Scaled dot-product attention, Eq. (1), of one position: softmax(q K^T / sqrt(d_k)) V, head by head.
 * q: H * d_k numbers. keys, values: K rows of H * d_k and of H * d_v. record: receives a list of H rows of K weights.
 * Returns the heads' contexts side by side, H * d_v numbers.
 */
function attend(q, { keys, values }, nHeads, record) {
  const dK = q.length / nHeads, dV = values[0].length / nHeads, context = new Float32Array(values[0].length), seen = [];
  for (let head = 0; head < nHeads; head++) {
    const weights = new Float32Array(keys.length), [k0, v0] = [head * dK, head * dV];
    let peak = -Infinity, total = 0;
    for (let key = 0; key < keys.length; key++) {
      let score = 0;
      for (let i = k0; i < k0 + dK; i++) score += q[i] * keys[key][i];
      weights[key] = score / Math.sqrt(dK);
      peak = Math.max(peak, weights[key]);
    }
    for (let key = 0; key < keys.length; key++) total += weights[key] = Math.exp(weights[key] - peak);
    for (let key = 0; key < keys.length; key++) {
      weights[key] /= total;
      for (let i = v0; i < v0 + dV; i++) context[i] += weights[key] * values[key][i];
    }
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
 * An encoder and a decoder, with start, step and select for the search.
 * config: the fields of ModelConfig. weights: by name { shape, values }; of tied ones the first.
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
  embed(side, ids, start) {
    const { d_model: width, scale_embeddings: scaled, positions } = this.config, table = this.embeddings[side].values;
    return ids.map((id, i) => {
      const row = table.slice(id * width, (id + 1) * width).map((value) => value * (scaled ? Math.sqrt(width) : 1));
      if (positions === "rotary") return row; // which enter in self-attention
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
  attention(name, x, seen, positions, record) {
    const queries = this.turned(linear(this.part(`${name}.w_q`), x), positions);
    const heads = queries.map((q, r) => attend(q, seen[r], this.config.n_heads, record && ((weights) => record(name, weights))));
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

  encoderLayer(name, x, positions, record) {
    let y = this.preNorm ? this.norm(`${name}.norm1`, x) : x;
    const seen = this.keysValues(`${name}.self_attn`, y, positions);
    x = add(x, this.attention(`${name}.self_attn`, y, x.map(() => seen), positions, record));
    x = this.preNorm ? x : this.norm(`${name}.norm1`, x);

    y = this.preNorm ? this.norm(`${name}.norm2`, x) : x;
    x = add(x, this.feedForward(`${name}.feed_forward`, y));
    return this.preNorm ? x : this.norm(`${name}.norm2`, x);
  }

  /**
   * One step of a layer. x: a row for each hypothesis, all at one position. past: of each row the keys and values before.
   * memory: cross-attention's keys and values. Returns the rows and their longer past.
   */
  decoderLayer(name, x, past, memory, position, record) {
    const positions = x.map(() => position);
    let y = this.preNorm ? this.norm(`${name}.norm1`, x) : x;
    const { keys, values } = this.keysValues(`${name}.self_attn`, y, positions);
    const longer = past.map((one, r) => ({ keys: [...one.keys, keys[r]], values: [...one.values, values[r]] }));
    x = add(x, this.attention(`${name}.self_attn`, y, longer, positions, record));
    x = this.preNorm ? x : this.norm(`${name}.norm1`, x);

    y = this.preNorm ? this.norm(`${name}.norm2`, x) : x;
    x = add(x, this.attention(`${name}.cross_attn`, y, x.map(() => memory), null, record));
    x = this.preNorm ? x : this.norm(`${name}.norm2`, x);

    y = this.preNorm ? this.norm(`${name}.norm3`, x) : x;
    x = add(x, this.feedForward(`${name}.feed_forward`, y));
    return [this.preNorm ? x : this.norm(`${name}.norm3`, x), longer];
  }

  /** Read the source: ids and eos to the memory, S rows, one fewer of a model that does not read the eos (masks.py).
   * record(name, weights) is called for each position. */
  encode(src, record) {
    if (this.config.src_eos === false) src = src.filter((id) => id !== this.config.eos_id);
    let x = this.embed("src", src, 0);
    const positions = [...src.keys()];
    for (let i = 0; i < this.config.n_encoder_layers; i++) x = this.encoderLayer(`encoder.layers.${i}`, x, positions, record);
    return this.preNorm ? this.norm("encoder.norm", x) : x;
  }

  /** Prepare to decode: a state of one hypothesis. */
  start(src, record) {
    const memory = this.encode(src, record), layers = [...Array(this.config.n_decoder_layers).keys()];
    return {
      length: 0,
      past: layers.map(() => [{ keys: [], values: [] }]), // of each layer and hypothesis
      memory: layers.map((i) => this.keysValues(`decoder.layers.${i}.cross_attn`, memory, null)),
    };
  }

  /** Append a token to each hypothesis: the logits of the next, V for each, and the state of the longer ones. */
  step(state, lastIds, record) {
    let x = lastIds.map((id) => this.embed("tgt", [id], state.length)[0]);
    const past = state.past.map((before, i) => {
      let longer;
      [x, longer] = this.decoderLayer(`decoder.layers.${i}`, x, before, state.memory[i], state.length, record);
      return longer;
    });
    if (this.preNorm) x = this.norm("decoder.norm", x);
    return [linear(this.generator, x), { length: state.length + 1, past, memory: state.memory }];
  }

  /** Keep some hypotheses, repeats allowed: what they have in common is not copied. */
  select(state, rows) {
    return { ...state, past: state.past.map((layer) => rows.map((row) => layer[row])) };
  }
}
