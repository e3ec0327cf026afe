import { describe, expect, test } from "vitest";
import { coordinatesOf, numberOf, shuffled, volume } from "../../../test/layout-oracle.ts";
import { TilewrightError } from "../../support/diagnostics.ts";
import { Random } from "../../support/random.ts";
import {
  byteOffset,
  elementAtByte,
  parseSharedLayout,
  rowMajor,
  sharedBytes,
  sharedLayout,
  sharedProblem,
  swizzleByte,
  swizzles,
} from "./shared-layout.ts";
import type { SharedLayout } from "./shared-layout.ts";
import { tensorBox, tensorBoxProblem, wgmmaForm, wgmmaProblem } from "./shared-legality.ts";
import {
  reshapeView,
  sliceView,
  tiledAxes,
  transposeView,
  viewBits,
  wholeView,
} from "./shared-view.ts";

function codeOf(action: () => unknown): string {
  try {
    action();
  } catch (error) {
    if (error instanceof TilewrightError) return error.code;
    throw error;
  }
  return "none";
}

/** The definition, step by step: order, tile, swizzle. */
function referenceByte(
  { order, tile, swizzle }: { order: readonly number[]; tile: readonly number[]; swizzle: number },
  shape: readonly number[],
  bits: number,
  element: number,
): number {
  const lead = shape.length - order.length;
  const permutation = shape.map((_, axis) =>
    axis < lead ? axis : lead + (order[axis - lead] ?? 0),
  );
  const coordinates = coordinatesOf(element, shape);
  const stored = permutation.map((axis) => coordinates[axis] ?? 0);
  const extents = permutation.map((axis) => shape[axis] ?? 1);
  const first = shape.length - tile.length;
  const outer = stored.map((value, axis) => Math.floor(value / (tile[axis - first] ?? 1)));
  const outerExtents = extents.map((extent, axis) => extent / (tile[axis - first] ?? 1));
  const inner = tile.map((extent, axis) => (stored[first + axis] ?? 0) % extent);
  const number = numberOf([...outer, ...inner], [...outerExtents, ...tile]) ?? -1;
  const byte = Math.floor((number * bits) / 8);
  if (swizzle === 0) return byte;
  const row = Math.floor(byte / 128) % (swizzle / 16);
  const chunk = Math.floor(byte / 16) % 8;
  return byte - 16 * chunk + 16 * (chunk ^ row);
}

describe("text", () => {
  test.each([
    [{}, "shared()"],
    [{ swizzle: 128 }, "shared(swizzle 128)"],
    [{ order: [1, 0], tile: [8, 64], swizzle: 64 }, "shared(order 1 0, tile 8 64, swizzle 64)"],
    [{ order: [0, 2, 1] }, "shared(order 1 0)"],
    [{ order: [0, 1] }, "shared()"],
    [{ tile: [1, 8, 64] }, "shared(tile 8 64)"],
    [{ tile: [1, 64] }, "shared()"],
    [{ tile: [8, 1] }, "shared(tile 8 1)"],
  ])("%o is %s", (steps, text) => {
    expect(sharedLayout(steps).text).toBe(text);
    expect(parseSharedLayout(text).text).toBe(text);
    expect(parseSharedLayout(text)).toEqual(sharedLayout(steps));
  });

  test("mistakes", () => {
    for (const steps of [{ swizzle: 16 }, { order: [1, 1] }, { order: [1] }, { tile: [0, 8] }])
      expect(codeOf(() => sharedLayout(steps))).toBe("TW6006");
    for (const text of [
      "",
      "shared",
      "shared(tile)",
      "shared(swizzle 128, tile 8 64)",
      "shared(x)",
    ])
      expect(
        codeOf(() => parseSharedLayout(text)),
        text,
      ).toBe("TW6001");
    const tiled = sharedLayout({ tile: [8, 64] });
    expect(codeOf(() => wholeView(tiled, [100, 64], 16))).toBe("TW6007");
    expect(codeOf(() => byteOffset(tiled, [64], 16, 0))).toBe("TW6007");
    expect(sharedProblem(sharedLayout({ order: [1, 0] }), [4])).toContain("orders more axes");
    expect(sharedProblem(tiled, [16, 128])).toBeUndefined();
  });
});

