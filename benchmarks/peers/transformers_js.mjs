// A folder of `dragoman export --format onnx`, by transformers.js: node transformers_js.mjs MODULES FOLDER fp32|q8 < lines > lines
// One sentence at a time: in a batch it continues after eos in rows that are done.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { basename, dirname, resolve } from "node:path";

const [modules, folder, dtype] = process.argv.slice(2);
const { AutoModelForSeq2SeqLM, AutoTokenizer, env } = createRequire(resolve(modules, "x"))("@huggingface/transformers");
env.allowRemoteModels = false;
env.localModelPath = dirname(resolve(folder));
const name = basename(resolve(folder));
const tokenizer = await AutoTokenizer.from_pretrained(name);
const model = await AutoModelForSeq2SeqLM.from_pretrained(name, { dtype, subfolder: "" });
for (const line of readFileSync(0, "utf8").replace(/\n$/, "").split("\n")) {
  const inputs = tokenizer(line), extra = Number(process.env.MAX_EXTRA ?? 50);
  const ids = await model.generate({ ...inputs, max_new_tokens: inputs.input_ids.dims[1] - 1 + extra, num_beams: 1 });
  console.log(tokenizer.decode(ids[0], { skip_special_tokens: true }).replaceAll("\n", " "));
}
