"use strict";
// What the theme leaves out for readers without a mouse or without a screen: what scrolls can be reached by Tab, and the
// two side bars have names.
addEventListener("DOMContentLoaded", () => {
  const chinese = document.documentElement.lang.startsWith("zh");
  document.querySelector(".sidebar-drawer")?.setAttribute("aria-label", chinese ? "导航" : "Navigation");
  document.querySelector(".toc-drawer")?.setAttribute("aria-label", chinese ? "本页目录" : "On this page");
  const reach = () => {
    for (const one of document.querySelectorAll("pre, .table-wrapper, p:has(> img.wide)")) {
      if (one.scrollWidth > one.clientWidth) one.tabIndex = 0;
    }
  };
  reach();
  addEventListener("load", reach);
  addEventListener("resize", reach);
});

// The page of the paper: which parameter counts of Table 3 a vocabulary gives.
const ROWS = [
  ["base", {}, 65], ["B: d_k = 16", { hk: 128 }, 58], ["B: d_k = 32", { hk: 256 }, 60],
  ["C: N = 2", { n: 2 }, 36], ["C: N = 4", { n: 4 }, 50], ["C: N = 8", { n: 8 }, 80],
  ["C: d_model = 256", { d: 256, hk: 256, hv: 256 }, 28], ["C: d_model = 1024", { d: 1024, hk: 1024, hv: 1024 }, 168],
  ["C: d_ff = 1024", { f: 1024 }, 53], ["C: d_ff = 4096", { f: 4096 }, 90],
  ["big", { d: 1024, f: 4096, hk: 1024, hv: 1024 }, 213],
];
function parameters(vocabulary, change) {
  const { n, d, f, hk, hv } = { n: 6, d: 512, f: 2048, hk: 512, hv: 512, ...change };
  const attention = 2 * (d * hk + hk) + (d * hv + hv) + (hv * d + d);
  return vocabulary * d + n * (3 * attention + 2 * (2 * d * f + f + d) + 10 * d);
}
addEventListener("DOMContentLoaded", () => {
  const place = document.querySelector("div.vocabulary");
  if (!place) return;
  const chinese = document.documentElement.lang.startsWith("zh");
  const words = chinese
    ? ["词表大小", "表 3 的行", "印出的（百万）", "算出的（百万）", "相符", "行相符，共"]
    : ["Vocabulary", "row of Table 3", "printed, millions", "computed, millions", "fits", "rows fit, of"];
  const at = document.createElement("input");
  Object.assign(at, { type: "range", min: 34000, max: 43000, step: 50, value: 37000, id: "vocabulary-size" });
  const label = document.createElement("label");
  label.htmlFor = at.id;
  const table = document.createElement("table");
  table.className = "docutils";
  const head = table.createTHead().insertRow();
  for (const word of words.slice(1, 5)) {
    const cell = document.createElement("th");
    cell.scope = "col";
    cell.textContent = word;
    head.append(cell);
  }
  const body = table.createTBody();
  const total = document.createElement("p");
  total.setAttribute("role", "status");
  const show = () => {
    const vocabulary = Number(at.value);
    label.textContent = `${words[0]}: ${vocabulary.toLocaleString("en")}`;
    body.replaceChildren();
    let fitting = 0;
    for (const [name, change, printed] of ROWS) {
      const millions = parameters(vocabulary, change) / 1e6;
      const fits = Math.round(millions) === printed;
      fitting += fits;
      const row = body.insertRow();
      row.className = fits ? "fits" : "";
      for (const text of [name, printed, millions.toFixed(2), fits ? "✓" : "–"]) row.insertCell().textContent = text;
    }
    total.textContent = `${fitting} ${words[5]} ${ROWS.length}`;
  };
  at.addEventListener("input", show);
  place.append(label, at, total, table);
  show();
});
