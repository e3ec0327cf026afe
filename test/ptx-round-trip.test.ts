/** PTX of other compilers, read and printed again, is the same program. */
import { describe, expect, test } from "vitest";
import { expectWithin } from "./support/processor-time.ts";
import { parsePtx } from "../src/ptx/parser/index.ts";
import { printPtx } from "../src/ptx/printer.ts";
import { machineCode } from "./cubin.ts";
import { hasPtxas } from "./ptxas.ts";
import { listFiles, readText } from "./source-files.ts";
import { sampleOf } from "./support/sample.ts";

const fixtures = listFiles("test/fixtures/ptx", /\.ptx$/);
const assembled = sampleOf(fixtures, 3);

/** Without lines and debug sections: they change the cubin's debug tables, never its code. */
function withoutLines(text: string): string {
  return text
    .replace(/^[ \t]*\.loc[ \t].*$/gm, "")
    .replace(/^[ \t]*\.section[^{]*\{[^}]*\}/gm, "")
    .replace(/^(\.target .*), debug$/m, "$1");
}

/** The first word of every instruction, found without the parser. */
function opcodes(text: string): readonly string[] {
  const statements = text.replace(/\/\/.*|"[^"]*"/g, "").split(/[;{}]|:\s|\.loc\s.*/);
  const words = statements.map((one) => /^\s*(?:@!?\S+\s+)?([a-z][\w.:]*)/.exec(one)?.[1]);
  return words.filter((word) => word !== undefined).filter((word) => word.includes("."));
}

test("there are fixtures", () => {
  expect(fixtures.length).toBeGreaterThanOrEqual(20);
});

describe.each(fixtures)("%s", (path) => {
  const text = readText(path);
  const module = parsePtx(text, path);
  const printed = printPtx(module);

  test("reads the same when printed", () => {
    expect(printPtx(parsePtx(printed))).toBe(printed);
  });

  test("keeps every instruction", () => {
    expect(opcodes(printed)).toEqual(opcodes(text));
  });

  if (!assembled.includes(path)) return;

  test.skipIf(!hasPtxas)("assembles to the same machine code", () => {
    const code = machineCode(withoutLines(printed), module.target);
    expect(code).toEqual(machineCode(withoutLines(text), module.target));
    expect([...code.keys()].some((name) => name.startsWith(".text."))).toBe(true);
  });
});

test("two megabytes of text are read in well under a second", () => {
  const text = readText("test/fixtures/ptx/nvcc/double-math.ptx");
  const start = text.indexOf(".visible .entry");
  const end = text.indexOf("\n}\n", start) + 3;
  const [before, kernel, after] = [text.slice(0, start), text.slice(start, end), text.slice(end)];
  const copies = Math.ceil(2_000_000 / kernel.length);
  const numbered = Array.from({ length: copies }, (_, number) =>
    kernel.replaceAll("double_math", `double_math${number}`),
  );
  const large = before + numbered.join("") + after;
  expect(large.length).toBeGreaterThan(2_000_000);
  expectWithin(1000, () => parsePtx(large));
});
