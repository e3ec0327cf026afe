/**
 * Products in which some rows, columns and sums are infinite, NaN, huge or tiny: every element is what the rule itself makes of its
 * row, its column and its sum.
 */
import { describe, expect, test } from "vitest";
import { Random } from "../../support/random.ts";
import { dtypes } from "../dtype.ts";
import { encodeFloat } from "../floats.ts";
import { dotElements } from "./dot.ts";
import {
  decodeElements,
  decodeTensorOperand,
  multiplyAccumulate,
  stepRule,
  sumRow,
} from "./tensor-core.ts";

const special = [NaN, Infinity, -Infinity, 2 ** 100, -(2 ** -110)];
const [m, n, k, step] = [9, 10, 48, 16];

/** Numbers, of which one in so many is special; none where that is 0. */
function numbers(count: number, random: Random, oneIn: number): number[] {
  return Array.from({ length: count }, () =>
    oneIn > 0 && random.below(oneIn) === 0 ? random.pick(special) : random.normal(),
  );
}

function codesOf(values: readonly number[]): Uint16Array {
  return Uint16Array.from(values, (value) => encodeFloat("bf16", value));
}

const cases = [
  { name: "rows", oneIn: [120, 0, 0] },
  { name: "columns", oneIn: [0, 120, 0] },
  { name: "sums", oneIn: [0, 0, 8] },
  { name: "some of each", oneIn: [120, 120, 20] },
  { name: "nearly all", oneIn: [3, 3, 3] },
] as const;

describe.each(cases)("special $name", ({ oneIn: [ofA, ofB, ofC] }) => {
  const random = new Random(7);
  const a = codesOf(numbers(m * k, random, ofA));
  const b = codesOf(numbers(k * n, random, ofB));
  const sums = new Uint32Array(Float32Array.from(numbers(m * n, random, ofC)).buffer);
  const [left, right] = [decodeElements("bf16", a), decodeElements("bf16", b)];
  const rule = stepRule("bf16", "warpgroup", "f32");

  /** The codes of all sums after so much of k, step by step. */
  const expected = (depth: number): Uint32Array =>
    sums.map((given, index) => {
      let code = given;
      for (let start = 0; start < depth; start += step) {
        const row = { start: Math.floor(index / n) * k + start, stride: 1 };
        const column = { start: start * n + (index % n), stride: n };
        code = sumRow(rule, left, row, right, column, step, code);
      }
      return code;
    });

  test("as the simulator multiplies", () => {
    const shape = { m, n, k, operand: dtypes.bf16, accumulator: dtypes.f32 };
    const found = new Float32Array(sums.slice().buffer);
    dotElements(shape, a, b, found);
    expect(found).toEqual(new Float32Array(expected(k).buffer));
  });

  test("as one instruction does", () => {
    const rows = Uint16Array.from(
      { length: m * step },
      (_, at) => a[Math.floor(at / step) * k + (at % step)] ?? 0,
    );
    const columns = Uint16Array.from(
      { length: n * step },
      (_, at) => b[(at % step) * n + Math.floor(at / step)] ?? 0,
    );
    const operand = (codes: Uint16Array, count: number) =>
      decodeTensorOperand("bf16", new Uint8Array(codes.buffer), count);
    const found = sums.slice();
    multiplyAccumulate("warpgroup", "f32", operand(rows, m), operand(columns, n), found);
    expect(found).toEqual(expected(step));
  });
});
