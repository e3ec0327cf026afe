import { describe, expect, test } from "vitest";
import { Random } from "../../support/random.ts";
import type { TensorMap } from "../tensor-map.ts";
import { tensorMapTypeBytes } from "../tensor-map.ts";
import {
  awaitBarrier,
  dumpShared,
  initBarriers,
  runPtx,
} from "../../../test/support/ptx-kernel.ts";

const seed = 511;
const boxAt = 1024;
const sharedSpan = 8192;

type MapCase = Omit<TensorMap, "address"> & {
  readonly array: string;
  readonly coordinates: readonly number[];
};

function bytesOf(random: Random, count: number): Uint8Array {
  return Uint8Array.from({ length: count }, () => random.below(256));
}

/** A random map of so many axes, with boxes that overhang. */
function randomMap(random: Random, rank: number, swizzle: 0 | 32 | 64 | 128): MapCase {
  const type = random.pick(["u8", "bf16", "f32", "u64"] as const);
  const size = tensorMapTypeBytes[type];
  const widest = swizzle === 0 ? 64 : swizzle;
  const row = 16 * (1 + random.below(widest / 16));
  const box = Array.from({ length: rank }, (_, axis) =>
    axis === 0 ? row / size : 1 + random.below(rank > 3 ? 2 : 6),
  );
  const extents = box.map((extent) => 1 + random.below(2 * extent + 2));
  const strides: number[] = [];
  let stride = 16 * Math.ceil(((extents[0] ?? 1) * size) / 16);
  for (let axis = 1; axis < rank; axis++) {
    strides.push(stride);
    stride = 16 * Math.ceil((stride * (extents[axis] ?? 1) + 16 * random.below(2)) / 16);
  }
  const elementStrides = box.map((_, axis) => (axis === 0 ? 1 : 1 + random.below(3)));
  // The innermost one lies at a multiple of 16 bytes.
  const unit = 16 / size;
  const coordinates = extents.map((extent, axis) => {
    const any = random.below(extent + 4) - 3;
    return axis === 0 ? Math.floor(any / unit) * unit : any;
  });
  return {
    type,
    extents,
    strides,
    box,
    elementStrides,
    swizzle,
    fill: "zero",
    array: "x",
    coordinates,
  };
}

function arrayBytes({ type, extents, strides }: MapCase): number {
  const last = extents.at(-1) ?? 1;
  return strides.length === 0 ? last * tensorMapTypeBytes[type] : last * (strides.at(-1) ?? 0);
}

/**
 * Where each byte of a box lies: in shared memory, and in the array (undefined where outside). Rows end
 * at their last element for loads, and at a multiple of 16 bytes for stores.
 */
function* boxBytes(
  map: MapCase,
  use: "load" | "store" = "load",
): Generator<readonly [number, number | undefined]> {
  const { type, extents, strides, box, elementStrides = [], swizzle, coordinates } = map;
  const size = tensorMapTypeBytes[type];
  const unit = use === "load" ? 1 : 16 / size;
  const counts = box.map((extent, axis) =>
    axis === 0 ? extent : Math.ceil(extent / (elementStrides[axis] ?? 1)),
  );
  const total = counts.reduce((product, count) => product * count, 1);
  const rowBytes = (counts[0] ?? 1) * size;
  const pitch = Math.max(rowBytes, swizzle);
  for (let element = 0; element < total; element++) {
    let rest = element;
    let offset = 0;
    let inside = true;
    for (const [axis, count] of counts.entries()) {
      const index =
        (coordinates[axis] ?? 0) + (rest % count) * (axis === 0 ? 1 : (elementStrides[axis] ?? 1));
      rest = Math.floor(rest / count);
      const end = extents[axis] ?? 0;
      inside &&= index >= 0 && index < (axis === 0 ? unit * Math.ceil(end / unit) : end);
      offset += index * (axis === 0 ? size : (strides[axis - 1] ?? 0));
    }
    const row = Math.floor(element / (counts[0] ?? 1));
    for (let byte = 0; byte < size; byte++) {
      const plain = boxAt + row * pitch + (element % (counts[0] ?? 1)) * size + byte;
      const chunks = swizzle / 16;
      yield [swizzled(plain, chunks), inside ? offset + byte : undefined];
    }
  }
}

/** The byte at which the swizzle puts a byte; `chunks` of 16 take part in it. */
function swizzled(plain: number, chunks: number): number {
  return chunks === 0 ? plain : plain ^ (((plain >> 7) % chunks) * 16);
}

function coordinateText(coordinates: readonly number[]): string {
  return coordinates.map((coordinate, axis) => `mov.s32 %r${axis}, ${coordinate};`).join(" ");
}

