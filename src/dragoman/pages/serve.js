"use strict";
// Translate as you type; other translations; what the model looked at. Text of people goes into textContent only.
const SAYS = {
  en: {
    from: "From", to: "To", swap: "Swap", "swap-help": "Swap the languages, and translate the translation back", share: "Copy link", shared: "Link copied",
    "share-help": "A link that opens this page with this text. The text stands behind the # of the link, which no server sees.",
    "open-document": "Document …", clear: "Clear", copy: "Copy", copied: "Copied", why: "What the model looked at",
    source: "Text to translate", result: "Translation", others: "Other translations",
    "others-help": "The number is the model's score: a log-probability per length. Closer to 0 is likelier; compare it only between these lines.", notes: "Notes", glossary: "Glossary",
    "glossary-help": "One term a line, such as: dog = Hündin, or dog -> Hündin. A term alone is kept as it is.",
    terms: (read, found) => `${read.toLocaleString("en")} terms read, ${found.toLocaleString("en")} found in the text.`,
    "line-choice": "Line to look at", long: (n) => `Lines of more than ${n} characters have no picture of their attention.`,
    key: "API key", "use-key": "Use", working: "translating …", detect: "Detect", other: "中文", dark: "Dark", light: "Light",
    placeholder: "Type or paste text", count: (n, most) => `${n.toLocaleString("en")} of ${most.toLocaleString("en")} characters`,
    sure: (word) => `Quality, estimated: ${{ good: "good", doubtful: "doubtful", poor: "poor" }[word]}`,
    "sure-help": "Estimated by the model, without a reference. Good: hardly a fault is expected. Doubtful: read it beside the source. Poor: do not rely on it.", detected: (name) => `${name}, it seems`,
    offline: "The server does not answer.", line: "line",
    document: "Document", choose: "Choose a document", left: "Left as it is",
    "document-help": "Drop one anywhere on this page, or choose it: Word, PowerPoint, OpenDocument, HTML, Markdown, subtitles, .po, XLIFF, tables (.csv), text. It keeps its shape.",
    columns: (name) => `Which column of ${name}?`,
    reading: (name) => `Sending ${name} …`, waiting: (name) => `Translating ${name} …`,
    finished: (found, translated) => `${translated.toLocaleString("en")} of ${found.toLocaleString("en")} segments translated.`,
    save: (name) => `Save ${name}`, kept: (text, why) => `${why}: ${text}`,
  },
  zh: {
    from: "源语言", to: "目标语言", swap: "互换", "swap-help": "互换语言，并把译文译回去", share: "复制链接", shared: "链接已复制",
    "share-help": "打开链接即可看到这段文本。文本放在 # 之后，不会发送到任何服务器日志。",
    "open-document": "文档……", clear: "清空", copy: "复制", copied: "已复制", why: "模型看了哪里",
    source: "待译文本", result: "译文", others: "其他译文",
    "others-help": "数字是模型的得分（按长度归一的对数概率），越接近 0 越可能，只宜在这几行之间比较。", notes: "说明", glossary: "术语表",
    "glossary-help": "每行一个术语，例如：dog = 犬 或 dog -> 犬；只写术语则原样保留。",
    terms: (read, found) => `读入 ${read.toLocaleString("en")} 个术语，文中出现 ${found.toLocaleString("en")} 个。`,
    "line-choice": "查看哪一行", long: (n) => `超过 ${n} 个字符的行不显示注意力。`,
    key: "API 密钥", "use-key": "使用", working: "正在翻译……", detect: "自动检测", other: "English", dark: "深色", light: "浅色",
    placeholder: "输入或粘贴文本", count: (n, most) => `${n.toLocaleString("en")} / ${most.toLocaleString("en")} 字符`,
    sure: (word) => `预计质量：${{ good: "良好", doubtful: "存疑", poor: "较差" }[word]}`,
    "sure-help": "由模型估计，没有参考译文。良好：基本无误；存疑：请对照原文；较差：请勿直接使用。", detected: (name) => `似乎是${name}`,
    offline: "服务器没有响应。", line: "行",
    document: "文档", choose: "选择文档", left: "未翻译的部分",
    "document-help": "把文档拖到页面任意位置，或点击选择：Word、PowerPoint、OpenDocument、HTML、Markdown、字幕、.po、XLIFF、表格（.csv）、纯文本。译文保持原有格式。",
    columns: (name) => `翻译 ${name} 的哪一列？`,
    reading: (name) => `正在上传 ${name}……`, waiting: (name) => `正在翻译 ${name}……`,
    finished: (found, translated) => `共 ${found.toLocaleString("en")} 个片段，已翻译 ${translated.toLocaleString("en")} 个。`,
    save: (name) => `保存 ${name}`, kept: (text, why) => `${why}：${text}`,
  },
};
const PAUSE_MS = 300;
const $ = (id) => document.getElementById(id);
const settings = JSON.parse($("settings").textContent);
const names = new Map(settings.names);
let ui = (navigator.language || "en").startsWith("zh") ? "zh" : "en";
let key = "", asking = null, timer = 0, said = "", looked = { source: "", target: "", from: "", to: "" };
let detected = ""; // the language that the server found, where none is chosen
let looking = null; // the request for a trace that is under way

