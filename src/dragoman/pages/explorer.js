"use strict";
// The attention explorer, the same on every page: links between words, every head, decoding step by step.
//
// A page gives it a model:
//   model.trace(text, prefix)   promises a trace (explanation/page.py, trace_data) of the translation of a text that
//                               begins with the token ids of the prefix
//   model.answers               false where there is nobody to ask: then only what was recorded can be looked at
// Texts go into textContent only, and styles through the CSSOM, as a strict policy wants it.

const EXPLORER_SAYS = {
  en: {
    model: "Model", parameters: (n) => `${n < 1e6 ? n.toLocaleString("en") : `${(n / 1e6).toFixed(1)} million`} parameters`, steps: (n) => `${n.toLocaleString("en")} training steps`,
    bleu: (x) => `BLEU ${x.toFixed(1)} in validation`, source: "Source", translation: "Translation",
    kind: "Whose attention", cross: "Translation to source", encoder: "Source to itself", decoder: "Translation to itself",
    view: "Units", words: "Words", subwords: "Subwords", overlay: "Overlays", positions: "Positions", masks: "Masks",
    save: "Save as a page", svg: "SVG", svgOf: (name) => `Save the picture as SVG: ${name}`,
    links: "Which word looks at which", mean: "mean", oneHead: "only head", head: (n) => `head ${n}`, layer: (n) => `Layer ${n}`,
    shown: (layer, head) => `Layer ${layer}, ${head}`, meanLong: "mean of its heads", ofKind: (kind, shown) => `${kind}: ${shown}`,
    best: " (of all heads, the one whose rows differ most)", looked: (text) => `${text}, looked at`, looking: (text) => `${text}, looking`,
    hint: "Point at a word, or walk along with the arrow keys. A click holds it; Escape lets go.",
    hintTouch: "Tap a word. Tap it again to let it go.",
    looksAt: (word, at) => `${word} looks at ${at}`, lookedAt: (word, by) => `${word} is looked at by ${by}`, none: "no word",
    heads: "Every head", headsHelp: "Rows look at columns. Choose a head to enlarge it and to draw its links above.",
    enlarge: (layer, head) => `Layer ${layer}, ${head}: enlarge`, legend: "Attention weight; each row sums to 100%",
    sink: (name, share) => `${name} gets ${share} of all weight in this map: an attention sink. Heads rest their weight there where no other word answers; it says little about the word.`,
    masked: "Masked: comes later, must not be seen", unmasked: "No mask: the whole source may be seen", samePlace: "Same position",
    stepping: "Step by step", steppingHelp: "Each step gives every subword a probability and takes one. The search looks ahead, so it may take another than the likeliest; · is a space.",
    choose: "Choose another candidate and the rest is decoded again.",
    recorded: "This page has no model: it shows what was recorded. Where a model answers (dragoman serve), another candidate can be chosen.",
    stepOf: (i, n) => `Step ${i} of ${n}`, first: "First step", back: "One step back", next: "One step on", last: "Last step",
    reads: "The source, as this step reads it", sofar: "The translation so far", candidates: "Candidates", taken: "taken",
    given: "chosen by you", decoding: "Decoding again …", again: (i) => `Decoded again from step ${i}.`, original: "Back to the model's own",
    caution: "What this shows: from which words information was mixed in, head by head. What it does not show: why a word was chosen. Values, feed-forward layers and the residual path have their say too, and other weights can give the same translation. A clue, not a proof.",
    end: "(end)", start: "(start)", map: "Attention weights", other: "中文", dark: "Dark", light: "Light", title: "What the model looked at",
  },
  zh: {
    model: "模型", parameters: (n) => `${n < 1e4 ? n : `${Math.round(n / 1e4).toLocaleString("en")} 万`}个参数`, steps: (n) => `训练 ${n.toLocaleString("en")} 步`,
    bleu: (x) => `验证集 BLEU ${x.toFixed(1)}`, source: "原文", translation: "译文",
    kind: "注意力种类", cross: "译文看原文", encoder: "原文看自身", decoder: "译文看自身",
    view: "单位", words: "词", subwords: "子词", overlay: "叠加显示", positions: "位置", masks: "掩码",
    save: "另存为网页", svg: "SVG", svgOf: (name) => `将图片存为 SVG：${name}`,
    links: "哪个词在看哪个词", mean: "均值", oneHead: "唯一的头", head: (n) => `头 ${n}`, layer: (n) => `第 ${n} 层`,
    shown: (layer, head) => `第 ${layer} 层，${head}`, meanLong: "各头均值", ofKind: (kind, shown) => `${kind}：${shown}`,
    best: "（各行差别最大的头）", looked: (text) => `${text}（被看）`, looking: (text) => `${text}（在看）`,
    hint: "指向一个词，或用方向键移动；单击可固定，按 Esc 取消。",
    hintTouch: "轻触一个词，再次轻触即可取消。",
    looksAt: (word, at) => `${word} 看向 ${at}`, lookedAt: (word, by) => `看向 ${word} 的有 ${by}`, none: "（无）",
    heads: "所有的头", headsHelp: "行看列。选一个头，即可放大，上方的连线也随之更新。",
    enlarge: (layer, head) => `第 ${layer} 层，${head}：放大`, legend: "注意力权重，每行之和为 100%",
    sink: (name, share) => `此图中 ${name} 得到全部权重的 ${share}：这是“注意力汇”（attention sink）。没有词与查询匹配时，头就把权重放在那里；这并不说明该词重要。`,
    masked: "已掩码：在后面，不可见", unmasked: "无掩码：整个原文可见", samePlace: "位置相同",
    stepping: "逐步解码", steppingHelp: "每一步都为所有子词算出概率，并取其中一个。搜索会向前看，所以取的不一定是概率最高的；· 表示空格。",
    choose: "换一个候选，其后的部分会重新解码。",
    recorded: "本页不含模型，只显示已记录的内容；在有模型的页面上（dragoman serve）可以另选候选。",
    stepOf: (i, n) => `第 ${i} 步，共 ${n} 步`, first: "第一步", back: "上一步", next: "下一步", last: "最后一步",
    reads: "这一步所看的原文", sofar: "目前的译文", candidates: "候选", taken: "已选",
    given: "由你选定", decoding: "正在重新解码……", again: (i) => `已从第 ${i} 步起重新解码。`, original: "恢复模型自己的译文",
    caution: "这里展示的是：每个头从哪些词汇集了信息。没有展示的是：为什么选了这个词。值向量、前馈层和残差通路同样起作用，不同的权重也可能得出同一译文。它是线索，不是证明。",
    end: "（结束）", start: "（开始）", map: "注意力权重", other: "English", dark: "深色", light: "浅色", title: "模型看了哪里",
  },
};

