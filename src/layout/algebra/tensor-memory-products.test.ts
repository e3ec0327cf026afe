/** Where products find their matrices: the maps beside walks over lanes and columns the other way round. */
import { describe, expect, test } from "vitest";
import {
  tmemCopies,
  tmemMetadataNibble,
  tmemPlacement,
  tmemProductCell,
  tmemScaleByte,
} from "./tensor-memory-products.ts";
import type { TmemPlacement } from "./tensor-memory-products.ts";

/** The element that a cell holds, by lane and column; undefined for lanes that are not touched. */
const elements: {
  readonly [P in TmemPlacement]: (
    lane: number,
    column: number,
    columns: number,
  ) => readonly [row: number, column: number] | undefined;
} = {
  rows: (lane, column, columns) => (column < columns ? [lane, column] : undefined),
  spread: (lane, column, columns) =>
    lane % 32 < 16 && column < columns
      ? [Math.floor(lane / 32) * 16 + (lane % 32), column]
      : undefined,
  "banks of 64": (lane, column, columns) =>
    column < columns / 2 ? [lane % 64, column + (lane < 64 ? 0 : columns / 2)] : undefined,
  "banks of 32": (lane, column, columns) =>
    column < columns / 4 ? [lane % 32, column + Math.floor(lane / 32) * (columns / 4)] : undefined,
};

describe.each(Object.keys(elements) as TmemPlacement[])("D by %s", (placement) => {
  test.each([8, 16])("of %i columns", (columns) => {
    let seen = 0;
    for (let lane = 0; lane < 128; lane++)
      for (let column = 0; column < 512; column++) {
        const element = elements[placement](lane, column, columns);
        if (element === undefined) continue;
        seen += 1;
        expect(tmemProductCell(placement, columns, ...element)).toEqual({ row: lane, column });
      }
    const rows = { rows: 128, spread: 64, "banks of 64": 64, "banks of 32": 32 }[placement];
    expect(seen).toBe(rows * columns);
  });
});

test("the placement of each product", () => {
  const form = { isPair: false, isWeightStationary: false, isSparse: false };
  expect([
    tmemPlacement({ ...form, m: 128 }),
    tmemPlacement({ ...form, m: 128, isWeightStationary: true }),
    tmemPlacement({ ...form, m: 256, isPair: true }),
    tmemPlacement({ ...form, m: 256, isPair: true, isSparse: true }),
    tmemPlacement({ ...form, m: 64 }),
    tmemPlacement({ ...form, m: 64, isSparse: true }),
    tmemPlacement({ ...form, m: 128, isPair: true }),
    tmemPlacement({ ...form, m: 128, isPair: true, isSparse: true }),
    tmemPlacement({ ...form, m: 64, isWeightStationary: true }),
    tmemPlacement({ ...form, m: 32, isWeightStationary: true }),
  ]).toEqual([
    ...["rows", "rows", "rows", "rows", "spread", "spread"],
    ...["banks of 64", "spread", "banks of 64", "banks of 32"],
  ]);
});

/** The lanes and columns that bytes of 512-byte atoms of scales come to, copied by 32x128b.warpx4 one after the other. */
function copiedAtoms(
  atoms: number,
  visit: (atom: number, byte: number, lanes: readonly number[], column: number, at: number) => void,
): void {
  for (let atom = 0; atom < atoms; atom++)
    for (let byte = 0; byte < 512; byte++) {
      const row = Math.floor(byte / 16);
      const lanes = tmemCopies["32x128b"].lanes(row);
      visit(atom, byte, lanes, 4 * atom + Math.floor((byte % 16) / 4), byte % 4);
    }
}

test.each([128, 256])("scales of %i rows lie where copies of their atoms put them", (rows) => {
  const perWord = rows / 128;
  // Atoms of rows come first, then those of the next four scales.
  copiedAtoms(2 * perWord, (atom, byte, lanes, column, at) => {
    const row = 128 * (atom % perWord) + 32 * (Math.floor(byte / 4) % 4) + Math.floor(byte / 16);
    const scale = 4 * Math.floor(atom / perWord) + at;
    expect(tmemScaleByte(rows, row, 0, scale)).toEqual({ lanes, column, byte: at });
    if (scale > 0) expect(tmemScaleByte(rows, row, 1, scale - 1).byte).toBe(at);
  });
});

test("scales of a pair with 128 rows: half of the columns in either half of the lanes", () => {
  for (let lane = 0; lane < 128; lane++)
    for (let column = 0; column < 4; column++) {
      const row = 128 * Math.floor(lane / 64) + 32 * column + (lane % 32);
      const place = tmemScaleByte(256, row, 2, 1, true);
      expect(place.lanes).toContain(lane);
      expect({ ...place, lanes: place.lanes.length }).toEqual({ lanes: 2, column, byte: 3 });
    }
});

test("metadata of 8 groups a row: 8 rows share a lane's halves", () => {
  for (let lane = 0; lane < 128; lane++)
    for (let nibble = 0; nibble < 8; nibble++) {
      const row = 32 * (lane >> 5) + 16 * ((lane >> 4) & 1) + 8 * (nibble >> 2) + (lane & 7);
      const group = 4 * ((lane >> 3) & 1) + (nibble & 3);
      expect(tmemMetadataNibble("rows", 8, row, group, 1)).toEqual({
        row: lane,
        column: 1,
        nibble,
      });
    }
  // 64 spread rows stay within the first 16 lanes of each quarter.
  expect(tmemMetadataNibble("spread", 8, 25, 5, 0)).toEqual({ row: 41, column: 0, nibble: 5 });
});

test("metadata of 16 groups a row: two words of its lane", () => {
  for (let row = 0; row < 128; row++)
    for (let group = 0; group < 16; group++)
      expect(tmemMetadataNibble("rows", 16, row, group, 0)).toEqual({
        row,
        column: group < 8 ? 0 : 1,
        nibble: group % 8,
      });
});

test("lanes that copies write", () => {
  const lanesOf = (shape: keyof typeof tmemCopies, row: number): string =>
    tmemCopies[shape].lanes(row).join(" ");
  expect(lanesOf("128x256b", 77)).toBe("77");
  expect(lanesOf("64x128b.02_13", 40)).toBe("40 104");
  expect(lanesOf("64x128b.01_23", 5)).toBe("5 37");
  expect(lanesOf("64x128b.01_23", 40)).toBe("72 104");
  expect(lanesOf("32x128b", 31)).toBe("31 63 95 127");
  expect(lanesOf("4x256b", 3)).toBe("96");
});
