/** Tensor copies of pixels in a row: axes, corners, strides, offsets, what lies outside, swizzles. */
import { tensorMapTypeBytes } from "../../src/emulator/tensor-map.ts";
import type { Corners, TensorMap, TensorMapType } from "../../src/emulator/tensor-map.ts";
import { expand } from "./expand.ts";
import type { Kernel } from "./kernel.ts";
import type { Program } from "./program.ts";
import {
  arrayBytes,
  content,
  coordinateText,
  fill,
  load,
  mapAddress,
  randomBytes,
  stridesOf,
  tiled,
  write,
} from "./tile.ts";

const group = "im2col";

interface Image {
  readonly name: string;
  /** Channels, space, images. */
  readonly extents: readonly number[];
  readonly corners: Corners;
  readonly channels: number;
  readonly pixels: number;
  /** Of every axis. */
  readonly steps?: readonly number[];
  /** Where copies begin: channel, pixel, image; and how far off pixels are read. */
  readonly places: readonly (readonly [start: readonly number[], offsets: readonly number[]])[];
}

const images: readonly Image[] = [
  {
    name: "line",
    extents: [24, 11, 4],
    corners: { lower: [0], upper: [0] },
    channels: 16,
    pixels: 20,
    places: [
      [[0, 0, 0], [0]],
      [[8, 3, 1], [0]],
      [[0, 10, 3], [0]],
      [[16, 5, 2], [1]],
    ],
  },
  {
    name: "padded_line",
    extents: [16, 9, 3],
    corners: { lower: [-1], upper: [-1] },
    channels: 16,
    pixels: 24,
    places: [
      [[0, -1, 0], [0]],
      [[0, -1, 0], [1]],
      [[0, 2, 1], [2]],
      [[0, 7, 2], [2]],
    ],
  },
  {
    name: "strided_line",
    extents: [16, 20, 3],
    corners: { lower: [-2], upper: [1] },
    channels: 8,
    pixels: 17,
    steps: [1, 3, 1],
    places: [
      [[0, -2, 0], [0]],
      [[8, 1, 0], [2]],
      [[8, 19, 1], [40]],
    ],
  },
  {
    name: "plane",
    extents: [16, 7, 6, 3],
    corners: { lower: [-1, -1], upper: [-1, -1] },
    channels: 16,
    pixels: 50,
    places: [
      [
        [0, -1, -1, 0],
        [0, 0],
      ],
      [
        [0, -1, -1, 0],
        [1, 2],
      ],
      [
        [0, 2, 3, 1],
        [2, 2],
      ],
      [
        [0, 5, 4, 2],
        [0, 1],
      ],
    ],
  },
  {
    name: "strided_plane",
    extents: [32, 10, 9, 2],
    corners: { lower: [-1, -2], upper: [0, 1] },
    channels: 32,
    pixels: 30,
    steps: [1, 2, 3, 1],
    places: [
      [
        [0, -1, -2, 0],
        [0, 0],
      ],
      [
        [0, 3, 1, 0],
        [1, 1],
      ],
      [
        [16, 9, 7, 1],
        [3, 0],
      ],
    ],
  },
  {
    name: "small_box",
    extents: [16, 9, 9, 2],
    corners: { lower: [2, 3], upper: [-3, -4] },
    channels: 16,
    pixels: 40,
    places: [
      [
        [0, 2, 3, 0],
        [0, 0],
      ],
      [
        [0, 4, 4, 0],
        [5, 7],
      ],
    ],
  },
  {
    name: "volume",
    extents: [16, 5, 4, 3, 2],
    corners: { lower: [-1, -1, -1], upper: [-1, -1, -1] },
    channels: 16,
    pixels: 60,
    places: [
      [
        [0, -1, -1, -1, 0],
        [0, 0, 0],
      ],
      [
        [0, -1, -1, -1, 0],
        [2, 1, 2],
      ],
      [
        [0, 3, 2, 1, 1],
        [1, 1, 1],
      ],
    ],
  },
  {
    name: "strided_volume",
    extents: [16, 6, 5, 4, 2],
    corners: { lower: [0, -1, 0], upper: [-1, 0, 0] },
    channels: 8,
    pixels: 33,
    steps: [1, 2, 1, 3, 1],
    places: [
      [
        [8, 0, -1, 0, 0],
        [0, 0, 0],
      ],
      [
        [0, 2, 3, 3, 0],
        [1, 1, 0],
      ],
    ],
  },
  {
    name: "every_other_image",
    extents: [16, 5, 7],
    corners: { lower: [0], upper: [0] },
    channels: 16,
    pixels: 20,
    steps: [1, 1, 2],
    places: [[[0, 2, 0], [0]]],
  },
];

