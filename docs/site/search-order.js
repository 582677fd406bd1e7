// As Sphinx counts, but a page whose title has the words as they were typed comes first; the decisions, the records and
// what else is for those who change the code come after all other pages.
var Scorer = {
  score: ([page, title, , , score]) => {
    const typed = (new URLSearchParams(window.location.search).get("q") || "").trim().toLowerCase();
    const named = typed && title.toLowerCase().includes(typed) ? 20 : 0;
    return score + named - (/^(decisions|project)\//.test(page) ? 100 : 0);
  },
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
