"use strict";
// Translate as you type, and look at what the model did: the model runs beside the page, in a worker made of the scripts
// in it. Nothing is sent anywhere. Text of people goes into textContent only.

const SAYS = {
  en: {
    source: "Text to translate", result: "Translation", target: "Target language", clear: "Clear", copy: "Copy", copied: "Copied", why: "What the model looked at",
    choice: "Sentence to look at", private: "Nothing leaves this page.", other: "中文", dark: "Dark", light: "Light",
    loading: "Loading the model …", working: "translating …", placeholder: (name) => (name ? `Type or paste ${name}` : "Type or paste text"),
    took: (seconds, n) => `${n === 1 ? "1 sentence" : `${n} sentences`} in ${seconds.toFixed(seconds < 1 ? 2 : 1)} s`,
    long: (n) => `Sentences of more than ${n} subwords have no picture of their attention.`,
    broken: (reason) => `This file cannot translate here: ${reason}`, from: "Source", to: "Translation",
    changed: "The text has changed.", damaged: "it is damaged, so get it again",
    megabytes: (n) => `${n.toFixed(1)} MB in one file`, numbers: { float32: "32-bit numbers", int8: "8-bit numbers" }, bundle: (id) => `model ${id}`,
    made: (version) => `made with dragoman ${version}`,
    how: (beam) => `Your browser finds where sentences end (Intl.Segmenter); each is translated by itself, with ${beam === 1 ? "greedy search" : `a beam of ${beam}`}. Names, numbers and addresses are not checked: read what matters again.`,
  },
  zh: {
    source: "待译文本", result: "译文", target: "目标语言", clear: "清空", copy: "复制", copied: "已复制", why: "模型看了哪里",
    choice: "查看哪一句", private: "内容不会离开本页。", other: "English", dark: "深色", light: "浅色",
    loading: "正在载入模型……", working: "正在翻译……", placeholder: (name) => (name ? `输入或粘贴${name}` : "输入或粘贴文本"),
    took: (seconds, n) => `${n} 句，用时 ${seconds.toFixed(seconds < 1 ? 2 : 1)} 秒`,
    long: (n) => `超过 ${n} 个子词的句子不显示注意力。`,
    broken: (reason) => `此文件无法在这里翻译：${reason}`, from: "原文", to: "译文",
    changed: "文本已改动。", damaged: "文件已损坏，请重新获取",
    megabytes: (n) => `单个文件，${n.toFixed(1)} MB`, numbers: { float32: "32 位数值", int8: "8 位数值" }, bundle: (id) => `模型 ${id}`,
    made: (version) => `由 dragoman ${version} 生成`,
    how: (beam) => `断句由浏览器完成（Intl.Segmenter）；每句单独翻译，${beam === 1 ? "贪心搜索" : `束宽 ${beam}`}。专名、数字和地址不作核对，重要内容请再看一遍。`,
  },
};
const PAUSE_MS = 200;
const EXPLAINED = 100; // subwords: more of them cannot be told apart in a picture
const $ = (id) => document.getElementById(id);
const textOf = (id) => ($(id) ? $(id).textContent : ""); // a file that was cut has no weights
const content = JSON.parse($("content").textContent), shell = JSON.parse($("shell").textContent);
let ui = (navigator.language || "en").startsWith("zh") ? "zh" : "en";
let turn = 0, timer = 0, said = "", took = null, broken = null, looked = "", found = []; // of each sentence { text, ids, translation }

function say(name, ...values) {
  const text = SAYS[ui][name];
  return typeof text === "function" ? text(...values) : text;
}

function nameOf(code) {
  try {
    return code && (new Intl.DisplayNames([ui], { type: "language" }).of(langOf(code)) || code);
  } catch { // no code of a language
    return code;
  }
}

/** The text behind the # of the page's address, which a link may hold. */
function wanted(hash) {
  try {
    return decodeURIComponent(hash);
  } catch { // not encoded as addresses are
    return hash;
  }
}

/** The target language that is chosen, of a model with several; else nothing. */
const to = () => $("target").value;

// --- the worker ------------------------------------------------------------------------------------------------------