// --- numbers: no page is needed for these --------------------------------------------------------------------------

/** Weights as they are stored: base64 of two bytes each, low byte first, 65535 for 1. */
function unpack(text) {
  const bytes = Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  const weights = new Float32Array(bytes.length / 2);
  for (let i = 0; i < weights.length; i++) weights[i] = (bytes[2 * i] + 256 * bytes[2 * i + 1]) / 65535;
  return weights;
}

/** The rows of one head (layers, heads, rows, columns all in one array), or of the mean of a layer's heads (head null). */
function matrix(weights, shape, layer, head) {
  const [, nHeads, nRows, nColumns] = shape;
  const heads = head === null ? [...Array(nHeads).keys()] : [head];
  return Array.from({ length: nRows }, (_, row) =>
    Array.from({ length: nColumns }, (_, column) =>
      heads.reduce((sum, one) => sum + weights[((layer * nHeads + one) * nRows + row) * nColumns + column], 0) / heads.length));
}

/**
 * Attention between words from that between subwords, as explanation/words.py has it: what is paid to a word is the sum
 * over its subwords, what it pays the mean. Spans are a word's first subword and the one after its last.
 */
function betweenWords(weights, [nLayers, nHeads, nRows, nColumns], rowSpans, columnSpans) {
  const merged = new Float32Array(nLayers * nHeads * rowSpans.length * columnSpans.length);
  let at = 0;
  for (let head = 0; head < nLayers * nHeads; head++)
    for (const [top, bottom] of rowSpans)
      for (const [left, right] of columnSpans) {
        for (let row = top; row < bottom; row++)
          for (let column = left; column < right; column++) merged[at] += weights[(head * nRows + row) * nColumns + column];
        merged[at++] /= bottom - top;
      }
  return merged;
}

/** The mean weight of each column, over all rows. */
function columnMeans(rows) {
  return rows[0].map((_, column) => rows.reduce((sum, row) => sum + row[column] / rows.length, 0));
}

/**
 * How much a row tells of the column that it looks at, in nats: the mutual information of the two. It is 0 where all rows
 * are alike, as at a sink or in an even map, and largest where each row looks at a column of its own.
 */
function information(rows) {
  const means = columnMeans(rows);
  return rows.reduce((sum, row) => sum + row.reduce((all, weight, column) => all + (weight > 0 ? weight * Math.log(weight / means[column]) : 0), 0) / rows.length, 0);
}

/** The head whose map tells most: its layer and head. */
function mostTelling(weights, shape) {
  const [nLayers, nHeads] = shape;
  let best = { layer: 0, head: 0, nats: -1 };
  for (let layer = 0; layer < nLayers; layer++)
    for (let head = 0; head < nHeads; head++) {
      const nats = information(matrix(weights, shape, layer, head));
      if (nats > best.nats) best = { layer, head, nats };
    }
  return { layer: best.layer, head: best.head };
}

/** The column that most of the weight of a map goes to, if there is one: { column, share }. */
function sinkOf(rows) {
  const means = columnMeans(rows), share = means.reduce((most, mean) => Math.max(most, mean), 0);
  return rows.length > 2 && means.length > 2 && share > SINK ? { column: means.indexOf(share), share } : null;
}

const SINK = 0.5; // the share of all weight from which on one column is called a sink

/** How strongly each word of the other side belongs to one word: its row if it looks, its column if it is looked at. */
function partners(rows, side, index) {
  return side === "queries" ? rows[index] : rows.map((row) => row[index]);
}

