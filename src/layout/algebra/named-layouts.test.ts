import { describe, expect, test } from "vitest";
import { TilewrightError } from "../../support/diagnostics.ts";
import { elementAt, elementTable, padding } from "./element-maps.ts";
import {
  blockedLayout,
  coalescedLayout,
  layoutName,
  mmaFragment,
  namedLayouts,
  stridedLayout,
  tcgen05Collective,
  wgmmaLeft,
} from "./named-layouts.ts";
import { reduceLayout } from "./operations.ts";
import { registersPerLane, replicatedLayout, replication } from "./register-layout.ts";
import type { RegisterLayout } from "./register-layout.ts";
import { parseLayout } from "./parse-layout.ts";
import { tiling } from "./tilings.ts";

/** Lane variables of the manual's fragment tables, and the register. */
interface At {
  readonly w: number;
  readonly lane: number;
  readonly g: number;
  readonly t: number;
  readonly i: number;
}

/** Checks every place of the tile against a formula for the coordinates. */
function expectFormula(
  layout: RegisterLayout,
  shape: readonly number[],
  registers: number,
  formula: (at: At) => readonly number[],
): void {
  expect(registersPerLane(layout, shape)).toBe(registers);
  const wrong: string[] = [];
  for (let w = 0; w < 4; w += 1) {
    for (let lane = 0; lane < 32; lane += 1) {
      for (let i = 0; i < registers; i += 1) {
        const coordinates = formula({ w, lane, g: lane >> 2, t: lane & 3, i });
        const element = coordinates.reduce(
          (sum, value, axis) => sum * (shape[axis] ?? 1) + value,
          0,
        );
        const found = elementAt(layout, shape, { warp: w, lane, register: i });
        if (found !== element)
          wrong.push(`warp ${w} lane ${lane} register ${i}: ${found} for ${element}`);
      }
    }
  }
  expect(wrong).toEqual([]);
}

function codeOf(action: () => unknown): string {
  try {
    action();
  } catch (error) {
    if (error instanceof TilewrightError) return error.code;
    throw error;
  }
  return "none";
}

describe("wgmma", () => {
  test.each([8, 24, 64, 256])("accumulator with %i columns", (n) => {
    expectFormula(namedLayouts.wgmma, [64, n], n / 2, ({ w, g, t, i }) => [
      16 * w + g + 8 * ((i >> 1) & 1),
      8 * (i >> 2) + 2 * t + (i & 1),
    ]);
  });

  test("left operands: register r of 32 bits, element h in it", () => {
    expectFormula(wgmmaLeft(16), [64, 16], 8, ({ w, g, t, i }) => {
      const [r, h] = [i >> 1, i & 1];
      return [16 * w + g + 8 * (r & 1), 2 * t + h + 8 * (r >> 1)];
    });
    expectFormula(wgmmaLeft(8), [64, 32], 16, ({ w, g, t, i }) => {
      const [r, b] = [i >> 2, i & 3];
      return [16 * w + g + 8 * (r & 1), 4 * t + b + 16 * (r >> 1)];
    });
    expectFormula(wgmmaLeft(32), [64, 8], 4, ({ w, g, t, i }) => [
      16 * w + g + 8 * (i & 1),
      t + 4 * (i >> 1),
    ]);
    expect(codeOf(() => wgmmaLeft(4))).toBe("TW6005");
  });

  test("reductions", () => {
    expectFormula(namedLayouts.wgmmaRow, [64], 2, ({ w, g, i }) => [16 * w + g + 8 * i]);
    expectFormula(namedLayouts.wgmmaColumn, [24], 6, ({ t, i }) => [
      8 * (i >> 1) + 2 * t + (i & 1),
    ]);
    const { wgmma, wgmmaRow, wgmmaColumn } = namedLayouts;
    expect(reduceLayout(wgmma, [64, 128], [1])?.text).toBe(wgmmaRow.text);
    expect(reduceLayout(wgmma, [64, 128], [0])?.text).toBe(wgmmaColumn.text);
    expect(replication(wgmmaRow)).toBe(4);
    expect(replication(wgmmaColumn)).toBe(32);
  });

  test("transposed: within 2 × 2 blocks, pairs run down the rows", () => {
    expectFormula(namedLayouts.wgmmaTransposed, [64, 16], 8, ({ w, g, t, i }) => [
      16 * w + 2 * (g >> 1) + (i & 1) + 8 * ((i >> 1) & 1),
      8 * (i >> 2) + 2 * t + (g & 1),
    ]);
  });

  test("upcast layouts", () => {
    expectFormula(namedLayouts.wgmmaUpcast2, [64, 32], 16, ({ w, g, t, i }) => [
      16 * w + g + 8 * ((i >> 2) & 1),
      16 * (i >> 3) + 4 * ([0, 2, 1, 3][t] ?? 0) + (i & 3),
    ]);
    expectFormula(namedLayouts.wgmmaUpcast4, [64, 64], 32, ({ w, g, t, i }) => [
      16 * w + g + 8 * ((i >> 3) & 1),
      32 * (i >> 4) + 8 * t + (i & 7),
    ]);
  });
});