const worker = new Worker(URL.createObjectURL(new Blob([$("worker").textContent], { type: "text/javascript" })));
const waiting = new Map();
let number = 0;

worker.onmessage = ({ data }) => {
  const { resolve, reject } = waiting.get(data.number);
  waiting.delete(data.number);
  if (data.error === undefined) resolve(data.found);
  else reject(new Error(data.error));
};
worker.onerror = (event) => { if (!broken) fail(event); }; // a damaged worker fails after the page has said so

/** Promises what the worker answers; null if a later turn has made it needless. */
function ask(task, fields) {
  return new Promise((resolve, reject) => {
    waiting.set(++number, { resolve, reject });
    worker.postMessage({ number, turn, task, to: to(), lang: langOf(to() || content.tgt_lang), ...fields });
  });
}

function fail(error) {
  broken = error.message || String(error);
  $("state").textContent = say("broken", broken);
}

// --- the page --------------------------------------------------------------------------------------------------------

function speak() {
  const { src_lang: src, facts, decode } = content, tgt = to() || content.tgt_lang, own = SAYS[ui], explorerSays = EXPLORER_SAYS[ui];
  document.documentElement.lang = ui === "zh" ? "zh-Hans" : "en";
  for (const each of document.querySelectorAll("[data-say]")) each.textContent = say(each.dataset.say);
  for (const each of document.querySelectorAll("[data-say-label]")) each.setAttribute("aria-label", say(each.dataset.sayLabel));
  $("pair").textContent = document.title = src && tgt ? `${nameOf(src)} → ${nameOf(tgt)}` : "dragoman";
  $("from").textContent = nameOf(src) || own.from;
  $("to").textContent = content.targets ? own.target : nameOf(tgt) || own.to;
  for (const option of $("target").options) option.textContent = nameOf(option.value);
  $("source").lang = langOf(src);
  $("result").lang = langOf(tgt);
  $("source").placeholder = say("placeholder", nameOf(src));
  $("language").textContent = own.other;
  const bytes = document.documentElement.outerHTML.length; // nearly all of it is ASCII
  $("about").textContent = [explorerSays.parameters(facts.parameters), own.numbers[facts.quantization], say("megabytes", bytes / 1e6),
    facts.step && explorerSays.steps(facts.step), facts.bleu !== undefined && explorerSays.bleu(facts.bleu),
    facts.bundle && say("bundle", facts.bundle.slice(0, 8)), say("made", facts.dragoman)].filter(Boolean).join(" · ");
  $("how").textContent = say("how", decode.beamSize);
  laboratory.speak(ui);
  if (broken !== null) $("state").textContent = say("broken", broken);
  $("took").textContent = took ? say("took", ...took) : "";
  theme(document.documentElement.dataset.theme);
  view.speak(ui);
}

function theme(wanted) {
  const dark = wanted ? wanted === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  if (wanted) document.documentElement.dataset.theme = wanted;
  $("theme").textContent = say(dark ? "light" : "dark");
  $("theme").onclick = () => { theme(dark ? "light" : "dark"); redraw(); };
}

function redraw() {
  view.redraw();
  laboratory.redraw();
}

/** The whole text, sentence by sentence; a later change of the text ends it. No text is done without the worker. */
async function translate() {
  if (broken !== null) return;
  const mine = ++turn, begun = performance.now(), text = $("source").value;
  $("state").textContent = text.trim() ? say("working") : "";
  $("result").classList.toggle("old", Boolean(text.trim()));
  const rows = [], sentences = [];
  try {
    for (const parts of (text.trim() && (await ask("lines", { text }))) || []) {
      rows.push("");
      for (const { text: sentence, space } of parts) {
        const one = sentence ? await ask("sentence", { text: sentence }) : null;
        if (mine !== turn) return;
        if (one) sentences.push({ text: sentence, ids: one.ids, translation: one.text });
        rows[rows.length - 1] += space + (one ? one.text : "");
        if (one) $("result").textContent = said = rows.join("\n");
      }
    }
  } catch (error) {
    if (mine === turn) $("state").textContent = error.message;
    return;
  }
  if (mine !== turn) return;
  said = $("result").textContent = rows.join("\n");
  took = sentences.length ? [(performance.now() - begun) / 1000, sentences.length] : null;
  $("took").textContent = took ? say("took", ...took) : "";
  $("state").textContent = "";
  $("result").classList.remove("old");
  choose(sentences);
}