describe("bytes", () => {
  test("worked table", () => {
    const layout = sharedLayout({ tile: [8, 64], swizzle: 128 });
    const at = (row: number, column: number) =>
      byteOffset(layout, [64, 128], 16, row * 128 + column);
    expect([at(0, 0), at(1, 0), at(1, 8), at(0, 64), at(8, 0)]).toEqual([0, 144, 128, 1024, 2048]);
  });

  test("swizzles undo themselves and stay within their pattern", () => {
    for (const swizzle of swizzles) {
      for (let byte = 0; byte < 2048; byte += 1) {
        const moved = swizzleByte(byte, swizzle);
        const kept = swizzleByte(moved, swizzle) === byte && moved >> 7 === byte >> 7;
        if (!kept) expect.fail(`swizzle ${swizzle} moves byte ${byte} to ${moved}`);
      }
    }
    // Bits of the address as the hardware states them.
    expect(swizzleByte(0b111 << 7, 128)).toBe((0b111 << 7) | (0b111 << 4));
    expect(swizzleByte(0b111 << 7, 64)).toBe((0b111 << 7) | (0b011 << 4));
    expect(swizzleByte(0b111 << 7, 32)).toBe((0b111 << 7) | (0b001 << 4));
  });

  test("against the definition, and back", () => {
    for (let seed = 0; seed < 100; seed += 1) {
      const random = new Random(seed);
      const rank = 1 + random.below(3);
      const shape = Array.from({ length: rank }, () => random.pick([2, 4, 6, 8, 16]));
      const order = random.below(2) === 0 ? [] : shuffled(random, [...shape.keys()]);
      const turned = order.length === 0 ? shape : order.map((axis) => shape[axis] ?? 1);
      const tiled = random.below(2) === 0 ? [] : turned.slice(-2);
      const tile = tiled.map((extent) => random.pick([1, 2, extent]));
      const swizzle = random.pick(swizzles);
      const bits = random.pick([4, 8, 16, 32]);
      const layout = sharedLayout({ order, tile, swizzle });
      const message = `seed ${seed}: ${layout.text} on [${shape.join(", ")}], ${bits} bits`;
      const elements = Array.from({ length: volume(shape) }, (_, element) => element);
      const bytes = elements.map((element) => byteOffset(layout, shape, bits, element));
      const steps = { order, tile, swizzle };
      expect(bytes, message).toEqual(
        elements.map((element) => referenceByte(steps, shape, bits, element)),
      );
      const back = bytes.map((byte) => elementAtByte(layout, shape, bits, byte) ?? -1);
      if (bits > 4) expect(back, message).toEqual(elements);
      else
        expect(
          back.map((element) => bytes[element]),
          message,
        ).toEqual(bytes);
      const seen = new Set(bytes);
      expect(seen.size, message).toBe(bits === 4 ? volume(shape) / 2 : volume(shape));
    }
  });

  test("sizes and bytes that hold no element", () => {
    expect(sharedBytes([3, 3], 4)).toBe(5);
    expect(sharedBytes([8, 64], 16)).toBe(1024);
    expect(elementAtByte(rowMajor, [4], 32, 2)).toBeUndefined();
    expect(elementAtByte(rowMajor, [4], 32, 16)).toBeUndefined();
    expect(elementAtByte(rowMajor, [4], 32, 12)).toBe(3);
  });
});

