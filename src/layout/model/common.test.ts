/**
 * What all kernels of a process share is kept by texts. Everything that an answer depends on must be part of them: of things that
 * differ in one respect alone, asked one after the other, each gets the answer that nobody before it was given.
 */
import { describe, expect, test } from "vitest";
import { bf16, tensor, f32, kernel, loop, slice, smem } from "tilewright";
import type { Ref } from "tilewright";
import type { Value } from "../../ir/node.ts";
import { walkOps } from "../../ir/traverse.ts";
import { tileParts } from "../access/lane-coordinates.ts";
import { sharedPlaces } from "../access/shared-addresses.ts";
import { storedDigits } from "../access/shared-storage.ts";
import type { SharedBox } from "../access/window.ts";
import { expand } from "../algebra/expansion.ts";
import { namedLayouts, stridedLayout } from "../algebra/named-layouts.ts";
import { fitsShape } from "../algebra/register-layout.ts";
import type { RegisterLayout } from "../algebra/register-layout.ts";
import { levelsOf, parseSharedLayout, rowMajor } from "../algebra/shared-layout.ts";
import { parseLayout } from "../algebra/parse-layout.ts";
import { memoryLayouts, simpleLayouts } from "./register-candidates.ts";
import { conversionsOf } from "./conversion-cost.ts";
import { commonFunctions, Functions } from "./layout-functions.ts";
import type { TileFunction } from "./layout-functions.ts";
import { windowsOf } from "./windows.ts";

type Make = (functions: Functions) => TileFunction;

/** Pairs that differ in one argument each. */
const made: readonly Make[] = [
  (functions) => functions.reduce([64, 32], [0]),
  (functions) => functions.reduce([64, 32], [1]),
  (functions) => functions.reduce([32, 64], [1]),
  (functions) => functions.reduce([64, 32, 2], [0, 1]),
  (functions) => functions.repeat({ from: [64, 1], to: [64, 32], axes: [0, 1] }),
  (functions) => functions.repeat({ from: [1, 32], to: [64, 32], axes: [0, 1] }),
  (functions) => functions.repeat({ from: [64], to: [64, 64], axes: [0] }),
  (functions) => functions.repeat({ from: [64], to: [64, 64], axes: [1] }),
  (functions) => functions.reshape([64, 32], [32, 64]),
  (functions) => functions.reshape([64, 32], [16, 128]),
  (functions) => functions.reshape([32, 64], [16, 128]),
  (functions) => functions.transpose([64, 32], [1, 0]),
  (functions) => functions.transpose([64, 32], [0, 1]),
  (functions) => functions.transpose([32, 64], [1, 0]),
  (functions) => functions.widen([64, 32]),
  (functions) => functions.widen([64, 64]),
  (functions) => functions.slice([64, 64], [0, 0], [32, 32]),
  (functions) => functions.slice([64, 64], [32, 0], [32, 32]),
  (functions) => functions.slice([64, 64], [0, 0], [64, 32]),
  (functions) => functions.slice([64, 128], [0, 0], [64, 32]),
  (functions) => functions.factor("left", [64, 32], 16),
  (functions) => functions.factor("right", [64, 32], 16),
  (functions) => functions.factor("left", [32, 64], 16),
  (functions) => functions.factor("left", [64, 32], 32),
];

const shapes = [[64, 32], [32, 64], [64, 64], [64, 1], [64], [32]];

const layouts: readonly RegisterLayout[] = [
  ...shapes.flatMap((shape) => {
    const extent = { shape, bits: 16, warps: 4 };
    return [...memoryLayouts(extent, 0), ...simpleLayouts(extent)];
  }),
  namedLayouts.wgmma,
  namedLayouts.wgmmaTransposed,
  namedLayouts.splat,
  stridedLayout(1),
  parseLayout("flat(R0 L0 L1 L2 L3 L4 W0 W1)"),
];