// --- what the model looked at: the explorer, with the worker as its model -----------------------------------------------

/** The trace of a sentence whose translation begins with these ids. */
async function trace(text, prefix) {
  const answer = await ask("trace", { text, prefix });
  if (answer === null) throw new Error(say("changed"));
  return answer;
}

const answers = Object.fromEntries(["inside", "rewrite", "other"].map((task) => [task, (fields) => ask(task, fields)]));
const laboratory = inside($("inside"), answers, { scale: shell.scale, signs: shell.signs, language: ui });
const view = explorer($("explorer"), { answers: true, trace }, {
  scale: shell.scale, language: ui, page: async () => shell.page, looked: (seen) => laboratory.look(seen),
});

/** Which sentence to look at, where there are several: the one before, if they are the same. */
function choose(sentences) {
  const before = looked === all(sentences) ? $("sentence").value : "0";
  found = sentences;
  $("why").hidden = !found.length;
  $("choice").hidden = found.length < 2;
  $("sentence").replaceChildren(...found.map(({ text }, i) => Object.assign(document.createElement("option"), { textContent: [...text].slice(0, 80).join(""), value: i })));
  $("sentence").value = before;
  if (found.length && looked !== all(found)) look(0);
}

const all = (sentences) => sentences.map(({ text }) => text).join("\n");

async function look(i) {
  const { ids, text } = found[i], short = ids.length <= EXPLAINED;
  $("why-not").textContent = short ? "" : say("long", EXPLAINED);
  $("explorer").hidden = $("inside").hidden = !short;
  looked = ""; // a change of the text may end it before it is shown
  if (!short) return;
  try {
    const trace = await ask("trace", { text, prefix: [...ids, content.special.eos], nForced: 0 });
    if (trace && found[i] && found[i].text === text) {
      view.show(trace);
      looked = all(found);
    }
  } catch (error) {
    $("why-not").textContent = error.message;
    $("explorer").hidden = $("inside").hidden = true;
  }
}

$("source").addEventListener("input", () => {
  turn++; // what is shown, or still being translated, is of an earlier text
  $("result").classList.add("old");
  clearTimeout(timer);
  timer = setTimeout(translate, PAUSE_MS);
});
$("sentence").addEventListener("change", () => look(Number($("sentence").value)));
$("clear").addEventListener("click", () => { clearTimeout(timer); $("source").value = ""; translate(); $("source").focus(); });
$("language").addEventListener("click", () => { ui = ui === "zh" ? "en" : "zh"; speak(); });
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { theme(document.documentElement.dataset.theme); redraw(); });
$("copy").addEventListener("click", async () => {
  try {
    await navigator.clipboard.writeText(said);
  } catch { // no permission: select it for the reader's own copying
    getSelection().selectAllChildren($("result"));
    return;
  }
  $("copy").textContent = say("copied");
  setTimeout(() => { $("copy").textContent = say("copy"); }, 1500);
});
if (content.targets) {
  $("target").hidden = false;
  $("target").replaceChildren(...Object.keys(content.targets).map((code) => Object.assign(document.createElement("option"), { value: code })));
  $("target").addEventListener("change", () => { looked = ""; choose([]); speak(); translate(); });
}
if (location.hash.length > 1 && !$("source").value) $("source").value = wanted(location.hash.slice(1));
speak();
$("state").textContent = say("loading");
addEventListener("DOMContentLoaded", () => { // the weights come last, so that the page is there before them
  speak();
  if (changedParts(SUMS, textOf).length) return fail(new Error(say("damaged")));
  $("damaged").remove(); // it appears where no changed script may run
  return ask("load", { content, weights: textOf("weights") }).then(() => {
    $("state").textContent = "";
    if ($("source").value.trim()) translate(); // a reader may have been quicker, or the browser has kept the text
  }, fail);
});
