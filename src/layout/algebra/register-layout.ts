/**
 * Register layouts: which (warp, lane, register) holds which element of a tile.
 *
 * Every layout the hardware knows is a permutation of index bits. A layout therefore lists, for each
 * axis of the tile, who owns the bits of the coordinate, least significant first: a bit of the register
 * number (R0, R1 …), of the lane (L0 … L4) or of the warp (W0, W1 …). The accumulator of `wgmma` is
 *
 *   (L2 L3 L4 R1 W0 W1 | R0 L0 L1)
 *
 *   row    = L2 + 2·L3 + 4·L4 + 8·R1 + 16·W0 + 32·W1        64 rows
 *   column = R0 + 2·L0 + 4·L1                                8 columns
 *
 * Warp 0 holds these rows of it, written lane:register:
 *
 *   | row | col 0 | 1    | 2    | 3    | 4    | 5    | 6    | 7    |
 *   |-----|-------|------|------|------|------|------|------|------|
 *   | 0   | 0:0   | 0:1  | 1:0  | 1:1  | 2:0  | 2:1  | 3:0  | 3:1  |
 *   | 1   | 4:0   | 4:1  | 5:0  | 5:1  | 6:0  | 6:1  | 7:0  | 7:1  |
 *   | 7   | 28:0  | 28:1 | 29:0 | 29:1 | 30:0 | 30:1 | 31:0 | 31:1 |
 *   | 8   | 0:2   | 0:3  | 1:2  | 1:3  | 2:2  | 2:3  | 3:2  | 3:3  |
 *
 * Rules of the notation:
 *
 * - The extents covered by the bits are the *atom*, here 64 × 8. A larger tile is covered by copies of
 *   it: copy (i, j) of a grid of copies m × n uses registers 4·(i·n + j) and up, so the last axis runs
 *   fastest. An atom may overhang the tile; what it would hold there is *padding* and means nothing.
 * - Axes without bits repeat in registers. Leading ones are not written, so `(R0 L0 L1)` spreads the
 *   last axis of a tile of any rank.
 * - A lane or warp bit that owns nothing is *replicated*: lanes that differ in it hold the same.
 *   `(L2 L3 L4 R0 W0 W1)`, a row sum of the accumulator, is held by four lanes each, as L0 and L1 are
 *   free. In `()` every lane holds the whole tile.
 * - `flat(…)` numbers the elements row by row and lists the owners of that one number:
 *   `flat(R0 R1 L0 L1 L2 L3 L4 W0 W1)` gives each lane four neighbours, then repeats every 512.
 * - `splat`: all elements are one number, which every lane holds in one register.
 *
 * A layout is kept in canonical form, and is its text: two layouts are equal when their texts are.
 *
 * | spelling           | canonical     | because                                                    |
 * |--------------------|---------------|------------------------------------------------------------|
 * | `(L0 L1 R0)`       | `(L0 L1)`     | a highest register on top of the last axis is what copies do |
 * | `(L0 R3 | R1 L1)`  | `(L0 R1 | R0 L1)` | registers are numbered densely                         |
 * | `( | L0)`          | `(L0)`        | leading axes without bits are not written                  |
 * | `(R1 | R0)`        | unchanged     | copies would run along the last axis before the first      |
 * | `flat(R0)`         | `()`          | everything in registers, in order                          |
 *
 * A spelling and its canonical form hold the same on every tile that the spelled atom divides; on
 * others the canonical form counts.
 */
import { TilewrightError } from "../../support/diagnostics.ts";
import { warpsPerGroup } from "../../targets/target.ts";
import {
  bitText,
  isRegister,
  laneBits,
  laneMask,
  product,
  threadBit,
  threadBits,
  warpBits,
} from "./index-bits.ts";
import type { Bit } from "./index-bits.ts";
import { Memo } from "../../support/memo.ts";

/** Spreads elements over lanes and registers. */
export interface DistributedLayout {
  /** Whether bits own the coordinates of the last axes, or the number of the element. */
  readonly kind: "axes" | "flat";
  /** Owners of each axis' bits, least significant first. A flat layout has one list. */
  readonly axes: readonly (readonly Bit[])[];
  /** The canonical text; equal texts mean equal layouts. */
  readonly text: string;
  /** Registers that one atom takes. */
  readonly atomRegisters: number;
  /** Thread bits that own nothing, as a mask of the thread index, those that only larger program threads have included. */
  readonly replicated: number;
  /** The fewest warps that have all the bits of the layout. */
  readonly warps: number;
}

/** One number for the whole tile. */
export interface SplatLayout {
  readonly kind: "splat";
  /** The layout as text, which `parseLayout` reads. */
  readonly text: "splat";
}

/** How a tile lies in the registers of a warpgroup: which thread holds which element in which register. */
export type RegisterLayout = DistributedLayout | SplatLayout;

export const splat: SplatLayout = Object.freeze({ kind: "splat", text: "splat" });

const allThreads = (1 << threadBits) - 1;

/** Layouts by kind and owners: a kernel's stages arrive at the same few again and again. */
const remembered = new Memo<DistributedLayout>(4096);

/** Owners of the bits of the last axes' coordinates. */
export function axesLayout(axes: readonly (readonly Bit[])[]): DistributedLayout {
  return build("axes", axes);
}

/** Owners of the bits of the element's number in row-major order. */
export function flatLayout(bits: readonly Bit[]): DistributedLayout {
  return build("flat", [bits]);
}

