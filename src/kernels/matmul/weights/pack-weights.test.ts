/**
 * Weights in formats with scales, stored by `packWeights` and multiplied by every kernel, against float64 of the numbers that codes
 * stand for. Activations are small whole numbers: in most formats sums are exact.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { codeOf } from "../../../../test/support/library-checks.ts";
import { dealtTo } from "../../../../test/support/sample.ts";
import type { Device } from "../../../device/device.ts";
import * as formats from "../../../formats/dtype.ts";
import type { DType } from "../../../formats/dtype.ts";
import { decodeFloat, encodeFloat } from "../../../formats/floats.ts";
import { fromElements, fromNumbers, toNumbers } from "../../../formats/hostarray.ts";
import { dim } from "../../../lang/index.ts";
import { open } from "../../../runtime/open.ts";
import { Random } from "../../../support/random.ts";
import type { MatmulConfiguration } from "../configuration.ts";
import { raggedDot } from "../../ragged/ragged-dot.ts";
import { matmul } from "../matmul.ts";
import { packWeights } from "./pack-weights.ts";
import { dequantizeWeights, quantizeWeights } from "./quantize-weights.ts";
import { quantized } from "./quantized.ts";
import type { ScaleFormat, WeightFormat } from "./quantized.ts";

const { bf16, f16, f32, f4e2m1fn, f6e2m3fn, f6e3m2fn, f8e4m3fn, f8e5m2, f8e8m0fnu, i4, i8 } =
  formats;
const devices = new Map<string, Device>();
beforeAll(async () => {
  for (const kind of ["simulator", "emulator"] as const)
    devices.set(kind, await open(kind, { onNotes: () => undefined }));
});
afterAll(() => {
  for (const device of devices.values()) device.dispose();
});

function deviceOf(kind: string): Device {
  const found = devices.get(kind);
  if (found === undefined) throw new Error(`${kind} is not open`);
  return found;
}

const skinny = (
  rows: 8 | 16 | 32 | 64,
  columns: 16 | 32 | 64,
  sliceK: 1 | 2 | 4,
  stages: number,
  splitK = 1,
): MatmulConfiguration => ({ kernel: "skinny", rows, columns, sliceK, stages, splitK });
const swapped: MatmulConfiguration = {
  ...{ kernel: "persistent", consumers: 2, columns: 16, stages: 2 },
  ...{ schedule: "tiles", swapAB: true, cluster: 1 },
};
const parted: MatmulConfiguration = { ...swapped, consumers: 4, columns: 8, schedule: "split-k" };
const plain: MatmulConfiguration = {
  ...{ kernel: "plain", rows: 64, columns: 64, depth: 128, splitK: 1 },
};

interface Case {
  readonly name: string;
  readonly element: DType<WeightFormat & formats.FloatName>;
  readonly group: number;
  readonly scale: DType<ScaleFormat>;
  readonly as?: DType<"bf16" | "f16">;
  /** That scales are stored in, if another one. */
  readonly stored?: DType<ScaleFormat>;
  readonly configurations: readonly MatmulConfiguration[];
}

const cases: readonly Case[] = [
  {
    name: "MXFP4",
    ...{ element: f4e2m1fn, group: 32, scale: f8e8m0fnu },
    configurations: [plain, swapped, skinny(16, 16, 1, 2), skinny(8, 16, 4, 4)],
  },
  {
    name: "NVFP4",
    ...{ element: f4e2m1fn, group: 16, scale: f8e4m3fn },
    configurations: [swapped, skinny(8, 64, 4, 4, 2), skinny(16, 16, 4, 4), skinny(32, 16, 1, 2)],
  },
  {
    name: "NVFP4 with scales as bf16, multiplied in f16",
    ...{ element: f4e2m1fn, group: 16, scale: f8e4m3fn, stored: bf16, as: f16 },
    configurations: [plain, swapped, skinny(16, 32, 2, 4)],
  },
  {
    name: "MXFP8",
    ...{ element: f8e4m3fn, group: 32, scale: f8e8m0fnu },
    configurations: [swapped, skinny(16, 16, 1, 2), skinny(8, 16, 4, 4)],
  },
  {
    name: "MXFP8 in E5M2, groups of 64",
    ...{ element: f8e5m2, group: 64, scale: f8e8m0fnu },
    configurations: [plain, skinny(32, 16, 1, 2)],
  },
  {
    name: "MXFP6",
    ...{ element: f6e2m3fn, group: 32, scale: f8e8m0fnu },
    configurations: [swapped, skinny(16, 16, 1, 2), parted],
  },
  {
    name: "MXFP6 in E3M2",
    ...{ element: f6e3m2fn, group: 32, scale: f8e8m0fnu },
    configurations: [plain, skinny(8, 16, 4, 4)],
  },
];