function say(name, ...values) {
  const text = SAYS[ui][name];
  return typeof text === "function" ? text(...values) : text;
}

function nameOf(code) {
  try {
    return new Intl.DisplayNames([ui], { type: "language" }).of(code.replace("_", "-")) || code;
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
  if (text) $("source").value = text;
  count();
  translate();
}

/** Languages and text of a link: #en/de/text, as in the links of other translators. */
function linked() {
  const [from, to, ...text] = location.hash.slice(1).split("/");
  const known = settings.pairs.some(([src, tgt]) => tgt === to && (from === "auto" || src === from));
  if (!known || !text.length) return;
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
  if (asking) asking.abort();
  const text = $("source").value;
  if (!text.trim()) {
    show(null);
    return;
  }
  const mine = (asking = new AbortController());
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
    const found = await answer.json();
    if (mine !== asking) return;
    $("access").hidden = answer.status !== 401 && answer.status !== 403;
    $("terms-found").textContent = found.glossary ? say("terms", found.glossary.read, found.glossary.found) : "";
    if (answer.ok) show(found.translations[0], asked.text, found.source, found.target);
    else show(null, "", "", "", found.error.message);
  } catch (error) {
    if (error.name !== "AbortError" && mine === asking) show(null, "", "", "", say("offline"));
  }
}

function show(found, source = "", from = "", to = "", problem = "") {
  said = found ? found.text : "";
  $("result").textContent = said;
  $("result").classList.remove("old");
  $("state").textContent = "";
  detected = from;
  $("swap").hidden = !canSwap();
  for (const id of ["clear", "share"]) $(id).disabled = !$("source").value;
  $("copy").disabled = !said;
  $("detected").textContent = found && $("from").value === "auto" ? say("detected", nameOf(from)) : "";
  $("confidence").textContent = found && found.quality ? say("sure", found.quality) : "";
  $("confidence").title = found && found.quality ? say("sure-help") : "";
  $("notes").replaceChildren(...(problem ? [problem] : ((found && found.notes) || []).map(
    (note) => (note.line ? `${note.line.replace("line", say("line"))}: ` : "") + note.text)).map((text) => element("li", text)));
  const others = (found && found.alternatives) || [];
  $("others").hidden = !others.length;
  $("alternatives").replaceChildren(...others.map((one) => {
    const item = document.createElement("li");
    item.append(element("span", one.text), element("small", one.score.toFixed(2).replace("-", "\u2212")));
    return item;
  }));
  lines(found ? source : "", from, to);
}

function ask(route, asked, signal) {
  const headers = { "content-type": "application/json" };
  if (key) headers.authorization = `Bearer ${key}`;
  return fetch(route, { method: "POST", headers, body: JSON.stringify(asked), signal });
}

// --- what the model looked at: the explorer, with the server as its model ---------------------------------------------

async function json(answer) {
  const found = await answer.json();
  if (!answer.ok) throw new Error(found.error.message);
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
    const answer = await fetch(`explain?${asked}`, { headers: key ? { authorization: `Bearer ${key}` } : {} });
    if (!answer.ok) throw new Error((await answer.json()).error.message);
    return answer.text();
  },
});

/** Which line to look at, where there are several; those without letters are no choice. */
function lines(source, from, to) {
  const [own, out] = [source.split(/\r?\n/), said.split(/\r?\n/)];
  const found = own.map((line, i) => [line.trim(), (out[i] || "").trim()]).filter((each) => each.every(Boolean));
  $("why").hidden = !found.length;
  $("lines").hidden = found.length < 2;
  $("line").replaceChildren(...found.map(([line], i) => Object.assign(element("option", line.slice(0, 80)), { value: i })));
  $("line").onchange = () => look(...found[$("line").value], from, to);
  if (looking) looking.abort();
  if (found.length) look(...found[0], from, to);
}

async function look(source, target, from, to) {
  if (looking) looking.abort();
  const mine = (looking = new AbortController());
  const short = Math.max(source.length, target.length) <= settings.explained;
  $("why-not").textContent = short ? "" : say("long", settings.explained);
  $("explorer").hidden = !short;
  if (!short) return;
  try {
    const found = await json(await ask("v1/explain", { text: source, translation: target, source: from, target: to }, mine.signal));
    if (mine !== looking) return;
    looked = { source, target, from, to };
    view.show(found);
  } catch (error) {
    if (error.name === "AbortError" || mine !== looking) return;
    $("why-not").textContent = error.message;
    $("explorer").hidden = true;
  }
}

