/** What programs of tensor copies have in common: arrays, maps, and a tile in shared memory. */
import { tensorMapTypeBytes } from "../../src/emulator/tensor-map.ts";
import type { TensorMap, TensorMapType } from "../../src/emulator/tensor-map.ts";
import { Random } from "../../src/support/random.ts";
import { Kernel } from "./kernel.ts";
import type { Slot } from "./program.ts";
import { operandStream } from "./values.ts";

export const lanes = 128;

export interface Shape {
  readonly extents: readonly number[];
  readonly box: readonly number[];
  readonly elementStrides?: readonly number[];
}

/** Bytes between rows, rounded up to what maps allow, with a gap behind each. */
export function stridesOf(extents: readonly number[], elementBytes: number): readonly number[] {
  const strides: number[] = [];
  let bytes = (extents[0] ?? 1) * elementBytes;
  for (let axis = 1; axis < extents.length; axis++) {
    bytes = 16 * Math.ceil(bytes / 16) + 16;
    strides.push(bytes);
    bytes *= extents[axis] ?? 1;
  }
  return strides;
}

export function arrayBytes({ extents }: Shape, elementBytes: number): number {
  const strides = stridesOf(extents, elementBytes);
  const last = strides.at(-1) ?? (extents[0] ?? 1) * elementBytes;
  const count = extents.length === 1 ? 1 : (extents.at(-1) ?? 1);
  return 16 * Math.ceil((last * count) / 16);
}

export function mapOf(
  type: TensorMapType,
  { extents, box, elementStrides }: Shape,
  swizzle: TensorMap["swizzle"],
  fill: TensorMap["fill"] = "zero",
): Omit<TensorMap, "address"> {
  const strides = stridesOf(extents, tensorMapTypeBytes[type]);
  return { type, extents, strides, box, swizzle, fill, elementStrides };
}

/** Elements that a box has along each axis, and its bytes. */
export function boxBytes({ box, elementStrides }: Shape, elementBytes: number): number {
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
export function content(type: TensorMapType, bytes: number, position: number): Uint8Array {
  const size = type === "u8" ? 4 : tensorMapTypeBytes[type];
  return operandStream(kinds[type], position, bytes / size);
}

export interface Tile {
  readonly kernel: Kernel;
  readonly name: string;
  readonly tile: string;
  readonly own: string;
  readonly barrier: string;
  readonly leader: string;
  readonly tileBytes: number;
}

/** A kernel of one block with a tile and a barrier for copies into it. */
export function tiled(name: string, tileBytes: number, group = "tensor"): Tile {
  const kernel = new Kernel({ name, group, blocks: 1, threads: lanes });
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
export function mapAddress(kernel: Kernel, parameter: string): string {
  const [address] = kernel.registers(64, 1) as [string];
  kernel.line(`mov.b64 ${address}, ${parameter};`, `cvta.param.u64 ${address}, ${address};`);
  return address;
}

/** Sets the whole tile to a pattern, ready for TMA to write to. */
export function clear({ kernel, own, tileBytes }: Tile): void {
  const [ones] = kernel.registers(32, 1);
  kernel.line(`mov.u32 ${ones}, 0xa5a5a5a5;`);
  for (let at = 0; at < tileBytes; at += 16 * lanes)
    kernel.line(`st.shared.v4.b32 [${own}+${at}], {${Array(4).fill(ones).join(", ")}};`);
  kernel.line("fence.proxy.async.shared::cta;", "bar.sync 0;");
}

/** Stores the whole tile into a slot. */
export function keep({ kernel, own, tileBytes }: Tile, label: string, elementBytes: number): void {
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

export function waitFor({ kernel, barrier }: Tile, parity: number): void {
  const [passed] = kernel.registers(1, 1);
  const again = kernel.label();
  kernel.line(
    `${again}:`,
    `mbarrier.try_wait.parity.shared::cta.b64 ${passed}, [${barrier}], ${parity};`,
    `@!${passed} bra ${again};`,
  );
}

export function coordinateText(coordinates: readonly number[]): string {
  return `{${coordinates.join(", ")}}`;
}

/** Loads boxes at each of the coordinates. */
export function load(
  tile: Tile,
  map: string,
  opcode: string,
  bytes: number,
  elementBytes: number,
  places: readonly (readonly number[])[],
  label: string,
  /** Loads before these, and operands behind the barrier. */
  { first = 0, behind = "" }: { readonly first?: number; readonly behind?: string } = {},
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
      `@${leader} ${opcode} [${tile.tile}], [${map}, ${coordinateText(coordinates)}], [${barrier}]${behind}${hint};`,
    );
    waitFor(tile, (first + round) & 1);
    keep(tile, `${label} at ${coordinates.join(",")}`, elementBytes);
  });
}

/** The tile filled from the input, ready for TMA to read. */
export function fill(tile: Tile, bytes: Uint8Array): void {
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
export function write(
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

export function randomBytes(seed: number, bytes: number): Uint8Array {
  const random = new Random(seed);
  return Uint8Array.from({ length: bytes }, () => random.below(256));
}
