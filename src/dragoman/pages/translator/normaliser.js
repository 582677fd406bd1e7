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

  /** A text as its normalised characters, in the order of the text. */
  parts(text) {
    const bytes = new TextEncoder().encode(this.compose ? text.normalize("NFC") : text), parts = [];
    for (let at = 0; at < bytes.length;) {
      const [size, by] = (this.map && this.map.longest(bytes, at)) || [widthOf(bytes[at]), null];
      parts.push(new TextDecoder("utf-8", { ignoreBOM: true }).decode(by || bytes.subarray(at, at + size)));
      at += size;
    }
    return parts;
  }

  /** The text as it is cut; nothing if nothing is left of it. */
  normalise(text) {
    const parts = this.parts(text);
    let first = 0;
    while (this.trim && parts[first] === " ") first++;
    if (first === parts.length) return "";
    let normal = this.prefix ? " " : "", afterSpace = this.trim;
    for (const part of parts.slice(first)) {
      const kept = afterSpace ? part.replace(/^ +/, "") : part;
      normal += kept;
      if (kept) afterSpace = this.trim && kept.endsWith(" ");
    }
    let end = normal.length;
    while (this.trim && end && " \u2581".includes(normal[end - 1])) end--;
    normal = normal.slice(0, end);
    return normal.replaceAll(" ", SPACE);
  }
}

/** How many bytes a character has whose first byte this is. */
function widthOf(byte) {
  return byte < 0x80 ? 1 : byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : 4;
}
