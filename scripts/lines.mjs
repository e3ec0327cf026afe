/**
 * `npm run lines`: lines of code of each folder of `src`, without tests, comments and blank lines.
 *
 *   folder    files   lines
 *   support      48   3,412
 *   …
 *   all       1,336 161,759
 */
import { readFileSync, readdirSync } from "node:fs";
import { fileURLToPath } from "node:url";

const source = fileURLToPath(new URL("../src/", import.meta.url));

/** Lines that hold code, of text as oxfmt writes it: a comment of several lines stands alone. */
function linesOfCode(text) {
  const code = text.replace(/^[ \t]*\/\*[^]*?\*\/[ \t]*$/gm, "");
  return code.split("\n").filter((line) => /^\s*(?!\/\/)\S/.test(line)).length;
}

const folders = new Map();
const all = { files: 0, lines: 0 };
for (const path of readdirSync(source, { recursive: true, encoding: "utf8" })) {
  if (!path.endsWith(".ts") || path.endsWith(".test.ts")) continue;
  const [folder, ...rest] = path.split(/[\\/]/);
  const name = rest.length === 0 ? "(entry)" : folder;
  const lines = linesOfCode(readFileSync(source + path, "utf8"));
  const counted = folders.get(name) ?? { files: 0, lines: 0 };
  folders.set(name, counted);
  for (const count of [counted, all]) {
    count.files += 1;
    count.lines += lines;
  }
}

const row = (name, files, lines) =>
  console.log(`${name.padEnd(9)} ${files.padStart(6)} ${lines.padStart(8)}`);
const countRow = (name, { files, lines }) =>
  row(name, files.toLocaleString("en"), lines.toLocaleString("en"));

row("folder", "files", "lines");
for (const [name, counted] of [...folders].sort(([, a], [, b]) => b.lines - a.lines))
  countRow(name, counted);
countRow("all", all);
