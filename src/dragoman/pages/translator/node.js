"use strict";
// The page's translator without a page: node node.js translator.html reads one JSON question a line and answers each by
// one line. It runs the scripts and weights that are in the file, so that what is checked is what is used.

const { createHash } = require("crypto");
const { readFileSync } = require("fs");
const { runInThisContext } = require("vm");

const html = readFileSync(process.argv[2], "utf8");
const inside = (id) => {
  const tag = ` id="${id}">`, start = html.indexOf(tag) + tag.length;
  return html.slice(start, html.indexOf("</script>", start));
};
const CHANGED = "it is not as it was written";
if (isChanged()) endWith(CHANGED);
const { Translator, Damaged, NotFinite } = loaded();
const translator = opened();

function loaded() {
  try {
    return runInThisContext(`${inside("worker")}\n;({ Translator, Damaged, NotFinite })`);
  } catch { // a file that was cut
    return endWith(CHANGED);
  }
}

/**
 * Whether a part has another sum than the file says; files of earlier versions have no sums. The script that computes
 * them has its own sum in the policy of the page, which a browser checks.
 */
function isChanged() {
  if (!html.includes(' id="sums">') && !html.includes("SUMS")) return false;
  if (!html.includes(`'sha256-${createHash("sha256").update(inside("sums")).digest("base64")}'`)) return true;
  try {
    const { SUMS, changedParts } = runInThisContext(`${inside("sums")}\n;({ SUMS, changedParts })`);
    return Object.keys(SUMS).length === 0 || changedParts(SUMS, inside).length > 0;
  } catch { // the sums are damaged themselves
    return true;
  }
}

/** The reason is all that is answered of a damaged file. */
function endWith(damaged) {
  process.stdout.write(`${JSON.stringify({ damaged })}\n`);
  process.exit(0);
}

function opened() {
  try {
    return new Translator(JSON.parse(inside("content")), inside("weights"));
  } catch (error) {
    if (!(error instanceof Damaged)) throw error;
    return endWith(error.message);
  }
}

function finished(searching) {
  for (let turn = searching.next(); ; turn = searching.next()) if (turn.done) return turn.value;
}

/** A value with arrays of numbers as lists; what is infinite becomes null. */
function asLists(value) {
  return JSON.parse(JSON.stringify(value, (name, one) => (ArrayBuffer.isView(one) ? [...one] : one)));
}

/** The logits of each next token, and the log-probability of each that was said. */
function read({ src, tgt }) {
  const { model, content: { special } } = translator;
  let state = model.start([...src, special.eos]), logits;
  const rows = [special.bos, ...tgt].map((id) => {
    [logits, state] = model.step(state, [id]);
    return logits[0];
  });
  const logProbs = [...tgt, special.eos].map((id, i) => {
    const peak = rows[i].reduce((most, logit) => Math.max(most, logit), -Infinity);
    return rows[i][id] - peak - Math.log(rows[i].reduce((sum, logit) => sum + Math.exp(logit - peak), 0));
  });
  return { logits: rows.map((row) => [...row]), log_probs: logProbs };
}

const ANSWERS = {
  read: ({ pairs, logits }) => pairs.map(([src, tgt]) => {
    const found = read({ src, tgt });
    return logits ? found : found.log_probs;
  }),
  search: ({ src, how, prefix }) => finished(translator.search(src, how, prefix)),
  encode: ({ texts, side }) => texts.map((text) => translator.page[side].encode(text)),
  decode: ({ rows, side }) => rows.map((ids) => translator.page[side].decode(ids)),
  lines: ({ text, to }) => translator.lines(text, to),
  translate: ({ text, to }) => translator.lines(text, to).map((parts) =>
    parts.map(({ text: one, space }) => space + (one ? finished(translator.sentence(one, to)).text : "")).join("")).join("\n"),
  trace: ({ text, to, prefix }) => finished(translator.trace(text, to, prefix)),
  inside: ({ text, to, ids, changes, head }) => asLists(finished(translator.inside(text, to, ids, changes, head))),
  rewrite: ({ text, to, changes }) => finished(translator.rewrite(text, to, changes)),
  other: ({ text, to }) => finished(translator.other(text, to)),
};

/** The answer; null where the model's scores are not finite. */
function answer(question) {
  try {
    return ANSWERS[question.task](question);
  } catch (error) {
    if (error instanceof NotFinite) return null;
    throw error;
  }
}

for (const line of readFileSync(0, "utf8").split("\n").filter(Boolean)) process.stdout.write(`${JSON.stringify(answer(JSON.parse(line)))}\n`);
