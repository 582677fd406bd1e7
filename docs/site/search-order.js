// As Sphinx counts, but the decisions, the records and what else is for those who change the code come after all other pages.
var Scorer = {
  score: ([page, , , , score]) => (/^(decisions|project)\//.test(page) ? score - 100 : score),
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