describe("mma.sync", () => {
  const warpRow = (w: number) => 16 * w;
  test("m16n8k16, 16 bits", () => {
    expectFormula(mmaFragment("left", 16), [64, 16], 8, ({ w, g, t, i }) => [
      warpRow(w) + ((i >= 0 && i < 2) || (i >= 4 && i < 6) ? g : g + 8),
      i < 4 ? 2 * t + (i & 1) : 2 * t + (i & 1) + 8,
    ]);
    expectFormula(mmaFragment("right", 16), [16, 8], 4, ({ g, t, i }) => [
      i < 2 ? 2 * t + (i & 1) : 2 * t + (i & 1) + 8,
      g,
    ]);
    expectFormula(mmaFragment("accumulator", 16), [64, 8], 4, ({ w, g, t, i }) => [
      warpRow(w) + (i < 2 ? g : g + 8),
      2 * t + (i & 1),
    ]);
  });

  test("m16n8k8, tf32", () => {
    expectFormula(mmaFragment("left", 32), [64, 8], 4, ({ w, g, t, i }) => [
      warpRow(w) + (i === 0 || i === 2 ? g : g + 8),
      i < 2 ? t : t + 4,
    ]);
    expectFormula(mmaFragment("right", 32), [8, 8], 2, ({ g, t, i }) => [t + 4 * i, g]);
  });

  test("m16n8k4 to m16n8k16, f64", () => {
    expectFormula(mmaFragment("left", 64), [64, 16], 8, ({ w, g, t, i }) => [
      warpRow(w) + g + 8 * (i & 1),
      t + 4 * (i >> 1),
    ]);
    // Copies along columns come before those along k.
    expectFormula(mmaFragment("right", 64), [8, 16], 4, ({ g, t, i }) => [
      t + 4 * (i >> 1),
      g + 8 * (i & 1),
    ]);
  });

  test("m16n8k32, 8 bits", () => {
    expectFormula(mmaFragment("left", 8), [64, 32], 16, ({ w, g, t, i }) => [
      warpRow(w) + ((i >= 0 && i < 4) || (i >= 8 && i < 12) ? g : g + 8),
      i < 8 ? 4 * t + (i & 3) : 4 * t + (i & 3) + 16,
    ]);
    expectFormula(mmaFragment("right", 8), [32, 8], 8, ({ g, t, i }) => [
      i < 4 ? 4 * t + (i & 3) : 4 * t + (i & 3) + 16,
      g,
    ]);
  });

  test("m16n8k64, 4 bits", () => {
    expectFormula(mmaFragment("left", 4), [64, 64], 32, ({ w, g, t, i }) => [
      warpRow(w) + (i < 8 || (i >= 16 && i < 24) ? g : g + 8),
      8 * t + (i & 7) + (i < 16 ? 0 : 32),
    ]);
  });

  test("warps in a grid", () => {
    const grid = { rows: 2, columns: 2 };
    expectFormula(mmaFragment("accumulator", 16, grid), [32, 16], 4, ({ w, g, t, i }) => [
      16 * (w & 1) + g + 8 * (i >> 1),
      8 * (w >> 1) + 2 * t + (i & 1),
    ]);
    expectFormula(mmaFragment("right", 16, grid), [16, 16], 4, ({ w, g, t, i }) => [
      2 * t + (i & 1) + 8 * (i >> 1),
      8 * (w >> 1) + g,
    ]);
    expect(replication(mmaFragment("left", 16, grid))).toBe(2);
    for (const warps of [
      { rows: 3, columns: 1 },
      { rows: 16, columns: 4 },
    ])
      expect(codeOf(() => mmaFragment("left", 16, warps))).toBe("TW6005");
    for (const bits of [24, 128, 2]) expect(codeOf(() => mmaFragment("left", bits))).toBe("TW6005");
  });
});

