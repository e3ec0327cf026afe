/** Copies of boxes through tensor maps: types, axes, swizzles, what lies outside, reductions. */
import { tensorMapTypeBytes, tensorMapTypes } from "../../src/emulator/tensor-map.ts";
import type { TensorMap, TensorMapType } from "../../src/emulator/tensor-map.ts";
import { expand } from "./expand.ts";
import type { Program, Slot } from "./program.ts";
import {
  arrayBytes,
  boxBytes,
  content,
  coordinateText,
  fill,
  load,
  mapAddress,
  mapOf,
  randomBytes,
  tiled,
  write,
} from "./tile.ts";
import type { Shape } from "./tile.ts";

const swizzles = [0, 32, 64, 128] as const;

/** Of each type, a box a swizzle; its rows are as wide as the swizzle, and half of that. */
function types(): readonly Program[] {
  return tensorMapTypes.map((type) => {
    const elementBytes = tensorMapTypeBytes[type];
    const tile = tiled(`tensor_type_${type.replace(".", "_")}`, 2048);
    const { kernel } = tile;
    swizzles.forEach((swizzle, round) => {
      const width = swizzle === 0 ? 64 : swizzle;
      const shape = { extents: [200 / elementBytes + 3, 40], box: [width / elementBytes, 16] };
      const bytes = arrayBytes(shape, elementBytes);
      const offset = kernel.place(content(type, bytes, round & 1), 128);
      const map = kernel.map({ buffer: "input", offset, map: mapOf(type, shape, swizzle) });
      const opcode = "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes";
      load(
        tile,
        mapAddress(kernel, map),
        opcode,
        boxBytes(shape, elementBytes),
        elementBytes,
        [[16 / elementBytes, 2]],
        `${type} swizzle ${swizzle}`,
        { first: round },
      );
    });
    return kernel.program();
  });
}

const shapes: readonly Shape[] = [
  { extents: [300], box: [64] },
  { extents: [50, 30], box: [16, 12] },
  { extents: [20, 12, 9], box: [16, 6, 4] },
  { extents: [18, 9, 7, 5], box: [16, 4, 3, 3] },
  { extents: [16, 7, 5, 4, 3], box: [8, 4, 3, 2, 2] },
];

/**
 * Places in and around an array of the shape: inside, over its end, before its start, far away. Along the
 * innermost axis they are multiples of 16 bytes, which the hardware insists on.
 */
function around({ extents, box }: Shape, elementBytes: number): readonly (readonly number[])[] {
  const unit = 16 / elementBytes;
  const places = [
    extents.map((_, axis) => axis),
    extents.map((extent, axis) => extent - Math.ceil((box[axis] ?? 1) / 2)),
    extents.map((_, axis) => -1 - axis),
    extents.map((extent, axis) => (axis === 0 ? unit : extent + 3)),
    extents.map((extent, axis) => (axis === 0 ? extent + 2 * unit : 0)),
  ];
  return places.map(([inner = 0, ...outer]) => [unit * Math.floor(inner / unit), ...outer]);
}

/** Every number of axes and every swizzle, in and around the array, filled with zeros and NaNs. */
function axes(): readonly Program[] {
  return shapes.flatMap((shape) => {
    const rank = shape.extents.length;
    return swizzles.map((swizzle) => {
      const tile = tiled(`tensor_${rank}d_swizzle_${swizzle}`, 8192);
      const { kernel } = tile;
      const type = "f16";
      const narrow = { ...shape, box: narrowed(shape.box, swizzle, 2) };
      const bytes = arrayBytes(narrow, 2);
      const offset = kernel.place(content(type, bytes, 0), 128);
      const fills = (["zero", "nan"] as const).map((fill) =>
        mapAddress(
          kernel,
          kernel.map({ buffer: "input", offset, map: mapOf(type, narrow, swizzle, fill) }),
        ),
      );
      const opcodes = expand(
        `cp.async.bulk.tensor.${rank}d.{shared::cluster,shared::cta}.global{,.tile}.mbarrier::complete_tx::bytes{,.L2::cache_hint}`,
      );
      let round = 0;
      for (const [at, fill] of fills.entries()) {
        const opcode = opcodes[(swizzles.indexOf(swizzle) * 2 + at) % opcodes.length] ?? "";
        const places = around(narrow, 2);
        const label = `${rank}d swizzle ${swizzle} fill ${at === 0 ? "zero" : "nan"}`;
        load(tile, fill, opcode, boxBytes(narrow, 2), 2, places, label, { first: round });
        round += places.length;
      }
      return kernel.program();
    });
  });
}

/** The innermost side cut to the swizzle's width. */
function narrowed(box: readonly number[], swizzle: number, elementBytes: number): number[] {
  const widest = swizzle === 0 ? Infinity : swizzle / elementBytes;
  return box.map((side, axis) => (axis === 0 ? Math.min(side, widest) : side));
}