function registerList(rank: number): string {
  return Array.from({ length: rank }, (_, axis) => `%r${axis}`).join(", ");
}

function loadBody(map: MapCase): string {
  const rank = map.extents.length;
  const bytes = [...boxBytes(map)].length;
  return [
    initBarriers([{ at: 0, count: 1 }]),
    "setp.ne.u32 %p0, %thread, 0; @%p0 bra $issued;",
    coordinateText(map.coordinates),
    `mbarrier.arrive.expect_tx.shared::cta.b64 _, [%smem], ${bytes};`,
    `add.u32 %r20, %smem, ${boxAt};`,
    `cp.async.bulk.tensor.${rank}d.shared::cluster.global.mbarrier::complete_tx::bytes [%r20], [%m_x, {${registerList(rank)}}], [%smem];`,
    "$issued:",
    awaitBarrier(0, 0),
    dumpShared("out", 0, sharedSpan, 32),
  ].join("\n");
}

const ranks = [1, 2, 3, 4, 5];
const swizzles = [0, 32, 64, 128] as const;

describe("tensor loads put each element where the swizzle says, and fill what is outside", () => {
  test.for(ranks.flatMap((rank) => swizzles.map((swizzle) => [rank, swizzle] as const)))(
    "%dD, swizzle %d",
    ([rank, swizzle]) => {
      const random = new Random(seed + 10 * rank + swizzle);
      for (let round = 0; round < 3; round++) {
        const map = randomMap(random, rank, swizzle);
        const x = bytesOf(random, arrayBytes(map));
        const { arrays, codes } = runPtx({
          body: loadBody(map),
          arrays: { x, out: sharedSpan },
          maps: { x: map },
          seed: round,
        });
        const context = `seed ${seed}, round ${round}, ${JSON.stringify(map)}`;
        for (const [place, from] of boxBytes(map))
          expect(arrays["out"]?.[place], context).toBe(from === undefined ? 0 : x[from]);
        // The rest of shared memory is dumped without having been written.
        expect(
          codes.filter((code) => code !== "TW8013"),
          context,
        ).toEqual([]);
      }
    },
  );

  test("floats can be filled with NaN", () => {
    const map: MapCase = {
      type: "bf16",
      extents: [12, 2],
      strides: [32],
      box: [8, 4],
      swizzle: 0,
      fill: "nan",
      array: "x",
      coordinates: [8, 0],
    };
    const x = bytesOf(new Random(seed), 64);
    const { arrays } = runPtx({
      body: loadBody(map),
      arrays: { x, out: sharedSpan },
      maps: { x: map },
    });
    const halves = new Uint16Array(arrays["out"]?.buffer ?? new ArrayBuffer(0));
    expect([...halves.subarray(boxAt / 2 + 4, boxAt / 2 + 8)]).toEqual([
      0x7ff7, 0x7ff7, 0x7ff7, 0x7ff7,
    ]);
    expect(halves[boxAt / 2]).toBe(new Uint16Array(x.buffer)[8]);
  });
});

function storeBody(map: MapCase, opcode: string): string {
  const rank = map.extents.length;
  return [
    `shl.b32 %r10, %thread, 2;`,
    `$fill: setp.ge.u32 %p1, %r10, ${sharedSpan}; @%p1 bra $filled;`,
    "cvt.u64.u32 %d1, %r10; add.u64 %d1, %d1, %source; ld.global.b32 %r11, [%d1];",
    "add.u32 %r12, %smem, %r10; st.shared.b32 [%r12], %r11; add.u32 %r10, %r10, 128; bra $fill;",
    "$filled: fence.proxy.async.shared::cta; bar.sync 0;",
    "setp.ne.u32 %p0, %thread, 0; @%p0 bra $end;",
    coordinateText(map.coordinates),
    `add.u32 %r20, %smem, ${boxAt};`,
    `${opcode}.tensor.${rank}d.global.shared::cta${opcode.includes("reduce") ? ".add" : ""}.bulk_group [%m_x, {${registerList(rank)}}], [%r20];`,
    "cp.async.bulk.commit_group; cp.async.bulk.wait_group.read 0; cp.async.bulk.wait_group 0;",
    "$end:",
  ].join("\n");
}

