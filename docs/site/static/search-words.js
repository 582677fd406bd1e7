"use strict";
// Sphinx 9.0 asks for a stemmer by the name of the language, and gives Chinese pages the English one.
var ChineseStemmer = function () { return new EnglishStemmer(); };

// A query in Chinese has no spaces: it is cut into the longest words that the index has. What is between spaces in
// other scripts stays whole, as the theme has it.
var splitQuery = (query) => {
  const known = new Set([...Object.keys(Search._index.terms), ...Object.keys(Search._index.titleterms)]);
  const longest = 12;
  return query.split(/[^\p{Letter}\p{Number}_]+/u).flatMap((run) => run.match(/\p{Script=Han}+|\P{Script=Han}+/gu) ?? []).flatMap((run) => {
    if (!/\p{Script=Han}/u.test(run)) return [run];
    const words = [];
    for (let at = 0; at < run.length;) {
      let end = Math.min(run.length, at + longest);
      while (end > at + 1 && !known.has(run.slice(at, end))) end--;
      if (end > at + 1) words.push(run.slice(at, end));  // single characters are not in the index
      at = end;
    }
    return words.length ? words : [run];
  });
};
