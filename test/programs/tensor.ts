/** Copies of boxes through tensor maps: types, axes, swizzles, what lies outside, reductions. */
import { tensorMapTypeBytes, tensorMapTypes } from "../../src/emulator/tensor-map.ts";
import type { TensorMap, TensorMapType } from "../../src/emulator/tensor-map.ts";
import { Random } from "../../src/support/random.ts";
import { expand } from "./expand.ts";
import { Kernel } from "./kernel.ts";
import type { Program, Slot } from "./program.ts";
import { operandStream } from "./values.ts";

const lanes = 128;

interface Shape {
  readonly extents: readonly number[];
  readonly box: readonly number[];
  readonly elementStrides?: readonly number[];
}

/** Bytes between rows, rounded up to what maps allow, with a gap behind each. */
function stridesOf(extents: readonly number[], elementBytes: number): readonly number[] {
  const strides: number[] = [];
  let bytes = (extents[0] ?? 1) * elementBytes;
  for (let axis = 1; axis < extents.length; axis++) {
    bytes = 16 * Math.ceil(bytes / 16) + 16;
    strides.push(bytes);
    bytes *= extents[axis] ?? 1;
  }
  return strides;
}

function arrayBytes({ extents }: Shape, elementBytes: number): number {
  const strides = stridesOf(extents, elementBytes);
  const last = strides.at(-1) ?? (extents[0] ?? 1) * elementBytes;
  const count = extents.length === 1 ? 1 : (extents.at(-1) ?? 1);
  return 16 * Math.ceil((last * count) / 16);
}

function mapOf(
  type: TensorMapType,
  { extents, box, elementStrides }: Shape,
  swizzle: TensorMap["swizzle"],
  fill: TensorMap["fill"] = "zero",
): Omit<TensorMap, "address"> {
  const strides = stridesOf(extents, tensorMapTypeBytes[type]);
  return { type, extents, strides, box, swizzle, fill, elementStrides };
}

/** Elements that a box has along each axis, and its bytes. */
function boxBytes({ box, elementStrides }: Shape, elementBytes: number): number {
  return box.reduce(
    (total, side, axis) =>
      total * (axis === 0 ? side : Math.ceil(side / (elementStrides?.[axis] ?? 1))),
    elementBytes,
  );
}

const kinds: { readonly [T in TensorMapType]: string } = {
  u8: "b32",
  u16: "b16",
  u32: "b32",
  s32: "b32",
  u64: "b64",
  s64: "b64",
  f16: "f16",
  f32: "f32",
  f64: "f64",
  bf16: "bf16",
  "f32.ftz": "f32",
  tf32: "f32",
  "tf32.ftz": "f32",
};

/** Values of a type, so many bytes of them. */
function content(type: TensorMapType, bytes: number, position: number): Uint8Array {
  const size = type === "u8" ? 4 : tensorMapTypeBytes[type];
  return operandStream(kinds[type], position, bytes / size);
}

interface Tile {
  readonly kernel: Kernel;
  readonly name: string;
  readonly tile: string;
  readonly own: string;
  readonly barrier: string;
  readonly leader: string;
  readonly tileBytes: number;
}

/** A kernel of one block with a tile and a barrier for copies into it. */
function tiled(name: string, tileBytes: number, group = "tensor"): Tile {
  const kernel = new Kernel({ name, group, blocks: 1, lanes });
  kernel.declare(`.shared .align 1024 .b8 ${name}_tile[${tileBytes}];`);
  kernel.declare(`.shared .align 8 .b64 ${name}_barrier;`);
  const [tile, own, barrier] = kernel.registers(32, 3) as [string, string, string];
  const [leader] = kernel.registers(1, 1) as [string];
  kernel.line(
    `mov.u32 ${tile}, ${name}_tile;`,
    `mov.u32 ${barrier}, ${name}_barrier;`,
    `mad.lo.u32 ${own}, %t, 16, ${tile};`,
    `setp.eq.u32 ${leader}, %t, 0;`,
    `@${leader} mbarrier.init.shared::cta.b64 [${barrier}], 1;`,
    `@${leader} fence.mbarrier_init.release.cluster;`,
  );
  return { kernel, name, tile, own, barrier, leader, tileBytes };
}

/** The generic address of a map. */
function mapAddress(kernel: Kernel, parameter: string): string {
  const [address] = kernel.registers(64, 1) as [string];
  kernel.line(`mov.b64 ${address}, ${parameter};`, `cvta.param.u64 ${address}, ${address};`);
  return address;
}