/** What lies outside, of every type that has a NaN. */
function fills(): readonly Program[] {
  const types = ["f16", "bf16", "f32", "f64", "f32.ftz", "tf32", "tf32.ftz"] as const;
  return types.map((type) => {
    const elementBytes = tensorMapTypeBytes[type];
    const tile = tiled(`tensor_fill_${type.replace(".", "_")}`, 2048);
    const { kernel } = tile;
    const shape = { extents: [96 / elementBytes, 12], box: [64 / elementBytes, 16] };
    const offset = kernel.place(content(type, arrayBytes(shape, elementBytes), 0), 128);
    const map = kernel.map({ buffer: "input", offset, map: mapOf(type, shape, 0, "nan") });
    const opcode = "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes";
    load(
      tile,
      mapAddress(kernel, map),
      opcode,
      boxBytes(shape, elementBytes),
      elementBytes,
      [[64 / elementBytes, 2]],
      `${type} filled with NaN`,
    );
    return kernel.program();
  });
}

/** Every so many elements along the outer axes, and boxes whose rows are narrower than the swizzle. */
function strided(): readonly Program[] {
  const forms: readonly (Shape & { readonly swizzle: TensorMap["swizzle"] })[] = [
    { extents: [40, 60], box: [16, 24], elementStrides: [1, 3], swizzle: 0 },
    { extents: [40, 60], box: [32, 20], elementStrides: [1, 8], swizzle: 64 },
    { extents: [40, 20, 12], box: [16, 9, 6], elementStrides: [1, 2, 4], swizzle: 32 },
    { extents: [40, 60], box: [8, 16], swizzle: 128 },
    { extents: [40, 60], box: [8, 16], swizzle: 64 },
    { extents: [40, 60], box: [24, 16], swizzle: 64 },
    { extents: [80, 60], box: [40, 16], swizzle: 128 },
  ];
  return forms.map(({ swizzle, ...shape }, number) => {
    const tile = tiled(`tensor_strided_${number}`, 8192);
    const { kernel } = tile;
    const offset = kernel.place(content("u16", arrayBytes(shape, 2), 0), 128);
    const map = kernel.map({ buffer: "input", offset, map: mapOf("u16", shape, swizzle) });
    const opcode = `cp.async.bulk.tensor.${shape.extents.length}d.shared::cluster.global.mbarrier::complete_tx::bytes`;
    load(
      tile,
      mapAddress(kernel, map),
      opcode,
      boxBytes(shape, 2),
      2,
      around(shape, 2).slice(0, 3),
      `strided ${number}`,
    );
    return kernel.program();
  });
}

/** Where a box is stored. Before the start of an array hardware does not take them. */
const places = ["inside", "end", "below", "right"] as const;

function placed(shape: Shape, place: (typeof places)[number]): readonly number[] {
  const [inside = [], end = [], , below = [], right = []] = around(shape, 4);
  return { inside, end, below, right }[place];
}

/** Boxes stored in and around an array. */
function stores(place: (typeof places)[number]): readonly Program[] {
  return shapes.flatMap((shape) => {
    const rank = shape.extents.length;
    return swizzles.map((swizzle) => {
      const name = `tensor_store_${place}_${rank}d_swizzle_${swizzle}`;
      const tile = tiled(name, 8192, "tensor_stores");
      const { kernel } = tile;
      const narrow = { ...shape, box: narrowed(shape.box, swizzle, 4) };
      const bytes = arrayBytes(narrow, 4);
      fill(tile, randomBytes(rank, tile.tileBytes));
      const opcodes = expand(
        `cp.async.bulk.tensor.${rank}d.global.shared::cta{,.tile}.bulk_group{,.L2::cache_hint}`,
      );
      const opcode = opcodes[swizzles.indexOf(swizzle)] ?? "";
      const coordinates = placed(narrow, place);
      const offset = kernel.slot(`store at ${coordinates.join(",")}`, 4, { bytes });
      const map = kernel.map({ buffer: "output", offset, map: mapOf("u32", narrow, swizzle) });
      write(tile, opcode, mapAddress(kernel, map), [coordinates]);
      return kernel.program();
    });
  });
}

const reductionTypes: readonly (readonly [operation: string, types: readonly TensorMapType[]])[] = [
  ["add", ["u32", "s32", "u64", "f16", "bf16", "f32", "f32.ftz", "f64"]],
  ["min", ["u32", "s32", "u64", "s64", "f16", "bf16"]],
  ["max", ["u32", "s32", "u64", "s64", "f16", "bf16"]],
  ["inc", ["u32"]],
  ["dec", ["u32"]],
  ["and", ["u32", "s32", "u64"]],
  ["or", ["u32", "s32", "u64"]],
  ["xor", ["u32", "s32", "u64"]],
];

