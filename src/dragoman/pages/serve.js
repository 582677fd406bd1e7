"use strict";
// Translate as you type; other translations; what the model looked at. Text of people goes into textContent only.
const PAUSE_MS = 300;
const $ = (id) => document.getElementById(id);
const settings = JSON.parse($("settings").textContent);
const names = new Map(settings.names);
let ui = (navigator.language || "en").startsWith("zh") ? "zh" : "en";
let key = "", asking = null, timer = 0, looked = { source: "", target: "", from: "", to: "" };
const NOTHING = { found: null, source: "", from: "", to: "", glossary: null, problem: null };
let shown = NOTHING; // what the server answered; texts are functions, since the language of the page may change
let working = false; // whether an answer is awaited
let said = "", read = ""; // a translation, and the text that it is of
let detected = ""; // the language that the server found, where none is chosen
let looking = null; // the request for a trace that is under way
let whyNot = () => ""; // why there is no trace

/** A failure with a function for its text, in the language that the page then has. */
class Failure extends Error {
  constructor(text) {
    super(text());
    this.text = text;
  }
}

function refused(status, message) {
  return new Failure(() => problemIn(ui, status, message));
}

/** The content of an answer, and the message of one that refuses; a proxy in front of the server sends other pages. */
async function contentOf(answer) {
  const found = await answer.json().catch((error) => {
    if (error.name !== "SyntaxError") throw error;
    if (answer.ok) throw refused(answer.status, "");
    return {};
  });
  const error = found?.error; // LibreTranslate's answers, and those of early refusals, are a text
  return { found, message: answer.ok ? "" : (typeof error === "string" ? error : error?.message) || found?.message || "" };
}

function say(name, ...values) {
  const text = SAYS[ui][name];
  return typeof text === "function" ? text(...values) : text;
}

function nameOf(code) {
  try {
    return new Intl.DisplayNames([ui], { type: "language" }).of(langOf(code)) || code;
  } catch {
    return names.get(code) || code;
  }
}

function element(tag, text, ...classes) {
  const made = document.createElement(tag);
  made.textContent = text;
  made.classList.add(...classes);
  return made;
}

function fill(select, codes) {
  const before = select.value;
  select.replaceChildren(...codes.map((code) => {
    const option = element("option", code === "auto" ? say("detect") : nameOf(code));
    option.value = code;
    return option;
  }));
  if (codes.includes(before)) select.value = before;
}

function targets() {
  const from = $("from").value;
  const found = settings.pairs.filter(([src]) => from === "auto" || src === from).map(([, tgt]) => tgt);
  fill($("to"), [...new Set(found)]);
}

/** Whether the model translates in the other direction too. */
function canSwap() {
  const [from, to] = [$("from").value === "auto" ? detected : $("from").value, $("to").value];
  return settings.pairs.some(([src, tgt]) => src === to && tgt === from);
}

function swap() {
  const [from, to, text] = [$("from").value === "auto" ? detected : $("from").value, $("to").value, said];
  $("from").value = to;
  targets();
  $("to").value = from;
  if (text && $("source").value === read) $("source").value = text; // a text that nobody has translated yet stays
  count();
  translate();
}

/** A language and its usual script, such as zh-Hant for zh_TW; nothing, where a code is none of a language. */
function varietyOf(code) {
  const lang = langOf(code);
  if (!lang) return "";
  const { language, script } = new Intl.Locale(lang).maximize();
  return `${language}-${script}`;
}

/** The code by which the server knows a language: the same, else in another form (en for eng), else of another region. */
function servedAs(code, codes) {
  for (const form of [String, langOf, varietyOf]) {
    const found = form(code) && codes.find((one) => form(one) === form(code));
    if (found) return found;
  }
  return "";
}

