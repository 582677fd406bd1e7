"use strict";
// What happens to a text before it is cut: our normalisation composes its characters (data/normalisation.py), then
// SentencePiece replaces characters by the map that is in the model, and spaces by U+2581 (its normalizer.cc).

const SPACE = "\u2581";

/** One of SentencePiece's maps: a double-array trie of what is replaced (darts-clone), and what it is replaced by. */
class CharacterMap {
  constructor(bytes) {
    const view = new DataView(bytes.buffer, bytes.byteOffset), size = view.getUint32(0, true);
    this.units = Uint32Array.from({ length: size / 4 }, (_, i) => view.getUint32(4 + 4 * i, true));
    this.texts = bytes.subarray(4 + size);
  }

  /** The longest beginning of the bytes that is replaced: [how many bytes, what by], or null. */
  longest(bytes, start) {
    const offset = (unit) => (unit >>> 10) << ((unit & 512) >>> 6);
    let at = offset(this.units[0]), found = null;
    for (let i = start; i < bytes.length; i++) {
      at ^= bytes[i];
      const unit = this.units[at];
      if (unit === undefined || (unit & 0x800000ff) >>> 0 !== bytes[i]) break; // its label is another byte
      at ^= offset(unit);
      if ((unit >>> 8) & 1) found = [i + 1 - start, this.units[at] & 0x7fffffff];
    }
    return found && [found[0], this.texts.subarray(found[1], this.texts.indexOf(0, found[1]))];
  }
}

class Normaliser {
  /**
   * map: base64, "" for none. prefix: whether a space stands before each text. trim: whether runs of spaces become one.
   * compose: whether characters are composed before (data/normalisation.py).
   */
  constructor({ map, prefix, trim, compose }) {
    Object.assign(this, { prefix, trim, compose, map: map ? new CharacterMap(fromBase64(map)) : null });
  }

  /** The text with its characters composed, and the place of each code unit in the text; that of a letter, for its marks. */
  composed(text) {
    if (!this.compose || text.normalize("NFC") === text) return [text, (unit) => unit];
    const places = [];
    let composed = "";
    for (const { 0: cluster, index } of text.matchAll(CLUSTER)) {
      composed += cluster.normalize("NFC");
      while (places.length < composed.length) places.push(index);
    }
    return [composed, (unit) => places[unit]];
  }

  /** A text as its normalised characters, in the order of the text, each with its place. */
  parts(text) {
    const [composed, placeOf] = this.composed(text), bytes = new TextEncoder().encode(composed), parts = [];
    const decoded = (some) => new TextDecoder("utf-8", { ignoreBOM: true }).decode(some);
    for (let at = 0, unit = 0; at < bytes.length;) {
      const [size, by] = (this.map && this.map.longest(bytes, at)) || [widthOf(bytes[at]), null];
      const old = decoded(bytes.subarray(at, at + size));
      parts.push([by ? decoded(by) : old, placeOf(unit)]);
      at += size;
      unit += old.length;
    }
    return parts;
  }

  /** The characters of the text as it is cut, each with its place in the text; none if nothing is left of it. */
  located(text) {
    const parts = this.parts(text);
    let first = 0;
    while (this.trim && first < parts.length && parts[first][0] === " ") first++;
    if (first === parts.length) return [];
    const characters = this.prefix ? [[" ", parts[first][1]]] : [];
    let afterSpace = this.trim;
    for (const [part, place] of parts.slice(first)) {
      const kept = afterSpace ? part.replace(/^ +/, "") : part;
      for (const character of kept) characters.push([character, place]);
      if (kept) afterSpace = this.trim && kept.endsWith(" ");
    }
    while (this.trim && characters.length && " \u2581".includes(characters[characters.length - 1][0])) characters.pop();
    return characters.map(([character, place]) => [character === " " ? SPACE : character, place]);
  }

  /** The text as it is cut; nothing if nothing is left of it. */
  normalise(text) {
    return this.located(text).map(([character]) => character).join("");
  }
}

const CLUSTER = /[^\p{M}\u1161-\u1175\u11a8-\u11c2]?[\p{M}\u1161-\u1175\u11a8-\u11c2]*/gu; // what may be composed with its beginning

/** How many bytes a character has whose first byte this is. */
function widthOf(byte) {
  return byte < 0x80 ? 1 : byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : 4;
}
