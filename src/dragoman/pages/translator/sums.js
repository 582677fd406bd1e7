"use strict";
// Is the file as it was written? The policy of the page lets no changed script run; these sums are of all the rest.

/** CRC-32 of the UTF-8 bytes of a text. */
function crc32(text) {
  const table = Uint32Array.from({ length: 256 }, (_, i) => {
    for (let bit = 0; bit < 8; bit++) i = i & 1 ? 0xedb88320 ^ (i >>> 1) : i >>> 1;
    return i;
  });
  const encoder = new TextEncoder(), isHigh = (code) => code >= 0xd800 && code < 0xdc00;
  let crc = -1;
  for (let start = 0, end; start < text.length; start = end) {
    end = Math.min(start + 2 ** 20, text.length);
    if (end < text.length && isHigh(text.charCodeAt(end - 1))) end++; // no half of a pair
    const bytes = encoder.encode(text.slice(start, end));
    for (let i = 0; i < bytes.length; i++) crc = table[(crc ^ bytes[i]) & 255] ^ (crc >>> 8);
  }
  return ~crc >>> 0;
}

/** Ids of the parts that are not as they were written. read: gives the text of a part, by its id. */
const changedParts = (sums, read) => Object.keys(sums).filter((id) => crc32(read(id)) !== sums[id]);
