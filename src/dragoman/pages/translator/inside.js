"use strict";
// Inside one head: the matrices of the step that the explorer shows, and switches that change the model.
//
// A page gives it a model; its promises may be null, if the answer came too late:
//   model.inside({ text, ids, changes, head })   the matrices and probabilities (insideOf in changes.js)
//   model.rewrite({ text, changes })             the translation { text } that the changed model writes
//   model.other({ text })                        the tokens { src, tgt } of another sentence and of its translation
// changes has only what differs from the model as it was trained. Texts go into textContent only.

const IDLE_MS = 300; // after the last change, before the changed model translates
const CELL = 28; // pixels of a cell of a map at most
const [WIDEST, GAP] = [170, 12]; // pixels of a map with many columns, and between two

/** A number with two digits behind the point and a minus sign that is as wide as a plus. */
const written = (value) => (Number.isFinite(value) ? value.toFixed(Math.abs(value) < 99.995 ? 2 : 0) : String(value)).replace("-", "−").replace("Infinity", "∞");

/** The largest absolute value of some rows of numbers, of which those that are not open do not count. */
function reachOf(rows, open = null) {
  let most = 0;
  rows.forEach((row, r) => row.forEach((value, c) => { if (!open || open[r][c]) most = Math.max(most, Math.abs(value)); }));
  return most || 1;
}

/** The name of an attention in the state dict. */
const attentionName = (kind, layer) => (kind === "cross" ? `decoder.layers.${layer}.cross_attn` : `${kind}.layers.${layer}.self_attn`);

