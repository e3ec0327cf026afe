/** The record of what was assembled stands in for the assembler only where the very same text was. */
import { join } from "node:path";
import { expect, test } from "vitest";
import { hasDisassembler } from "./support/assembler.ts";
import { AssemblyRecord } from "./support/assembly-record.ts";
import { repositoryRoot } from "./source-files.ts";
import { takesAll } from "./support/sample.ts";

test.skipIf(hasDisassembler || takesAll)("a text that was not assembled is not known", () => {
  const record = new AssemblyRecord(join(repositoryRoot, "test/nowhere.test.ts"));
  expect(record.spilled("mov.u32 %r0, 1;")).toBeUndefined();
  record.note("mov.u32 %r0, 1;", 24);
  expect(record.spilled("mov.u32 %r0, 1;")).toBe(24);
  expect(record.spilled("mov.u32 %r0, 2;")).toBeUndefined();
});

test.skipIf(hasDisassembler || takesAll)("names and lines of source are no part of a text", () => {
  const record = new AssemblyRecord(join(repositoryRoot, "test/nowhere.test.ts"));
  const kernel = (name: string, file: string, sum = "add") =>
    `.file 1 "${file}"\n.visible .entry ${name} (\n    .param .b64 a\n)\n{\n    .loc 1 ${file.length} 3\n    ${sum}.s32 %r1, %r0, 2;\n}\n`;
  record.note(kernel("rows", "old.ts"), 16);
  expect(record.spilled(kernel("persistent_rows", "src/kernels/new.ts"))).toBe(16);
  expect(record.spilled(kernel("rows", "old.ts", "sub"))).toBeUndefined();
});