const [n, k] = [dim("n"), dim("k")];
const [rows, columns, depth] = [5, 96, 512];

/** Codes of finite numbers; scales are near 1. */
function codes(dtype: DType<formats.FloatName>, count: number, random: Random): Uint8Array {
  const bits = dtype === f4e2m1fn ? 4 : dtype === f6e2m3fn || dtype === f6e3m2fn ? 6 : 8;
  return Uint8Array.from({ length: count }, () => {
    if (dtype === f8e8m0fnu) return 124 + random.below(7);
    for (;;) {
      const code = random.below(1 << bits);
      if (Number.isFinite(decodeFloat(dtype.name as "f8e4m3fn", code))) return code;
    }
  });
}

describe.each(["simulator", "emulator"] as const)("weights with scales on the %s", (kind) => {
  test.each(dealtTo(kind, cases))("$name", async (one) => {
    const { element, group, scale, stored = scale, as = bf16, configurations } = one;
    const device = deviceOf(kind);
    const random = new Random(23);
    const blocks = depth / group;
    const [x, scales] = [
      codes(element, columns * depth, random),
      codes(scale, columns * blocks, random),
    ];
    const numberOf = (dtype: DType, code: number) => decodeFloat(dtype.name as "f8e4m3fn", code);
    const weights = Float64Array.from(x, (code, index) => {
      const block = Math.floor(index / depth) * blocks + Math.floor((index % depth) / group);
      return numberOf(element, code) * numberOf(scale, scales[block] ?? 0);
    });
    const b = quantized(element, [k, n], { groupSize: group, scale: stored, as });
    const packed = await device.run(packWeights({ b, scale }), {
      x: fromElements(element, [columns, depth], x as never),
      scale: fromElements(scale, [columns, blocks], scales as never),
    } as never);
    const a = Float64Array.from({ length: rows * depth }, () => random.below(9) - 4);
    for (const configuration of configurations) {
      const operation = matmul({ a: as, b, out: f32, configuration });
      const { out } = await device.run(operation, {
        a: fromNumbers(as, [rows, depth], a),
        ...packed,
      } as never);
      const far = Array.from(toNumbers(out), (found, index) => {
        const [i, j] = [Math.floor(index / columns), index % columns];
        let [sum, size] = [0, 0];
        for (let l = 0; l < depth; l += 1) {
          const term = (a[i * depth + l] ?? 0) * (weights[j * depth + l] ?? 0);
          [sum, size] = [sum + term, size + Math.abs(term)];
        }
        return Math.abs(found - sum) <= size * 2 ** -18 ? [] : [{ i, j, found, sum }];
      });
      expect(far.flat().slice(0, 4), JSON.stringify(configuration)).toEqual([]);
    }
  });
});

