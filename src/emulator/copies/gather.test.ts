/** Gathers and scatters of four rows (behaviour 46), and stores of some bytes of every 16. */
import { describe, expect, test } from "vitest";
import { Random } from "../../support/random.ts";
import type { TensorMap } from "../tensor-map.ts";
import {
  awaitBarrier,
  dumpShared,
  fillShared,
  initBarriers,
  runPtx,
} from "../../../test/support/ptx-kernel.ts";
import type { PtxRun } from "../../../test/support/ptx-kernel.ts";

const seed = 46;
const target = "sm_100a";
const boxAt = 1024;
/** Bytes of a row of the box, and elements of f32 in it. */
const rowBytes = 64;
const width = rowBytes / 4;
const columns = 40;
const rows = 11;

type Swizzle = TensorMap["swizzle"];

function mapOf(
  array: string,
  swizzle: Swizzle,
  boxRows = 1,
): Omit<TensorMap, "address"> & { readonly array: string } {
  const [extents, strides, box] = [[columns, rows], [columns * 4], [width, boxRows]];
  return { array, type: "f32", extents, strides, box, swizzle, fill: "zero" };
}

function swizzled(byte: number, swizzle: Swizzle): number {
  return swizzle === 0 ? byte : byte ^ (((byte >> 7) % (swizzle / 16)) * 16);
}

/** Where element `at` of row `row` of four lies in shared memory. */
function placeOf(row: number, at: number, swizzle: Swizzle): number {
  return swizzled(boxAt + row * Math.max(rowBytes, swizzle) + 4 * at, swizzle) - boxAt;
}

const list = (values: readonly number[]): string => `{${values.join(", ")}}`;

function gather(
  coordinates: readonly number[],
  {
    swizzle = 0,
    bytes = 4 * rowBytes,
    boxRows = 1,
  }: { readonly swizzle?: Swizzle; readonly bytes?: number; readonly boxRows?: number } = {},
): PtxRun & { readonly input: Float32Array } {
  const random = new Random(seed);
  const input = Float32Array.from({ length: columns * rows }, () => random.uniform());
  const body = `${initBarriers([{ at: 0, count: 1 }])} add.u32 %r1, %smem, ${boxAt};
    setp.ne.u32 %p1, %thread, 0; @%p1 bra $issued;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [%smem], ${bytes};
    cp.async.bulk.tensor.2d.shared::cta.global.tile::gather4.mbarrier::complete_tx::bytes [%r1], [%m_x, ${list(coordinates)}], [%smem];
    $issued: ${awaitBarrier(0, 0)} ${dumpShared("out", boxAt, 512, 32)}`;
  const run = runPtx({
    ...{ body, target, sharedBytes: 2048, arrays: { x: new Uint8Array(input.buffer), out: 512 } },
    maps: { x: mapOf("x", swizzle, boxRows) },
    checks: swizzle === 0 && bytes !== 4 * rowBytes,
  });
  return { ...run, input };
}

describe("46: a gather of four rows", () => {
  test.each([
    ["in any order, also twice", [4, 7, 2, 2, 9], 0],
    ["swizzled as a tile of four rows", [8, 10, 0, 5, 1], 128],
    ["swizzled by 64 bytes", [16, 3, 3, 8, 1], 64],
    ["rows outside are filled, below and above", [0, -1, 11, 2147483647, 6], 0],
    ["columns outside are filled", [32, 1, 2, 3, 4], 0],
    ["columns before the first are filled", [-8, 1, 20, 3, 4], 64],
  ] as const)("%s", (_name, coordinates, swizzle) => {
    const { arrays, codes, input } = gather(coordinates, { swizzle });
    expect(codes).toEqual([]);
    const found = new Float32Array(arrays["out"]?.buffer ?? new ArrayBuffer(512));
    const [column, ...chosen] = coordinates;
    chosen.forEach((row, place) => {
      for (let at = 0; at < width; at++) {
        const isInside = row >= 0 && row < rows && column + at >= 0 && column + at < columns;
        const expected = isInside ? input[row * columns + column + at] : 0;
        expect(found[placeOf(place, at, swizzle) / 4], `row ${place}, ${at}`).toBe(expected);
      }
    });
  });

  test("counts the bytes of four rows, wherever they lie", () => {
    expect(gather([0, -1, 11, 2, 6], { bytes: 4 * rowBytes + 16 }).codes).toContain("TW8020");
  });

  test("wants a map whose boxes are one row", () => {
    expect(gather([0, 1, 2, 3, 4], { boxRows: 2 }).codes).toEqual(["TW8053"]);
  });

  test("a prefetch of four rows changes nothing", () => {
    const { codes } = runPtx({
      body: `cp.async.bulk.prefetch.tensor.2d.L2.global.tile::gather4 [%m_x, {0, 1, 2, 3, 4}];`,
      ...{ target, arrays: { x: 4 * columns * rows }, maps: { x: mapOf("x", 0) } },
    });
    expect(codes).toEqual([]);
  });
});

