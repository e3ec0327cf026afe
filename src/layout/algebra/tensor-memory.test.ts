import { describe, expect, test } from "vitest";
import { TilewrightError } from "../../support/diagnostics.ts";
import { holders } from "./element-maps.ts";
import { namedLayouts, tcgen05Collective } from "./named-layouts.ts";
import {
  parseTmemLayout,
  tmemAccess,
  tmemColumns,
  tmemElement,
  tmemMatrix,
  tmemPlace,
  tmemProblem,
  tmemHalvedScales,
  tmemScales,
} from "./tensor-memory.ts";
import type { TmemLayout } from "./tensor-memory.ts";

function codeOf(action: () => unknown): string {
  try {
    action();
  } catch (error) {
    if (error instanceof TilewrightError) return error.code;
    throw error;
  }
  return "none";
}

describe("places", () => {
  test("full, half and pair", () => {
    const at = (layout: TmemLayout, rows: number, row: number, column: number, bits = 32) =>
      tmemPlace(layout, [rows, 64], bits, row * 64 + column);
    expect(at(tmemMatrix("full"), 128, 77, 5)).toEqual({ lanes: [77], column: 5, bit: 0 });
    expect(at(tmemMatrix("full", 2), 128, 77, 5, 16)).toEqual({ lanes: [77], column: 2, bit: 16 });
    expect(at(tmemMatrix("half"), 64, 35, 5)).toEqual({ lanes: [67], column: 5, bit: 0 });
    expect(at(tmemMatrix("pair"), 64, 35, 5)).toEqual({ lanes: [35], column: 5, bit: 0 });
    expect(at(tmemMatrix("pair"), 64, 35, 37)).toEqual({ lanes: [99], column: 5, bit: 0 });
  });

  test("scales", () => {
    const at = (row: number, scale: number) => tmemPlace(tmemScales, [256, 8], 8, row * 8 + scale);
    expect(at(0, 0)).toEqual({ lanes: [0, 32, 64, 96], column: 0, bit: 0 });
    expect(at(33, 2)).toEqual({ lanes: [1, 33, 65, 97], column: 1, bit: 16 });
    expect(at(128, 0)).toEqual({ lanes: [0, 32, 64, 96], column: 4, bit: 0 });
    expect(at(0, 4)).toEqual({ lanes: [0, 32, 64, 96], column: 8, bit: 0 });
    const halved = tmemPlace(tmemHalvedScales, [256, 8], 8, (128 + 33) * 8 + 6);
    expect(halved).toEqual({ lanes: [65, 97], column: 5, bit: 16 });
  });

  test.each([
    ["tmem(full)", [128, 24], 32],
    ["tmem(full, pack 2)", [128, 24], 16],
    ["tmem(full, pack 4)", [128, 16], 8],
    ["tmem(half)", [64, 10], 32],
    ["tmem(pair, pack 2)", [64, 24], 16],
    ["tmem(scales)", [256, 8], 8],
    ["tmem(halved scales)", [256, 8], 8],
  ])("%s: every element has its own place, and back", (text, shape, bits) => {
    const layout = parseTmemLayout(text);
    expect(layout.text).toBe(text);
    const columns = tmemColumns(layout, shape, bits);
    const seen = new Set<string>();
    for (let element = 0; element < (shape[0] ?? 1) * (shape[1] ?? 1); element += 1) {
      const { lanes, column, bit } = tmemPlace(layout, shape, bits, element);
      const back = lanes.map((lane) => tmemElement(layout, shape, bits, { lane, column, bit }));
      expect(back).toEqual(lanes.map(() => element));
      expect(column < columns && bit + bits <= 32 && Math.max(...lanes) < 128).toBe(true);
      for (const lane of lanes) seen.add(`${lane} ${column} ${bit}`);
    }
    const copies = layout.kind !== "scales" ? 1 : layout.isHalved ? 2 : 4;
    expect(seen.size).toBe((shape[0] ?? 1) * (shape[1] ?? 1) * copies);
  });

  test("places without an element", () => {
    const at = (layout: TmemLayout, lane: number, column: number, bit: number) =>
      tmemElement(layout, [64, 8], 32, { lane, column, bit });
    expect(at(tmemMatrix("half"), 16, 0, 0)).toBeUndefined();
    expect(at(tmemMatrix("half"), 0, 8, 0)).toBeUndefined();
    expect(at(tmemMatrix("half"), 0, 0, 16)).toBeUndefined();
    const place = { lane: 0, column: 0, bit: 4 };
    expect(tmemElement(tmemScales, [128, 4], 8, place)).toBeUndefined();
  });
});

