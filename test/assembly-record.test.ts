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
