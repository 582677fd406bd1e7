"use strict";
// A page without a browser: as much of a document as the scripts of src/dragoman/pages touch. Nothing is drawn.
//
//   const { open, pass, find } = require(...);
//   open(folder, ["explorer.js", "serve.js"], { texts: { settings: "{}" } });   // run scripts, with texts of elements
//   fetch = async () => ...;                                                   // what a test replaces is global
//   await pass();                                                              // timers that wait, and their promises

const { readFileSync } = require("fs");
const { join } = require("path");
const { runInThisContext } = require("vm");

class FakeElement {
  constructor(tag) {
    Object.assign(this, { tag, children: [], dataset: {}, style: {}, attributes: {}, listeners: {}, outerHTML: "", text: "", chosen: null });
    const names = new Set();
    this.classList = {
      add: (...all) => all.forEach((name) => names.add(name)), remove: (name) => names.delete(name), contains: (name) => names.has(name),
      toggle: (name, isOn = !names.has(name)) => (isOn ? names.add(name) : names.delete(name)),
    };
  }

  get textContent() { return this.text + this.children.map((one) => one.textContent).join(""); }
  set textContent(text) { [this.text, this.children] = [String(text), []]; }
  get options() { return this.children; }
  get firstChild() { return this.children[0]; }
  get lastChild() { return this.children[this.children.length - 1]; }

  /** As in a select, the first option is chosen until another one is. */
  get value() { return this.chosen ?? (this.children.length ? String(this.children[0].value) : ""); }
  set value(value) { this.chosen = String(value); }

  append(...children) {
    for (const one of children) this.children.push(typeof one === "object" ? one : Object.assign(new FakeElement("#text"), { text: String(one) }));
  }
  replaceChildren(...children) {
    [this.text, this.children, this.chosen] = ["", [], null];
    this.append(...children);
  }
  setAttribute(name, value) { this.attributes[name] = value; }
  addEventListener(name, act) { (this.listeners[name] ||= []).push(act); }
  getAttribute(name) { return this.attributes[name] ?? null; }
  querySelectorAll() { return []; }
  getContext() { return new Proxy({}, { get: () => () => {}, set: () => true }); }
  focus() {}

  /** Let the listeners of an event act. */
  send(name) { return Promise.all((this.listeners[name] || []).map((act) => act({ preventDefault() {} }))); }
}

/** The first element below one for which something is true. */
function find(element, isWanted) {
  if (isWanted(element)) return element;
  for (const child of element.children) {
    const found = find(child, isWanted);
    if (found) return found;
  }
  return null;
}

const waiting = new Map(), wait = setImmediate;
let timers = 0;

/** Let promises be kept, then what waits for a time act, and promises once more. */
async function pass() {
  const settle = async () => { for (let i = 0; i < 5; i++) await new Promise((resume) => { wait(resume); }); };
  await settle();
  const due = [...waiting.values()];
  waiting.clear();
  due.forEach((act) => act());
  await settle();
}

/** Run scripts of a folder in a new page. texts: of elements by their id; stubs: globals that take the place of others. */
function open(folder, scripts, { texts = {}, hash = "", stubs = {} } = {}) {
  const elements = {}, page = new FakeElement("document"), of = (id) => (elements[id] ||= new FakeElement(id));
  for (const [id, text] of Object.entries(texts)) of(id).textContent = text;
  Object.assign(page, { getElementById: of, createElement: (tag) => new FakeElement(tag), documentElement: of("html"), body: of("body") });
  Object.defineProperty(globalThis, "navigator", { value: { language: "en" }, configurable: true });
  Object.assign(globalThis, {
    document: page, location: { hash, href: "http://localhost/" }, matchMedia: () => new FakeElement("query"), addEventListener() {},
    IntersectionObserver: class { constructor(act) { globalThis.appear = () => act([{ isIntersecting: true }]); } observe() {} },
    getComputedStyle: () => ({ getPropertyValue: () => "" }),
    Worker: class { postMessage() {} },
    setTimeout: (act) => { waiting.set(++timers, act); return timers; },
    clearTimeout: (number) => waiting.delete(number),
  });
  for (const name of scripts) {
    runInThisContext(readFileSync(join(folder, name), "utf8"), name);
    Object.assign(globalThis, stubs);
  }
  return of;
}

module.exports = { open, pass, find, FakeElement };
