/** Gradients of norms against differences of the forward function in float64, and quantised rows against float64. */
import { describe, expect, test } from "vitest";
import { codeOf, expectClose, randomNumbers } from "../../../test/support/library-checks.ts";
import { bf16, f32, f64, f8e4m3fn, f8e5m2, i4, i8 } from "../../formats/dtype.ts";
import type { DType, FloatName } from "../../formats/dtype.ts";
import { fromNumbers, toNumbers } from "../../formats/hostarray.ts";
import { tensor, dim } from "../../lang/index.ts";
import { open } from "../../runtime/open.ts";
import { targets } from "../../targets/target.ts";
import { layerNorm, rmsNorm } from "./norm.ts";
import { layerNormBackward, rmsNormBackward } from "./norm-backward.ts";
import { quantize } from "./quantize.ts";

const [m, n] = [dim("m"), dim("n")];

/** The gradient to x, reckoned from its formula in float64. */
function reference(
  x: readonly number[],
  dOut: readonly number[],
  scale: readonly number[],
  columns: number,
  centred: boolean,
) {
  const dx = x.map(() => 0);
  const [dScale, dBias] = [scale.map(() => 0), scale.map(() => 0)];
  for (let start = 0; start < x.length; start += columns) {
    const row = x.slice(start, start + columns);
    const mean = centred ? row.reduce((sum, value) => sum + value, 0) / columns : 0;
    const variance = row.reduce((sum, value) => sum + (value - mean) ** 2, 0) / columns;
    const inverse = 1 / Math.sqrt(variance + 1e-5);
    const h = row.map((value) => (value - mean) * inverse);
    const g = row.map((_, j) => (dOut[start + j] ?? NaN) * (scale[j] ?? NaN));
    const even = centred ? g.reduce((sum, value) => sum + value, 0) / columns : 0;
    const along = g.reduce((sum, value, j) => sum + value * (h[j] ?? NaN), 0) / columns;
    for (const [j, value] of g.entries()) {
      dx[start + j] = inverse * (value - even - (h[j] ?? NaN) * along);
      dScale[j] = (dScale[j] ?? 0) + (dOut[start + j] ?? NaN) * (h[j] ?? NaN);
      dBias[j] = (dBias[j] ?? 0) + (dOut[start + j] ?? NaN);
    }
  }
  return { dx, dScale, dBias };
}

/** The same by differences of Σ out · dOut, as a check of the formula. */
function difference(
  x: readonly number[],
  dOut: readonly number[],
  scale: readonly number[],
  centred: boolean,
  at: number,
): number {
  const value = (by: number): number => {
    const row = x.map((each, j) => (j === at ? each + by : each));
    const mean = centred ? row.reduce((sum, each) => sum + each, 0) / row.length : 0;
    const variance = row.reduce((sum, each) => sum + (each - mean) ** 2, 0) / row.length;
    const inverse = 1 / Math.sqrt(variance + 1e-5);
    return row.reduce(
      (sum, each, j) => sum + (each - mean) * inverse * (scale[j] ?? NaN) * (dOut[j] ?? NaN),
      0,
    );
  };
  return (value(1e-5) - value(-1e-5)) / 2e-5;
}

