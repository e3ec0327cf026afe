/** Copies of pixels in a row, against a list of all pixels of the bounding boxes. */
import { describe, expect, test } from "vitest";
import { Random } from "../../support/random.ts";
import {
  awaitBarrier,
  dumpShared,
  initBarriers,
  runPtx,
} from "../../../test/support/ptx-kernel.ts";
import type { TensorMap } from "../tensor-map.ts";

const seed = 377;
const boxAt = 1024;

interface ImageCase {
  readonly map: Omit<TensorMap, "address">;
  readonly start: readonly number[];
  readonly offsets: readonly number[];
}

/** Positions along one axis of the bounding box. */
function positions({ map }: Pick<ImageCase, "map">, axis: number): readonly number[] {
  const { extents, corners, elementStrides } = map;
  const first = corners?.lower[axis - 1] ?? 0;
  const last = (extents[axis] ?? 1) - 1 + (corners?.upper[axis - 1] ?? 0);
  const step = elementStrides?.[axis] ?? 1;
  return Array.from(
    { length: Math.floor((last - first) / step) + 1 },
    (_, at) => first + at * step,
  );
}

/** All pixels from the first image on, in the order of copies, and of images behind the last. */
function allPixels(one: ImageCase): readonly (readonly number[])[] {
  const rank = one.map.extents.length;
  const step = one.map.elementStrides?.[rank - 1] ?? 1;
  const images = Array.from({ length: 40 }, (_, at) => [(one.start[rank - 1] ?? 0) + at * step]);
  let pixels: (readonly number[])[] = images;
  for (let axis = rank - 2; axis >= 1; axis--)
    pixels = pixels.flatMap((outer) => positions(one, axis).map((at) => [at, ...outer]));
  return pixels;
}

/** Where the pixels that a copy takes are in the array; undefined for those outside. */
function taken(one: ImageCase): readonly (number | undefined)[] {
  const { map, start, offsets } = one;
  const pixels = allPixels(one);
  const first = pixels.findIndex((pixel) => pixel.every((at, axis) => at === start[axis + 1]));
  expect(first).toBeGreaterThanOrEqual(0);
  return pixels.slice(first, first + (map.box[1] ?? 0)).map((pixel) => {
    const read = pixel.map((at, axis) => at + (offsets[axis] ?? 0));
    const isInside = read.every((at, axis) => at >= 0 && at < (map.extents[axis + 1] ?? 0));
    return isInside
      ? read.reduce((bytes, at, axis) => bytes + at * (map.strides[axis] ?? 0), 0)
      : undefined;
  });
}

function randomCase(random: Random, rank: number): ImageCase {
  const channels = 4 * (1 + random.below(3));
  const space = Array.from({ length: rank - 2 }, () => 3 + random.below(5));
  const extents = [channels, ...space, 2 + random.below(2)];
  let bytes = 4 * channels;
  const strides = extents.slice(1).map((extent) => {
    const stride = bytes;
    bytes *= extent;
    return stride;
  });
  const corners = {
    lower: space.map(() => random.below(3) - 2),
    upper: space.map(() => random.below(3) - 1),
  };
  const elementStrides = extents.map((_, axis) => (axis === 0 ? 1 : 1 + random.below(2)));
  const box = [4 * (1 + random.below(2)), 8 + random.below(24)];
  const map: ImageCase["map"] = {
    ...{ type: "u32", extents, strides, box, corners, elementStrides, swizzle: 0, fill: "zero" },
  };
  const offsets = space.map(() => random.below(4));
  const start = [
    0,
    ...space.map((_, axis) => random.pick(positions({ map }, axis + 1))),
    random.below(extents[rank - 1] ?? 1),
  ];
  return { map, start, offsets };
}

