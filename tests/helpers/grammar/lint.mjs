// Check English text with Harper, offline: https://writewithharper.com
//
// Reads {"words": [...], "rules_off": [...], "texts": [...]} as JSON from stdin. Writes one list for
// each text: {"rule", "message", "start", "end", "suggestions"}, with positions in characters.

import { text } from "node:stream/consumers";
import { Dialect, LocalLinter } from "harper.js";
import { binaryInlined } from "harper.js/binaryInlined";

const { words, rules_off, texts } = JSON.parse(await text(process.stdin));
const linter = new LocalLinter({ binary: binaryInlined, dialect: Dialect.American });
await linter.setup();
const rules = await linter.getDefaultLintConfig();
for (const rule of rules_off) {
  if (!(rule in rules)) throw new Error(`Harper has no rule ${rule}. Remove it from the exceptions.`);
  rules[rule] = false;
}
await linter.setLintConfig(rules);
await linter.importWords(words);

const found = [];
for (const document of texts) {
  const byRule = await linter.organizedLints(document, { language: "markdown" });
  found.push(
    Object.entries(byRule).flatMap(([rule, lints]) =>
      lints.map((lint) => ({
        rule,
        message: lint.message(),
        start: lint.span().start,
        end: lint.span().end,
        suggestions: lint.suggestions().map((suggestion) => suggestion.get_replacement_text()),
      })),
    ),
  );
}
console.log(JSON.stringify(found));