/** Sets the whole tile to a pattern, ready for the copy engine to write to. */
function clear({ kernel, own, tileBytes }: Tile): void {
  const [ones] = kernel.registers(32, 1);
  kernel.line(`mov.u32 ${ones}, 0xa5a5a5a5;`);
  for (let at = 0; at < tileBytes; at += 16 * lanes)
    kernel.line(`st.shared.v4.b32 [${own}+${at}], {${Array(4).fill(ones).join(", ")}};`);
  kernel.line("fence.proxy.async.shared::cta;", "bar.sync 0;");
}

/** Stores the whole tile into a slot. */
function keep({ kernel, own, tileBytes }: Tile, label: string, elementBytes: number): void {
  const offset = kernel.slot(label, elementBytes as Slot["elementBytes"], { bytes: tileBytes });
  for (let at = 0; at < tileBytes; at += 16 * lanes) {
    const words = kernel.registers(32, 4);
    kernel.line(
      `ld.shared.v4.b32 {${words.join(", ")}}, [${own}+${at}];`,
      `st.global.v4.b32 [%out16+${offset + at}], {${words.join(", ")}};`,
    );
  }
  kernel.line("bar.sync 0;");
}

function waitFor({ kernel, barrier }: Tile, parity: number): void {
  const [passed] = kernel.registers(1, 1);
  const again = kernel.label();
  kernel.line(
    `${again}:`,
    `mbarrier.try_wait.parity.shared::cta.b64 ${passed}, [${barrier}], ${parity};`,
    `@!${passed} bra ${again};`,
  );
}

function coordinateText(coordinates: readonly number[]): string {
  return `{${coordinates.join(", ")}}`;
}

/** Loads boxes at each of the coordinates. */
function load(
  tile: Tile,
  map: string,
  opcode: string,
  bytes: number,
  elementBytes: number,
  places: readonly (readonly number[])[],
  label: string,
  first = 0,
): void {
  const { kernel, barrier, leader } = tile;
  kernel.covers(opcode);
  const [policy] = kernel.registers(64, 1);
  const hint = opcode.includes("cache_hint") ? `, ${policy}` : "";
  if (hint !== "") kernel.line(`createpolicy.fractional.L2::evict_first.b64 ${policy}, 1.0;`);
  places.forEach((coordinates, round) => {
    clear(tile);
    kernel.line(
      `@${leader} mbarrier.arrive.expect_tx.shared::cta.b64 _, [${barrier}], ${bytes};`,
      `@${leader} ${opcode} [${tile.tile}], [${map}, ${coordinateText(coordinates)}], [${barrier}]${hint};`,
    );
    waitFor(tile, (first + round) & 1);
    keep(tile, `${label} at ${coordinates.join(",")}`, elementBytes);
  });
}

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
        round,
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
        load(tile, fill, opcode, boxBytes(narrow, 2), 2, places, label, round);
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

/** The tile filled from the input, ready for the copy engine to read. */
function fill(tile: Tile, bytes: Uint8Array): void {
  const { kernel, own, tileBytes } = tile;
  const offset = kernel.place(bytes, 16);
  for (let at = 0; at < tileBytes; at += 16 * lanes) {
    const words = kernel.registers(32, 4);
    kernel.line(
      `ld.global.v4.b32 {${words.join(", ")}}, [%in16+${offset + at}];`,
      `st.shared.v4.b32 [${own}+${at}], {${words.join(", ")}};`,
    );
  }
  kernel.line("fence.proxy.async.shared::cta;", "bar.sync 0;");
}

/** Copies and reductions from shared memory into arrays in the output. */
function write(
  tile: Tile,
  opcode: string,
  map: string,
  places: readonly (readonly number[])[],
): void {
  const { kernel, leader } = tile;
  kernel.covers(opcode);
  const [policy] = kernel.registers(64, 1);
  const hint = opcode.includes("cache_hint") ? `, ${policy}` : "";
  if (hint !== "") kernel.line(`createpolicy.fractional.L2::evict_first.b64 ${policy}, 1.0;`);
  for (const coordinates of places)
    kernel.line(
      `@${leader} ${opcode} [${map}, ${coordinateText(coordinates)}], [${tile.tile}]${hint};`,
      `@${leader} cp.async.bulk.commit_group;`,
      `@${leader} cp.async.bulk.wait_group 0;`,
    );
}

function randomBytes(seed: number, bytes: number): Uint8Array {
  const random = new Random(seed);
  return Uint8Array.from({ length: bytes }, () => random.below(256));
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
