"use strict";
// Greedy and beam search as decoding/search.py has them: the same scores, order of equals, penalty and end.
//
// Both are generators that pause after each step, so that whoever asks can do other things, or give up. They return
// finished hypotheses, best first: { ids, score, logProb }, ids without bos and eos.
// how: { beamSize, alpha, form, patience, nBest, maxLen, allowUnk }; special: { pad, unk, bos, eos }; prefix: ids to begin with.

class NotFinite extends Error {}

/** ((5 + n) / 6)^alpha of GNMT (https://arxiv.org/abs/1609.08144, Eq. 14), or n^alpha; n counts eos. */
function lengthPenalty(n, { alpha, form }) {
  if (form === "gnmt") return ((5 + n) / 6) ** alpha;
  if (form === "power") return n ** alpha;
  throw new Error(`unknown length penalty: ${form}`);
}

/** Log-probabilities of V logits; -Infinity for what may not follow as token n (from 1): pad, bos, and unk. */
function nextLogProbs(logits, n, how, special, prefix) {
  let peak = -Infinity, total = 0;
  for (const logit of logits) peak = Math.max(peak, logit);
  for (const logit of logits) total += Math.exp(logit - peak);
  const logSum = peak + Math.log(total);
  if (!Number.isFinite(logSum)) throw new NotFinite("the model's scores are not finite: its weights are damaged");
  const only = n <= prefix.length ? prefix[n - 1] : n === how.maxLen ? special.eos : null;
  const logProbs = new Float64Array(logits.length).fill(-Infinity);
  if (only !== null) logProbs[only] = logits[only] - logSum;
  else {
    for (let token = 0; token < logits.length; token++) logProbs[token] = logits[token] - logSum;
    for (const token of [special.pad, special.bos, ...(how.allowUnk ? [] : [special.unk])]) logProbs[token] = -Infinity;
  }
  return logProbs;
}

/** Take the likeliest token at each step. */
function* greedySearch(model, src, how, special, prefix = []) {
  const ids = [];
  let state = model.start(src), last = special.bos, logProb = 0, n = 0, logits;
  while (last !== special.eos) {
    [logits, state] = model.step(state, [last]);
    const next = nextLogProbs(logits[0], ++n, how, special, prefix);
    last = next.reduce((best, value, token) => (value > next[best] ? token : best), 0);
    logProb += next[last];
    ids.push(last);
    yield n;
  }
  return [{ ids: ids.slice(0, -1), score: logProb / lengthPenalty(n, how), logProb }];
}

/** The n best of all extensions { beam, token, logProb }, best first; of equals the earlier. */
function bestExtensions(alive, next, n) {
  const best = [];
  next.forEach((logProbs, beam) => {
    for (let token = 0; token < logProbs.length; token++) {
      const logProb = alive[beam].logProb + logProbs[token];
      if (logProb === -Infinity || (best.length === n && logProb <= best[n - 1].logProb)) continue;
      let place = best.length;
      while (place > 0 && best[place - 1].logProb < logProb) place--;
      best.splice(place, 0, { beam, token, logProb });
      if (best.length > n) best.pop();
    }
  });
  return best;
}

/** Keep the beamSize best unfinished hypotheses until nothing unfinished can come to a better score. */
function* beamSearch(model, src, how, special, prefix = []) {
  const finished = [], furthest = lengthPenalty(how.maxLen, how);
  const enough = how.patience === null ? Infinity : Math.max(how.nBest, Math.ceil(how.patience * how.beamSize));
  let state = model.start(src), alive = [{ ids: [], logProb: 0 }], n = 0, nFinished = 0, logits;
  while (alive.length) {
    [logits, state] = model.step(state, alive.map(({ ids }) => (ids.length ? ids[ids.length - 1] : special.bos)));
    n++;
    const best = bestExtensions(alive, logits.map((row) => nextLogProbs(row, n, how, special, prefix)), 2 * how.beamSize);
    for (const { beam, token, logProb } of best.slice(0, how.beamSize)) {
      if (token !== special.eos) continue;
      const one = { ids: alive[beam].ids, score: logProb / lengthPenalty(n, how), logProb };
      const place = finished.findIndex(({ score }) => score < one.score);
      finished.splice(place < 0 ? finished.length : place, 0, one);
      finished.length = Math.min(finished.length, how.beamSize);
      nFinished++;
    }
    const going = best.filter(({ token }) => token !== special.eos).slice(0, how.beamSize);
    state = model.select(state, going.map(({ beam }) => beam));
    alive = going.map(({ beam, token, logProb }) => ({ ids: [...alive[beam].ids, token], logProb }));
    const toBeat = finished.length >= how.nBest ? finished[how.nBest - 1].score : -Infinity;
    yield n;
    if (nFinished >= enough || (alive.length && alive[0].logProb / furthest <= toBeat)) break;
  }
  return finished.slice(0, how.nBest);
}

/** The search that is asked for. A prefix that ends in eos is all there is. */
function* search(model, src, how, special, prefix = []) {
  if (prefix.length && prefix[prefix.length - 1] === special.eos) return [{ ids: prefix.slice(0, -1), score: null, logProb: null }];
  return yield* (how.beamSize === 1 ? greedySearch : beamSearch)(model, src, how, special, prefix);
}