function mapOf(
  type: TensorMapType,
  { extents, corners, channels, pixels, steps }: Image,
  swizzle: TensorMap["swizzle"],
  filling: TensorMap["fill"] = "zero",
): Omit<TensorMap, "address"> {
  const strides = stridesOf(extents, tensorMapTypeBytes[type]);
  const box = [channels, pixels];
  return { type, extents, strides, box, corners, elementStrides: steps, swizzle, fill: filling };
}

const shape = ({ extents }: Image) => ({ extents, box: [] });

function vector(kernel: Kernel, values: readonly number[]) {
  const registers = kernel.registers(16, values.length);
  return {
    text: `{${registers.join(", ")}}`,
    lines: values.map((value, at) => `mov.b16 ${registers[at]}, ${value};`),
  };
}

/** Loads at all places, filled with zeros and with NaNs. */
function loads(): readonly Program[] {
  return images.flatMap((image, number) => {
    const rank = image.extents.length;
    const bytes = 2 * image.channels * image.pixels;
    const tile = tiled(`im2col_${image.name}`, 2048 * Math.ceil(bytes / 2048), group);
    const { kernel } = tile;
    const offset = kernel.place(content("f16", arrayBytes(shape(image), 2), 0), 128);
    const opcodes = expand(
      `cp.async.bulk.tensor.${rank}d.{shared::cluster,shared::cta}.global.im2col.mbarrier::complete_tx::bytes{,.L2::cache_hint}`,
    );
    const several = expand(
      `cp.async.bulk.tensor.${rank}d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes.multicast::cluster{,.L2::cache_hint}`,
    );
    let round = 0;
    for (const [at, filling] of (["zero", "nan"] as const).entries()) {
      const parameter = kernel.map({
        buffer: "input",
        offset,
        map: mapOf("f16", image, 0, filling),
      });
      const map = mapAddress(kernel, parameter);
      for (const [start, shift] of image.places) {
        const opcode = [...opcodes, ...several][(round + 3 * number + at) % 6] ?? "";
        const offsets = vector(kernel, shift);
        const [mask] = kernel.registers(16, 1) as [string];
        kernel.line(...offsets.lines, `mov.b16 ${mask}, 1;`);
        const behind = `, ${offsets.text}${opcode.includes("multicast") ? `, ${mask}` : ""}`;
        const label = `${image.name} ${filling} offset ${shift.join(",")}`;
        load(tile, map, opcode, bytes, 2, [start], label, { first: round, behind });
        round += 1;
      }
    }
    return [kernel.program()];
  });
}