describe("views", () => {
  const layouts: SharedLayout[] = [
    rowMajor,
    sharedLayout({ tile: [4, 8] }),
    sharedLayout({ order: [1, 0], tile: [4, 4], swizzle: 32 }),
    sharedLayout({ swizzle: 128 }),
  ];

  test("slices, transpositions and reshapes compose with any layout", () => {
    for (let seed = 0; seed < 200; seed += 1) {
      const random = new Random(seed);
      const layout = random.pick(layouts);
      const allocation = [2, 8, 16];
      let view = wholeView(layout, allocation, 16);
      let numbers = Array.from({ length: volume(allocation) }, (_, element) => element);
      for (let step = 0; step < 3; step += 1) {
        const { shape } = view;
        const choice = random.below(3);
        if (choice === 0) {
          const starts = shape.map((extent) => random.below(extent));
          const sizes = shape.map((extent, axis) => 1 + random.below(extent - (starts[axis] ?? 0)));
          const dropped = [...shape.keys()].filter((axis) => sizes[axis] === 1 && axis === 0);
          const source = numbers;
          numbers = Array.from({ length: volume(sizes) }, (_, element) => {
            const inside = coordinatesOf(element, sizes);
            const outside = inside.map((value, axis) => value + (starts[axis] ?? 0));
            return source[numberOf(outside, shape) ?? -1] ?? -1;
          });
          view = sliceView(view, starts, sizes, dropped);
        } else if (choice === 1) {
          const permutation = shuffled(random, [...shape.keys()]);
          const turned = permutation.map((axis) => shape[axis] ?? 1);
          const source = numbers;
          numbers = Array.from({ length: volume(turned) }, (_, element) => {
            const coordinates = coordinatesOf(element, turned);
            const own = shape.map((_, axis) => coordinates[permutation.indexOf(axis)] ?? 0);
            return source[numberOf(own, shape) ?? -1] ?? -1;
          });
          view = transposeView(view, permutation);
        } else {
          const last = shape.at(-1) ?? 1;
          const next =
            random.below(2) === 0 && last % 2 === 0
              ? [...shape.slice(0, -1), last / 2, 2]
              : [volume(shape)];
          view = reshapeView(view, next) ?? view;
        }
      }
      const bits = viewBits(view);
      const message = `seed ${seed}: ${layout.text}, [${view.shape.join(", ")}]`;
      expect([...bits], message).toEqual(
        numbers.map((element) => 8 * byteOffset(layout, allocation, 16, element)),
      );
    }
  });

  test("what cannot be reshaped, and windows outside", () => {
    const whole = wholeView(rowMajor, [8, 16], 16);
    expect(reshapeView(transposeView(whole, [1, 0]), [128])).toBeUndefined();
    expect(reshapeView(sliceView(whole, [0, 0], [8, 8]), [64])).toBeUndefined();
    expect(reshapeView(whole, [4, 2, 1, 16])?.strides).toEqual([32, 16, 0, 1]);
    expect(reshapeView(whole, [3, 16])).toBeUndefined();
    expect(codeOf(() => sliceView(whole, [0, 12], [8, 8]))).toBe("TW6009");
    expect(codeOf(() => sliceView(whole, [-1, 0], [8, 8]))).toBe("TW6009");
  });

  test("runs and jumps", () => {
    const layout = sharedLayout({ tile: [8, 64], swizzle: 128 });
    const view = wholeView(layout, [4, 64, 128], 16);
    const stage = sliceView(view, [2, 0, 0], [1, 64, 128], [0]);
    const rows = { inner: 8, step: 128, outer: 8, jump: 2048 };
    const columns = { inner: 64, step: 2, outer: 2, jump: 1024 };
    expect(tiledAxes(stage)).toEqual({ start: 2 * 64 * 128 * 2, axes: [rows, columns] });
    expect(tiledAxes(transposeView(stage, [1, 0]))?.axes).toEqual([columns, rows]);
    expect(tiledAxes(sliceView(stage, [8, 64], [16, 64]))).toEqual({
      start: 2 * 64 * 128 * 2 + 2048 + 1024,
      axes: [
        { ...rows, outer: 2 },
        { inner: 64, step: 2, outer: 1, jump: 0 },
      ],
    });
    expect(tiledAxes(sliceView(stage, [4, 0], [16, 64]))).toBeUndefined();
    const halves = reshapeView(stage, [64, 2, 64]);
    expect(halves && tiledAxes(halves)?.axes).toEqual([
      rows,
      { inner: 2, step: 1024, outer: 1, jump: 0 },
      { inner: 64, step: 2, outer: 1, jump: 0 },
    ]);
    const straddling = reshapeView(sliceView(stage, [0, 32], [64, 64]), [64, 2, 32]);
    expect(straddling && tiledAxes(straddling)?.axes[2]).toEqual({
      inner: 32,
      step: 2,
      outer: 1,
      jump: 0,
    });
    const crossing = reshapeView(sliceView(stage, [0, 16], [64, 96]), [64, 3, 32]);
    expect(crossing && tiledAxes(crossing)).toBeUndefined();
  });

  test("steps along one axis that depend on another, or do not fill the last run, are not regular", () => {
    const columns = reshapeView(wholeView(sharedLayout({ order: [1, 0] }), [4, 4], 32), [16]);
    if (columns === undefined) throw new Error("not one axis");
    // Stored by columns, number n lies at word 4·(n % 4) + n / 4.
    const run = { inner: 4, step: 16, outer: 2, jump: 4 };
    expect(tiledAxes(sliceView(columns, [0], [8]))?.axes).toEqual([run]);
    expect(tiledAxes(sliceView(columns, [0], [6]))).toBeUndefined();
    const even = reshapeView(sliceView(columns, [0], [12]), [6, 2]);
    expect(even && tiledAxes(even)?.axes.length).toBe(2);
    const odd = reshapeView(sliceView(columns, [1], [12]), [6, 2]);
    expect(odd?.shape).toEqual([6, 2]);
    expect(odd && tiledAxes(odd)).toBeUndefined();
  });
});

