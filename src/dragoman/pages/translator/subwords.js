"use strict";
// Text to subword ids and back, exactly as SentencePiece does it (https://github.com/google/sentencepiece, src/: the
// files named below).

const UNK_PENALTY = 10; // unigram_model.cc

class Subwords {
  /**
   * kind: "bpe" or "unigram". normaliser: what Normaliser takes. pieces: what each id is written as. scores: Float32Array.
   * normal, unused: ids that texts are cut into, and those that only decode. bytes: the ids of 0x00 to 0xFF, or none.
   * special: { pad, unk, bos, eos }. silent: other ids that put nothing into a text.
   */
  constructor({ kind, normaliser, pieces, scores, unused, bytes, special, silent }) {
    Object.assign(this, { kind, pieces, scores, bytes, special, unused: new Set(unused), normaliser: new Normaliser(normaliser) });
    this.silent = new Set([special.pad, special.bos, special.eos, ...silent]);
    this.values = new Map(bytes.map((id, value) => [id, value]));
    const reserved = new Set([...Object.values(special), ...bytes]);
    this.ids = new Map(pieces.map((piece, id) => [piece, id]).filter(([, id]) => !reserved.has(id)));
    this.longest = [...this.ids.keys()].reduce((most, piece) => Math.max(most, [...piece].length), 0); // characters
    const usual = [...this.ids.values()].filter((id) => !this.unused.has(id));
    this.unknownScore = Math.fround(usual.reduce((least, id) => Math.min(least, scores[id]), Infinity) - UNK_PENALTY);
  }

  /** Cut a text; what it has no piece for becomes bytes, or one unk for each run (sentencepiece_processor.cc). */
  encode(text) {
    const characters = [...this.normaliser.normalise(text)], ids = [];
    let unknown = false;
    for (const [piece, id] of this.kind === "bpe" ? this.merged(characters) : this.likeliest(characters)) {
      if (id !== this.special.unk) ids.push(id);
      else if (this.bytes.length) for (const value of new TextEncoder().encode(piece)) ids.push(this.bytes[value]);
      else if (!unknown) ids.push(id);
      unknown = id === this.special.unk;
    }
    return ids;
  }

  /** Byte pairs (bpe_model.cc): of all neighbours that make a piece those of the best score are merged, the leftmost first. */
  merged(characters) {
    const symbols = characters.map((piece, i) => ({ piece, before: i - 1, after: i + 1 < characters.length ? i + 1 : -1 }));
    const heap = new Heap((a, b) => a.score > b.score || (a.score === b.score && a.left < b.left));
    const halves = new Map(); // of unused pieces, which are taken apart again
    const offer = (left, right) => {
      if (left < 0 || right < 0) return;
      const piece = symbols[left].piece + symbols[right].piece, id = this.ids.get(piece);
      if (id === undefined) return;
      heap.push({ left, right, score: this.scores[id], size: piece.length });
      if (this.unused.has(id)) halves.set(piece, [symbols[left].piece, symbols[right].piece]);
    };
    for (let i = 1; i < symbols.length; i++) offer(i - 1, i);
    for (let top = heap.pop(); top; top = heap.pop()) {
      const [left, right] = [symbols[top.left], symbols[top.right]];
      if (!left.piece || !right.piece || left.piece.length + right.piece.length !== top.size) continue; // merged otherwise
      left.piece += right.piece;
      left.after = right.after;
      if (right.after >= 0) symbols[right.after].before = top.left;
      right.piece = "";
      offer(left.before, top.left);
      offer(top.left, left.after);
    }
    const cut = (piece) => {
      const id = this.ids.get(piece) ?? this.special.unk;
      return this.unused.has(id) && halves.has(piece) ? halves.get(piece).flatMap(cut) : [[piece, id]];
    };
    return symbols.flatMap(({ piece }) => (piece ? cut(piece) : []));
  }

  /** The likeliest cut of a unigram model (unigram_model.cc, EncodeOptimized), whose sums are rounded to 32 bits. */
  likeliest(characters) {
    const best = characters.map(() => null); // of each place the best cut that ends behind it: { score, start, id }
    const reach = (start, end, id, score) => {
      if (best[end - 1] === null || score > best[end - 1].score) best[end - 1] = { score: Math.fround(score), start, id };
    };
    for (let start = 0; start < characters.length; start++) {
      const here = start ? best[start - 1].score : 0;
      let piece = "", single = false;
      for (let end = start + 1; end <= Math.min(characters.length, start + this.longest); end++) {
        piece += characters[end - 1];
        const id = this.ids.get(piece);
        if (id === undefined || this.unused.has(id)) continue;
        reach(start, end, id, here + this.scores[id]);
        single ||= end === start + 1;
      }
      if (!single) reach(start, start + 1, this.special.unk, Math.fround(here + this.unknownScore));
    }
    const cut = [];
    for (let end = characters.length; end > 0; end = best[end - 1].start)
      cut.push([characters.slice(best[end - 1].start, end).join(""), best[end - 1].id]);
    return cut.reverse();
  }

  /** Join subwords to a text. Bytes that form no character become U+FFFD. */
  decode(ids) {
    const { prefix, trim } = this.normaliser;
    let text = "", bytes = [], begun = !prefix && !trim; // a space at the beginning is the normaliser's
    const flush = () => {
      text += characters(Uint8Array.from(bytes));
      bytes = [];
    };
    for (const id of ids) {
      if (this.silent.has(id)) continue;
      if (this.values.has(id)) {
        bytes.push(this.values.get(id));
        continue;
      }
      flush();
      begun ||= text !== "";
      const piece = id === this.special.unk ? " \u2047 " : this.pieces[id];
      text += (begun ? piece : piece.replace(SPACE_AT_START, "")).replaceAll(SPACE, " ");
      begun ||= piece.startsWith(SPACE) && !trim;
    }
    flush();
    return text;
  }

  /** What an id puts into a text, as bytes. */
  spelled(id) {
    if (this.silent.has(id)) return new Uint8Array();
    if (this.values.has(id)) return Uint8Array.of(this.values.get(id));
    return new TextEncoder().encode(id === this.special.unk ? " \u2047 " : this.pieces[id].replaceAll(SPACE, " "));
  }
}

const SPACE_AT_START = /^\u2581/;

/** Bytes as text: each byte that belongs to no character becomes U+FFFD, as in SentencePiece's DecodeUTF8. */
function characters(bytes) {
  const strict = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
  let text = "";
  for (let at = 0; at < bytes.length;) {
    const size = widthOf(bytes[at]);
    try {
      text += strict.decode(bytes.subarray(at, at + size));
      at += size;
    } catch {
      text += "\ufffd";
      at += 1;
    }
  }
  return text;
}

/** A queue whose first is before all others. */
class Heap {
  constructor(isBefore) {
    this.isBefore = isBefore;
    this.items = [];
  }

  push(item) {
    const { items } = this;
    let i = items.push(item) - 1;
    for (let up = (i - 1) >> 1; i > 0 && this.isBefore(item, items[up]); i = up, up = (i - 1) >> 1) items[i] = items[up];
    items[i] = item;
  }

  pop() {
    const { items } = this, first = items[0], last = items.pop();
    if (!items.length) return first;
    let i = 0;
    for (let down = 1; down < items.length; down = 2 * i + 1) {
      if (down + 1 < items.length && this.isBefore(items[down + 1], items[down])) down++;
      if (!this.isBefore(items[down], last)) break;
      items[i] = items[down];
      i = down;
    }
    items[i] = last;
    return first;
  }
}