// --- documents: uploaded, asked after, fetched ------------------------------------------------------------------------

let sending = null; // the document that is under way
const ASK_AGAIN_MS = 500;

/** The headings of a table, from its first row. */
function headings(text, tabs) {
  const [row] = text.replace(/^\ufeff/, "").match(/^(?:"(?:[^"]|"")*"|[^"\n])*/);
  const by = tabs ? "\t" : [",", ";", "\t"].sort((a, b) => row.split(b).length - row.split(a).length)[0];
  const cells = [...row.trimEnd().matchAll(new RegExp(`(?:^|${by})("(?:[^"]|"")*"|[^${by}]*)`, "g"))].map((found) => found[1]);
  return cells.map((cell) => (!tabs && cell.startsWith('"') ? cell.slice(1, -1).replaceAll('""', '"') : cell));
}

/** Translate a document; of a table with several columns one is chosen first. */
async function take(chosen) {
  $("columns").replaceChildren();
  const [, kind] = /\.(csv|tsv)$/i.exec(chosen.name) || [];
  const names = kind ? headings(await chosen.slice(0, 1 << 16).text(), kind.toLowerCase() === "tsv") : [];
  if (names.length < 2) {
    translateDocument(chosen);
    return;
  }
  if (sending) sending.abort();
  $("document").open = true;
  $("document-result").hidden = true;
  $("document-left").replaceChildren();
  $("document-state").textContent = say("columns", chosen.name);
  for (const name of names) {
    const button = element("button", name);
    button.type = "button";
    button.addEventListener("click", () => { $("columns").replaceChildren(); translateDocument(chosen, name); });
    $("columns").append(button);
  }
  $("columns").firstChild.focus();
}

async function translateDocument(chosen, column) {
  if (sending) sending.abort();
  const mine = (sending = new AbortController());
  const [link, tell] = [$("document-result"), (text) => { $("document-state").textContent = text; }];
  const headers = key ? { authorization: `Bearer ${key}` } : {};
  if (link.href) URL.revokeObjectURL(link.href);
  link.hidden = true;
  $("document-left").replaceChildren();
  $("document").open = true;
  tell(say("reading", chosen.name));
  const form = new FormData();
  form.append("target_lang", $("to").value);
  if ($("from").value !== "auto") form.append("source_lang", $("from").value);
  if (column !== undefined) form.append("column", column);
  form.append("file", chosen);
  const told = async (answer) => {
    const found = await answer.json();
    $("access").hidden = answer.status !== 403;
    if (!answer.ok) throw new Error(found.message);
    return found;
  };
  try {
    const made = await told(await fetch("v2/document", { method: "POST", headers, body: form, signal: mine.signal }));
    const owned = { method: "POST", headers: { ...headers, "content-type": "application/json" },
      body: JSON.stringify({ document_key: made.document_key }), signal: mine.signal };
    const where = `v2/document/${made.document_id}`;
    tell(say("waiting", chosen.name));
    let status = await told(await fetch(where, owned));
    while (status.status !== "done" && status.status !== "error") {
      await new Promise((resolve) => { setTimeout(resolve, ASK_AGAIN_MS); });
      status = await told(await fetch(where, owned));
    }
    if (status.status === "error") throw new Error(status.error_message);
    const answer = await fetch(`${where}/result`, owned);
    if (!answer.ok) throw new Error((await answer.json()).message);
    link.href = URL.createObjectURL(await answer.blob());
    link.download = chosen.name.replace(/(\.[^.]*)?$/, (suffix) => `.${$("to").value}${suffix}`);
    link.textContent = say("save", link.download);
    link.hidden = false;
    const { found, translated, left } = status.segments;
    tell(say("finished", found, translated));
    $("document-left").replaceChildren(...left.map((one) => element("li", say("kept", one.text, one.why))));
  } catch (error) {
    if (error.name !== "AbortError" && mine === sending) tell(error instanceof TypeError ? say("offline") : error.message);
  }
}

/** Whether something that is dragged over the page is a file. */
function hasFile(event) {
  return [...(event.dataTransfer ? event.dataTransfer.types : [])].includes("Files");
}

$("file").accept = settings.documents.join(",");
$("file").addEventListener("change", () => {
  const [chosen] = $("file").files;
  if (chosen) take(chosen);
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
  if (event.dataTransfer.files.length) take(event.dataTransfer.files[0]);
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
$("language").addEventListener("click", () => { ui = ui === "zh" ? "en" : "zh"; speak(); translate(); });
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
});
speak();
show(null);
linked();
