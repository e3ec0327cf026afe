/** What the sequences look like: without branches where many run side by side, and short. */
import { describe, expect, test } from "vitest";
import { Code, SourceFiles } from "../function-builder.ts";
import type { Instruction } from "../module.ts";
import { instructionText } from "../printer.ts";
import { mathFunctions } from "./index.ts";

/** The instructions of a function of f32. */
function instructions(
  emit: (code: Code, ...operands: ReturnType<Code["registers"]>) => unknown,
): readonly Instruction[] {
  const code = new Code(new SourceFiles());
  emit(code, ...code.registers("b32", 2));
  return code.statements.flatMap((statement) =>
    statement.kind === "instruction" ? [statement] : [],
  );
}

describe("sequences of f32", () => {
  test.each(["exp", "exp2", "log", "log2", "tanh", "logistic", "erf", "rsqrt"] as const)(
    "%s has no branches",
    (fn) => {
      const opcodes = instructions(mathFunctions.f32.unary[fn]).map(({ opcode }) => opcode);
      expect(opcodes.filter((opcode) => opcode.startsWith("bra"))).toEqual([]);
    },
  );

  test("exp is short, and has no approximation in it", () => {
    const opcodes = instructions(mathFunctions.f32.unary.exp).map(({ opcode }) => opcode);
    expect(opcodes.length).toBeLessThanOrEqual(18);
    expect(opcodes.filter((opcode) => opcode.includes("approx"))).toEqual([]);
  });

  test("every sum and product says how it rounds, and none but approximations within flushes subnormal numbers", () => {
    for (const emit of Object.values(mathFunctions.f32.unary))
      for (const { opcode } of instructions(emit)) {
        if (/^(add|sub|mul|fma|div|sqrt(?!\.approx))\b.*\.f(32|64)$/.test(opcode))
          expect(opcode).toContain(".rn.");
        if (!/^(rcp|ex2|lg2|sqrt)\.approx/.test(opcode)) expect(opcode).not.toContain("ftz");
      }
  });
});

test("approximations are the instructions of GPUs", () => {
  const text = Object.entries({
    ...mathFunctions.approximate.unary,
    ...mathFunctions.approximate.binary,
  })
    .map(([fn, emit]) => `${fn}: ${instructions(emit).map(instructionText).join(" ")}`)
    .join("\n");
  expect(text).toMatchInlineSnapshot(`
    "sqrt: sqrt.approx.ftz.f32 %r2, %r0;
    rsqrt: rsqrt.approx.ftz.f32 %r2, %r0;
    exp: mul.rn.f32 %r2, %r0, 0f3FB8AA3B; ex2.approx.ftz.f32 %r3, %r2;
    exp2: ex2.approx.ftz.f32 %r2, %r0;
    log: lg2.approx.ftz.f32 %r2, %r0; mul.rn.f32 %r3, %r2, 0f3F317218;
    log2: lg2.approx.ftz.f32 %r2, %r0;
    sin: sin.approx.ftz.f32 %r2, %r0;
    cos: cos.approx.ftz.f32 %r2, %r0;
    tanh: tanh.approx.f32 %r2, %r0;
    erf: abs.f32 %r2, %r0; fma.rn.f32 %r3, %r2, 0f3EA7BA05, 0f3F800000; rcp.approx.ftz.f32 %r4, %r3; mul.rn.f32 %r5, %r0, %r0; mul.rn.f32 %r6, %r5, 0fBFB8AA3B; ex2.approx.ftz.f32 %r7, %r6; fma.rn.f32 %r8, 0f3F87DC22, %r4, 0fBFBA00E3; fma.rn.f32 %r9, %r8, %r4, 0f3FB5F0E3; fma.rn.f32 %r10, %r9, %r4, 0fBE91A98E; fma.rn.f32 %r11, %r10, %r4, 0f3E827906; mul.rn.f32 %r12, %r11, %r4; mul.rn.f32 %r13, %r12, %r7; sub.rn.f32 %r14, 0f3F800000, %r13; copysign.f32 %r15, %r0, %r14;
    logistic: mul.rn.f32 %r2, %r0, 0fBFB8AA3B; ex2.approx.ftz.f32 %r3, %r2; add.rn.f32 %r4, %r3, 0f3F800000; rcp.approx.ftz.f32 %r5, %r4;
    div: div.full.ftz.f32 %r2, %r0, %r1;"
  `);
});
