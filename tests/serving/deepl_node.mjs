// What a program does with DeepL's library for Node.js, unchanged, and what it got, as JSON.
//   node deepl_node.mjs URL      (deepl-node beside this file, or where NODE_PATH says)
import { createRequire } from "node:module";
const deepl = createRequire(process.env.DEEPL_NODE ?? import.meta.url)("deepl-node");

const client = new deepl.DeepLClient("a-key", { serverUrl: process.argv[2] });
const got = {};
got.one = (await client.translateText("the dog", null, "de")).text;
const many = await client.translateText(["the dog", "a cat"], "en", "de", { formality: "prefer_more", context: "pets" });
got.many = many.map((each) => each.text);
got.billed = many.map((each) => each.billedCharacters);
got.detected = (await client.translateText("the dog and the cat", null, "de")).detectedSourceLang;
got.tagged = (await client.translateText('the <x id="1"/>dog', "en", "de", { tagHandling: "xml", ignoreTags: ["x"] })).text;
got.html = (await client.translateText("<p>the <b>dog</b></p>", "en", "de", { tagHandling: "html" })).text;
got.lines = (await client.translateText("the dog\n\na cat", "en", "de", { splitSentences: "nonewlines", preserveFormatting: true })).text;
got.sources = (await client.getSourceLanguages()).map((each) => each.code);
got.targets = (await client.getTargetLanguages()).map((each) => each.code);
got.used = (await client.getUsage()).character.count > 0;
got.pairs = (await client.getGlossaryLanguagePairs()).map((each) => `${each.sourceLang}-${each.targetLang}`);
const made = await client.createGlossary("mine", "en", "de", new deepl.GlossaryEntries({ entries: { dog: "baum" } }));
got.entries = (await client.getGlossaryEntries(made)).entries();
got.glossaries = (await client.listGlossaries()).length;
got.termed = (await client.translateText("the dog", "en", "de", { glossary: made })).text;
got.named = (await client.getGlossary(made.glossaryId)).name;
await client.deleteGlossary(made);
got.left = (await client.listGlossaries()).length;
const terms = (entries) => ({ sourceLangCode: "en", targetLangCode: "de", entries: new deepl.GlossaryEntries({ entries }) });
const several = await client.createMultilingualGlossary("all", [terms({ dog: "baum" })]);
got.dictionaries = several.dictionaries.map((each) => each.entryCount);
const more = await client.updateMultilingualGlossaryDictionary(several, terms({ cat: "haus" }));
got.merged = more.dictionaries.map((each) => each.entryCount);
got.read = (await client.getMultilingualGlossaryDictionaryEntries(several, "en", "de")).entries.entries();
got.renamed = (await client.updateMultilingualGlossaryName(several, "ours")).name;
got.replaced = (await client.replaceMultilingualGlossaryDictionary(several, terms({ dog: "haus" }))).entryCount;
got.bound = (await client.translateText("the dog", "en", "de", { glossary: several.glossaryId })).text;
got.known = (await client.listMultilingualGlossaries()).map((each) => each.name);
await client.deleteMultilingualGlossary(several);
try {
  await client.translateText("the dog", "en", "fr");
} catch (error) {
  got.refused = error.message;
}
console.log(JSON.stringify(got));