/** Swizzles, and types of other sizes. */
function swizzled(): readonly Program[] {
  const forms: readonly (readonly [TensorMap["swizzle"], TensorMapType, number])[] = [
    [32, "f16", 16],
    [64, "f16", 32],
    [128, "f16", 64],
    [128, "f16", 32],
    [128, "u8", 128],
    [64, "f32", 16],
    [0, "tf32", 16],
    [32, "u64", 4],
  ];
  return forms.map(([swizzle, type, channels]) => {
    const elementBytes = tensorMapTypeBytes[type];
    const image: Image = {
      name: "",
      extents: [channels, 6, 5, 2],
      corners: { lower: [-1, -1], upper: [-1, -1] },
      channels,
      pixels: 40,
      places: [],
    };
    const tile = tiled(`im2col_${type}_${channels}_swizzle_${swizzle}`, 6144, group);
    const { kernel } = tile;
    const array = arrayBytes(shape(image), elementBytes);
    const offset = kernel.place(content(type, array, 0), 128);
    const map = mapAddress(
      kernel,
      kernel.map({ buffer: "input", offset, map: mapOf(type, image, swizzle) }),
    );
    const opcode =
      "cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes";
    const offsets = vector(kernel, [1, 2]);
    kernel.line(...offsets.lines);
    const bytes = channels * image.pixels * elementBytes;
    const places = [[0, 1, -1, 0]];
    load(tile, map, opcode, bytes, elementBytes, places, "swizzled", {
      behind: `, ${offsets.text}`,
    });
    return kernel.program();
  });
}

const operations = ["add", "min", "max", "inc", "dec", "and", "or", "xor"] as const;

/** Stores and reductions, which have no offsets and stay inside the array. */
function stores(): readonly Program[] {
  return images.map((image, number) => {
    const rank = image.extents.length;
    const tile = tiled(`im2col_store_${image.name}`, 8192, "im2col_stores");
    const { kernel } = tile;
    const bytes = arrayBytes(shape(image), 4);
    const corners = {
      lower: image.corners.lower.map((corner) => Math.max(0, corner)),
      upper: image.corners.upper.map((corner) => Math.min(0, corner)),
    };
    const inside = { ...image, corners };
    fill(tile, randomBytes(number, tile.tileBytes));
    const start = (image.places[0]?.[0] ?? []).map((at) => Math.max(0, at));
    const forms = [
      ...expand(
        `cp.async.bulk.tensor.${rank}d.global.shared::cta.im2col_no_offs.bulk_group{,.L2::cache_hint}`,
      ),
      ...operations.flatMap((operation) =>
        expand(
          `cp.reduce.async.bulk.tensor.${rank}d.global.shared::cta.${operation}.im2col_no_offs.bulk_group{,.L2::cache_hint}`,
        ),
      ),
    ];
    for (const opcode of forms) {
      const offset = kernel.slot(opcode, 4, { bytes, initial: content("u32", bytes, 1) });
      const map = kernel.map({ buffer: "output", offset, map: mapOf("u32", inside, 0) });
      write(tile, opcode, mapAddress(kernel, map), [start]);
    }
    return kernel.program();
  });
}

function prefetches(): Program {
  const tile = tiled("im2col_prefetch", 2048, group);
  const { kernel, leader } = tile;
  const [policy] = kernel.registers(64, 1);
  kernel.line(`createpolicy.fractional.L2::evict_first.b64 ${policy}, 1.0;`);
  for (const image of images.filter(({ name }) => ["line", "plane", "volume"].includes(name))) {
    const rank = image.extents.length;
    const offset = kernel.place(content("f16", arrayBytes(shape(image), 2), 0), 128);
    const map = mapAddress(
      kernel,
      kernel.map({ buffer: "input", offset, map: mapOf("f16", image, 0) }),
    );
    const [start = [], shift = []] = image.places[0] ?? [];
    const offsets = vector(kernel, shift);
    kernel.line(...offsets.lines);
    for (const opcode of expand(
      `cp.async.bulk.prefetch.tensor.${rank}d.L2.global.im2col{,.L2::cache_hint}`,
    )) {
      kernel.covers(opcode);
      const hint = opcode.includes("cache_hint") ? `, ${policy}` : "";
      kernel.line(
        `@${leader} ${opcode} [${map}, ${coordinateText(start)}], ${offsets.text}${hint};`,
      );
    }
  }
  const done = kernel.register(32);
  kernel.line(`mov.u32 ${done}, 1;`);
  kernel.store("prefetched", done, 32);
  return kernel.program();
}

export function im2colPrograms(): readonly Program[] {
  return [...loads(), ...swizzled(), ...stores(), prefetches()];
}
