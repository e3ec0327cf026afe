import { expect, test } from "vitest";
import { TilewrightError } from "../../support/diagnostics.ts";
import { parsePtx } from "./index.ts";

const header = ".version 8.0\n.target sm_90a\n.address_size 64\n";

function report(text: string): TilewrightError {
  try {
    parsePtx(text, "kernel.ptx");
  } catch (error) {
    if (error instanceof TilewrightError) return error;
    throw error;
  }
  throw new Error("the text was read without a report");
}

/** In a body, the mistake stands on line 5; the column counts from 1. */
const inBody: readonly (readonly [string, string, number, string])[] = [
  ["TW7102", "add.s32 %r1, %r2 %r3;", 18, '"," or ";" is missing'],
  ["TW7102", "add.s32 %r1, ;", 14, "an operand is missing"],
  ["TW7102", "ld.global.b32 %r1, [%rd1;", 25, '"]" is missing'],
  ["TW7102", "ld.global.b32 %r1, [%rd1, %r2];", 27, '"{" and coordinates is missing'],
  ["TW7102", "ld.global.b32 %r1, [1.5];", 21, "an address is missing"],
  ["TW7102", ".reg .b32;", 10, "the name of a register is missing"],
  ["TW7102", ".reg %x;", 6, "a type, such as .b32 is missing"],
  ["TW7102", "#pragma", 1, "an instruction, a directive or a label is missing"],
  ["TW7102", "mov.b32 %r1, foo:", 17, '"," or ";" is missing'],
  ["TW7102", "a.b: ret;", 1, "a.b cannot be a label"],
  ["TW7102", ".loc 1 2 3, inlined_at 1 2 3", 13, "function_name is missing"],
  ["TW7101", '.pragma "nounroll;', 9, "a string is not closed on its line"],
  ["TW7101", "ret; /* no end", 6, "a comment is not closed"],
  ["TW7103", "mov.b32 %r1, 0x;", 14, "0x is not a number"],
  ["TW7103", "mov.b32 %r1, 08;", 14, "08 is not a number"],
  ["TW7103", "mov.b32 %r1, 12abc;", 14, "12abc is not a number"],
  ["TW7103", "mov.f32 %r1, 0f3F80;", 14, "0f3F80 is not a number"],
  ["TW7103", "mov.b64 %rd1, 18446744073709551616;", 15, "18446744073709551616 is not a number"],
  ["TW7103", "mov.b32 %r1, 4 / (2 - 2);", 16, "a constant is divided by zero"],
  ["TW7103", "mov.b32 %r1, ~1.5;", 14, "an integer is needed where a float stands"],
  ["TW7103", ".shared .b32 x[-1];", 16, "the size of an array is negative"],
  ["TW7103", ".shared .align 3 .b32 x;", 16, "an alignment is not a power of two"],
  ["TW7103", "ld.b32 %r1, [%rd1+0x7FFFFFFFFFFFFFFF];", 18, "an address's offset is out of range"],
  ["TW7104", "add.s32 %r1, %r2, %r9;", 19, "%r9 is not declared"],
  ["TW7104", "mov.u32 %r1, %tid.q;", 14, "%tid.q is not declared"],
  ["TW7104", "bra nowhere;", 5, "nowhere is not declared"],
  ["TW7104", "@q ret;", 2, "q is not declared"],
  ["TW7104", "{ inner: ret; } bra inner;", 21, "inner is not declared"],
  ["TW7104", "t: .branchtargets nowhere;", 19, "nowhere is not declared"],
  ["TW7105", ".reg .b32 %r3;", 11, "%r3 is declared a second time"],
  ["TW7105", ".reg .b64 %r<3>;", 11, "%r is declared a second time"],
  ["TW7105", "a: ret; a: ret;", 9, "a is declared a second time"],
  ["TW7105", ".shared .b32 p;", 14, "p is declared a second time"],
  ["TW7106", ".tex .u64 image;", 1, ".tex is not a directive of a body"],
  ["TW7106", ".shared .texref x;", 9, ".texref is not a type tilewright knows"],
];

test.each(inBody)("%s: %s", (code, line, column, summary) => {
  const error = report(
    `${header}.entry k (.param .u64 p) { .reg .b32 %r<9>; .reg .b64 %rd<9>;\n${line}\n}`,
  );
  expect(error.code).toBe(code);
  expect(error.summary).toBe(summary);
  expect(error.position).toEqual({ file: "kernel.ptx", line: 5, column });
});

/** In a module, the mistake stands on line 4. */
const inModule: readonly (readonly [string, string, number])[] = [
  ["TW7102", ".entry (.param .u64 x) { }", 8],
  ["TW7102", ".entry k (.shared .u64 x) { }", 11],
  ["TW7102", ".entry k () ret;", 13],
  ["TW7102", "ret;", 1],
  ["TW7104", ".global .u64 x = generic(y);", 26],
  ["TW7105", ".global .u64 x; .global .u32 x;", 30],
  ["TW7105", ".entry k () { } .entry k () { }", 17],
  ["TW7106", ".entry k (.reg .u64 x) { }", 11],
  ["TW7106", ".entry k () .frobnicate 3 { }", 13],
  ["TW7106", ".alias a, b;", 1],
  ["TW7101", ".section .debug_str { .b8 1", 22],
  ["TW7103", '.file 99999999 "x"', 7],
  ["TW7103", '.file 1x "x"', 7],
];

test.each(inModule)("%s: %s", (code, line, column) => {
  const error = report(header + line);
  expect(error.code).toBe(code);
  expect(error.position).toEqual({ file: "kernel.ptx", line: 4, column });
});

test("expected and found are named", () => {
  const error = report(`${header}.entry k () { mov.b32 = 3; }`);
  expect(error.expected).toBe("an operand");
  expect(error.found).toBe("=");
  expect(report("").found).toBe("the end of the text");
});

test("addresses of 32 bits are unsupported", () => {
  expect(report(".version 8.0 .target sm_80 .address_size 32").code).toBe("TW7106");
});

test("nesting without end is reported, not run into", () => {
  const body = (text: string): string => `${header}.entry k () { ${text} }`;
  for (const text of [
    `mov.b32 _, ${"(".repeat(100_000)}`,
    `mov.b32 _, ${"-".repeat(100_000)}`,
    `mov.b32 _, ${"1?".repeat(100_000)}`,
    "{".repeat(100_000),
    `.shared .b32 x[1] = ${"{".repeat(100_000)}`,
  ])
    expect(report(body(text)).code).toBe("TW7106");
});
