// The ids of texts (JSON on stdin) by the tokenizer of transformers.js: node tokenizers_js.mjs EXPORT NODE_MODULES/
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";

const [folder, modules] = process.argv.slice(2);
const { Tokenizer } = createRequire(join(modules, "/"))("@huggingface/tokenizers");
const [tokenizer, config] = ["tokenizer.json", "tokenizer_config.json"].map((name) => JSON.parse(readFileSync(join(folder, name), "utf8")));
const loaded = new Tokenizer(tokenizer, config);
process.stdout.write(JSON.stringify(JSON.parse(readFileSync(0, "utf8")).map((text) => loaded.encode(text).ids)));