test("functions on layouts make the same of them for the first kernel and for all after it", () => {
  for (const make of made)
    for (const layout of layouts) {
      const [shared, own] = [make(commonFunctions()), make(new Functions())];
      expect(shared.name).toBe(own.name);
      const what = `${own.name}, ${layout.text}`;
      expect(shared.apply(layout)?.text, what).toBe(own.apply(layout)?.text);
      expect(shared.source(layout)?.text, what).toBe(own.source(layout)?.text);
    }
  for (const shape of shapes)
    for (const layout of layouts.filter((each) => fitsShape(each, shape))) {
      const expected = new Functions().normal(layout, shape).text;
      expect(commonFunctions().normal(layout, shape).text).toBe(expected);
    }
});

test("functions are begun anew where they have become many, and those in use stay as they are", () => {
  const before = commonFunctions();
  const reduce = before.reduce([64, 32], [1]);
  const expected = reduce.apply(namedLayouts.wgmma)?.text;
  for (let rows = 1; before.size <= 2 ** 15; rows += 1)
    before.normal(namedLayouts.replicated, [rows]);
  const after = commonFunctions();
  expect(after).not.toBe(before);
  expect(after.size).toBe(0);
  expect(after.reduce([64, 32], [1]).apply(namedLayouts.wgmma)?.text).toBe(expected);
  expect(before.reduce([64, 32], [1])).toBe(reduce);
});

test("conversions depend on the bits of elements and on the shape", () => {
  const [from, to] = [namedLayouts.wgmma, namedLayouts.wgmmaUpcast2];
  const cost = (shape: readonly number[], bits: number) =>
    conversionsOf(shape, bits).cost(from, to);
  const bytes = cost([64, 32], 8);
  const words = cost([64, 32], 32);
  expect(words).not.toBe(bytes);
  expect(cost([64, 64], 32)).not.toBe(words);
  expect([cost([64, 32], 32), cost([64, 32], 8)]).toEqual([words, bytes]);
});

describe("windows on shared memory", () => {
  /** Where the window of the first load begins with run-time offsets at 0 and at their divisor, its shape and strides. */
  function views(
    shape: readonly number[],
    make: (tile: Ref<"bf16">, index: Parameters<Parameters<typeof loop>[1]>[0]) => Ref<"bf16">,
    layout = rowMajor,
  ) {
    const { kernel: traced } = kernel(
      {
        name: "k",
        grid: { i: 4 },
        inputs: { x: tensor(f32, [64]) },
        outputs: { out: tensor(f32, [64]) },
        scratch: { tile: smem(bf16, shape) },
      },
      ({ tile }) => {
        loop(2, (index) => {
          make(tile, index).load();
        });
      },
    );
    let ref: Value | undefined;
    walkOps(traced.body, (op) => {
      if (op.kind === "load") ref ??= op.operands.ref;
    });
    const window = ref && windowsOf(traced).of(ref);
    if (window === undefined || window.space === "gmem") throw new Error("not in shared memory");
    const [near, far] = window.views(layout) ?? [];
    return [near?.first, far?.first, near?.shape, near?.strides, near?.layout.text];
  }

  test("are told apart by allocation, start, divisor, size, axes and layout", () => {
    const whole = slice(0, 64);
    const plain = "shared()";
    expect(views([2, 64, 64], (tile) => tile.at(0))).toEqual([0, 0, [64, 64], [64, 1], plain]);
    expect(views([4, 64, 64], (tile) => tile.at(1))).toEqual([
      4096,
      4096,
      [64, 64],
      [64, 1],
      plain,
    ]);
    expect(views([4, 64, 64], (tile, index) => tile.at(index))).toEqual([
      0,
      4096,
      [64, 64],
      [64, 1],
      plain,
    ]);
    expect(views([4, 64, 64], (tile, index) => tile.at(index.mul(2)))).toEqual([
      0,
      8192,
      [64, 64],
      [64, 1],
      plain,
    ]);
    expect(views([64, 2, 64], (tile) => tile.at(whole, 1))).toEqual([
      64,
      64,
      [64, 64],
      [128, 1],
      plain,
    ]);
    expect(views([64, 2, 64], (tile) => tile.at(whole, slice(1, 1)))).toEqual([
      64,
      64,
      [64, 1, 64],
      [128, 64, 1],
      plain,
    ]);
    expect(views([64, 128], (tile) => tile.transpose())[3]).toEqual([1, 128]);
    expect(views([64, 128], (tile) => tile.reshape([128, 64]))[3]).toEqual([64, 1]);
    expect(views([64, 128], (tile) => tile.reshape([32, 256]))[3]).toEqual([256, 1]);
    expect(views([64, 128], (tile) => tile)[3]).toEqual([128, 1]);
    const swizzled = parseSharedLayout("shared(tile 64 64, swizzle 128)");
    expect(views([64, 128], (tile) => tile, swizzled)[4]).toBe(swizzled.text);
  });
});