/** The strongest partners in words, such as "girl 52%, in 16%". */
function strongest(weights, names, n) {
  const order = [...weights.keys()].sort((a, b) => weights[b] - weights[a] || a - b).slice(0, n);
  return order.filter((i) => weights[i] >= 0.005).map((i) => `${names[i]} ${Math.round(100 * weights[i])}%`).join(", ");
}

/** Whether black letters are easier to read on #rrggbb than white ones (WCAG's relative luminance, where both are alike). */
function isLight(colour) {
  const [r, g, b] = [1, 3, 5].map((i) => (parseInt(colour.slice(i, i + 2), 16) / 255) ** 2.2);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.179;
}

/** A probability with at most two digits: 95%, 4.2%, <0.1%. */
function percent(share) {
  return share < 0.001 ? "<0.1%" : `${(100 * share).toFixed(share < 0.0995 ? 1 : 0)}%`;
}

/** The token ids that lead to another candidate: those taken before the step, and the candidate. */
function prefixOf(steps, step, candidate) {
  return [...steps.slice(0, step).map((one) => one.id), steps[step].best_ids[candidate]];
}

/** Whether a column comes too late for a row: only the translation's attention to itself has a mask to show. */
function isMasked(attention, kind, row, column) {
  return kind === "decoder" && attention.column_spans[column][0] >= attention.row_spans[row][1];
}

/** A code as HTML takes it, such as es for spa. */
function langOf(code) {
  try {
    return Intl.getCanonicalLocales(code.replaceAll("_", "-"))[0] || "";
  } catch { // no code of a language
    return "";
  }
}

const RIGHT_TO_LEFT = ["Adlm", "Arab", "Hebr", "Mand", "Mend", "Nkoo", "Rohg", "Samr", "Syrc", "Thaa"];

/** Where a language's lines begin, as the attribute dir has it; auto, by the text, where the language is not known. */
function directionOf(code) {
  const lang = langOf(code || "");
  return lang ? (RIGHT_TO_LEFT.includes(new Intl.Locale(lang).maximize().script) ? "rtl" : "ltr") : "auto";
}

function overlap([a, b], [c, d]) {
  return a < d && c < b;
}

// --- pictures: SVG that needs nothing but itself ---------------------------------------------------------------------

const SVG = "http://www.w3.org/2000/svg";

function shape(tag, attributes, text) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, String(value));
  if (text !== undefined) made.textContent = text;
  return made;
}

function picture(width, height, paper, shapes) {
  const made = shape("svg", { viewBox: `0 0 ${width} ${height}`, width, height, "font-family": "system-ui, sans-serif", "font-size": 14 });
  made.append(shape("rect", { width, height, fill: paper }), ...shapes);
  return made;
}

function download(name, type, text) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

/** The text of a page (pages/explanation.html) with other content in it. */
function savedPage(page, content) {
  const json = JSON.stringify(content, (key, value) => (key === "values" ? undefined : value)).replaceAll("<", "\\u003c");
  return page.replace(/(<script type="application\/json" id="data">)[^<]*/, (_, start) => start + json);
}

// --- the component ---------------------------------------------------------------------------------------------------

/**
 * Put an explorer into an element.
 * scale: colours from 0 to 1 for "light" and "dark"; page(trace): promises the text of a page that a saved state is put into;
 * looked({ trace, kind, layer, head, step }): called when something else is looked at.
 * Returns show(trace, state), speak(language) and redraw().
 */