/** Every lane holds the whole tile. */
export const replicatedLayout: DistributedLayout = axesLayout([]);

function build(kind: "axes" | "flat", axes: readonly (readonly Bit[])[]): DistributedLayout {
  let key: string = kind;
  for (const axis of axes) key += `|${axis.join()}`;
  return remembered.get(key, () => checked(kind, axes));
}

function checked(kind: "axes" | "flat", axes: readonly (readonly Bit[])[]): DistributedLayout {
  checkOwners(axes.flat());
  const canonical = canonicalAxes(axes);
  if (kind === "flat" && canonical.length === 0) return build("axes", []);
  const bits = canonical.flat();
  const owned = bits.filter((bit) => !isRegister(bit));
  const texts = canonical.map((axis) => axis.map(bitText).join(" "));
  const inside = texts.join(" | ").replace(/ +/g, " ").trim();
  return Object.freeze({
    kind,
    axes: Object.freeze(canonical.map((axis) => Object.freeze(axis))),
    text: `${kind === "flat" ? "flat" : ""}(${inside})`,
    atomRegisters: 1 << (bits.length - owned.length),
    warps: warpsNamed(owned),
    replicated: owned.reduce((mask, bit) => mask & ~(1 << threadBit(bit)), allThreads),
  });
}

function warpsNamed(bits: readonly Bit[]): number {
  return bits.reduce((most, bit) => Math.max(most, 2 ** (threadBit(bit) - laneBits + 1)), 1);
}

function checkOwners(bits: readonly Bit[]): void {
  const seen = new Set<Bit>();
  for (const bit of bits) {
    if (seen.has(bit)) throw ownerError(bit, "owns two coordinate bits");
    if (!Number.isInteger(bit) || threadBit(bit) >= threadBits)
      throw ownerError(bit, "does not exist");
    seen.add(bit);
  }
}

function ownerError(bit: Bit, what: string): TilewrightError {
  const expected = `each bit once, among R0 and up, L0 to L${laneBits - 1}, W0 to W${warpBits - 1}`;
  const message = `bit ${bitText(bit)} ${what}`;
  return new TilewrightError({ code: "TW6002", message, expected, found: bitText(bit) });
}

function canonicalAxes(axes: readonly (readonly Bit[])[]): readonly (readonly Bit[])[] {
  const registers = axes.flat().filter(isRegister);
  registers.sort((left, right) => left - right);
  const dense = new Map(registers.map((bit, index) => [bit, index]));
  const renumbered = axes.map((axis) => axis.map((bit) => dense.get(bit) ?? bit));
  const last = renumbered.at(-1);
  for (let top = registers.length - 1; top >= 0 && last?.at(-1) === top; top -= 1) last.pop();
  const first = renumbered.findIndex((axis) => axis.length > 0);
  return first < 0 ? [] : renumbered.slice(first);
}

export function sameLayout(left: RegisterLayout, right: RegisterLayout): boolean {
  return left.text === right.text;
}

/** Whether the layout distributes tiles of this shape: it has no more axes than the tile. */
export function fitsShape(layout: RegisterLayout, shape: readonly number[]): boolean {
  return layout.kind !== "axes" || layout.axes.length <= shape.length;
}

/** The extents that the layout's bits cover: one number for each axis of the shape, or for a flat
 * layout one for all. */
export function atomExtents(
  layout: DistributedLayout,
  shape: readonly number[],
): readonly number[] {
  const extents = layout.axes.map((axis) => 1 << axis.length);
  if (layout.kind === "flat") return extents;
  if (!fitsShape(layout, shape)) {
    throw new TilewrightError({
      code: "TW6003",
      message: `layout ${layout.text} does not fit a tile of shape [${shape.join(", ")}]`,
      expected: `at least ${layout.axes.length} axes`,
      found: `${shape.length}`,
    });
  }
  return [...Array<number>(shape.length - extents.length).fill(1), ...extents];
}

/** The axes that the layout's coordinates run over: the tile's own, or all of them as one. */
export function viewedShape(
  layout: DistributedLayout,
  shape: readonly number[],
): readonly number[] {
  return layout.kind === "flat" ? [product(shape)] : shape;
}

/** How many copies of the atom cover each viewed axis. */
export function copyCounts(layout: DistributedLayout, shape: readonly number[]): readonly number[] {
  const viewed = viewedShape(layout, shape);
  return atomExtents(layout, shape).map((extent, axis) => Math.ceil((viewed[axis] ?? 1) / extent));
}

/** Registers that a lane needs for the tile, one an element, padding included. */
export function registersPerLane(layout: RegisterLayout, shape: readonly number[]): number {
  if (layout.kind === "splat") return 1;
  return layout.atomRegisters * product(copyCounts(layout, shape));
}

/** The warps of a program thread that such a layout is shown for: a warpgroup, or as many as it names. */
export function shownWarps(layout: RegisterLayout): number {
  return layout.kind === "splat" ? warpsPerGroup : Math.max(warpsPerGroup, layout.warps);
}

/** How many lanes hold each element, in a program thread of so many warps. */
export function replication(layout: RegisterLayout, warps = shownWarps(layout)): number {
  const lanes = laneMask(warps);
  if (layout.kind === "splat") return lanes + 1;
  let count = 1;
  for (let mask = layout.replicated & lanes; mask > 0; mask &= mask - 1) count *= 2;
  return count;
}