describe("tcgen05", () => {
  test("accumulator of 128 rows, and its reductions", () => {
    expectFormula(namedLayouts.tcgen05, [128, 24], 24, ({ w, g, t, i }) => [
      32 * w + g + 8 * ((i >> 1) & 3),
      8 * (i >> 3) + 2 * t + (i & 1),
    ]);
    expect(reduceLayout(namedLayouts.tcgen05, [128, 24], [1])?.text).toBe(
      namedLayouts.tcgen05Row.text,
    );
    expect(reduceLayout(namedLayouts.tcgen05, [128, 24], [0])?.text).toBe(
      namedLayouts.tcgen05Column.text,
    );
    expectFormula(namedLayouts.tcgen05Transposed, [128, 8], 8, ({ w, g, t, i }) => [
      32 * w + 2 * (g >> 1) + (i & 1) + 8 * (i >> 1),
      2 * t + (g & 1),
    ]);
  });

  test("tensor memory's own: a row a lane", () => {
    expectFormula(namedLayouts.tmemNative, [128, 20], 20, ({ w, lane, i }) => [32 * w + lane, i]);
  });

  test("a pair of blocks, 64 rows each", () => {
    expectFormula(tcgen05Collective(64), [64, 64], 32, ({ w, g, t, i }) => [
      32 * (w & 1) + g + 8 * (i >> 3),
      32 * (w >> 1) + 8 * ((i >> 1) & 3) + 2 * t + (i & 1),
    ]);
    for (const columns of [8, 48]) expect(codeOf(() => tcgen05Collective(columns))).toBe("TW6005");
  });
});

describe("layouts for memory", () => {
  test("strided", () => {
    expect(stridedLayout(4).text).toBe("flat(R0 R1 L0 L1 L2 L3 L4 W0 W1)");
    expectFormula(stridedLayout(2), [6, 256], 12, ({ w, lane, i }) => [
      0,
      256 * (i >> 1) + 2 * (32 * w + lane) + (i & 1),
    ]);
    expect(codeOf(() => stridedLayout(3))).toBe("TW6005");
  });

  test("blocked", () => {
    const layout = blockedLayout({ vector: 4, lanes: [4, 8], warps: [2, 2] });
    expect(layout.text).toBe("(L3 L4 W1 | R0 R1 L0 L1 L2 W0)");
    expect(codeOf(() => blockedLayout({ vector: 4, lanes: [64], warps: [1] }))).toBe("TW6005");
    expect(codeOf(() => blockedLayout({ vector: 4, lanes: [8, 8], warps: [1] }))).toBe("TW6005");
    expect(blockedLayout({ vector: 1, lanes: [8], warps: [1] }).text).toBe("(L0 L1 L2)");
  });

  test.each([
    [[128, 64], 8, "(L3 L4 W0 W1 | R0 R1 R2 L0 L1 L2)"],
    [[4096], 4, "(R0 R1 L0 L1 L2 L3 L4 W0 W1)"],
    [[64, 48], 4, "(L4 W0 W1 | R0 R1 L0 L1 L2 L3)"],
    [[16, 16], 1, "(L4 W0 W1 | L0 L1 L2 L3)"],
    [[2, 4], 1, "(L2 | L0 L1)"],
  ])("coalesced on %s, vectors of %i", (shape, vector, text) => {
    expect(coalescedLayout(shape, vector).text).toBe(text);
  });

  test("a coalesced layout holds every element", () => {
    for (const shape of [[3, 7], [100], [5, 100], [2, 3, 6]]) {
      const layout = coalescedLayout(shape, 2);
      const held = new Set(elementTable(layout, shape).filter((element) => element !== padding));
      expect(held.size).toBe(shape.reduce((left, right) => left * right));
    }
  });
});

