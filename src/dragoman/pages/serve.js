"use strict";
// Translate as you type; which word went where; other translations. Text of people goes into textContent only.
const SAYS = {
  en: {
    from: "From", to: "To", clear: "Clear", copy: "Copy", copied: "Copied", why: "Why? The attention",
    result: "Translation", others: "Other translations", words: "Which word went where",
    "words-help": "Point at a word, or Tab to it: its partners light up. Read off the attention, a clue and not a proof.",
    key: "API key", "use-key": "Use", working: "translating …", detect: "Detect", other: "中文", dark: "Dark", light: "Light",
    placeholder: "Type or paste text", count: (n, most) => `${n.toLocaleString("en")} of ${most.toLocaleString("en")} characters`,
    sure: (share) => `Confidence ${Math.round(100 * share)} of 100`, detected: (name) => `${name}, it seems`,
    offline: "The server does not answer.", line: "line",
  },
  zh: {
    from: "源语言", to: "目标语言", clear: "清空", copy: "复制", copied: "已复制", why: "为什么？看注意力",
    result: "译文", others: "其他译文", words: "词与词的对应",
    "words-help": "指向一个词，或用 Tab 键移到它上面，与它对应的词就会亮起。对应关系取自注意力，只是线索，不是证明。",
    key: "API 密钥", "use-key": "使用", working: "正在翻译……", detect: "自动检测", other: "English", dark: "深色", light: "浅色",
    placeholder: "输入或粘贴文本", count: (n, most) => `${n.toLocaleString("en")} / ${most.toLocaleString("en")} 字符`,
    sure: (share) => `置信度 ${Math.round(100 * share)}（满分 100）`, detected: (name) => `似乎是${name}`,
    offline: "服务器没有响应。", line: "行",
  },
};
const PAUSE_MS = 300;
const $ = (id) => document.getElementById(id);
const settings = JSON.parse($("settings").textContent);
const names = new Map(settings.names);
const unspaced = new Set(settings.unspaced);
let ui = (navigator.language || "en").startsWith("zh") ? "zh" : "en";
let key = "", asking = null, timer = 0, said = "";

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

function speak() {
  document.documentElement.lang = ui === "zh" ? "zh-Hans" : "en";
  for (const each of document.querySelectorAll("[data-say]")) each.textContent = say(each.dataset.say);
  for (const each of document.querySelectorAll("[data-say-label]")) each.setAttribute("aria-label", say(each.dataset.sayLabel));
  $("source").placeholder = say("placeholder");
  $("language").textContent = say("other");
  fill($("from"), [...(settings.sources.length > 1 ? ["auto"] : []), ...settings.sources]);
  targets();
  theme(document.documentElement.dataset.theme);
  count();
}

function theme(wanted) {
  const dark = wanted ? wanted === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  if (wanted) document.documentElement.dataset.theme = wanted;
  $("theme").textContent = say(dark ? "light" : "dark");
  $("theme").onclick = () => theme(dark ? "light" : "dark");
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
  const asked = { text, source: $("from").value || "auto", target: $("to").value, alignments: true };
  if (!text.trim().includes("\n")) {
    asked.text = text.trim();
    asked.n_best = Math.min(4, settings.beam);
  }
  try {
    const headers = { "content-type": "application/json" };
    if (key) headers.authorization = `Bearer ${key}`;
    const answer = await fetch("v1/translate", { method: "POST", headers, body: JSON.stringify(asked), signal: mine.signal });
    const found = await answer.json();
    if (mine !== asking) return;
    $("access").hidden = answer.status !== 401 && answer.status !== 403;
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
  $("detected").textContent = found && $("from").value === "auto" ? say("detected", nameOf(from)) : "";
  $("confidence").textContent = found && found.confidence !== undefined ? say("sure", found.confidence) : "";
  $("notes").replaceChildren(...(problem ? [problem] : ((found && found.notes) || []).map(
    (note) => (note.line ? `${note.line.replace("line", say("line"))}: ` : "") + note.text)).map((text) => element("li", text)));
  const others = (found && found.alternatives) || [];
  $("others").hidden = !others.length;
  $("alternatives").replaceChildren(...others.map((one) => {
    const item = document.createElement("li");
    item.append(element("span", one.text), element("small", one.score.toFixed(2)));
    return item;
  }));
  const why = $("why");
  why.hidden = !found || source.includes("\n") || source.length > 400 || !settings.explain;
  why.href = `explain?${new URLSearchParams({ text: source, source: from, target: to })}`;
  align(found, source, from, to);
}

function words(line, lang) {
  return unspaced.has(lang.split(/[-_]/)[0]) ? [...line].filter((c) => c.trim()) : line.split(/\s+/).filter(Boolean);
}

function align(found, source, from, to) {
  $("lines").replaceChildren();
  const lines = found && found.alignment ? source.split(/\r?\n/) : [];
  const out = said.split(/\r?\n/);
  lines.forEach((line, i) => {
    const links = found.alignment[i] || [];
    if (!links.length) return;
    const made = document.createElement("div");
    made.className = "line";
    const sides = [[line, from], [out[i] || "", to]].map(([text, lang], side) => {
      const row = element("div", "", "words");
      row.lang = lang;
      words(text, lang).forEach((word, n) => {
        const chip = element("button", word, "word");
        chip.type = "button";
        const partners = links.filter((link) => link[side] === n).map((link) => link[1 - side]);
        const light = (on) => {
          chip.classList.toggle("at", on);
          const other = made.children[1 - side];
          for (const p of partners) if (other.children[p]) other.children[p].classList.toggle("lit", on);
        };
        chip.addEventListener("pointerenter", () => light(true));
        chip.addEventListener("pointerleave", () => light(false));
        chip.addEventListener("focus", () => light(true));
        chip.addEventListener("blur", () => light(false));
        row.append(chip);
      });
      return row;
    });
    made.append(...sides);
    $("lines").append(made);
  });
  $("aligned").hidden = !$("lines").children.length;
}

function soon() {
  count();
  clearTimeout(timer);
  timer = setTimeout(translate, PAUSE_MS);
}

$("source").addEventListener("input", soon);
$("from").addEventListener("change", () => { targets(); translate(); });
$("to").addEventListener("change", translate);
$("clear").addEventListener("click", () => { $("source").value = ""; count(); translate(); $("source").focus(); });
$("language").addEventListener("click", () => { ui = ui === "zh" ? "en" : "zh"; speak(); translate(); });
$("copy").addEventListener("click", async () => {
  try {
    await navigator.clipboard.writeText(said);
  } catch { // no secure context: select it for the reader's own copying
    getSelection().selectAllChildren($("result"));
    return;
  }
  $("copy").textContent = say("copied");
  setTimeout(() => { $("copy").textContent = say("copy"); }, 1500);
});
$("access").addEventListener("submit", (event) => {
  event.preventDefault();
  key = $("key").value.trim();
  translate();
});
speak();