test("scales that are padded, or lie in tiles, are the same", async () => {
  const device = deviceOf("simulator");
  const random = new Random(29);
  for (const [group, scale] of [
    [32, f8e8m0fnu],
    [16, f8e4m3fn],
  ] as const) {
    const blocks = depth / group;
    const x = codes(f4e2m1fn, columns * depth, random);
    const scales = codes(scale, columns * blocks, random);
    const b = quantized(f4e2m1fn, [k, n], { groupSize: group, scale, as: bf16 });
    const given = fromElements(f4e2m1fn, [columns, depth], x as never);
    const place = (r: number, s: number): number =>
      (((Math.floor(r / 128) * (blocks / 4) + Math.floor(s / 4)) * 32 + (r % 32)) * 4 +
        (Math.floor(r / 32) % 4)) *
        4 +
      (s % 4);
    const tiled = new Uint8Array(128 * blocks);
    const wide = new Uint8Array(128 * (blocks + 4));
    scales.forEach((code, index) => {
      const [r, s] = [Math.floor(index / blocks), index % blocks];
      tiled[place(r, s)] = code;
      wide[r * (blocks + 4) + s] = code;
    });
    const run = async (scaleLayout: "plain" | "tiled", array: unknown) => {
      const { bScale } = await device.run(packWeights({ b, scaleLayout }), {
        x: given,
        scale: array,
      } as never);
      return toNumbers(bScale);
    };
    const wanted = await run("plain", fromElements(scale, [columns, blocks], scales as never));
    const padded = fromElements(scale, [128, blocks + 4], wide as never);
    expect(await run("plain", padded)).toEqual(wanted);
    const inTiles = fromElements(scale, [1, blocks / 4, 32, 4, 4], tiled as never);
    expect(await run("tiled", inTiles)).toEqual(wanted);
    // Read in the other order they are others.
    const mutated = fromElements(scale, [128, blocks], tiled as never);
    expect(await run("plain", mutated)).not.toEqual(wanted);
  }
});

test("weights that cannot be packed are refused", () => {
  const code = (spec: unknown) => codeOf(() => packWeights(spec as never));
  const b = quantized(f4e2m1fn, [k, n], { groupSize: 32, scale: f8e8m0fnu, as: bf16 });
  expect(code({ b: quantized(i4, [k, n], { groupSize: 128, scale: bf16 }) })).toBe("TW9902");
  expect(code({ b: quantized(i8, [k, n], { scale: bf16 }) })).toBe("TW9902");
  expect(code({ b: i4 })).toBe("TW9902");
  expect(code({ b, scaleLayout: "swizzled" })).toBe("TW9905");
  expect(codeOf(() => quantized(i4, [k, n], { groupSize: 48, scale: bf16 }))).toBe("TW9902");
  expect(
    codeOf(() => quantized(f4e2m1fn, [k, n], { groupSize: 32, scale: f8e8m0fnu } as never)),
  ).toBe("TW9902");
});

describe.each(["simulator", "emulator"] as const)("experts on the %s", (kind) => {
  test.each(
    dealtTo(kind, [
      ["MXFP4", f4e2m1fn, 32, f8e8m0fnu],
      ["NVFP4", f4e2m1fn, 16, f8e4m3fn],
      ["MXFP8", f8e4m3fn, 32, f8e8m0fnu],
    ] as const),
  )("%s", async (_, element, group, scale) => {
    const device = deviceOf(kind);
    const random = new Random(37);
    const sizes = [4, 0, 5];
    const [experts, own, wide, deep] = [sizes.length, 9, 40, 160];
    const blocks = Math.ceil(deep / group);
    const x = codes(element, experts * wide * deep, random);
    const scales = codes(scale, experts * wide * blocks, random);
    const b = quantized(element, [dim("g"), k, n], { groupSize: group, scale, as: bf16 });
    const packed = await device.run(packWeights({ b }), {
      x: fromElements(element, [experts, wide, deep], x as never),
      scale: fromElements(scale, [experts, wide, blocks], scales as never),
    } as never);
    const a = Float64Array.from({ length: own * deep }, () => random.below(9) - 4);
    const { out } = await device.run(raggedDot({ a: bf16, b, out: f32 }), {
      a: fromNumbers(bf16, [own, deep], a),
      groupSizes: fromNumbers(formats.i32, [experts], sizes),
      ...packed,
    } as never);
    const decoded = (dtype: DType, code: number) => decodeFloat(dtype.name as "f8e4m3fn", code);
    const far = Array.from(toNumbers(out), (found, index) => {
      const [i, j] = [Math.floor(index / wide), index % wide];
      const column = (i < 4 ? 0 : 2) * wide + j;
      let [sum, size] = [0, 0];
      for (let l = 0; l < deep; l += 1) {
        const factor = decoded(scale, scales[column * blocks + Math.floor(l / group)] ?? 0);
        const term = (a[i * deep + l] ?? 0) * decoded(element, x[column * deep + l] ?? 0) * factor;
        [sum, size] = [sum + term, size + Math.abs(term)];
      }
      return Math.abs(found - sum) <= size * 2 ** -18 ? [] : [{ i, j, found, sum }];
    });
    expect(far.flat().slice(0, 4)).toEqual([]);
  });
});

