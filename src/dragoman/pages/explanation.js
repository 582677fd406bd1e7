"use strict";
// One translation's attention, to explore. The page gives the data (see page.py); nothing is fetched from elsewhere.

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

/** How strongly each word of the other side belongs to one word: its row if it looks, its column if it is looked at. */
function partners(rows, side, index) {
  return side === "queries" ? rows[index] : rows.map((row) => row[index]);
}

/** The strongest partners in words, such as "girl 52%, in 16%". */
function strongest(weights, names, n) {
  const order = [...weights.keys()].sort((a, b) => weights[b] - weights[a] || a - b).slice(0, n);
  return order.filter((i) => weights[i] >= 0.005).map((i) => `${names[i]} ${Math.round(100 * weights[i])}%`).join(", ");
}

/** Whether dark letters are easier to read on #rrggbb than white ones (WCAG's relative luminance, where both are alike). */
function isLight(colour) {
  const [r, g, b] = [1, 3, 5].map((i) => (parseInt(colour.slice(i, i + 2), 16) / 255) ** 2.2);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.179;
}

// --- the page --------------------------------------------------------------------------------------------------------

function start(document, data) {
  const find = (id) => document.getElementById(id);
  const make = (tag, properties = {}, ...children) => {
    const element = Object.assign(document.createElement(tag), properties);
    element.append(...children);
    return element;
  };
  for (const view of data.views)
    for (const kind of Object.values(view.kinds)) kind.values = unpack(kind.weights);
  const kinds = Object.keys(data.views[0].kinds);
  const at = { view: 0, kind: kinds[0], layer: 0, head: null, word: null, pinned: false };
  at.layer = alignmentLayer(at.kind);

  function alignmentLayer(kind) { // the last but one, which follows the source most closely
    return Math.max(0, data.views[0].kinds[kind].shape[0] - 2);
  }
  const attention = () => data.views[at.view].kinds[at.kind];
  const rows = () => matrix(attention().values, attention().shape, at.layer, at.head);
  const name = () => `layer ${at.layer + 1}, ${at.head === null ? "mean of its heads" : `head ${at.head + 1}`}`;
  const colours = () => data.scale[document.documentElement.dataset.theme];
  const colour = (weight) => colours()[Math.round(255 * Math.min(1, weight))];
  const letters = (weight) => (isLight(colour(weight)) ? "#111" : "#fff");

  // choices: which attention, words or subwords
  function choices(id, options, key, changed) {
    find(id).replaceChildren(...options.map(([value, text]) => {
      const button = make("button", { type: "button", textContent: text });
      button.setAttribute("aria-pressed", String(at[key] === value));
      button.onclick = () => { at[key] = value; changed(); };
      return button;
    }));
  }
  function drawChoices() {
    choices("kinds", kinds.map((kind) => [kind, data.titles[kind]]), "kind", () => {
      at.layer = alignmentLayer(at.kind);
      at.head = null;
      drawAll();
    });
    choices("views", data.views.map((view, i) => [i, view.name]), "view", drawAll);
    find("views").hidden = data.views.length < 2;
  }

  // the two sentences, the links between them, and the large map
  let shown = [];
  function drawSentences() {
    for (const [id, names, language] of [["keys", attention().columns, attention().columns_lang],
                                         ["queries", attention().rows, attention().rows_lang]]) {
      const words = names.map((text, index) => {
        const button = make("button", { type: "button", className: "word", textContent: text });
        listen(button, { side: id, index });
        return button;
      });
      find(id).replaceChildren(make("div", { className: "label", textContent: data.labels[at.kind][id] }), ...words);
      find(id).lang = language;
      travel(find(id), ".word");
    }
    find("name").textContent = `Shown: ${name()}`;
  }
  function drawMap() {
    const { rows: down, columns: across } = attention();
    const head = make("tr", {}, make("td"), ...across.map((text) => {
      const label = make("span", { textContent: text, className: /[\u2e80-\u9fff]/.test(text) ? "upright" : "" });
      return make("th", { scope: "col" }, label);
    }));
    const body = shown.map((row, r) => make("tr", {}, make("th", { scope: "row", textContent: down[r] }),
      ...row.map((weight, c) => {
        const cell = make("td", { title: `${down[r]} → ${across[c]}: ${weight.toFixed(2)}` });
        cell.style.background = colour(weight);
        listen(cell, { side: "queries", index: r, partner: c });
        return cell;
      })));
    const caption = make("caption", { textContent: `${data.titles[at.kind]}: ${name()}` });
    find("map").replaceChildren(caption, make("thead", {}, head), make("tbody", {}, ...body));
    find("map").style.setProperty("--cell", `${Math.max(1.1, Math.min(2.2, 40 / across.length))}rem`);
    find("ramp").style.background = `linear-gradient(to right, ${colours().filter((_, i) => i % 15 === 0).join(", ")})`;
  }
  function listen(element, word) {
    element.onmouseenter = () => { if (!at.pinned) light(word); };
    element.onmouseleave = () => { if (!at.pinned) light(null); };
    element.onfocus = () => light(word);
    element.onclick = () => {
      at.pinned = !(at.pinned && at.word && at.word.side === word.side && at.word.index === word.index);
      light(at.pinned ? word : null);
    };
  }
  /** Light up a word's partners; null: none. */
  function light(word) {
    at.word = word;
    const weights = word && partners(shown, word.side, word.index);
    for (const side of ["queries", "keys"]) {
      find(side).querySelectorAll(".word").forEach((element, i) => {
        const weight = word && word.side !== side ? weights[i] : 0;
        element.classList.toggle("at", Boolean(word) && word.side === side && word.index === i);
        element.style.background = weight > 0.01 ? colour(weight) : "";
        element.style.color = weight > 0.01 ? letters(weight) : "";
      });
    }
    find("map").querySelectorAll("th[scope]").forEach((th) => {
      const side = th.scope === "row" ? "queries" : "keys";
      const i = side === "queries" ? th.parentNode.rowIndex - 1 : th.cellIndex - 1;
      const is = word && ((word.side === side && word.index === i) || (side === "keys" && word.partner === i));
      th.classList.toggle("at", Boolean(is));
    });
    find("steps").querySelectorAll("tbody tr").forEach((tr, step) => {
      const words = data.views[at.view].steps;
      tr.classList.toggle("at", Boolean(word) && at.kind !== "encoder" && word.side === "queries" && words[step] === word.index);
    });
    const { rows: down, columns: across } = attention();
    const own = word && (word.side === "queries" ? down : across)[word.index];
    find("said").textContent = !word ? data.hint
      : word.side === "queries" ? `${own} looks at ${strongest(weights, across, 6)}`
        : `${own} is looked at by ${strongest(weights, down, 6) || "no word"}`;
    drawLinks(word, weights);
  }
  function drawLinks(word, weights) {
    const [keys, queries] = ["keys", "queries"].map((id) => [...find(id).querySelectorAll(".word")]);
    const one = (words) => words.every((element) => element.offsetTop === words[0].offsetTop);
    const links = [];
    if (one(keys) && one(queries)) { // lines across a second line of words would only confuse
      if (word) weights.forEach((weight, i) => links.push(word.side === "queries" ? [word.index, i, weight] : [i, word.index, weight]));
      else shown.forEach((row, r) => row.forEach((weight, c) => links.push([r, c, weight * 0.6])));
    }
    const box = find("links").getBoundingClientRect();
    find("links").replaceChildren(...links.filter(([, , weight]) => weight > 0.03).map(([r, c, weight]) => {
      const [from, to] = [queries[r].getBoundingClientRect(), keys[c].getBoundingClientRect()];
      const [x1, y1] = [from.left + from.width / 2 - box.left, from.top - box.top - 2];
      const [x2, y2] = [to.left + to.width / 2 - box.left, to.bottom - box.top + 2];
      const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
      path.setAttribute("d", `M${x1},${y1} C${x1},${(y1 + y2) / 2} ${x2},${(y1 + y2) / 2} ${x2},${y2}`);
      path.style.strokeWidth = `${1 + 5 * weight}px`;
      path.style.opacity = String(Math.min(1, 0.15 + weight));
      return path;
    }));
  }

  // every head
  function drawHeads() {
    const [nLayers, nHeads, nRows, nColumns] = attention().shape;
    find("heads").replaceChildren(...Array.from({ length: nLayers }, (_, layer) => {
      const which = nHeads > 1 ? [null, ...Array(nHeads).keys()] : [null];
      const buttons = which.map((head) => {
        const canvas = make("canvas", { width: nColumns, height: nRows });
        paint(canvas, matrix(attention().values, attention().shape, layer, head));
        const text = head === null ? (nHeads > 1 ? "mean" : "its one head") : `head ${head + 1}`;
        const button = make("button", { type: "button", className: "head" }, canvas, text);
        button.setAttribute("aria-label", `layer ${layer + 1}, ${text}: enlarge`);
        button.setAttribute("aria-pressed", String(at.layer === layer && at.head === head));
        button.onclick = () => {
          Object.assign(at, { layer, head });
          drawOne();
          find("heads").querySelectorAll(".head").forEach((other) => other.setAttribute("aria-pressed", String(other === button)));
          find("sentences").scrollIntoView({ block: "start" });
        };
        return button;
      });
      const row = make("div", { className: "layer" }, make("h3", { textContent: `Layer ${layer + 1}` }), ...buttons);
      travel(row, ".head");
      return row;
    }));
  }
  function paint(canvas, values) {
    const context = canvas.getContext("2d");
    values.forEach((row, r) => row.forEach((weight, c) => {
      context.fillStyle = colour(weight);
      context.fillRect(c, r, 1, 1);
    }));
  }

  // what each step chose among
  function drawSteps() {
    find("steps").querySelector("tbody").replaceChildren(...data.steps.map((step) => {
      const cells = step.best.map(([text, probability], i) => {
        const bar = make("i");
        bar.style.width = `${100 * probability}%`;
        const share = probability < 0.001 ? "<0.1%" : `${(100 * probability).toFixed(probability < 0.0995 ? 1 : 0)}%`;
        const label = make("span", {}, make("bdi", { textContent: text }), " ", make("small", { textContent: share }));
        return make("td", { className: i === step.rank - 1 ? "taken" : "" }, bar, label);
      });
      return make("tr", {}, make("th", { scope: "row", textContent: step.chosen, lang: data.tgt_lang }), ...cells);
    }));
  }

  /** Left and right arrows walk along buttons; Tab goes on to the next group. */
  function travel(group, selector) {
    const all = [...group.querySelectorAll(selector)];
    all.forEach((element, i) => { element.tabIndex = i ? -1 : 0; });
    group.onkeydown = (event) => {
      const i = all.indexOf(document.activeElement);
      const next = { ArrowRight: i + 1, ArrowLeft: i - 1, Home: 0, End: all.length - 1 }[event.key];
      if (i < 0 || next === undefined || !all[next]) return;
      all.forEach((element, j) => { element.tabIndex = j === next ? 0 : -1; });
      all[next].focus();
      event.preventDefault();
    };
  }
  function drawOne() {
    shown = rows();
    at.pinned = false;
    drawSentences();
    drawMap();
    light(null);
  }
  function drawAll() {
    drawChoices();
    drawOne();
    drawHeads();
  }
  function setTheme(theme) {
    document.documentElement.dataset.theme = theme;
    find("theme").textContent = theme === "dark" ? "Light" : "Dark";
  }

  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  setTheme(dark.matches ? "dark" : "light");
  dark.addEventListener("change", () => { setTheme(dark.matches ? "dark" : "light"); drawAll(); });
  find("theme").onclick = () => { setTheme(document.documentElement.dataset.theme === "dark" ? "light" : "dark"); drawAll(); };
  document.addEventListener("keydown", (event) => { if (event.key === "Escape") { at.pinned = false; light(null); } });
  window.addEventListener("resize", () => light(at.word));
  drawSteps();
  drawAll();
}

if (typeof document !== "undefined") start(document, JSON.parse(document.getElementById("data").textContent));
else module.exports = { unpack, matrix, partners, strongest, isLight };