/** Languages and text of a link: #en/de/text, as in the links of other translators. */
function linked() {
  const [src, tgt = "", ...text] = location.hash.slice(1).split("/");
  const from = src === "auto" ? src : servedAs(src, settings.sources);
  const to = servedAs(tgt, settings.pairs.filter(([own]) => from === "auto" || own === from).map(([, own]) => own));
  if (!to || !text.length) return;
  try {
    $("source").value = decodeURIComponent(text.join("/"));
  } catch { // not a link of this page
    return;
  }
  if ([...$("from").options].some((option) => option.value === from)) $("from").value = from;
  targets();
  $("to").value = to;
  count();
  translate();
}

function link() {
  const text = encodeURIComponent($("source").value);
  return `${location.href.split("#")[0]}#${$("from").value}/${$("to").value}/${text}`;
}

function speak() {
  document.documentElement.lang = ui === "zh" ? "zh-Hans" : "en";
  for (const each of document.querySelectorAll("[data-say]")) each.textContent = say(each.dataset.say);
  for (const each of document.querySelectorAll("[data-say-title]")) each.title = say(each.dataset.sayTitle);
  for (const each of document.querySelectorAll("[data-say-label]")) each.setAttribute("aria-label", say(each.dataset.sayLabel));
  $("source").placeholder = say("placeholder");
  $("language").textContent = say("other");
  fill($("from"), [...(settings.sources.length > 1 ? ["auto"] : []), ...settings.sources]);
  targets();
  theme(document.documentElement.dataset.theme);
  count();
  render();
  renderDocument();
  $("why-not").textContent = whyNot();
  view.speak(ui);
}

function theme(wanted) {
  const dark = wanted ? wanted === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  if (wanted) document.documentElement.dataset.theme = wanted;
  $("theme").textContent = say(dark ? "light" : "dark");
  $("theme").onclick = () => { theme(dark ? "light" : "dark"); view.redraw(); };
}

function count() {
  $("count").textContent = say("count", [...$("source").value].length, settings.most);
}

async function translate() {
  clearTimeout(timer);
  if (asking) asking.abort();
  const mine = (asking = new AbortController());
  const text = $("source").value;
  read = "";
  if (!text.trim()) {
    show(NOTHING);
    return;
  }
  const length = [...text].length;
  if (length > settings.most) {
    fail(() => say("too-long", length, settings.most));
    return;
  }
  working = true;
  $("state").textContent = say("working");
  $("result").classList.add("old");
  const asked = { text, source: $("from").value || "auto", target: $("to").value };
  const glossary = $("glossary").value;
  if (glossary.trim()) asked.glossary = glossary;
  if (!text.trim().includes("\n")) {
    asked.text = text.trim();
    asked.n_best = Math.min(4, settings.beam);
  }
  try {
    const answer = await ask("v1/translate", asked, mine.signal);
    const { found, message } = await contentOf(answer);
    if (mine !== asking) return;
    $("access").hidden = answer.status !== 401 && answer.status !== 403;
    if (answer.ok) {
      read = text;
      show({ ...NOTHING, ...found, found: found.translations[0], source: asked.text, from: found.translations[0].source ?? found.source, to: found.target });
    } else if (answer.status === 429) later(Number(answer.headers.get("retry-after")), message);
    else fail(refused(answer.status, message).text);
  } catch (error) {
    if (error.name !== "AbortError" && mine === asking) fail(error.text || (() => say("offline")));
  }
}

/** The server is busy, maybe with a request that this page has cancelled: keep the former result, and ask again. */
function later(seconds, message) {
  working = false;
  shown = { ...shown, problem: seconds ? () => say("busy", seconds) : refused(429, message).text };
  render();
  if (seconds) timer = setTimeout(translate, seconds * 1000);
}

function fail(problem) {
  show({ ...NOTHING, problem });
}

function show(answer) {
  shown = answer;
  working = false;
  said = shown.found ? shown.found.text : "";
  detected = shown.from;
  $("result").textContent = said;
  $("result").classList.remove("old");
  render();
  const isServed = settings.pairs.some(([src, tgt]) => src === shown.from && tgt === shown.to); // else the text was in the target language
  lines(shown.found && isServed ? shown.source : "", shown.from, shown.to);
}