test("places in shared memory are told apart by all that the window is", () => {
  const box: SharedBox = {
    kind: "shared",
    dtype: bf16,
    allocation: [2, 64, 64],
    layout: parseSharedLayout("shared(swizzle 128)"),
    shape: [64, 64],
    strides: [64, 1],
    first: 0,
    moves: [],
    required: [],
  };
  const windows: readonly SharedBox[] = [
    box,
    { ...box, dtype: f32 },
    { ...box, allocation: [2, 64, 128], strides: [128, 1] },
    { ...box, allocation: [2, 64, 128] },
    { ...box, layout: parseSharedLayout("shared(tile 64 32, swizzle 64)") },
    { ...box, strides: [1, 64] },
    { ...box, first: 4096 },
    { ...box, moves: [{ stride: 4096, divisor: 1, count: 2 }] },
    { ...box, moves: [{ stride: 4096, divisor: 1, count: 1 }] },
    { ...box, moves: [{ stride: 2048, divisor: 2, count: 2 }] },
    { ...box, moves: [{ stride: 2048, divisor: 1, count: 2 }] },
  ];
  const tiles = [
    tileParts(namedLayouts.wgmma, [64, 64]),
    tileParts(namedLayouts.wgmmaTransposed, [64, 64]),
    tileParts(namedLayouts.wgmma, [64, 32]),
  ].filter((parts) => parts !== undefined);
  expect(tiles).toHaveLength(3);
  for (const parts of tiles)
    for (const window of windows) {
      // Parts of their own have nothing that is known of them.
      const fresh = sharedPlaces(window, { ...parts });
      expect(sharedPlaces(window, parts)).toEqual(fresh);
    }
});

test("parts of tiles and stored digits are told apart by layout and shape", () => {
  for (const shape of [
    [64, 64],
    [64, 32],
    [32, 64],
  ])
    for (const layout of [namedLayouts.wgmma, namedLayouts.wgmmaTransposed]) {
      const parts = tileParts(layout, shape);
      expect(parts?.axes.map(({ extent }) => extent)).toEqual(shape);
      const threads = expand(layout, shape)?.axes.map((digits) =>
        digits.flatMap(({ thread }) => thread ?? []).toSorted((left, right) => left - right),
      );
      const found = parts?.axes.map(({ ofBits }) =>
        ofBits.flatMap((part, bit) => (part > 0 ? [bit] : [])),
      );
      expect(found).toEqual(threads);
    }
  for (const layout of [rowMajor, parseSharedLayout("shared(tile 64 32)")])
    for (const allocation of [
      [64, 64],
      [64, 128],
      [128, 64],
    ]) {
      const digits = storedDigits(layout, allocation);
      const stored = levelsOf(layout, allocation).map(({ stride }) => stride);
      for (const digit of digits) expect(stored).toContain(digit.stored);
      const below = digits.slice(0, -1).reduce((size, { radix }) => size * radix, 1);
      expect(digits.at(-1)?.number).toBe(below);
    }
});
