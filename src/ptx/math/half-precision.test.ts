/** Functions of bf16 and f16 on all 65,536 numbers of the format: within 0.63 units of the exact result, in few instructions. */
import { describe, expect, test } from "vitest";
import { compileSequence } from "../../../test/support/evaluate-ptx.ts";
import { functionReferences } from "../../../test/support/function-references.ts";
import { takesAll } from "../../../test/support/sample.ts";
import { dtypes } from "../../formats/dtype.ts";
import { roundFloat } from "../../formats/floats.ts";
import { fromElements, toNumbers } from "../../formats/hostarray.ts";
import { Random } from "../../support/random.ts";
import { Code, SourceFiles } from "../function-builder.ts";
import { halfFunction, halfFunctions, singleFunction, singleFunctions } from "./index.ts";
import type { HalfFormat } from "./index.ts";

const formats: {
  readonly [F in HalfFormat]: { readonly fraction: number; readonly least: number };
} = {
  bf16: { fraction: 7, least: 2 ** -133 },
  f16: { fraction: 10, least: 2 ** -24 },
};

function numbersOf(format: HalfFormat): readonly number[] {
  const codes = Uint16Array.from({ length: 2 ** 16 }, (_, code) => code);
  return [...toNumbers(fromElements(dtypes[format], [2 ** 16], codes))];
}

/** How far a result is from the exact one once it is rounded, in units in the last place of the format. */
function unitsOff(format: HalfFormat, got: number, exact: number): number {
  const { fraction, least } = formats[format];
  const [rounded, wanted] = [roundFloat(format, got), roundFloat(format, exact)];
  if (Object.is(rounded, wanted)) return 0.5;
  if (Number.isNaN(wanted) || Number.isNaN(rounded) || Object.is(rounded, -wanted)) return Infinity;
  // Past the greatest number infinity is the next one.
  const [high, beyond] = format === "bf16" ? [127, 2 ** 128] : [15, 2 ** 16];
  const number = (value: number): number =>
    Number.isFinite(value) ? value : Math.sign(value) * beyond;
  if (!Number.isFinite(exact)) return Infinity;
  const exponent = Math.min(Math.floor(Math.log2(Math.abs(exact))), high);
  const unit = Math.max(2 ** (exponent - fraction), least);
  return Math.abs(number(rounded) - exact) / unit;
}

describe.each(["bf16", "f16"] as const)("%s", (format) => {
  test.each(halfFunctions)("%s", (fn) => {
    const numbers = numbersOf(format).filter(
      (_, code) => takesAll || code % 16 === 15 || code % 128 === 0,
    );
    // GPUs may be off by as much as their manual says, either way.
    for (const nudge of [0, 1, -1]) {
      const evaluate = compileSequence(32, (code, x) => halfFunction(code, format, fn, x), {
        operands: 1,
        nudge,
      });
      let [worst, place] = [0, 0];
      for (const x of numbers) {
        const off = unitsOff(format, evaluate(x), functionReferences[fn](x));
        if (off > worst) [worst, place] = [off, x];
      }
      expect(worst, `${fn}(${place}) is ${evaluate(place)}`).toBeLessThanOrEqual(0.63);
    }
  });
});

/** Numbers of f32 of every exponent and sign, and those near which functions vanish. */
function singles(): readonly number[] {
  const random = new Random(19);
  const bits = new Uint32Array(1);
  const float = new Float32Array(bits.buffer);
  const count = takesAll ? 2 ** 16 : 2 ** 9;
  const any = Array.from({ length: count }, () => {
    bits[0] = random.bits();
    return float[0] as number;
  });
  const nearOne = any.map((_, i) =>
    Math.fround(1 + (i % 2 === 0 ? 1 : -1) * 2 ** (-24 * random.uniform())),
  );
  const ordinary = any.map(() => Math.fround((random.uniform() - 0.5) * 180));
  return [0, -0, 1, Infinity, -Infinity, NaN, ...any, ...nearOne, ...ordinary];
}

describe.each([
  ["bf16", 2 ** -11],
  ["f16", 2 ** -14],
] as const)("functions of f32 that are rounded to %s", (format, bound) => {
  test.each(singleFunctions)("%s", (fn) => {
    for (const nudge of [0, 1, -1]) {
      const evaluate = compileSequence(32, (code, x) => singleFunction(code, format, fn, x), {
        operands: 1,
        nudge,
      });
      for (const x of singles()) {
        const [got, exact] = [evaluate(x), Math.fround(functionReferences[fn](x))];
        // The tanh of GPUs is allowed all of it.
        const allowed = bound * 1.001 * Math.abs(exact) + 2 ** -148;
        const isRight = Object.is(got, exact) || Math.abs(got - exact) <= allowed;
        if (!isRight) expect.fail(`${fn}(${x}) is ${got}, not ${exact}`);
      }
    }
  });
});

test("instructions of each, and how many of them are the special unit's", () => {
  const count = (format: HalfFormat, fn: (typeof halfFunctions)[number]): string => {
    const code = new Code(new SourceFiles());
    const [x] = code.registers("b32", 1);
    if (x !== undefined) halfFunction(code, format, fn, x);
    // What lies between a branch and its label is for numbers beyond 2^16.
    let isFar = false;
    const opcodes = code.statements.flatMap((statement) => {
      if (statement.kind === "label") isFar = false;
      if (isFar || statement.kind !== "instruction") return [];
      isFar = statement.opcode.startsWith("bra");
      return [statement.opcode];
    });
    // The assembler makes these a part of what reads them.
    const own = opcodes.filter((opcode) => !/^(abs|neg|mov)\./.test(opcode));
    const special = own.filter((opcode) => opcode.includes("approx")).length;
    return `${own.length - special} + ${special}`;
  };
  const table = halfFunctions.map((fn) => `${fn}: ${count("bf16", fn)}, ${count("f16", fn)}`);
  expect(table).toMatchInlineSnapshot(`
    [
      "exp: 2 + 1, 1 + 1",
      "exp2: 2 + 1, 0 + 1",
      "expm1: 6 + 1, 6 + 1",
      "log: 1 + 1, 7 + 1",
      "log2: 0 + 1, 6 + 1",
      "log1p: 7 + 1, 7 + 1",
      "rsqrt: 0 + 1, 0 + 1",
      "sin: 12 + 0, 11 + 0",
      "cos: 14 + 0, 13 + 0",
      "tanh: 0 + 1, 10 + 2",
      "erf: 9 + 0, 11 + 0",
      "erf_inv: 6 + 1, 9 + 1",
      "erfc: 12 + 2, 12 + 2",
      "logistic: 3 + 2, 2 + 2",
    ]
  `);
});