test("what does not fit", () => {
  expect(tmemProblem(tmemMatrix("half"), [128, 64], 32)).toContain("64 rows");
  expect(tmemProblem(tmemMatrix("full"), [128, 513], 32)).toContain("513 columns");
  expect(tmemProblem(tmemMatrix("full", 2), [128, 64], 32)).toContain("do not fit");
  expect(tmemProblem(tmemMatrix("pair"), [64, 7], 32)).toContain("multiple of 2");
  expect(tmemProblem(tmemScales, [64, 4], 8)).toContain("128 × 4");
  expect(tmemProblem(tmemScales, [128, 4], 16)).toContain("8 bits");
  expect(tmemProblem(tmemHalvedScales, [128, 4], 8)).toContain("256 rows");
  expect(tmemProblem(tmemMatrix("full"), [128], 32)).toContain("1 axes");
  expect(codeOf(() => tmemColumns(tmemMatrix("half"), [128, 64], 32))).toBe("TW6008");
  expect(codeOf(() => tmemMatrix("full", 3))).toBe("TW6008");
  expect(codeOf(() => parseTmemLayout("tmem(none)"))).toBe("TW6001");
});

describe("transfers to registers", () => {
  test("the instruction that fits", () => {
    const { tmemNative, tcgen05, wgmma } = namedLayouts;
    expect(tmemAccess(tmemMatrix("full"), tmemNative, [128, 64])).toBe("32x32b");
    expect(tmemAccess(tmemMatrix("full", 2), tmemNative, [128, 64])).toBe("32x32b");
    expect(tmemAccess(tmemMatrix("full"), tcgen05, [128, 64])).toBe("16x256b");
    expect(tmemAccess(tmemMatrix("full", 2), tcgen05, [128, 64])).toBeUndefined();
    expect(tmemAccess(tmemMatrix("half"), wgmma, [64, 64])).toBe("16x256b");
    expect(tmemAccess(tmemMatrix("half"), tcgen05, [64, 64])).toBeUndefined();
    expect(tmemAccess(tmemMatrix("pair"), tcgen05Collective(64), [64, 64])).toBe("16x256b");
    expect(tmemAccess(tmemMatrix("pair"), wgmma, [64, 48])).toBeUndefined();
    expect(tmemAccess(tmemScales, tmemNative, [128, 4])).toBeUndefined();
  });

  test("a warp reaches only its own 32 lanes", () => {
    const cases = [
      { layout: tmemMatrix("full"), registers: namedLayouts.tmemNative, shape: [128, 16] },
      { layout: tmemMatrix("full"), registers: namedLayouts.tcgen05, shape: [128, 16] },
      { layout: tmemMatrix("half"), registers: namedLayouts.wgmma, shape: [64, 16] },
      { layout: tmemMatrix("pair"), registers: tcgen05Collective(32), shape: [64, 32] },
    ];
    for (const { layout, registers, shape } of cases) {
      expect(tmemAccess(layout, registers, shape)).toBeDefined();
      for (let element = 0; element < (shape[0] ?? 1) * (shape[1] ?? 1); element += 1) {
        const [lane = -1] = tmemPlace(layout, shape, 32, element).lanes;
        for (const { warp } of holders(registers, shape, element)) expect(lane >> 5).toBe(warp);
      }
    }
  });
});