function explorer(root, model, { scale, language = "en", page, looked = () => {} }) {
  const make = (tag, properties = {}, ...children) => {
    const element = Object.assign(document.createElement(tag), properties);
    element.append(...children.filter((child) => child !== null));
    return element;
  };
  let say = EXPLORER_SAYS[language];
  let trace = null, own = null, asked = 0, shown = [];
  const at = { view: 0, kind: "cross", layer: 0, head: null, step: 0, positions: false, masks: true, word: null, held: false };
  const parts = {};

  const theme = () => document.documentElement.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
  const isTouched = () => matchMedia("(hover: none)").matches;
  const ink = (name) => getComputedStyle(root).getPropertyValue(`--${name}`).trim();
  const colour = (weight) => scale[theme()][Math.round((scale[theme()].length - 1) * Math.min(1, weight))];
  const letters = (weight) => (isLight(colour(weight)) ? "#000" : "#fff");
  const kinds = () => Object.keys(trace.views[0].kinds);
  const attention = (kind = at.kind, view = at.view) => trace.views[view].kinds[kind];
  const called = (text) => ({ "(end)": say.end, "(start)": say.start })[text] || text;
  const names = (side) => (side === "queries" ? attention().rows : attention().columns).map(called);
  const followsSource = (kind) => Math.max(0, attention(kind, 0).shape[0] - 2); // the last layer but one
  const telling = (kind) => mostTelling(attention(kind, 0).values, attention(kind, 0).shape);
  const headName = (head, long) => (head === null ? (attention().shape[1] > 1 ? (long ? say.meanLong : say.mean) : say.oneHead) : say.head(head + 1));
  const place = (span) => (span[1] - span[0] > 1 ? `${span[0] + 1}–${span[1]}` : `${span[0] + 1}`);

  function tint(element, weight) {
    element.style.background = weight > 0.01 ? colour(weight) : "";
    element.style.color = weight > 0.01 ? letters(weight) : "";
  }
  function chip(tag, text, span, properties = {}) {
    const label = make("span", {}, ...(at.positions && span ? [make("i", { textContent: place(span) })] : []), make("bdi", { textContent: text }));
    return make(tag, { className: "ex-chip", ...properties }, label, make("small"));
  }
  function heading(text, name, draw) {
    const button = make("button", { type: "button", className: "quiet", textContent: say.svg, title: say.svgOf(text) });
    button.setAttribute("aria-label", say.svgOf(text));
    button.onclick = () => download(`${name}.svg`, "image/svg+xml", new XMLSerializer().serializeToString(draw()));
    return make("div", { className: "ex-head" }, make("h2", { textContent: text }), button);
  }
  /** One of several, or, where the value is a yes or no, a switch for each. */
  function choices(label, options) {
    const group = make("div", { className: "ex-choice" }, ...options.map(([text, pressed, act]) => {
      const button = make("button", { type: "button", textContent: text, onclick: act });
      button.setAttribute("aria-pressed", String(pressed));
      return button;
    }));
    group.setAttribute("role", "group");
    group.setAttribute("aria-label", label);
    return group;
  }
  /** Arrow keys walk along some elements; Tab goes on to the next group. */
  function travel(group, elements) {
    elements.forEach((element, i) => { element.tabIndex = i ? -1 : 0; });
    group.onkeydown = (event) => {
      const i = elements.indexOf(document.activeElement);
      const ahead = group.dir === "rtl" ? -1 : 1;
      const next = { ArrowRight: i + ahead, ArrowLeft: i - ahead, ...(inColumns() && group.closest(".ex-sentences") && { ArrowDown: i + 1, ArrowUp: i - 1 }), Home: 0, End: elements.length - 1 }[event.key];
      if (i < 0 || next === undefined || !elements[next]) return;
      elements.forEach((element, j) => { element.tabIndex = j === next ? 0 : -1; });
      elements[next].focus();
      event.preventDefault();
    };
  }

  // the frame: what is there, in reading order
  function build() {
    const section = (...children) => make("section", {}, ...children);
    for (const name of ["texts", "bar", "queries", "keys", "grid", "player"]) parts[name] = make("div", { className: `ex-${name}` });
    parts.map = make("table", { className: "ex-map" });
    parts.links = shape("svg", { class: "ex-links", "aria-hidden": "true" });
    for (const name of ["which", "said", "legend", "sink", "status"]) parts[name] = make("p", { className: `ex-${name} soft` });
    parts.said.setAttribute("aria-live", "polite");
    parts.status.setAttribute("role", "status");
    parts.sentences = make("div", { className: "ex-sentences" }, parts.links, parts.keys, parts.queries);
    parts.wide = make("div", { className: "ex-wide", tabIndex: 0 }, parts.map);
    parts.wide.setAttribute("role", "region");
    parts.wide.setAttribute("aria-label", say.map);
    const one = make("div", { className: "ex-one" }, parts.caption = make("h3"), parts.wide, parts.legend, parts.sink);
    root.classList.add("ex");
    root.replaceChildren(
      parts.texts, parts.status, parts.bar,
      section(heading(say.links, "attention-links", svgLinks), parts.which, parts.sentences, parts.said),
      section(heading(say.stepping, "attention-steps", svgSteps), make("p", { className: "soft", textContent: say.steppingHelp }), parts.player),
      section(heading(say.heads, "attention-heads", svgHeads), make("p", { className: "soft", textContent: say.headsHelp }),
        make("div", { className: "ex-two" }, parts.grid, one)),
      make("p", { className: "ex-caution", textContent: say.caution }));
    const mapButton = heading(say.map, "attention-map", svgMap).lastChild;
    one.insertBefore(make("div", { className: "ex-head" }, parts.caption, mapButton), parts.wide);
  }

  function drawTexts() {
    const { model: facts, src_lang: src, tgt_lang: tgt } = trace;
    const about = [src && `${src} → ${tgt}`, facts.parameters && say.parameters(facts.parameters),
      facts.step && say.steps(facts.step), facts.bleu !== undefined && say.bleu(facts.bleu)].filter(Boolean).join(" · ");
    const line = (name, text, lang) => make("div", {}, make("dt", { textContent: name }), make("dd", { textContent: text, lang, dir: "auto" }));
    parts.texts.replaceChildren(make("dl", {}, line(say.source, trace.source, src), line(say.translation, trace.translation, tgt), line(say.model, about, "")));
  }
  function drawBar() {
    const views = trace.views.map((view, i) => [say[view.name], at.view === i, () => { at.view = i; draw(); }]);
    parts.bar.replaceChildren(
      choices(say.kind, kinds().map((kind) => [say[kind], at.kind === kind, () => {
        Object.assign(at, { kind, ...telling(kind) });
        draw();
      }])),
      ...(views.length > 1 ? [choices(say.view, views)] : []),
      choices(say.overlay, ["positions", "masks"].map((name) => [say[name], at[name], () => { at[name] = !at[name]; draw(); }])),
      make("button", { type: "button", className: "ex-save", textContent: say.save, onclick: save }));
  }

  // two rows of words, or two columns where a row would wrap, and ribbons between them
  function drawSentences() {
    const [from, to] = [at.kind === "decoder" ? say.translation : say.source, at.kind === "encoder" ? say.source : say.translation];
    for (const [side, lang, title, spans] of [["keys", attention().columns_lang, say.looked(from), attention().column_spans],
                                              ["queries", attention().rows_lang, say.looking(to), attention().row_spans]]) {
      const words = names(side).map((text, index) => {
        const button = chip("button", text, spans[index], { type: "button", lang });
        listen(button, { side, index });
        return button;
      });
      const row = make("div", { className: "ex-row", dir: directionOf(lang) }, ...words);
      row.setAttribute("role", "group");
      row.setAttribute("aria-label", title);
      parts[side].replaceChildren(make("span", { className: "ex-side", textContent: title }), row);
      travel(row, words);
    }
    arrange();
    const { layer, head } = telling(at.kind), best = at.layer === layer && at.head === head && attention().shape[0] * attention().shape[1] > 1;
    parts.which.textContent = say.shown(at.layer + 1, headName(at.head, true)) + (best ? say.best : "");
  }
  function listen(element, word) {
    element.onpointerenter = () => { if (!at.held) light(word); };
    element.onpointerleave = () => { if (!at.held) light(null); };
    element.onfocus = () => { at.held = false; light(word); }; // the keys go on from a word that is held
    element.onclick = () => {
      at.held = !(at.held && at.word && at.word.side === word.side && at.word.index === word.index);
      light(at.held || !isTouched() ? word : null); // a pointer that is still there points at it
    };
  }
  /** Light up a word's partners and say how strong they are; null: none. */
  function light(word) {
    at.word = word;
    const weights = word && partners(shown, word.side, word.index);
    for (const side of ["queries", "keys"]) chips(side).forEach((element, i) => {
      const weight = word && word.side !== side ? weights[i] : 0;
      element.classList.toggle("at", Boolean(word) && word.side === side && word.index === i);
      element.lastChild.textContent = weight >= 0.005 ? `${Math.round(100 * weight)}%` : "";
      tint(element, weight);
    });
    parts.map.querySelectorAll("th[scope]").forEach((th) => {
      const side = th.scope === "row" ? "queries" : "keys";
      const i = side === "queries" ? th.parentNode.rowIndex - 1 : th.cellIndex - 1;
      th.classList.toggle("at", Boolean(word && ((word.side === side && word.index === i) || (side === "keys" && word.partner === i))));
    });
    const self = word && names(word.side)[word.index];
    parts.said.textContent = !word ? (isTouched() ? say.hintTouch : say.hint)
      : word.side === "queries" ? say.looksAt(self, strongest(weights, names("keys"), 5))
        : say.lookedAt(self, strongest(weights, names("queries"), 5) || say.none);
    drawLinks();
  }
  const inColumns = () => parts.sentences.classList.contains("ex-columns");
  /** Two columns where a row would wrap: there a ribbon would run behind words that it does not link. */
  function arrange() {
    parts.sentences.classList.remove("ex-columns");
    const wraps = innerWidth <= 640 || ["keys", "queries"].some((side) => {
      const tops = chips(side).map((element) => element.getBoundingClientRect().top);
      return tops.some((top) => top > tops[0] + 4);
    });
    parts.sentences.classList.toggle("ex-columns", wraps);
  }
  const chips = (side) => [...parts[side].querySelectorAll(".ex-chip")];
  /** Ribbons as [path, width]: those of the word pointed at, else all that count. Chips cover what runs behind them. */
  function ribbons() {
    const box = parts.sentences.getBoundingClientRect();
    const [keys, queries] = ["keys", "queries"].map((side) => chips(side).map((element) => element.getBoundingClientRect()));
    const columns = inColumns(), least = at.word ? 0.02 : 0.06;
    const links = [];
    shown.forEach((row, r) => row.forEach((weight, c) => {
      if (weight < least || (at.word && at.word.index !== (at.word.side === "queries" ? r : c))) return;
      if (columns) {
        const [y1, y2] = [keys[c], queries[r]].map((rect) => rect.top + rect.height / 2 - box.top);
        const [x1, x2] = [keys[c].right - box.left - 4, queries[r].left - box.left + 4];
        links.push([`M${x1},${y1} C${(x1 + x2) / 2},${y1} ${(x1 + x2) / 2},${y2} ${x2},${y2}`, 16 * weight]);
        return;
      }
      const [x1, y1] = [keys[c].left + keys[c].width / 2 - box.left, keys[c].bottom - box.top - 4];
      const [x2, y2] = [queries[r].left + queries[r].width / 2 - box.left, queries[r].top - box.top + 4];
      links.push([`M${x1},${y1} C${x1},${(y1 + y2) / 2} ${x2},${(y1 + y2) / 2} ${x2},${y2}`, 16 * weight]);
    }));
    return links;
  }
  function drawLinks() {
    parts.links.replaceChildren(...ribbons().map(([d, width]) => shape("path", { d, "stroke-width": width.toFixed(1) })));
    parts.links.classList.toggle("ex-all", !at.word);
  }

  // every head, and one of them enlarged
  function drawGrid() {
    const [nLayers, nHeads, nRows, nColumns] = attention().shape;
    const pressed = [];
    parts.grid.replaceChildren(...Array.from({ length: nLayers }, (_, layer) => {
      const heads = nHeads > 1 ? [null, ...Array(nHeads).keys()] : [null];
      const buttons = heads.map((head) => {
        const canvas = make("canvas", { width: nColumns, height: nRows });
        const context = canvas.getContext("2d");
        matrix(attention().values, attention().shape, layer, head).forEach((row, r) => row.forEach((weight, c) => {
          context.fillStyle = colour(weight);
          context.fillRect(c, r, 1, 1);
        }));
        const button = make("button", { type: "button", className: "ex-thumb" }, canvas, make("span", { textContent: headName(head) }));
        button.setAttribute("aria-label", say.enlarge(layer + 1, headName(head, true)));
        button.setAttribute("aria-pressed", String(at.layer === layer && at.head === head));
        button.onclick = () => {
          Object.assign(at, { layer, head });
          pressed.forEach((other) => other.setAttribute("aria-pressed", String(other === button)));
          drawOne();
          if (innerWidth < 900) parts.caption.scrollIntoView({ block: "start" });
        };
        pressed.push(button);
        return button;
      });
      const row = make("div", { className: "ex-thumbs" }, ...buttons);
      travel(row, buttons);
      return make("div", { className: "ex-layer" }, make("h3", { textContent: say.layer(layer + 1) }), row);
    }));
  }
  function drawMap() {
    const { row_spans: rowSpans, column_spans: columnSpans } = attention();
    const [down, across] = [names("queries"), names("keys")];
    const label = (text, span) => make("span", { className: /[\u2e80-\u9fff]/.test(text) ? "upright" : "" },
      ...(at.positions ? [make("i", { textContent: place(span) }), " "] : []), text);
    const head = make("tr", {}, make("td"), ...across.map((text, c) => make("th", { scope: "col", lang: attention().columns_lang }, label(text, columnSpans[c]))));
    const body = shown.map((row, r) => make("tr", {}, make("th", { scope: "row", lang: attention().rows_lang }, label(down[r], rowSpans[r])),
      ...row.map((weight, c) => {
        const masked = at.masks && isMasked(attention(), at.kind, r, c);
        const cell = make("td", { title: `${down[r]} → ${across[c]}: ${percent(weight)}` }, make("span", { textContent: masked || weight < 0.005 ? "" : Math.round(100 * weight) }));
        if (masked) cell.classList.add("masked");
        else { cell.style.background = colour(weight); cell.style.color = letters(weight); }
        if (at.positions && overlap(rowSpans[r], columnSpans[c])) cell.classList.add("same");
        listen(cell, { side: "queries", index: r, partner: c });
        return cell;
      })));
    parts.map.classList.toggle("dense", across.length > 14);
    parts.map.replaceChildren(make("thead", {}, head), make("tbody", {}, ...body));
    parts.caption.textContent = say.ofKind(say[at.kind], say.shown(at.layer + 1, headName(at.head, true)));
    const ramp = make("span", { className: "ex-ramp" });
    ramp.style.background = `linear-gradient(to right, ${scale[theme()].filter((_, i) => i % 7 === 0).join(", ")})`;
    const marks = [at.masks && (at.kind === "decoder" ? [say.masked, "masked"] : [say.unmasked, ""]), at.positions && [say.samePlace, "same"]].filter(Boolean);
    const sink = sinkOf(shown);
    parts.sink.textContent = sink ? say.sink(across[sink.column], percent(sink.share)) : "";
    parts.legend.replaceChildren(make("span", {}, "0% ", ramp, " 100%"), make("span", { textContent: say.legend }),
      ...marks.map(([text, name]) => make("span", {}, ...(name ? [make("span", { className: `ex-key ${name}` })] : []), text)));
  }

  // one step of decoding at a time
  function drawStep() {
    const steps = trace.steps, step = steps[at.step];
    const go = (to, text, sign) => {
      const button = make("button", { type: "button", textContent: sign, title: text, disabled: to < 0 || to >= steps.length || to === at.step });
      button.setAttribute("aria-label", text);
      button.dataset.sign = sign;
      button.onclick = () => walk(to);
      return button;
    };
    const bar = make("div", { className: "ex-steps" }, go(0, say.first, "«"), go(at.step - 1, say.back, "‹"), go(at.step + 1, say.next, "›"),
      go(steps.length - 1, say.last, "»"), make("span", { textContent: say.stepOf(at.step + 1, steps.length) }));
    bar.lastChild.setAttribute("role", "status");
    if (trace !== own) bar.append(make("button", { type: "button", className: "ex-original", textContent: say.original, onclick: () => { asked++; parts.status.textContent = ""; set(own); } }));
    const rows = [];
    if (trace.views[0].kinds.cross) {
      const view = trace.views.length - 1, cross = attention("cross", view);
      const [layer, head] = at.kind === "cross" ? [at.layer, at.head] : [followsSource("cross"), null];
      const weights = matrix(cross.values, cross.shape, layer, head)[view ? at.step : trace.views[0].steps[at.step]];
      rows.push(make("h3", { textContent: say.reads }), make("div", { className: "ex-row", lang: cross.columns_lang, dir: directionOf(cross.columns_lang) }, ...cross.columns.map((text, c) => {
        const made = chip("span", called(text), cross.column_spans[c]);
        tint(made, weights[c]);
        made.lastChild.textContent = weights[c] >= 0.005 ? `${Math.round(100 * weights[c])}%` : "";
        return made;
      })));
    }
    const tokens = steps.map((one, i) => {
      const made = chip("button", called(one.chosen), [i, i + 1], { type: "button", onclick: () => walk(i) });
      if (i === at.step) made.setAttribute("aria-current", "step");
      made.lastChild.textContent = percent(one.probability);
      made.classList.toggle("at", i === at.step);
      made.classList.toggle("later", i > at.step);
      made.classList.toggle("given", i < trace.forced);
      if (i < trace.forced) made.title = say.given;
      return made;
    });
    const sofar = make("div", { className: "ex-row", lang: trace.tgt_lang, dir: directionOf(trace.tgt_lang) }, ...tokens);
    const list = make("ol", { className: "ex-candidates" }, ...step.best.map(([text, probability], i) => {
      const taken = step.best_ids[i] === step.id;
      const bar = make("i");
      bar.style.width = `${100 * probability}%`;
      const button = make("button", { type: "button", disabled: !model.answers || taken, onclick: () => choose(i) }, bar,
        make("bdi", { textContent: called(text), lang: trace.tgt_lang }), make("small", { textContent: (taken ? `${say.taken} · ` : "") + percent(probability) }));
      if (taken) button.classList.add("taken");
      return make("li", {}, button);
    }));
    parts.player.replaceChildren(bar, make("div", { className: "ex-two" },
      make("div", {}, ...rows, make("h3", { textContent: say.sofar }), sofar),
      make("div", {}, make("h3", { textContent: say.candidates }), list, make("p", { className: "soft", textContent: model.answers ? say.choose : say.recorded }))));
    parts.player.onkeydown = (event) => {
      const to = { ArrowRight: at.step + 1, ArrowLeft: at.step - 1, Home: 0, End: steps.length - 1 }[event.key];
      if (to === undefined) return;
      event.preventDefault();
      walk(to);
    };
  }
  function walk(to) {
    if (!trace.steps[to]) return;
    const focused = document.activeElement, sign = focused && focused.dataset.sign, inside = parts.player.contains(focused);
    at.step = to;
    drawStep();
    look();
    const same = sign && parts.player.querySelector(`[data-sign="${sign}"]:not(:disabled)`);
    if (inside) (same || parts.player.querySelector("[aria-current]")).focus();
  }
  async function choose(candidate) {
    const mine = ++asked, step = at.step;
    parts.status.textContent = say.decoding;
    try {
      const found = await model.trace(trace.source, prefixOf(trace.steps, step, candidate));
      if (mine !== asked) return;
      set(found, { step });
      parts.status.textContent = say.again(step + 1);
      parts.player.querySelector("[aria-current]").focus();
    } catch (error) {
      if (mine === asked) parts.status.textContent = error.message;
    }
  }

  // pictures to keep
  const write = (x, y, text, more = {}) => shape("text", { x, y, fill: ink("ink"), ...more }, text);
  function svgLinks() {
    const box = parts.sentences.getBoundingClientRect();
    const drawn = ribbons().map(([d, width]) => shape("path", { d, fill: "none", stroke: ink("accent"), "stroke-width": width, "stroke-opacity": 0.5 }));
    for (const element of [...chips("keys"), ...chips("queries")]) {
      const rect = element.getBoundingClientRect();
      const [x, y] = [rect.left - box.left, rect.top - box.top];
      const fill = element.style.color || ink("ink"), middle = y + rect.height / 2 + 5;
      const [word, share] = inColumns() ? [[x + 8, middle, "start"], [x + rect.width - 8, middle, "end"]]
        : [[x + rect.width / 2, y + 20, "middle"], [x + rect.width / 2, y + rect.height - 6, "middle"]];
      drawn.push(shape("rect", { x, y, width: rect.width, height: rect.height, rx: 4, fill: element.style.background || ink("chip") }),
        write(word[0], word[1], element.firstChild.textContent, { fill, "text-anchor": word[2], "font-size": 16 }),
        write(share[0], share[1], element.lastChild.textContent, { fill, "text-anchor": share[2], "font-size": 12 }));
    }
    return picture(Math.ceil(box.width), Math.ceil(box.height), ink("paper"), drawn);
  }
  function cells(values, left, top, size) {
    return values.flatMap((row, r) => row.map((weight, c) =>
      shape("rect", { x: left + c * size, y: top + r * size, width: size, height: size, fill: colour(weight) })));
  }
  function svgMap() {
    const [down, across] = [names("queries"), names("keys")];
    const long = (all) => 16 + Math.max(...all.map((text) => [...text].reduce((sum, one) => sum + (one > "\u2e80" ? 14 : 8), 0)));
    const [left, top, size] = [long(down), long(across), 24];
    const { row_spans: rowSpans, column_spans: columnSpans } = attention();
    const over = shown.flatMap((row, r) => row.flatMap((_, c) => {
      const spot = { x: left + c * size, y: top + r * size, width: size, height: size };
      return [...(at.masks && isMasked(attention(), at.kind, r, c) ? [shape("rect", { ...spot, fill: ink("line") })] : []),
        ...(at.positions && overlap(rowSpans[r], columnSpans[c]) ? [shape("rect", { ...spot, fill: "none", stroke: ink("accent"), "stroke-width": 2 })] : [])];
    }));
    return picture(left + size * across.length + 16, top + size * down.length + 40, ink("paper"), [
      ...cells(shown, left, top, size), ...over,
      ...down.map((text, r) => write(left - 8, top + r * size + 17, text, { "text-anchor": "end" })),
      ...across.map((text, c) => write(0, 0, text, { transform: `translate(${left + c * size + 17} ${top - 8}) rotate(-90)` })),
      write(8, top + size * down.length + 24, parts.caption.textContent, { "font-size": 12 })]);
  }
  function svgHeads() {
    const [nLayers, nHeads, nRows, nColumns] = attention().shape;
    const heads = nHeads > 1 ? [null, ...Array(nHeads).keys()] : [null];
    const size = Math.max(2, Math.min(8, 120 / nColumns)), [wide, high] = [Math.max(64, size * nColumns) + 16, size * nRows + 32];
    const drawn = Array.from({ length: nLayers }, (_, layer) => heads.flatMap((head, h) => [
      ...cells(matrix(attention().values, attention().shape, layer, head), 16 + h * wide, 24 + layer * high, size),
      write(16 + h * wide, 18 + layer * high, `${layer + 1}, ${headName(head)}`, { "font-size": 12 })])).flat();
    return picture(16 + wide * heads.length, 16 + high * nLayers, ink("paper"), drawn);
  }
  function svgSteps() {
    const most = Math.max(...trace.steps.map((step) => step.best.length));
    return picture(120 + 152 * most, 16 + 28 * trace.steps.length, ink("paper"), trace.steps.flatMap((step, row) => [
      write(112, 28 + 28 * row, called(step.chosen), { "text-anchor": "end", "font-weight": 600 }),
      ...step.best.flatMap(([text, probability], i) => [
        shape("rect", { x: 120 + 152 * i, y: 12 + 28 * row, width: Math.max(1, 144 * probability), height: 24, rx: 4,
                        fill: step.best_ids[i] === step.id ? ink("accent") : ink("soft"), "fill-opacity": 0.3 }),
        write(126 + 152 * i, 28 + 28 * row, `${called(text)}  ${percent(probability)}`)])]));
  }
  async function save() {
    const { view, kind, layer, head, step, positions, masks } = at;
    const state = { view, kind, layer, head, step, positions, masks };
    try {
      download("attention.html", "text/html", savedPage(await page(trace), { trace, scale, state }));
    } catch (error) {
      parts.status.textContent = error.message;
    }
  }

  function drawOne() {
    shown = matrix(attention().values, attention().shape, at.layer, at.head);
    at.held = false;
    drawSentences();
    drawMap();
    drawStep();
    light(null);
    look();
  }
  const look = () => looked({ trace, kind: at.kind, layer: at.layer, head: at.head, step: at.step });
  function draw() {
    if (!trace) return;
    drawTexts();
    drawBar();
    drawGrid();
    drawOne();
  }
  function set(found, state = {}) {
    trace = found;
    const subwords = trace.views[trace.views.length - 1].kinds;
    for (const kind of Object.values(subwords)) kind.values = kind.values || unpack(kind.weights);
    for (const view of trace.views.slice(0, -1)) for (const [name, kind] of Object.entries(view.kinds))
      kind.values = kind.values || betweenWords(subwords[name].values, subwords[name].shape, kind.row_spans, kind.column_spans);
    if (!trace.views[0].kinds[at.kind]) at.kind = kinds()[0];
    if (at.layer === null) Object.assign(at, telling(at.kind));
    at.view = Math.min(at.view, trace.views.length - 1);
    at.step = 0;
    Object.assign(at, state);
    draw();
  }
  document.addEventListener("keydown", (event) => { if (event.key === "Escape" && trace) { at.held = false; light(null); } });
  addEventListener("resize", () => { if (trace && root.isConnected) { arrange(); drawLinks(); } });
  build();
  return {
    /** Show a trace, as the model gave it. */
    show(found, state = {}) {
      asked++;
      own = trace = found;
      at.kind = kinds()[0];
      Object.assign(at, { layer: null, head: null });
      parts.status.textContent = "";
      set(found, state);
    },
    speak(wanted) {
      say = EXPLORER_SAYS[wanted];
      build();
      draw();
    },
    redraw: draw,
  };
}

if (typeof module !== "undefined") module.exports = { unpack, betweenWords, matrix, information, mostTelling, sinkOf, partners, strongest, isLight, percent, prefixOf, isMasked };
