/** Programs use every form of PTX for sm_90a that the emulator runs, and nothing else. */
import { expect, test } from "vitest";
import { collectiveRules } from "../../src/emulator/collective-rules.ts";
import { parsePtx } from "../../src/ptx/parser/index.ts";
import { laneRoots } from "../../src/emulator/thread-instructions/index.ts";
import { loadProgram } from "../../src/emulator/program/load.ts";
import { warpRoots } from "../../src/emulator/program/compile.ts";
import { TilewrightError } from "../../src/support/diagnostics.ts";
import { expand } from "./expand.ts";
import { allPrograms } from "./index.ts";
import { blackwell, ending, forms, refused } from "./isa.ts";

const programs = allPrograms();
const used = new Set(programs.flatMap(({ opcodes }) => opcodes));
const wanted = new Set(forms.flatMap(expand));

function rootOf(opcode: string): string {
  return opcode.split(".")[0] ?? "";
}

test("there are programs enough, each with a name of its own", () => {
  expect(programs.length).toBeGreaterThanOrEqual(300);
  expect(new Set(programs.map(({ name }) => name)).size).toBe(programs.length);
});

test("programs use every form", () => {
  expect([...wanted].filter((opcode) => !used.has(opcode))).toEqual([]);
});

test("programs use nothing that is not listed", () => {
  expect([...used].filter((opcode) => !wanted.has(opcode))).toEqual([]);
});

test("an opcode that a program is there for stands in its text", () => {
  for (const { name, opcodes, text } of programs) {
    const words = new Set(text.split(/[\s;]+/));
    expect(
      opcodes.filter((opcode) => !words.has(opcode)),
      name,
    ).toEqual([]);
  }
});

test("every root that the emulator knows is listed", () => {
  const listed = new Set([...[...wanted].map(rootOf), ...ending, ...blackwell]);
  const known = [...laneRoots, ...warpRoots, ...Object.keys(collectiveRules)];
  expect(known.filter((root) => !listed.has(root))).toEqual([]);
});

test.each(refused)("the emulator refuses %s", (instruction) => {
  const text = `.version 8.7
.target sm_90a
.address_size 64
.visible .entry one()
{
  .reg .b16 %h<2>; .reg .b32 %r<10>; .reg .b64 %d<4>; .reg .b128 %q<4>;
  ${instruction}
  ret;
}`;
  const load = (): unknown => {
    const module = parsePtx(text, "one.ptx");
    return loadProgram(module, "one", { checks: true, collectives: collectiveRules });
  };
  expect(load).toThrow(TilewrightError);
});