/** Write what is shown in the language of the page. */
function render() {
  const { found, from, to, glossary, problem } = shown;
  $("state").textContent = working ? say("working") : "";
  $("terms-found").textContent = glossary ? say("terms", glossary.read, glossary.found) : "";
  $("source").lang = langOf(from);
  for (const id of ["result", "alternatives"]) $(id).lang = langOf(to);
  $("swap").hidden = !canSwap();
  for (const id of ["clear", "share"]) $(id).disabled = !$("source").value;
  $("copy").disabled = !said;
  $("detected").textContent = found && $("from").value === "auto" ? say("detected", nameOf(from)) : "";
  $("confidence").hidden = !(found && found.quality);
  $("quality").textContent = found && found.quality ? say("sure", found.quality) : "";
  const notes = problem ? [problem()] : ((found && found.notes) || []).map((note) => noteIn(ui, note));
  $("notes").replaceChildren(...[...new Set(notes)].map((text) => element("li", text)));
  const others = (found && found.alternatives) || [];
  $("others").hidden = !others.length;
  $("alternatives").replaceChildren(...others.map((one) => {
    const item = document.createElement("li");
    item.append(Object.assign(element("span", one.text), { dir: "auto" }), element("small", one.score.toFixed(2).replace("-", "\u2212")));
    return item;
  }));
}

/** The header with the API key; a header takes no letters outside Latin-1, so no server has such a key. */
function access() {
  if (/[^ -\xff]/.test(key)) {
    $("access").hidden = false;
    throw new Failure(() => say("unknown-key"));
  }
  return key ? { authorization: `Bearer ${key}` } : {};
}

async function ask(route, asked, signal) {
  const headers = { "content-type": "application/json", ...access() };
  return fetch(route, { method: "POST", headers, body: JSON.stringify(asked), signal });
}

// --- what the model looked at: the explorer, with the server as its model ---------------------------------------------

async function json(answer) {
  const { found, message } = await contentOf(answer);
  if (!answer.ok) throw refused(answer.status, message);
  return found;
}

const view = explorer($("explorer"), {
  answers: true,
  trace: async (text, prefix) => json(await ask("v1/explain", { text, source: looked.from, target: looked.to, prefix })),
}, {
  scale: settings.scale,
  language: ui,
  /** A page for a saved state: its shell is the same whatever it shows. */
  page: async (trace) => {
    const asked = new URLSearchParams({ text: trace.source, source: looked.from, target: looked.to, translation: trace.translation });
    const answer = await fetch(`explain?${asked}`, { headers: access() });
    if (!answer.ok) throw refused(answer.status, (await contentOf(answer)).message);
    return answer.text();
  },
});

/** Which line to look at, where there are several; those without letters are no choice. */
function lines(source, from, to) {
  const [own, out] = [source.split(/\r?\n/), said.split(/\r?\n/)];
  const found = own.map((line, i) => [line.trim(), (out[i] || "").trim()]).filter((each) => each.every(Boolean));
  $("why").hidden = !found.length;
  $("lines").hidden = found.length < 2;
  $("line").replaceChildren(...found.map(([line], i) => Object.assign(element("option", [...line].slice(0, 80).join("")), { value: i })));
  $("line").onchange = () => look(...found[$("line").value], from, to);
  if (looking) looking.abort();
  if (found.length) look(...found[0], from, to);
}

async function look(source, target, from, to) {
  if (looking) looking.abort();
  const mine = (looking = new AbortController());
  const short = Math.max([...source].length, [...target].length) <= settings.explained;
  untold(short ? () => "" : () => say("long", settings.explained));
  $("explorer").hidden = !short;
  if (!short) return;
  try {
    const found = await json(await ask("v1/explain", { text: source, translation: target, source: from, target: to }, mine.signal));
    if (mine !== looking) return;
    looked = { source, target, from, to };
    view.show(found);
  } catch (error) {
    if (error.name === "AbortError" || mine !== looking) return;
    untold(error.text || (() => error.message));
    $("explorer").hidden = true;
  }
}