/** Put it into an element. scale, signs: colours from 0 to 1 and from -1 to 1 for "light" and "dark". Returns look, speak and redraw. */
function inside(root, model, { scale, signs, language = "en" }) {
  const make = (tag, properties = {}, ...children) => {
    const element = Object.assign(document.createElement(tag), properties);
    element.append(...children);
    return element;
  };
  let say = INSIDE_SAYS[language], looked = null, reply = null, other = null, row = 0, changes = {}, patch = null;
  let change = 0, later = 0, isRunning = false, isAgain = false, isVisible = false;
  const parts = {};

  const theme = () => document.documentElement.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
  const ink = (name) => getComputedStyle(root).getPropertyValue(`--${name}`).trim();
  const of = (colours, share) => colours[theme()][Math.round((colours[theme()].length - 1) * Math.min(1, Math.max(0, share)))];
  const signed = (reach) => (value) => of(signs, (value / reach + 1) / 2);
  const called = (text) => ({ "(end)": EXPLORER_SAYS[language].end, "(start)": EXPLORER_SAYS[language].start, "(padding)": say.pad })[text] || text;
  const isTarget = () => looked.kind !== "encoder";
  const rowsOf = () => (isTarget() ? reply.tokens.tgt : reply.tokens.src).map(called);
  const keysOf = () => (looked.kind === "decoder" ? reply.tokens.tgt : reply.tokens.src).map(called);
  const isChanged = () => Object.keys(changes).length > 0;
  const isRemoved = (name, head) => (changes.removed || []).some(([one, which]) => one === name && which === head);

  // --- asking the model ------------------------------------------------------------------------------------------------

  const question = () => ({ text: looked.trace.source, ids: looked.trace.steps.slice(0, -1).map(({ id }) => id), changes, change });
  const stepOf = () => Math.min(isTarget() ? row : looked.step, looked.trace.steps.length - 1);
  async function refresh() {
    if (isRunning || !isVisible || !looked) { isAgain = true; return; }
    isRunning = true;
    do {
      isAgain = false;
      try {
        const { name, head } = looked, found = await model.inside({ ...question(), head: { name, head, step: stepOf() } });
        if (!found) isAgain = true; // the text was typed in meanwhile, and may be the same in the end
        if (isAgain) continue;
        reply = { ...found, name };
        parts.status.textContent = "";
        draw();
      } catch (error) {
        parts.status.textContent = error.message;
      }
    } while (isAgain);
    isRunning = false;
  }
  /** After a change: everything is computed again, and a while later the translation. */
  function update(name, value) {
    if (value === undefined) delete changes[name];
    else changes[name] = value;
    renew();
  }
  function renew() {
    change++;
    drawNotes();
    refresh();
    clearTimeout(later);
    parts.writes.textContent = "";
    if (isChanged()) later = setTimeout(rewrite, IDLE_MS);
  }
  async function rewrite() {
    const mine = change;
    parts.writes.textContent = say.writing;
    try {
      const found = await model.rewrite(question());
      if (mine !== change) return;
      if (!found) { // the text was typed in meanwhile, and this sentence may stay the same
        later = setTimeout(rewrite, IDLE_MS);
        return;
      }
      const same = found.text === looked.trace.translation;
      parts.writes.replaceChildren(`${say.writes} `, make("bdi", { textContent: same ? say.same : found.text, lang: same ? "" : looked.trace.tgt_lang }));
    } catch (error) {
      if (mine === change) parts.writes.textContent = error.message;
    }
  }

  // --- the switches ----------------------------------------------------------------------------------------------------

  function labelled(text, control, more = "") {
    const label = make("label", { className: more });
    label.append(...(control.type === "checkbox" ? [control, text] : [text, control]));
    return label;
  }
  function choice(text, options, chosen, act) {
    const select = make("select", { onchange: () => act(select.value) }, ...options.map(([value, name]) => make("option", { value, textContent: name })));
    select.value = String(chosen);
    return labelled(text, select);
  }
  function group(text, ...children) {
    return make("fieldset", {}, make("legend", { textContent: text }), ...children);
  }
  /** A switch for a property that is true as trained. */
  function tick(text, name) {
    const box = make("input", { type: "checkbox", checked: changes[name] !== false });
    box.onchange = () => update(name, box.checked ? undefined : false);
    return labelled(text, box, "in-tick");
  }
  function temperature() {
    const slider = make("input", { type: "range", min: -3, max: 3, step: 0.5, value: Math.log2(changes.temperature || 1) }), name = make("span");
    const show = () => { name.textContent = say.temperature(Number((2 ** slider.value).toPrecision(3))); };
    slider.oninput = () => { show(); update("temperature", Number(slider.value) ? 2 ** slider.value : undefined); };
    show();
    return labelled(name, slider);
  }
  function drawControls() {
    const usual = (name, first) => (value) => update(name, value === first ? undefined : value);
    parts.remove = make("button", { type: "button", onclick: () => removeHead(looked.name, looked.head) });
    parts.removed = make("div", { className: "in-chips" });
    parts.hide = make("div");
    parts.patch = make("div", { className: "in-fields" });
    parts.controls.replaceChildren(
      group(say.scores, tick(say.scaled, "scaled"), temperature(), tick(say.positions, "positions")),
      group(say.mask, make("div", { className: "in-masks" },
        choice(say.mask, ["right", "inverted", "none"].map((one) => [one, say[one]]), changes.mask || "right", usual("mask", "right")),
        choice(say.fill, ["infinity", "billion"].map((one) => [one, say[one]]), changes.fill || "infinity", usual("fill", "infinity")),
        choice(say.padding, [0, 1, 2, 3, 4].map((n) => [n, n]), changes.padding || 0, (n) => update("padding", Number(n) || undefined)))),
      group(say.heads, parts.remove, parts.removed),
      group(say.hide, parts.hide),
      group(say.patch, parts.patch),
      make("button", { type: "button", textContent: say.reset, onclick: reset }));
  }
  function reset() {
    [changes, patch, other] = [{}, null, null];
    renew();
    drawControls();
    drawSwitches();
    drawPatch();
    parts.controls.lastChild.focus();
  }
  function removeHead(name, head) {
    const others = (changes.removed || []).filter(([one, which]) => one !== name || which !== head);
    const removed = isRemoved(name, head) ? others : [...others, [name, head]];
    update("removed", removed.length ? removed : undefined);
    drawSwitches();
  }
  const headTitle = (name, head) => {
    const [side, , layer, sort] = name.split(".");
    return say.headShort(say.kinds[sort === "cross_attn" ? "cross" : side], Number(layer) + 1, head + 1);
  };
  /** The heading, and the switches that depend on the head and on the sentence. */
  function drawSwitches() {
    parts.caption.textContent = say.head(say.kinds[looked.kind], looked.layer + 1, looked.head + 1);
    const title = headTitle(looked.name, looked.head);
    parts.remove.textContent = isRemoved(looked.name, looked.head) ? say.putBack(title) : say.removeHead(title);
    parts.removed.replaceChildren(...(changes.removed || []).filter(([name, head]) => name !== looked.name || head !== looked.head).map(([name, head]) =>
      make("button", { type: "button", textContent: say.putBack(headTitle(name, head)), onclick: () => { removeHead(name, head); parts.remove.focus(); } })));
    const tokens = reply && JSON.stringify([language, reply.tokens, changes.hidden]);
    if (!reply || parts.hide.dataset.shown === tokens) return; // a button that has the focus keeps it
    parts.hide.dataset.shown = tokens;
    const chips = (side, text, lang) => make("div", { className: "in-chips", lang }, ...reply.tokens[side].map((token, at) => {
      const isHidden = () => (changes.hidden || { src: [], tgt: [] })[side].includes(at);
      const button = make("button", { type: "button", textContent: called(token) });
      button.setAttribute("aria-pressed", String(isHidden()));
      button.setAttribute("aria-label", `${text} ${at + 1}: ${called(token)}`);
      button.onclick = () => {
        const hidden = changes.hidden || { src: [], tgt: [] };
        const now = { ...hidden, [side]: isHidden() ? hidden[side].filter((one) => one !== at) : [...hidden[side], at] };
        button.setAttribute("aria-pressed", String(!isHidden()));
        update("hidden", now.src.length + now.tgt.length ? now : undefined);
        parts.hide.dataset.shown = JSON.stringify([language, reply.tokens, changes.hidden]);
      };
      return button;
    }));
    const under = (text, element) => make("div", {}, make("span", { className: "soft", textContent: text }), element);
    parts.hide.replaceChildren(under(say.source, chips("src", say.source, looked.trace.src_lang)), under(say.target, chips("tgt", say.target, looked.trace.tgt_lang)));
  }
  /** After a layer, the first place where the two sentences differ. */
  function stage(side, layer) {
    const [here, there] = [reply.tokens, other].map((tokens) => tokens[side === "encoder" ? "src" : "tgt"]);
    const place = here.findIndex((token, at) => at < there.length && token !== there[at]);
    return { side, layer, at: Math.max(0, place), from: Math.max(0, place) };
  }
  /** Another sentence, a layer, and which row goes where. */
  function drawPatch() {
    const field = make("input", { type: "text", value: patch ? patch.text : "", lang: looked.trace.src_lang });
    field.onchange = async () => {
      patch = null;
      other = null;
      try {
        other = field.value.trim() ? await model.other({ text: field.value.trim() }) : null;
      } catch (error) {
        parts.status.textContent = error.message;
      }
      if (other && reply) patch = { text: field.value.trim(), ...stage("encoder", layers("encoder") - 1) };
      drawPatch();
      update("patch", patch || undefined);
    };
    const set = (values) => { Object.assign(patch, values); drawPatch(); update("patch", { ...patch }); };
    const side = patch && (patch.side === "encoder" ? "src" : "tgt");
    const places = (tokens) => tokens.map((token, at) => [at, `${at + 1}: ${called(token)}`]);
    const stages = ["encoder", "decoder"].flatMap((one) => Array.from({ length: layers(one) }, (_, n) => [`${one} ${n}`, say.side[one](n)]));
    const fields = patch && other && reply ? [
      choice(say.layer, stages, `${patch.side} ${patch.layer}`, (value) => set(stage(value.split(" ")[0], Number(value.split(" ")[1])))),
      choice(say.at, places(reply.tokens[side]), patch.at, (at) => set({ at: Number(at) })),
      choice(say.from, places(other[side]), patch.from, (from) => set({ from: Number(from) })),
    ] : [];
    const focused = [...parts.patch.querySelectorAll("input, select")].indexOf(document.activeElement);
    parts.patch.replaceChildren(labelled(say.other, field), ...fields);
    if (focused >= 0) (parts.patch.querySelectorAll("input, select")[focused] || field).focus();
  }
  const layers = (side) => 1 + looked.trace.views[0].kinds[side].shape[0];
  function drawNotes() {
    const { notes } = say, { scaled, temperature: t, mask, fill, padding, positions, removed, hidden } = changes;
    const said = [scaled === false && reply && notes.scaled(reply.head.dK), t < 1 && notes.colder, t > 1 && notes.warmer, notes[mask], notes[fill],
      padding && notes.padding, positions === false && notes.positions, removed && notes.removed, hidden && notes.hidden, changes.patch && notes.patch];
    parts.notes.replaceChildren(...said.filter(Boolean).map((textContent) => make("li", { textContent })));
  }

  // --- the matrices ----------------------------------------------------------------------------------------------------

  /** Rows of numbers as cells, of which one row is framed. */
  function map(what, role, note, rows, colourOf) {
    const columns = rows[0].length, space = Math.min(WIDEST, (parts.maps.clientWidth - 2 * GAP) / 3 - 4); // three side by side
    const size = Math.max(6, Math.min(CELL, Math.floor(space / columns)));
    const canvas = make("canvas", { width: columns * size, height: rows.length * size });
    const context = canvas.getContext("2d");
    context.fillStyle = ink("line");
    context.fillRect(0, 0, canvas.width, canvas.height);
    rows.forEach((values, r) => values.forEach((value, c) => {
      context.fillStyle = colourOf(value, r, c);
      context.fillRect(c * size, r * size, size - 1, size - 1);
    }));
    context.strokeStyle = ink("ink");
    context.lineWidth = 2;
    context.strokeRect(1, row * size + 0.5, canvas.width - 3, size - 2);
    canvas.setAttribute("role", "img");
    canvas.setAttribute("aria-label", say.map(what, rows.length, columns));
    canvas.onclick = (event) => pick(Math.min(rows.length - 1, Math.floor(rows.length * event.offsetY / canvas.clientHeight)));
    const figure = make("figure", { className: `in-map in-${role}` }, make("figcaption", {}, make("b", { textContent: what }), ` ${note}`), canvas);
    figure.style.width = `${canvas.width + 2}px`; // the caption is as wide as its map
    return figure;
  }
  /** One vector as a row of cells. */
  function strip(what, word, values, reach) {
    const canvas = make("canvas", { width: values.length, height: 1, className: "in-strip" }), context = canvas.getContext("2d");
    const colourOf = signed(reach);
    values.forEach((value, i) => { context.fillStyle = colourOf(value); context.fillRect(i, 0, 1, 1); });
    canvas.setAttribute("role", "img");
    canvas.setAttribute("aria-label", say.strip(what, word, values.length, written(Math.min(...values)), written(Math.max(...values))));
    return canvas;
  }
  function pick(chosen) {
    row = chosen;
    refresh();
  }
  function drawMaps() {
    const { scores, open, weights } = reply.head, reach = reachOf(scores, open), colourOf = signed(reach);
    const divisor = `${changes.scaled === false ? "" : ` ÷ √${reply.head.dK}`}${changes.temperature ? ` ÷ ${Number(changes.temperature.toPrecision(3))}` : ""}`;
    parts.maps.replaceChildren(
      map(say.scores, "x", say.scoresLong(divisor), scores, (value, r, c) => (open[r][c] ? colourOf(value) : ink("edge"))),
      map(say.mask, "x", say.maskLong, open, (isOpen) => (isOpen ? "#fff" : "#444")),
      map(say.weights, "w", say.weightsLong, weights, (weight) => of(scale, weight)));
  }
  function drawRow() {
    const { head } = reply, names = keysOf(), word = rowsOf()[row], weights = head.weights[row];
    const [ofK, ofV] = [reachOf(head.k), reachOf([...head.v, head.out[row]])];
    parts.query.replaceChildren(make("b", { textContent: "q" }), ` ${say.queryOf(word)}`, strip("q", word, head.q[row], reachOf(head.q)));
    const bar = (weight) => {
      const part = make("i");
      part.style.width = `${100 * weight}%`;
      return make("td", { className: "in-weight" }, part, make("span", { textContent: `${(100 * weight).toFixed(0)}%` }));
    };
    const title = (text, role) => make("th", { scope: "col", className: role ? `in-${role}` : "", textContent: text });
    const lines = names.map((name, key) => {
      const score = head.scores[row][key], isOpen = head.open[row][key];
      return make("tr", {}, make("th", { scope: "row", textContent: name }), make("td", { className: "in-k" }, strip("k", name, head.k[key], ofK)),
        make("td", { textContent: written(head.products[row][key]) }),
        make("td", { className: isOpen ? "" : "masked", title: isOpen ? "" : say.masked, textContent: isOpen ? written(score) : changes.fill ? say.billion : say.infinity }),
        bar(weights[key]), make("td", { className: "in-v" }, strip("v", name, head.v[key], ofV)));
    });
    const sum = weights.reduce((all, weight) => all + weight, 0);
    const foot = make("tr", {}, make("th", { scope: "row", textContent: say.sum }), make("td"), make("td"), make("td"), bar(sum),
      make("td", { className: "in-v" }, strip(say.out, word, head.out[row], ofV)));
    parts.table.replaceChildren(
      make("thead", {}, make("tr", {}, title(say.key), title("k", "k"), title("q · k"), title(say.scores), title(say.weights, "w"), title("v", "v"))),
      make("tbody", {}, ...lines), make("tfoot", {}, foot));
  }
  function drawSteps() {
    const share = (value) => percent(value), changed = isChanged(), at = stepOf();
    const bars = (value) => {
      const part = make("i");
      part.style.width = `${100 * value}%`;
      return make("td", { className: "in-weight" }, part, make("span", { textContent: share(value) }));
    };
    const heads = [say.token, say.before, ...(changed ? [say.after] : [])].map((text) => make("th", { scope: "col", textContent: text }));
    const lines = reply.steps.map(({ chosen, before, after }, i) => {
      const line = make("tr", { className: i === at ? "at" : "" }, make("th", { scope: "row", lang: looked.trace.tgt_lang, textContent: called(chosen) }), bars(before), ...(changed ? [bars(after)] : []));
      return line;
    });
    parts.steps.replaceChildren(make("caption", { textContent: say.steps }), make("thead", {}, make("tr", {}, ...heads)), make("tbody", {}, ...lines));
    const best = (name) => make("div", {}, make("span", { className: "soft", textContent: say[name] }), make("ol", {}, ...reply.best[name].map(([text, value]) =>
      make("li", {}, make("bdi", { textContent: called(text), lang: looked.trace.tgt_lang }), ` ${share(value)}`))));
    parts.best.replaceChildren(make("h4", { textContent: say.next(called(reply.tokens.tgt[at])) }), best("before"), ...(changed ? [best("after")] : []));
  }
  function draw() {
    if (reply.name !== looked.name) return; // its own matrices are on their way
    const names = rowsOf();
    row = Math.min(row, names.length - 1);
    parts.rows.replaceChildren(...names.map((name, r) => make("option", { value: r, textContent: isTarget() && reply.steps[r] ? `${r + 1}: ${name} → ${called(reply.steps[r].chosen)}` : `${r + 1}: ${name}` })));
    parts.rows.value = String(row);
    drawMaps();
    drawRow();
    drawSteps();
    drawNotes();
    drawSwitches();
  }

  function build() {
    for (const name of ["controls", "maps", "query", "best"]) parts[name] = make("div", { className: `in-${name}` });
    Object.assign(parts, {
      status: make("p", { className: "soft" }), writes: make("p", { className: "in-writes" }), notes: make("ul", { className: "in-notes" }),
      caption: make("h3"), table: make("table", { className: "in-table" }), steps: make("table", { className: "in-table in-steps" }),
      rows: make("select", { onchange: () => pick(Number(parts.rows.value)) }),
    });
    for (const name of ["status", "writes"]) parts[name].setAttribute("role", "status");
    root.classList.add("in");
    root.replaceChildren(make("h2", { textContent: say.title }), make("p", { className: "soft in-help", textContent: say.help }), make("div", { className: "in-two" },
      make("div", { className: "in-view" }, parts.caption, parts.status, parts.maps, labelled(`${say.row} `, parts.rows, "in-rows"), parts.query,
        parts.table, make("p", { className: "soft", textContent: say.vectors })),
      make("div", { className: "in-switches" }, make("h3", { textContent: say.change }), parts.controls),
      make("div", { className: "in-after" }, parts.notes, parts.writes, make("div", { className: "in-results" }, parts.steps, parts.best))));
    drawControls();
  }
  build();
  new IntersectionObserver((entries) => {
    isVisible = entries[entries.length - 1].isIntersecting;
    if (isVisible && isAgain) refresh();
  }, { rootMargin: "300px" }).observe(root);

  return {
    /** Look at what the explorer shows: { trace, kind, layer, head, step }; of a mean of heads at the one that tells most. */
    look({ trace, kind, layer, head, step }) {
      const isOther = !looked || looked.trace !== trace, kinds = trace.views[trace.views.length - 1].kinds[kind];
      const nats = (one) => information(matrix(kinds.values, kinds.shape, layer, one));
      const best = () => [...Array(kinds.shape[1]).keys()].reduce((most, one) => (nats(one) > nats(most) ? one : most), 0);
      const isSame = looked && looked.kind === kind;
      looked = { trace, kind, layer, head: head === null ? best() : head, step, name: attentionName(kind, layer) };
      row = kind === "encoder" ? (isSame && !isOther ? row : 0) : step;
      if (isOther) { // what belongs to the former sentence goes
        delete changes.hidden;
        delete changes.patch;
        [reply, patch, other] = [null, null, null];
        change++; // and so does a translation of it that is awaited
        clearTimeout(later);
        parts.writes.textContent = "";
        if (isChanged()) renew();
      }
      drawSwitches();
      drawPatch();
      refresh();
    },
    speak(wanted) {
      language = wanted;
      say = INSIDE_SAYS[wanted];
      build();
      if (looked) { drawSwitches(); drawPatch(); }
      if (reply) draw();
      if (looked && isChanged()) renew(); // what the changed model writes was in the former elements
    },
    redraw() { if (reply) draw(); },
  };
}