describe("46: a scatter to four rows", () => {
  function scatter(opcode: string, coordinates: readonly number[], swizzle: Swizzle = 0) {
    const random = new Random(seed);
    const given = Float32Array.from({ length: 128 }, () => random.uniform());
    const old = Float32Array.from({ length: columns * rows }, () => random.uniform());
    const body = `${fillShared("given", boxAt, 512, 32)} fence.proxy.async; bar.sync 0;
      add.u32 %r1, %smem, ${boxAt}; setp.ne.u32 %p1, %thread, 0; @%p1 bra $end;
      ${opcode}.bulk_group [%m_x, ${list(coordinates)}], [%r1];
      cp.async.bulk.commit_group; cp.async.bulk.wait_group 0; $end:`;
    const { arrays, codes } = runPtx({
      ...{ body, target, sharedBytes: 2048 },
      arrays: { x: new Uint8Array(old.buffer.slice(0)), given: new Uint8Array(given.buffer) },
      maps: { x: mapOf("x", swizzle) },
    });
    const found = new Float32Array(arrays["x"]?.buffer ?? new ArrayBuffer(0));
    return { found, codes, given, old };
  }

  test.each([0, 64, 128] as const)("swizzle %i; rows outside are dropped", (swizzle) => {
    const opcode = "cp.async.bulk.tensor.2d.global.shared::cta.tile::scatter4";
    const coordinates = [24, 5, -3, 0, 11];
    const { found, codes, given, old } = scatter(opcode, coordinates, swizzle);
    expect(codes).toEqual([]);
    const expected = old.slice();
    [5, undefined, 0].forEach((row, place) => {
      for (let at = 0; row !== undefined && at < width; at++)
        expected[row * columns + 24 + at] = given[placeOf(place, at, swizzle) / 4] ?? NaN;
    });
    expect([...found]).toEqual([...expected]);
  });

  test("with a reduction", () => {
    const opcode = "cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile::scatter4";
    const { found, codes, given, old } = scatter(opcode, [0, 8, 1, 20, 2]);
    expect(codes).toEqual([]);
    const expected = old.slice();
    [8, 1, undefined, 2].forEach((row, place) => {
      for (let at = 0; row !== undefined && at < width; at++)
        expected[row * columns + at] = Math.fround(
          (old[row * columns + at] ?? 0) + (given[placeOf(place, at, 0) / 4] ?? 0),
        );
    });
    expect([...found]).toEqual([...expected]);
  });
});

describe("a store of some bytes of every 16", () => {
  const store = (mask: string, other = ""): PtxRun =>
    runPtx({
      body: `${fillShared("given", 0, 64, 32)} fence.proxy.async; bar.sync 0; ${other}
        setp.ne.u32 %p1, %thread, 0; @%p1 bra $end; mov.b16 %h1, 0x8f01;
        cp.async.bulk.global.shared::cta.bulk_group.cp_mask [%x], [%smem], 64, ${mask};
        cp.async.bulk.commit_group; cp.async.bulk.wait_group 0; $end:`,
      arrays: {
        x: new Uint8Array(64).fill(255),
        given: Uint8Array.from({ length: 64 }, (_, at) => at),
      },
      ...{ target, sharedBytes: 1024 },
    });

  test.each([
    ["%h1", 0x8f01],
    ["1", 1],
    ["0", 0],
    ["65535", 0xffff],
  ] as const)("mask %s", (mask, bits) => {
    const { arrays, codes } = store(mask);
    expect(codes).toEqual([]);
    expect([...(arrays["x"] ?? [])]).toEqual(
      Array.from({ length: 64 }, (_, at) => (((bits >> (at % 16)) & 1) === 1 ? at : 255)),
    );
  });

  test("leaves the other bytes to others", () => {
    const other = "setp.ne.u32 %p2, %thread, 5; mov.b32 %r3, 7; @!%p2 st.global.b8 [%x+1], %r3;";
    expect(store("%h1", other).codes).toEqual([]);
    expect(store("3", other).codes).toContain("TW8023");
  });
});