function untold(text) {
  whyNot = text;
  $("why-not").textContent = whyNot();
}

// --- documents: uploaded, asked after, fetched ------------------------------------------------------------------------

const NO_PAPER = { state: () => "", left: [], columns: [], dropped: null };
let sending = null; // the document that is under way
let paper = NO_PAPER; // what is shown of it
let denied = null; // a document that waits for an API key, and its column
const ASK_AGAIN_MS = 500;
const ASK_FAILED_S = 3;
const MOST_FAILURES = 10; // in half a minute
const SAMPLE_ROWS = 100; // by which the separator of a table is recognised
const MOST_WORDS = 6; // of a heading

/** Change what is shown of a document. */
function tell(changed) {
  paper = { ...paper, ...changed };
  renderDocument();
}

/** Write it in the language of the page. */
function renderDocument() {
  const { state, left, dropped, columns } = paper;
  $("document-state").textContent = [state(), ...(dropped ? [say("first", ...dropped)] : [])].join(" ");
  if ($("document-result").download) $("document-result").textContent = say("save", $("document-result").download);
  $("document-left").replaceChildren(...left.map((one) => element("li", say("kept", one.text, one.why))));
  [...$("columns").children].forEach((button, i) => { button.textContent = columns[i].label(); });
}

/** The first rows of a text. A quotation mark elsewhere than around a cell is part of its text. */
function rowsOf(text, by) {
  const cell = new RegExp(`[${by}]( *"(?:[^"]|"")*" *(?=[${by}\r\n]|$)|[^${by}\r\n]*)`, "gy"), rows = [];
  for (let rest = text; rest && rows.length < SAMPLE_ROWS;) {
    const cells = [...(by + rest).matchAll(cell)]; // each begins with its separator: none is empty
    rest = rest.slice(cells.reduce((sum, [whole]) => sum + whole.length, -1)).replace(/^(?:\r\n|\r|\n)/, "");
    rows.push(cells.map(([, raw]) => (/^ *".*" *$/s.test(raw) ? raw.trim().slice(1, -1).replaceAll('""', '"') : raw)));
  }
  return rows;
}

/** How well a separator fits, as documents/table.py weighs it: tenths of the rows that are as long as the first, and its cells. */
function fitOf(rows) {
  const n = rows.length ? rows[0].length : 0, share = rows.filter((row) => row.length === n).length / rows.length;
  return [n > 1 ? Math.round(10 * share) : 0, n];
}

/** The start of a text file: UTF-16 by its byte order mark, else UTF-8. */
async function startOf(chosen) {
  const bytes = new Uint8Array(await chosen.slice(0, 1 << 16).arrayBuffer());
  const mark = (bytes[0] << 8) | bytes[1];
  return new TextDecoder({ 0xfffe: "utf-16le", 0xfeff: "utf-16be" }[mark] || "utf-8").decode(bytes);
}

