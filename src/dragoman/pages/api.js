"use strict";
/** Sends the request of a form to this server, and shows the answer as text. */
for (const form of document.querySelectorAll("form.try")) {
  let newest = null; // the last request of this form; answers to earlier ones may come after its own
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const method = form.closest("details").dataset.method;
    const [state, shown] = [form.querySelector("output"), form.querySelector("pre")];
    const headers = {};
    const key = document.getElementById("key").value.trim();
    if (key) headers.authorization = `Bearer ${key}`;
    const body = form.elements.body ? form.elements.body.value : undefined;
    if (body !== undefined) headers["content-type"] = "application/json";
    const path = form.elements.path.value.replace(/^\/+/, "");
    state.textContent = "sent …";
    const mine = (newest = {}), began = performance.now();
    try {
      const answer = await fetch(new URL(`./${path}`, location.href), { method, headers, body });
      const text = await answer.text();
      if (mine !== newest) return;
      state.textContent = `${answer.status} after ${Math.round(performance.now() - began)} ms`;
      shown.textContent = pretty(text);
    } catch (error) {
      if (mine !== newest) return;
      state.textContent = "";
      shown.textContent = String(error.message);
    }
    shown.hidden = false;
  });
}
document.getElementById("access").addEventListener("submit", (event) => event.preventDefault());

function pretty(text) {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}