describe.each(["simulator", "emulator"] as const)(
  "weights quantised by parts of 128 on the %s",
  (kind) => {
    test.each(
      dealtTo(kind, [
        ["MXFP4", f4e2m1fn, 32, f8e8m0fnu],
        ["MXFP8", f8e4m3fn, 32, f8e8m0fnu],
        ["NVFP4", f4e2m1fn, 16, f8e4m3fn],
        ["FP6 by 64 with scales in f32", f6e2m3fn, 64, f32],
        ["i4 by 32", i4, 32, bf16],
        ["i8 by 16 with zero points", i8, 16, bf16],
      ] as const),
    )("%s", async (name, element, group, scale) => {
      const device = deviceOf(kind);
      const random = new Random(43);
      const [wide, deep] = [70, 200];
      const hasZero = name.includes("zero");
      const b = quantized(element, [k, n], {
        ...{ groupSize: group, scale, as: bf16 },
        ...(hasZero && { zeroPoint: element as typeof i8 }),
      } as never);
      const x = Float64Array.from({ length: wide * deep }, (_, i) =>
        // One group is zeros, one is large.
        Math.fround(
          i % wide === 3 ? 0 : random.normal() * (i % wide === 4 ? 1e4 : 1) + (hasZero ? 2 : 0),
        ),
      );
      const given = { x: f32, b } as never;
      const packed = await device.run(quantizeWeights(given), {
        x: fromNumbers(f32, [deep, wide], x),
      } as never);
      const back = (await device.run(dequantizeWeights(given), packed as never, {
        dimensions: { k: deep },
      })) as never as { x: ReturnType<typeof fromNumbers> };
      const inFormat = (dtype: DType, value: number): number =>
        dtype === f32
          ? Math.fround(value)
          : decodeFloat(dtype.name as "bf16", encodeFloat(dtype.name as "bf16", value));
      const isWhole = element === i4 || element === i8;
      const most = { i4: 7, i8: 127, f4e2m1fn: 6, f6e2m3fn: 7.5, f8e4m3fn: 448 }[element.name];
      const least = hasZero ? -most - 1 : -most;
      const found = toNumbers(back.x);
      const wrong: string[] = [];
      for (let column = 0; column < wide; column++)
        for (let first = 0; first < deep; first += group) {
          const rowsOf = Array.from({ length: Math.min(group, deep - first) }, (_, l) => first + l);
          const own = rowsOf.map((row) => x[row * wide + column] ?? NaN);
          const [low, high] = [Math.min(0, ...own), Math.max(0, ...own)];
          const reach = Math.fround(
            hasZero ? Math.fround(high - low) / (most - least) : Math.max(high, -low) / most,
          );
          const factor =
            scale === f8e8m0fnu
              ? 2 ** Math.max(-127, Math.ceil(Math.log2(reach)))
              : inFormat(scale, reach);
          const safe = factor === 0 ? 1 : factor;
          const even = (value: number): number => {
            const near = Math.round(value);
            return Math.abs(value - Math.trunc(value)) === 0.5 && near % 2 !== 0 ? near - 1 : near;
          };
          const zero = hasZero
            ? Math.min(most, Math.max(least, even(Math.fround(-Math.fround(low / safe) + least))))
            : 0;
          own.forEach((value, l) => {
            const quotient = Math.fround(value / safe);
            const stored = isWhole
              ? Math.min(most, Math.max(least, even(quotient) + zero)) - zero
              : inFormat(element, Math.min(most, Math.max(least, quotient)));
            const wanted = inFormat(bf16, Math.fround(stored * factor));
            const at = (rowsOf[l] ?? 0) * wide + column;
            if (found[at] !== wanted + 0 && wrong.length < 4)
              wrong.push(`[${rowsOf[l]}, ${column}]: ${found[at]}, not ${wanted} of ${value}`);
          });
        }
      expect(wrong).toEqual([]);
    });
  },
);