describe.each(["simulator", "emulator"] as const)("on the %s", (kind) => {
  test("gradients of norms", async () => {
    // Two processors have many rows each.
    const device = await open(kind, { target: { ...targets.sm_90a, processors: 2 } });
    const all: readonly (readonly [number, number, DType<FloatName>])[] =
      kind === "simulator"
        ? [
            [7, 40, f32],
            [3, 781, f32],
            [200, 24, f64],
            [5, 9000, f32],
          ]
        : [
            [37, 250, f32],
            [9, 300, f64],
          ];
    for (const [rows, columns, dtype] of all) {
      const x = randomNumbers(dtype, [rows, columns], 1, 2, 1);
      const dOut = randomNumbers(dtype, [rows, columns], 2, 1);
      const scale = randomNumbers(dtype, [columns], 3, 1);
      const bias = randomNumbers(dtype, [columns], 4, 1);
      const forward = await device.run(
        layerNorm({ x: dtype, scale: dtype, bias: dtype, statistics: true }),
        { x: x.array, scale: scale.array, bias: bias.array },
      );
      const { mean, inverseDeviation } = forward;
      const given = { x: x.array, dOut: dOut.array, scale: scale.array };
      const found = await device.run(layerNormBackward({ x: dtype, scale: dtype, bias: true }), {
        ...given,
        mean,
        inverseDeviation,
      });
      const bounds = { relative: 64, absolute: 2e-5 };
      const expected = reference(x.values, dOut.values, scale.values, columns, true);
      expectClose(found.dx, expected.dx, bounds);
      expectClose(found.dScale, expected.dScale, bounds);
      expectClose(found.dBias, expected.dBias, bounds);
      const isOnce =
        "workers" in
        layerNormBackward({ x: tensor(dtype, [rows, columns]), scale: dtype }).plan().configuration;
      expect(isOnce).toBe(columns < 9000);
      const first = [x, dOut].map(({ values }) => values.slice(0, columns));
      const [ownX = [], ownOut = []] = first;
      expect(difference(ownX, ownOut, scale.values, true, 3)).toBeCloseTo(expected.dx[3] ?? NaN, 5);

      const root = await device.run(rmsNorm({ x: dtype, scale: dtype, statistics: true }), {
        x: x.array,
        scale: scale.array,
      });
      const gradient = await device.run(rmsNormBackward({ x: dtype, scale: dtype }), {
        ...given,
        inverseDeviation: root.inverseDeviation,
      });
      const wanted = reference(x.values, dOut.values, scale.values, columns, false);
      expectClose(gradient.dx, wanted.dx, bounds);
      expectClose(gradient.dScale, wanted.dScale, bounds);
      expect(difference(ownX, ownOut, scale.values, false, 5)).toBeCloseTo(wanted.dx[5] ?? NaN, 5);
    }
    device.dispose();
  });

  test("rows and groups in fewer bits", async () => {
    const device = await open(kind);
    const wide = dim("n", { multipleOf: 16 });
    const cases = [
      [i8, 127, undefined],
      [i4, 7, 32],
      [f8e4m3fn, 448, 16],
    ] as const;
    for (const [out, most, group] of cases) {
      const [rows, columns] = [6, 96];
      const x = randomNumbers(bf16, [rows, columns], 1, 4);
      const zeros = x.values.map((value, index) => (index < columns ? 0 : value));
      const spec = tensor(bf16, [m, group === 32 ? dim("n", { multipleOf: 32 }) : wide]);
      const op = quantize({ x: spec, out, ...(group !== undefined && { groupSize: group }) });
      const found = await device.run(op, { x: fromNumbers(bf16, [rows, columns], zeros) });
      const [numbers, scales] = [toNumbers(found.out), toNumbers(found.scale)];
      const each = group ?? columns;
      expect(found.out.shape).toEqual([rows, columns]);
      expect(scales.length).toBe((rows * columns) / each);
      for (const [index, value] of numbers.entries()) {
        const start = Math.floor(index / each) * each;
        const high = Math.max(...zeros.slice(start, start + each).map(Math.abs));
        const scale = scales[Math.floor(index / each)] ?? NaN;
        expect(scale).toBeCloseTo(high / most, 5);
        // Half a step of an integer, and a sixteenth of the number in three bits of fraction.
        const allowed =
          out === f8e4m3fn ? Math.abs(zeros[index] ?? NaN) / 15.9 + scale / 900 : scale * 0.5001;
        expect(Math.abs(value * scale - (zeros[index] ?? NaN))).toBeLessThanOrEqual(allowed);
      }
    }
    device.dispose();
  });

  test("rows with an infinity or NaN are no numbers as a whole, and others are as without them", async () => {
    const device = await open(kind);
    // Long rows have their scales from several pieces.
    for (const columns of kind === "simulator" ? [8, 20_000] : [8]) {
      const row = Array.from({ length: columns }, (_, index) => (index % 7) - 3);
      const far = columns - 2;
      const given = [...row, ...row.with(far, Infinity), ...row.with(far, -Infinity)];
      const x = fromNumbers(f32, [4, columns], [...given, ...row.with(far, NaN)]);
      for (const out of [i8, f8e4m3fn] as const) {
        const found = await device.run(quantize({ x: f32, out }), { x });
        const [numbers, scales] = [toNumbers(found.out), toNumbers(found.scale)];
        expect([...scales].slice(1)).toEqual([Infinity, Infinity, NaN]);
        expect(scales[0]).toBeCloseTo(3 / (out === i8 ? 127 : 448), 5);
        expect(Math.abs((numbers[0] ?? NaN) * (scales[0] ?? NaN) + 3)).toBeLessThan(0.01);
        const products = numbers.map(
          (value, index) => value * (scales[Math.floor(index / columns)] ?? 0),
        );
        expect(products.slice(columns).every(Number.isNaN)).toBe(true);
      }
    }
    device.dispose();
  });

  test("rows whose scales have no reciprocal, and rows without columns", async () => {
    const device = await open(kind);
    const empty = await device.run(quantize({ x: f32, out: i8 }), {
      x: fromNumbers(f32, [3, 0], []),
    });
    expect([...toNumbers(empty.scale)]).toEqual([0, 0, 0]);
    const given = [2e-37, -5e-38, 0, 8e-39, 1e-44, 0, -2e-44, 0].map(Math.fround);
    const x = fromNumbers(f32, [2, 4], given);
    for (const out of [i8, f8e5m2] as const) {
      const found = await device.run(quantize({ x: f32, out }), { x });
      const [numbers, scales] = [toNumbers(found.out), toNumbers(found.scale)];
      expect([...scales].map((scale) => scale >= 2 ** -127 && scale < 2 ** -125)).toEqual([
        true,
        true,
      ]);
      for (const [index, value] of given.entries()) {
        const scale = scales[index >> 2] ?? NaN;
        const allowed = out === i8 ? scale * 0.5001 : Math.abs(value) / 7.9 + scale * 2 ** -17;
        expect(Math.abs((numbers[index] ?? NaN) * scale - value)).toBeLessThanOrEqual(allowed);
      }
    }
    device.dispose();
  });
});

test("mistakes are reported", () => {
  const refused: readonly (readonly [string, () => unknown])[] = [
    ["TW9901", () => quantize({ x: f32, out: bf16 as never })],
    ["TW9901", () => quantize({ x: i8 as never, out: i8 })],
    ["TW9902", () => quantize({ x: tensor(f32, [m, n]), out: i8, groupSize: 32 })],
    ["TW9902", () => quantize({ x: tensor(f32, [m, 64]), out: i8, groupSize: 0.5 })],
    ["TW9902", () => layerNormBackward({ x: f32, scale: tensor(f32, [m]) })],
    ["TW9902", () => rmsNormBackward({ x: f32, dOut: tensor(f32, [n, m]) })],
    ["TW9901", () => rmsNormBackward({ x: i8 as never })],
    ["TW1033", () => rmsNormBackward({ x: f32, bias: true } as never)],
    ["TW1033", () => quantize({ x: f32, out: i8, bits: 4 } as never)],
  ];
  for (const [code, make] of refused) expect(codeOf(make), String(make)).toBe(code);
});