/** The headings of a table, from its first row; above it may be the separator that Excel names, or comments. */
function headings(text, tabs) {
  const [line, named] = text.match(/^"?sep=([,;|\t])"?[\r\n]+/i) || ["", ""];
  const [comments] = line || tabs ? [""] : text.match(/^(?:#[^\r\n]*(?:\r\n|\r|\n))*/);
  const separators = (named || (tabs ? "\t" : ",;\t|")).split("");
  const best = (table) => {
    const fits = separators.map((by) => ({ by, rows: rowsOf(table, by) })).map((one) => ({ ...one, fit: fitOf(one.rows) }));
    const [{ by, rows: [first = []] }] = fits.sort(({ fit: a }, { fit: b }) => b[0] - a[0] || b[1] - a[1]);
    return [by, first];
  };
  const [by, found] = best(text.slice((line || comments).length));
  const [last = []] = rowsOf(comments ? comments.trimEnd().split(/[\r\n]+/).pop() : "", by);
  return !comments || last.length < found.length ? found : best(text)[1]; // as many cells: headings that begin with "#"
}

/** Whether a cell of the first row is plainly no heading, as documents/table.py tells it. */
function isSentence(cell) {
  const nWords = cell.split(/\s/).filter(Boolean).length;
  return nWords > MOST_WORDS || (nWords > 1 && /[.!?\u2026\u3002\uff01\uff1f]["')\]\u201d\u2019]*\s*$/.test(cell));
}

/** Columns to choose from. The server knows one by its heading, or by its number where that is no heading; only then is a sentence there translated. */
function columnsOf(names) {
  const bare = names.map((name) => name.trim());
  return bare.map((name, i) => {
    const number = String(i + 1);
    const clear = name && !name.includes("\ufffd") && !isSentence(name) && bare.indexOf(name) === bare.lastIndexOf(name);
    if (clear || bare.includes(number)) return { name: names[i], label: () => name || say("column", number) };
    return { name: number, label: () => say("column", number, name) };
  });
}

/** Translate a document, which may be the first of several; of a table with several columns one is chosen first. */
async function take(chosen, several = 1) {
  if (sending) sending.abort();
  const mine = (sending = new AbortController());
  $("columns").replaceChildren();
  denied = null;
  paper = { ...NO_PAPER, dropped: several > 1 ? [chosen.name, several] : null };
  const [, kind] = /\.(csv|tsv)$/i.exec(chosen.name) || [];
  const columns = kind ? columnsOf(headings(await startOf(chosen), kind.toLowerCase() === "tsv")) : [];
  if (mine !== sending) return; // another document was chosen meanwhile
  if (columns.length < 2) {
    translateDocument(chosen);
    return;
  }
  $("document").open = true;
  $("document-result").hidden = true;
  for (const { name } of columns) {
    const button = element("button", "");
    button.type = "button";
    button.addEventListener("click", () => { $("columns").replaceChildren(); translateDocument(chosen, name); });
    $("columns").append(button);
  }
  tell({ state: () => say("columns", chosen.name), columns });
  $("columns").firstChild.focus();
}

const wait = (ms) => new Promise((resolve) => { setTimeout(resolve, ms); });

/** Ask after a document. The work on it goes on meanwhile: a busy server is asked again when it says, and one that
    cannot be reached, or whose proxy cannot reach it, a few times. */
async function patiently(where, asked) {
  for (let failures = 0; ;) {
    let seconds = ASK_FAILED_S;
    try {
      const answer = await fetch(where, asked);
      const isBusy = answer.status === 429 && answer.headers.has("retry-after");
      if (isBusy) seconds = Number(answer.headers.get("retry-after")) || 1;
      else if (![502, 503, 504].includes(answer.status) || ++failures > MOST_FAILURES) return answer;
    } catch (error) {
      if (error.name === "AbortError" || ++failures > MOST_FAILURES) throw error;
    }
    await wait(seconds * 1000);
  }
}

async function translateDocument(chosen, column) {
  if (sending) sending.abort();
  const mine = (sending = new AbortController());
  const to = $("to").value; // it may be changed before the end
  const link = $("document-result");
  if (link.href) URL.revokeObjectURL(link.href);
  link.hidden = true;
  denied = null;
  $("document").open = true;
  tell({ state: () => say("reading", chosen.name), left: [] });
  const form = new FormData();
  form.append("target_lang", to);
  if ($("from").value !== "auto") form.append("source_lang", $("from").value);
  if (column !== undefined) form.append("column", column);
  const [, read] = Object.entries(settings.documents).find(([suffix]) => chosen.name.toLowerCase().endsWith(suffix)) || ["", []];
  for (const box of $("document-options").querySelectorAll("input:checked")) if (read.includes(box.name)) form.append(box.name, box.value);
  form.append("file", chosen);
  const told = async (answer) => {
    const { found, message } = await contentOf(answer);
    $("access").hidden = answer.status !== 403;
    if (answer.status === 403 && mine === sending) denied = [chosen, column];
    if (!answer.ok) throw refused(answer.status, message);
    return found;
  };
  try {
    denied = [chosen, column]; // if the browser refuses the key
    const headers = access();
    denied = null;
    const made = await told(await fetch("v2/document", { method: "POST", headers, body: form, signal: mine.signal }));
    const owned = { method: "POST", headers: { ...headers, "content-type": "application/json" },
      body: JSON.stringify({ document_key: made.document_key }), signal: mine.signal };
    const where = `v2/document/${made.document_id}`;
    tell({ state: () => say("waiting", chosen.name) });
    let status = await told(await patiently(where, owned));
    while (status.status !== "done" && status.status !== "error") {
      await wait(ASK_AGAIN_MS);
      status = await told(await patiently(where, owned));
    }
    if (status.status === "error") throw new Failure(() => say("refused", status.error_message));
    const answer = await patiently(`${where}/result`, owned);
    if (!answer.ok) throw refused(answer.status, (await contentOf(answer)).message);
    link.href = URL.createObjectURL(await answer.blob());
    link.download = chosen.name.replace(/(\.[^.]*)?$/, (suffix) => `.${to}${suffix}`);
    link.hidden = false;
    const { found, translated, left } = status.segments;
    tell({ state: () => say("finished", found, translated) + (status.quality ? ` ${say("sure", status.quality)}` : ""), left });
  } catch (error) {
    if (error.name !== "AbortError" && mine === sending) tell({ state: error.text || (() => say("offline-document")) });
  }
}

/** Whether something that is dragged over the page is a file. */
function hasFile(event) {
  return [...(event.dataTransfer ? event.dataTransfer.types : [])].includes("Files");
}

$("file").accept = Object.keys(settings.documents).join(",");
$("file").addEventListener("change", () => {
  const { files } = $("file");
  if (files.length) take(files[0], files.length);
  $("file").value = "";
});
document.addEventListener("dragover", (event) => {
  if (!hasFile(event)) return;
  event.preventDefault();
  document.body.classList.add("dropping");
});
document.addEventListener("dragleave", (event) => {
  if (!event.relatedTarget) document.body.classList.remove("dropping");
});
document.addEventListener("drop", (event) => {
  document.body.classList.remove("dropping");
  if (!hasFile(event)) return;
  event.preventDefault();
  const { files } = event.dataTransfer;
  if (files.length) take(files[0], files.length);
});

function soon() {
  count();
  clearTimeout(timer);
  timer = setTimeout(translate, PAUSE_MS);
}

$("source").addEventListener("input", soon);
$("glossary").addEventListener("input", soon);
$("from").addEventListener("change", () => { targets(); translate(); });
$("to").addEventListener("change", translate);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { theme(document.documentElement.dataset.theme); view.redraw(); });
$("clear").addEventListener("click", () => { $("source").value = ""; count(); translate(); $("source").focus(); });
$("language").addEventListener("click", () => { ui = ui === "zh" ? "en" : "zh"; speak(); });
/** Copy a text and say so on the button; without a secure context call otherwise. */
async function copy(id, text, done, otherwise) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    otherwise();
    return;
  }
  $(id).textContent = say(done);
  setTimeout(() => { $(id).textContent = say(id); }, 1500);
}

$("copy").addEventListener("click", () => copy("copy", said, "copied", () => getSelection().selectAllChildren($("result"))));
$("share").addEventListener("click", () => copy("share", link(), "shared", () => { location.hash = link().split("#")[1]; }));
$("swap").addEventListener("click", swap);
$("open-document").addEventListener("click", () => { $("document").open = true; $("file").click(); });
addEventListener("hashchange", linked);
$("access").addEventListener("submit", (event) => {
  event.preventDefault();
  key = $("key").value.trim();
  translate();
  if (denied) translateDocument(...denied);
});
speak();
show(NOTHING);
// Only now the browser has put back the fields of a page that one comes back to: their text comes before that of a link.
addEventListener("pageshow", (event) => {
  if (event.persisted) return; // it comes back as it was
  if (!$("source").value) {
    linked();
    return;
  }
  targets();
  count();
  translate();
});