function loadBody({ map, start, offsets }: ImageCase): string {
  const [channels = 1, pixels = 1] = map.box;
  const list = (letter: string, count: number): string =>
    Array.from({ length: count }, (_, at) => `%${letter}${at}`).join(", ");
  return [
    initBarriers([{ at: 0, count: 1 }]),
    "setp.ne.u32 %p0, %thread, 0; @%p0 bra $issued;",
    ...start.map((at, axis) => `mov.s32 %r${axis}, ${at};`),
    ...offsets.map((at, axis) => `mov.b16 %h${axis}, ${at};`),
    `mbarrier.arrive.expect_tx.shared::cta.b64 _, [%smem], ${4 * channels * pixels};`,
    `add.u32 %r20, %smem, ${boxAt};`,
    `cp.async.bulk.tensor.${start.length}d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%r20], [%m_x, {${list("r", start.length)}}], [%smem], {${list("h", offsets.length)}};`,
    "$issued:",
    awaitBarrier(0, 0),
    dumpShared("out", boxAt, 4 * channels * pixels, 32),
  ].join("\n");
}

describe.each([3, 4, 5])("%id", (rank) => {
  test("pixels come one after the other through the box, read at the offsets", () => {
    const random = new Random(seed + rank);
    for (let round = 0; round < 12; round++) {
      const one = randomCase(random, rank);
      const { map } = one;
      const count = map.extents.reduce((product, extent) => product * extent, 1);
      const words = Uint32Array.from({ length: count }, () => random.bits());
      const [channels = 1, pixels = 1] = map.box;
      const { arrays, codes } = runPtx({
        body: loadBody(one),
        arrays: { x: new Uint8Array(words.buffer), out: 4 * channels * pixels },
        maps: { x: { ...map, array: "x" } },
        seed: round,
      });
      const expected = taken(one).flatMap((bytes) =>
        Array.from({ length: channels }, (_, channel) =>
          bytes === undefined || channel >= (map.extents[0] ?? 0)
            ? 0
            : (words[bytes / 4 + channel] ?? -1),
        ),
      );
      const context = `seed ${seed + rank}, round ${round}: ${JSON.stringify(one)}`;
      expect(codes, context).toEqual([]);
      const found = new Uint32Array((arrays.out ?? new Uint8Array()).slice().buffer);
      expect([...found], context).toEqual(expected);
    }
  });
});

test("a tiled map is not for im2col copies", () => {
  const one = randomCase(new Random(seed), 3);
  const { corners: _, ...tiled } = one.map;
  const { codes } = runPtx({
    body: loadBody(one),
    arrays: { x: new Uint8Array(65536), out: 4096 },
    maps: { x: { ...tiled, box: [4, 2, 2], array: "x" } },
  });
  expect(codes).toEqual(["TW8053"]);
});

test("stores stay within the corners of the array", () => {
  const map: ImageCase["map"] = {
    ...{ type: "u32", extents: [4, 6, 2], strides: [16, 96], box: [4, 8], swizzle: 0 },
    corners: { lower: [1], upper: [-1] },
    fill: "zero",
  };
  const run = (corners: TensorMap["corners"]) =>
    runPtx({
      body: `mov.u32 %r9, %smem; shl.b32 %r0, %thread, 2; add.u32 %r0, %r0, %r9; add.u32 %r1, %thread, 1;
        st.shared.b32 [%r0], %r1; fence.proxy.async.shared::cta; bar.sync 0;
        setp.ne.u32 %p0, %thread, 0; @%p0 bra $end; mov.b32 %r2, 0; mov.b32 %r3, 2;
        cp.async.bulk.tensor.3d.global.shared::cta.im2col_no_offs.bulk_group [%m_x, {%r2, %r3, %r2}], [%r9];
        cp.async.bulk.commit_group; cp.async.bulk.wait_group 0; $end:`,
      arrays: { x: new Uint8Array(192) },
      maps: { x: { ...map, corners, array: "x" } },
    });
  const { arrays, codes } = run(map.corners);
  expect(codes).toEqual([]);
  const words = new Uint32Array((arrays.x ?? new Uint8Array()).slice().buffer);
  // Pixels 2 to 4 of the first image, 1 to 4 of the second; what is left over has no image.
  const pixels = Array.from({ length: 12 }, (_, pixel) => words[4 * pixel] ?? -1);
  expect(pixels).toEqual([0, 0, 1, 5, 9, 0, 0, 13, 17, 21, 25, 0]);
  expect(run({ lower: [-1], upper: [0] }).codes).toEqual(["TW8058"]);
  expect(run({ lower: [0], upper: [1] }).codes).toEqual(["TW8058"]);
});
