"use strict";
// One translation on a page of its own: what was recorded is all there is, and nothing is fetched from elsewhere.

const data = JSON.parse(document.getElementById("data").textContent);
const recorded = { answers: false, trace: async () => data.trace };
let ui = (navigator.language || "en").startsWith("zh") ? "zh" : "en";

/** This page as it came: what the explorer has made is made again where it is opened. */
async function ownText() {
  const copy = document.cloneNode(true);
  copy.getElementById("explorer").replaceChildren();
  return `<!doctype html>\n${copy.documentElement.outerHTML}`;
}

const view = explorer(document.getElementById("explorer"), recorded, {
  scale: data.scale, language: ui, page: ownText,
});

function speak() {
  document.documentElement.lang = ui === "zh" ? "zh-Hans" : "en";
  document.getElementById("title").textContent = EXPLORER_SAYS[ui].title;
  document.getElementById("language").textContent = EXPLORER_SAYS[ui].other;
  document.getElementById("theme").textContent = EXPLORER_SAYS[ui][document.documentElement.dataset.theme === "dark" ? "light" : "dark"];
}

function setTheme(dark) {
  document.documentElement.dataset.theme = dark ? "dark" : "light";
  speak();
  view.redraw();
}

const dark = matchMedia("(prefers-color-scheme: dark)");
dark.addEventListener("change", () => setTheme(dark.matches));
document.getElementById("theme").onclick = () => setTheme(document.documentElement.dataset.theme !== "dark");
document.getElementById("language").onclick = () => { ui = ui === "zh" ? "en" : "zh"; speak(); view.speak(ui); };
setTheme(dark.matches);
view.show(data.trace, data.state);