describe("tensor stores write what is inside, from where the swizzle says", () => {
  test.for(ranks.flatMap((rank) => swizzles.map((swizzle) => [rank, swizzle] as const)))(
    "%dD, swizzle %d",
    ([rank, swizzle]) => {
      const random = new Random(seed + 1000 + 10 * rank + swizzle);
      for (let round = 0; round < 3; round++) {
        const any = randomMap(random, rank, swizzle);
        const map = { ...any, coordinates: any.coordinates.map((at) => Math.max(0, at)) };
        const x = bytesOf(random, 16 * Math.ceil(arrayBytes(map) / 16));
        const source = bytesOf(random, sharedSpan);
        const expected = x.slice();
        for (const [place, to] of boxBytes(map, "store"))
          if (to !== undefined) expected[to] = source[place] ?? 0;
        const { arrays, codes } = runPtx({
          body: storeBody(map, "cp.async.bulk"),
          arrays: { x, source },
          maps: { x: map },
          seed: round,
        });
        const context = `seed ${seed}, round ${round}, ${JSON.stringify(map)}`;
        expect(arrays["x"], context).toEqual(expected);
        expect(codes, context).toEqual([]);
      }
    },
  );

  test("a reduction adds elements of the map's type", () => {
    const map: MapCase = {
      type: "u32",
      extents: [6, 3],
      strides: [32],
      box: [8, 2],
      swizzle: 0,
      fill: "zero",
      array: "x",
      coordinates: [4, 2],
    };
    const random = new Random(seed);
    const x = bytesOf(random, 96);
    const source = bytesOf(random, sharedSpan);
    const expected = new Uint32Array(x.slice().buffer);
    const added = new Uint32Array(source.buffer);
    // Two elements past the end of the row are in the same 16 bytes.
    for (let column = 4; column < 8; column++)
      expected[16 + column] = (expected[16 + column] ?? 0) + (added[boxAt / 4 + column - 4] ?? 0);
    const { arrays, codes } = runPtx({
      body: storeBody(map, "cp.reduce.async.bulk"),
      arrays: { x, source },
      maps: { x: map },
    });
    expect(new Uint32Array(arrays["x"]?.buffer ?? new ArrayBuffer(0))).toEqual(expected);
    expect(codes).toEqual([]);
  });
});

describe("tensor copies that cannot be right", () => {
  const map: MapCase = {
    type: "bf16",
    extents: [64, 8],
    strides: [128],
    box: [64, 8],
    swizzle: 128,
    fill: "zero",
    array: "x",
    coordinates: [0, 0],
  };
  const x = new Uint8Array(1024).fill(1);
  const arrays = { x, out: sharedSpan };
  const run = (change: (body: string) => string): readonly string[] =>
    runPtx({ body: change(loadBody(map)), arrays, maps: { x: map } }).codes;

  test("an address that holds no map (TW8051)", () => {
    expect(run((body) => body.replace("[%m_x,", "[%x,"))).toContain("TW8051");
  });

  test("coordinates of another dimension (TW8053)", () => {
    const text = (body: string): string =>
      body.replace(".2d.", ".3d.").replace("{%r0, %r1}", "{%r0, %r1, %r0}");
    expect(run(text)).toContain("TW8053");
  });

  test("a box that begins between 16 bytes of a row (TW8057)", () => {
    expect(run((body) => body.replace("mov.s32 %r0, 0;", "mov.s32 %r0, 4;"))).toContain("TW8057");
  });

  test("a store that begins before the array (TW8058)", () => {
    const body = storeBody(map, "cp.async.bulk").replace("mov.s32 %r0, 0;", "mov.s32 %r0, -16;");
    const source = new Uint8Array(sharedSpan);
    const { codes } = runPtx({ body, arrays: { x, source }, maps: { x: map } });
    expect(codes).toContain("TW8058");
  });

  test("a misaligned box", () => {
    expect(
      run((body) =>
        body.replace(`add.u32 %r20, %smem, ${boxAt};`, `add.u32 %r20, %smem, ${boxAt + 16};`),
      ),
    ).toContain("TW8011");
  });

  test("one byte too few expected: the wait never ends", () => {
    expect(run((body) => body.replace("], 1024;", "], 1040;"))).toContain("TW8020");
  });

  test("a reduction that the type has not (TW8055)", () => {
    const body = storeBody(map, "cp.reduce.async.bulk").replace(".add", ".inc");
    const source = new Uint8Array(sharedSpan);
    const { codes } = runPtx({ body, arrays: { x, source }, maps: { x: map } });
    expect(codes).toContain("TW8055");
  });

  test("the end of the block before a store has read (TW8056)", () => {
    const body = storeBody(map, "cp.async.bulk").replace(/cp.async.bulk.wait_group.read.*/, "");
    const source = new Uint8Array(sharedSpan);
    const { codes } = runPtx({ body, arrays: { x, source }, maps: { x: map } });
    expect(codes).toContain("TW8056");
  });

  test("no fence between ordinary stores and a tensor store", () => {
    const body = storeBody(map, "cp.async.bulk").replace("fence.proxy.async.shared::cta;", "");
    const source = new Uint8Array(sharedSpan);
    const { codes } = runPtx({ body, arrays: { x, source }, maps: { x: map } });
    expect(codes).toContain("TW8015");
  });
});