describe("tilings", () => {
  const dealing = { warps: [-7], lanes: [-3, -2], vector: -1 };
  test.each([
    ["wgmma", [[64, 8], [16, 8], [8, 8], [2]], dealing],
    ["wgmmaLeft8", [[64, 16], [16, 16], [8, 16], [4]], dealing],
    ["wgmmaUpcast4", [[64, 32], [16, 32], [8, 32], [8]], dealing],
    [
      "wgmmaUpcast2",
      [[64, 16], [16, 16], [8, 16], [8], [4]],
      { warps: [-8], lanes: [-4, -2, -3], vector: -1 },
    ],
    [
      "wgmmaTransposed",
      [
        [64, 8],
        [16, 8],
        [8, 8],
        [2, 2],
        [2, 1],
      ],
      { warps: [-10], lanes: [-6, -3, -5], vector: -2 },
    ],
    [
      "wgmmaRow",
      [[64], [16], [8], [1]],
      { warps: [-4], lanes: [-2, { replicate: 4 }], vector: -1 },
    ],
    [
      "wgmmaColumn",
      [[8], [2]],
      { warps: [{ replicate: 4 }], lanes: [{ replicate: 8 }, -2], vector: -1 },
    ],
    ["tcgen05", [[128, 8], [32, 8], [8, 8], [2]], dealing],
    [
      "tmemNative",
      [
        [128, 2],
        [32, 2],
      ],
      { warps: [-4], lanes: [-2], vector: -1 },
    ],
  ] as const)("%s", (name, tiles, dealt) => {
    expect(tiling(tiles, dealt).text).toBe(namedLayouts[name].text);
  });

  test("mistakes", () => {
    const bad = [
      () =>
        tiling(
          [
            [64, 8],
            [24, 8],
          ],
          dealing,
        ),
      () =>
        tiling(
          [
            [64, 8],
            [128, 8],
          ],
          dealing,
        ),
      () => tiling([[8], [4, 2]], dealing),
      () => tiling([[64, 8], [16, 8], [8, 8], [2]], { ...dealing, vector: -9 }),
      () => tiling([[64, 8], [16, 8], [8, 8], [2]], { ...dealing, vector: -2 }),
      () => tiling([[64, 8], [16, 8], [8, 8], [2]], { ...dealing, warps: [] }),
      () => tiling([[64, 8], [16, 8], [8, 8], [2]], { ...dealing, warps: [{ replicate: 3 }] }),
      () => tiling([], dealing),
    ];
    for (const action of bad) expect(codeOf(action), action.toString()).toBe("TW6004");
  });
});

test("layouts know their names", () => {
  expect(layoutName(parseLayout("(L2 L3 L4 R1 W0 W1 | R0 L0 L1)"))).toBe("wgmma");
  expect(layoutName(replicatedLayout)).toBe("replicated");
  expect(layoutName(parseLayout("(L0)"))).toBeUndefined();
});