describe("wgmma operands", () => {
  const operand = { mn: 0, k: 1, count: 64 };
  const view = (steps: Parameters<typeof sharedLayout>[0], shape: readonly number[], bits = 16) =>
    wholeView(sharedLayout(steps), shape, bits);

  test("contiguous along k, all swizzles: strides of the descriptor", () => {
    // Boxes of one width by 128 rows, and tiles of eight rows.
    expect(wgmmaForm(view({ tile: [128, 64], swizzle: 128 }, [128, 64]), operand)).toEqual({
      major: "k",
      widthStride: 0,
      blockStride: 1024,
    });
    expect(wgmmaForm(view({ tile: [128, 32], swizzle: 64 }, [128, 64]), operand)).toEqual({
      major: "k",
      widthStride: 128 * 64,
      blockStride: 512,
    });
    expect(wgmmaForm(view({ tile: [128, 16], swizzle: 32 }, [128, 64]), operand)).toEqual({
      major: "k",
      widthStride: 128 * 32,
      blockStride: 256,
    });
    expect(wgmmaForm(view({ tile: [128, 8] }, [128, 64]), operand)).toEqual({
      major: "k",
      widthStride: 128 * 16,
      blockStride: 128,
    });
    expect(wgmmaForm(view({ tile: [8, 64], swizzle: 128 }, [128, 128]), operand)).toEqual({
      major: "k",
      widthStride: 1024,
      blockStride: 2048,
    });
    // Runs of the 64 rows that are read: blocks follow one another, whatever comes behind the run.
    expect(wgmmaForm(view({ tile: [64, 64], swizzle: 128 }, [128, 128]), operand)).toEqual({
      major: "k",
      widthStride: 64 * 128,
      blockStride: 1024,
    });
    for (const bits of [8, 32]) {
      const columns = 1024 / bits;
      const tiled = view({ tile: [8, columns], swizzle: 128 }, [64, columns], bits);
      expect(wgmmaProblem(tiled, operand)).toBeUndefined();
    }
  });

  test("contiguous along m or n: 16 bits only", () => {
    const right = { mn: 1, k: 0, count: 128 };
    const stored = view({ tile: [64, 64], swizzle: 128 }, [64, 128]);
    expect(wgmmaForm(stored, right)).toEqual({
      major: "mn",
      widthStride: 64 * 128,
      blockStride: 1024,
    });
    const bytes = view({ tile: [8, 128], swizzle: 128 }, [64, 128], 8);
    expect(wgmmaProblem(bytes, right)).toContain("contiguous along k");
    const words = view({ tile: [8, 32], swizzle: 128 }, [64, 128], 32);
    expect(wgmmaProblem(words, right)).toContain("contiguous along k");
    const turned = transposeView(view({ tile: [8, 64], swizzle: 128 }, [128, 64]), [1, 0]);
    expect(wgmmaForm(turned, right)).toEqual({ major: "k", widthStride: 0, blockStride: 1024 });
  });

  test.each([
    ["rows wider than the swizzle", view({ swizzle: 128 }, [64, 128]), "contiguous for 256 bytes"],
    ["no swizzle, no tiles", view({}, [64, 64]), "contiguous for 128 bytes"],
    ["rows shorter than the swizzle", view({ swizzle: 128 }, [64, 32]), "contiguous for 64 bytes"],
    [
      "a cut tile",
      sliceView(view({ tile: [8, 64], swizzle: 128 }, [128, 128]), [4, 0], [64, 64]),
      "cuts",
    ],
    [
      "a shifted window",
      sliceView(view({ swizzle: 128 }, [128, 64]), [4, 0], [64, 64]),
      "bytes into the pattern",
    ],
    ["too few rows", view({ tile: [8, 64], swizzle: 128 }, [32, 64]), "no multiple of 64"],
    ["too little depth", view({ tile: [8, 8] }, [64, 8]), "no multiple of 16"],
    ["64 bits", view({}, [64, 64], 64), "64 bits"],
    ["runs of four rows", view({ tile: [4, 64], swizzle: 128 }, [64, 128]), "no multiple of 8"],
    ["uneven blocks", view({ tile: [16, 64], swizzle: 128 }, [64, 128]), "no one stride"],
    [
      "every other row",
      sliceView(view({ swizzle: 128 }, [64, 2, 64]), [0, 0, 0], [64, 1, 64], [1]),
      "apart",
    ],
  ])("refused: %s", (_, bad, reason) => {
    expect(wgmmaProblem(bad, operand)).toContain(reason);
  });

  test("refused: axes", () => {
    const deep = view({ swizzle: 128 }, [2, 64, 64]);
    expect(wgmmaProblem(deep, { mn: 1, k: 2, count: 64 })).toContain("more than two axes");
    expect(wgmmaProblem(view({}, [64]), operand)).toContain("fewer than two");
    const strided = sliceView(view({}, [64, 64, 2]), [0, 0, 0], [64, 64, 1], [2]);
    expect(wgmmaProblem(strided, operand)).toContain("neither axis");
    const narrow = { mn: 0, k: 1, count: 12 };
    expect(wgmmaProblem(view({ tile: [8, 64], swizzle: 128 }, [24, 64]), narrow)).toContain("of 8");
  });
});