function reductions(): readonly Program[] {
  return reductionTypes.flatMap(([operation, types]) =>
    types.map((type, number) => {
      const name = `tensor_${operation}_${type.replace(".", "_")}`;
      const elementBytes = tensorMapTypeBytes[type];
      const tile = tiled(name, 2048, "tensor_reductions");
      const { kernel } = tile;
      const swizzle = swizzles[number % 4] ?? 0;
      const width = swizzle === 0 ? 64 : swizzle;
      const shape = { extents: [96 / elementBytes, 24], box: [width / elementBytes, 16] };
      const bytes = arrayBytes(shape, elementBytes);
      fill(tile, content(type, tile.tileBytes, 0));
      const opcodes = expand(
        `cp.reduce.async.bulk.tensor.2d.global.shared::cta.${operation}{,.tile}.bulk_group{,.L2::cache_hint}`,
      );
      for (const opcode of opcodes) {
        const initial = content(type, bytes, 1);
        const offset = kernel.slot(opcode, elementBytes as Slot["elementBytes"], {
          bytes,
          initial,
        });
        const map = kernel.map({ buffer: "output", offset, map: mapOf(type, shape, swizzle) });
        write(tile, opcode, mapAddress(kernel, map), [[16 / elementBytes, 2]]);
      }
      return kernel.program();
    }),
  );
}

/** Reductions of all numbers of axes. */
function reductionAxes(): readonly Program[] {
  return shapes.map((shape) => {
    const rank = shape.extents.length;
    const tile = tiled(`tensor_reduce_${rank}d`, 8192, "tensor_reductions");
    const { kernel } = tile;
    const bytes = arrayBytes(shape, 4);
    fill(tile, content("u32", tile.tileBytes, 0));
    const operations = ["add", "min", "max", "inc", "dec", "and", "or", "xor"];
    for (const operation of operations) {
      const opcode = `cp.reduce.async.bulk.tensor.${rank}d.global.shared::cta.${operation}.bulk_group`;
      const initial = content("u32", bytes, 1);
      const offset = kernel.slot(opcode, 4, { bytes, initial });
      const map = kernel.map({ buffer: "output", offset, map: mapOf("u32", shape, 0) });
      // Half of them reach past the end.
      const place = operations.indexOf(operation) % 2 === 0 ? "inside" : "end";
      write(tile, opcode, mapAddress(kernel, map), [placed(shape, place)]);
    }
    return kernel.program();
  });
}

/** Prefetches of boxes and of maps leave nothing behind. */
function prefetches(): Program {
  const tile = tiled("tensor_prefetch", 2048);
  const { kernel, leader } = tile;
  let last = "";
  for (const shape of shapes) {
    const rank = shape.extents.length;
    const offset = kernel.place(content("u16", arrayBytes(shape, 2), 0), 128);
    const parameter = kernel.map({ buffer: "input", offset, map: mapOf("u16", shape, 0) });
    last = mapAddress(kernel, parameter);
    const place = coordinateText(shape.extents.map((_, axis) => axis));
    const [policy] = kernel.registers(64, 1);
    kernel.line(`createpolicy.fractional.L2::evict_first.b64 ${policy}, 1.0;`);
    for (const opcode of expand(
      `cp.async.bulk.prefetch.tensor.${rank}d.L2.global{,.tile}{,.L2::cache_hint}`,
    )) {
      kernel.covers(opcode);
      const hint = opcode.includes("cache_hint") ? `, ${policy}` : "";
      kernel.line(`@${leader} ${opcode} [${last}, ${place}]${hint};`);
    }
    for (const opcode of ["prefetch.tensormap", "prefetch.param.tensormap"]) {
      kernel.covers(opcode);
      const address = opcode.includes("param") ? parameter : last;
      kernel.line(`@${leader} ${opcode} [${address}];`);
    }
  }
  kernel.before(".const .align 128 .b8 tensor_prefetch_map[128] = {0};\n");
  kernel.covers("prefetch.const.tensormap");
  kernel.line(`@${leader} prefetch.const.tensormap [tensor_prefetch_map];`);
  const shape = shapes[4] as Shape;
  const opcode = "cp.async.bulk.tensor.5d.shared::cluster.global.mbarrier::complete_tx::bytes";
  load(tile, last, opcode, boxBytes(shape, 2), 2, [[0, 1, 0, 1, 0]], "a load behind prefetches");
  return kernel.program();
}

export function tensorPrograms(): readonly Program[] {
  return [
    ...types(),
    ...axes(),
    ...strided(),
    ...fills(),
    ...places.flatMap(stores),
    ...reductions(),
    ...reductionAxes(),
    prefetches(),
  ];
}
