/**
 * Forms of instructions of newer GPUs, held against what ptxas 13.0 takes. `fixtures/ptx-forms.txt` and `ptx-changed-forms.txt`
 * have a line each: its answers for eight targets, Y or -, and the instructions; `{%r0…%r7}` are eight registers.
 */
import { describe, expect, test } from "vitest";
import { collectiveRules } from "../src/emulator/collective-rules.ts";
import { loadProgram } from "../src/emulator/program/load.ts";
import { parsePtx } from "../src/ptx/parser/index.ts";
import { printPtx } from "../src/ptx/printer.ts";
import { TilewrightError } from "../src/support/diagnostics.ts";
import { readText } from "./source-files.ts";

const targets = [
  ...["sm_100a", "sm_103a", "sm_110a", "sm_120a", "sm_121a", "sm_100f", "sm_120f", "sm_100"],
] as const;

function spelledOut(text: string): string {
  return text.replace(/%r(\d+)…%r(\d+)/g, (_, first: string, last: string) =>
    Array.from(
      { length: Number(last) - Number(first) + 1 },
      (__, index) => `%r${Number(first) + index}`,
    ).join(", "),
  );
}

function moduleOf(code: string, target: string, version = "9.0"): string {
  return `.version ${version}
.target ${target}
.address_size 64
.extern .shared .align 1024 .b8 sm[];
.visible .entry k(.param .u64 gp)
{
.reg .pred %p<16>; .reg .b16 %h<32>; .reg .b32 %r<300>; .reg .b64 %rd<64>; .reg .b128 %q<4>; .reg .f32 %f<40>;
${spelledOut(code)}
ret;
}
`;
}

/** What is wrong with a probe; undefined for what is taken. */
function refusal(code: string, target: string, version?: string): TilewrightError | undefined {
  try {
    parsePtx(moduleOf(code, target, version), "probe.ptx");
    return undefined;
  } catch (error) {
    if (error instanceof TilewrightError) return error;
    throw error;
  }
}

interface Row {
  readonly answers: string;
  readonly code: string;
}

function rowsOf(file: string): readonly Row[] {
  const lines = readText(`test/fixtures/${file}`).trimEnd().split("\n");
  return lines.map((line) => ({ answers: line.slice(0, targets.length), code: line.slice(9) }));
}

/** Rows with other answers than the assembler's for some of the targets, which are numbers in the list. */
function differences(rows: readonly Row[], asked: readonly number[]) {
  return rows.flatMap(({ code, answers }) => {
    const wrong = asked
      .map((at) => targets[at] ?? "")
      .filter((target, place) => {
        const taken = refusal(code, target) === undefined;
        return taken !== (answers[asked[place] ?? 0] === "Y");
      });
    return wrong.length === 0 ? [] : [{ code, answers, wrong }];
  });
}

const forms = rowsOf("ptx-forms.txt");

test("all forms have the answers of the assembler for eight targets", () => {
  expect(forms.length).toBe(385);
  expect(differences(forms, [...targets.keys()])).toEqual([]);
});

/**
 * With a modifier, an operand or a register changed at random. Left out is what the assembler takes by mistake: modifiers of
 * other instructions that it has never heard of here (`tcgen05.ld….elemtype`), addresses in registers of 16 bits.
 */
test("so have changed forms", () => {
  const changed = rowsOf("ptx-changed-forms.txt");
  expect(changed.length).toBeGreaterThan(300);
  // Of each row one target, and another of the next; all of a row agree in nearly all of them.
  changed.forEach((row, at) => {
    expect(differences([row], [at % targets.length])).toEqual([]);
  });
});

test("what is taken prints to what reads the same", () => {
  for (const { answers, code } of forms) {
    const target = targets[answers.indexOf("Y")];
    if (target === undefined) continue;
    const printed = printPtx(parsePtx(moduleOf(code, target)));
    expect(printPtx(parsePtx(printed))).toBe(printed);
  }
});

/** What the assembler takes and the emulator does not run; docs/emulator.md says why. */
const notRun = [
  /\.im2col::w\b/,
  /^tensormap\.replace\.tile\.swizzle_atomicity/,
  /^tensormap\.replace\.tile\.swizzle_mode\S* \[%r1\], 4;/,
  /^tensormap\.replace\.tile\.elemtype\S* \[%r1\], 1[345];/,
];

test("the emulator runs all other forms", () => {
  const refused = forms.flatMap(({ answers, code }) => {
    const target = targets[answers.indexOf("Y")];
    if (target === undefined) return [];
    try {
      const options = { checks: true, collectives: collectiveRules };
      loadProgram(parsePtx(moduleOf(code, target), "probe.ptx"), "k", options);
      return [];
    } catch (error) {
      if (error instanceof TilewrightError && error.code === "TW8001") return [code];
      throw error;
    }
  });
  const isExpected = (code: string): boolean => notRun.some((pattern) => pattern.test(code));
  expect(refused.filter((code) => !isExpected(code))).toEqual([]);
  expect(notRun.filter((pattern) => !refused.some((code) => pattern.test(code)))).toEqual([]);
});

describe("what is refused is said with its line", () => {
  test.each([
    [
      "TW7107",
      "tcgen05.ld.sync.aligned.16x256b.x64.b32 {%r0…%r127}, [%r299];",
      ".x64",
      ".x1, .x2, .x4, .x8, .x16, .x32",
    ],
    ["TW7107", "tcgen05.ld.32x32b.x1.b32 {%r0}, [%r9];", "none of them", ".sync"],
    [
      "TW7108",
      "tcgen05.ld.sync.aligned.32x32b.x4.b32 {%r0,%r1}, [%r9];",
      "{%r0, %r1}",
      "a vector of 4, each a register of 32 bits",
    ],
    [
      "TW7108",
      "tcgen05.mma.cta_group::1.kind::f16 [%r1], %rd3, %rd4, %r2, %p1, 16;",
      "16",
      "a constant from 0 to 15",
    ],
    [
      "TW7109",
      "tcgen05.mma.cta_group::1.kind::i8 [%r1], %rd3, %rd4, %r2, %p1;",
      "sm_103a",
      "sm_100a and sm_110a",
    ],
    [
      "TW7110",
      "tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;tcgen05.relinquish_alloc_permit.cta_group::2.sync.aligned;",
      ".cta_group::2",
      ".cta_group::1",
    ],
  ])("%s: %s", (code, text, found, expected) => {
    const refused = refusal(text, "sm_103a");
    expect(refused).toMatchObject({ code, found, expected });
    expect(refused?.position).toMatchObject({ file: "probe.ptx", line: 8 });
  });

  test("an older version of PTX lacks what came later", () => {
    const code = "tcgen05.wait::ld.sync.aligned;";
    expect(refusal(code, "sm_100a", "8.6")).toBeUndefined();
    expect(refusal(code, "sm_100a", "8.5")).toMatchObject({
      code: "TW7109",
      found: ".version 8.5",
      expected: ".version 8.6 or later",
    });
  });
});