describe("boxes of TMA", () => {
  const view = (steps: Parameters<typeof sharedLayout>[0], shape: readonly number[], bits = 16) =>
    wholeView(sharedLayout(steps), shape, bits);

  test("a tiled allocation is one box of tiles", () => {
    expect(tensorBox(view({ tile: [8, 64], swizzle: 128 }, [64, 128]))).toEqual([
      { axis: 0, step: 8, extent: 8 },
      { axis: 1, step: 64, extent: 2 },
      { axis: 0, step: 1, extent: 8 },
      { axis: 1, step: 1, extent: 64 },
    ]);
    expect(tensorBox(view({ swizzle: 128 }, [128, 64]))).toEqual([
      { axis: 0, step: 1, extent: 128 },
      { axis: 1, step: 1, extent: 64 },
    ]);
    const stages = view({ swizzle: 128 }, [4, 64, 64]);
    expect(tensorBoxProblem(sliceView(stages, [3, 0, 0], [1, 64, 64], [0]))).toBeUndefined();
    const stored = view({ order: [1, 0], swizzle: 128 }, [64, 128]);
    expect(tensorBox(stored)).toEqual([
      { axis: 1, step: 1, extent: 128 },
      { axis: 0, step: 1, extent: 64 },
    ]);
  });

  test.each([
    ["long axis", view({}, [512, 16]), "more than 256"],
    ["narrow rows", view({}, [8, 4]), "no multiple of 16"],
    ["rows unlike the swizzle", view({ swizzle: 128 }, [64, 32]), "not as wide as the swizzle"],
    ["gaps", sliceView(view({}, [64, 64]), [0, 0], [64, 32]), "gaps"],
    ["cut tiles", sliceView(view({ tile: [8, 64] }, [64, 128]), [4, 0], [16, 64]), "cuts"],
    ["shifted", sliceView(view({}, [64, 32]), [1, 0], [8, 32]), "starts 64 bytes past"],
    [
      "not contiguous",
      sliceView(view({}, [64, 64, 2]), [0, 0, 0], [64, 64, 1]),
      "no axis is contiguous",
    ],
    ["many axes", view({}, [2, 2, 2, 2, 2, 16]), "6 axes"],
  ])("refused: %s", (_, bad, reason) => {
    expect(tensorBoxProblem(bad)).toContain(reason);
  });
});
