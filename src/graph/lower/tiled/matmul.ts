/**
 * dot_general over tiles: each block makes a tile of one batch's result with `dot`, which is tensor cores where the
 * formats have them. f32 is multiplied in parts, as its algorithm says, and summed in f32. Those of a few products are no work for tiles, and
 * are made step by step (`rules/products.ts`). FP8 is multiplied as f16, which holds it exactly: of sums of FP8 tensor cores keep no more than 14 bits.
 *
 *   lhs [b, t, h, d]   batch b, h   free t   contracted d        window (b, slice t, h, slice d)
 *
 * An operand can be read so where, in memory, its free axes are one run and its contracted axes are one; products of
 * others are made step by step, too.
 */
import { dtypes } from "../../../formats/dtype.ts";
import type { DType } from "../../../formats/dtype.ts";
import { cdiv, dot, iota, loop, slice, zeros } from "../../../lang/index.ts";
import type { Ref, Scalar, Tile, WindowIndex } from "../../../lang/index.ts";
import type { ElementType } from "../../ops/elements.ts";
import type { GraphOp, GraphValue } from "../../ops/node.ts";
import type { DotNumbers } from "../../ops/structures.ts";
import { shortSum } from "../../ops/products.ts";
import { sizeOf } from "../../ops/types.ts";
import { axesOfPosition } from "../points/points.ts";
import type { Index } from "../points/indices.ts";
import { dotAxes, roundsOperands, splitPrecisionOf } from "../dot-axes.ts";
import type { DotAxes } from "../dot-axes.ts";
import { cacheTile } from "../../../kernels/matmul/heuristics/cache-tiles.ts";
import type { MatmulPrecision } from "../../../kernels/matmul/problem.ts";
import type { Caches } from "../../../targets/target.ts";
import { tensorTypeOf } from "../storage.ts";
import { converted } from "../tiles/convert.ts";
import { tileExtent } from "./tiled.ts";
import type { TiledKernel } from "./tiled.ts";

type Role = "batch" | "free" | "contracted";

/** Neighbouring axes of one role as one. */
interface Segment {
  readonly role: Role;
  /** The first of its axes, by its place among those of its role. */
  readonly at: number;
  readonly extent: number;
}

/** An operand in memory: axes of one role that lie side by side, in order, are one; those of extent 1 are none. */
export function segmentsOf(shape: readonly number[], axes: DotAxes): readonly Segment[] {
  const segments: Segment[] = [];
  const counts = new Map<Segment, number>();
  for (const [axis, extent] of shape.entries()) {
    if (extent === 1) continue;
    const role = (["batch", "free", "contracted"] as const).find((each) =>
      axes[each].includes(axis),
    );
    if (role === undefined) throw new Error("an axis has a role");
    const at = axes[role].indexOf(axis);
    const before = segments.at(-1);
    const follows =
      before?.role === role && role !== "batch" && isNext(axes[role], before, counts, at, shape);
    if (before === undefined || !follows) {
      const made = { role, at, extent };
      segments.push(made);
      counts.set(made, 1);
      continue;
    }
    const joined = { ...before, extent: before.extent * extent };
    segments[segments.length - 1] = joined;
    counts.set(joined, at - before.at + 1);
  }
  return segments;
}

/** Whether an axis comes right after a segment's axes in the order of their role, but for axes of extent 1. */
function isNext(
  axes: readonly number[],
  segment: Segment,
  counts: ReadonlyMap<Segment, number>,
  at: number,
  shape: readonly number[],
): boolean {
  const end = segment.at + (counts.get(segment) ?? 1);
  return at >= end && axes.slice(end, at).every((axis) => shape[axis] === 1);
}

/** Whether a block can read tiles of an operand as windows. */
export function isReadable(shape: readonly number[], axes: DotAxes): boolean {
  const segments = segmentsOf(shape, axes);
  const count = (role: Role): number => segments.filter((each) => each.role === role).length;
  return count("free") <= 1 && count("contracted") <= 1;
}

/** Formats that `dot` multiplies with each other, and the format of its sums. */
const sums: { readonly [E in ElementType]?: DType } = {
  f32: dtypes.f32,
  bf16: dtypes.f32,
  f16: dtypes.f32,
  f64: dtypes.f64,
  f8E4M3FN: dtypes.f32,
  f8E5M2: dtypes.f32,
  i8: dtypes.i32,
};

const results: { readonly [sum: string]: readonly ElementType[] } = {
  f32: ["f32", "bf16", "f16"],
  f64: ["f64", "f32"],
  i32: ["i32"],
};

interface Operand {
  readonly segments: readonly Segment[];
  /** Extents of the axes of the role, in the role's order. */
  readonly batch: readonly number[];
}

/** A tile of an operand in the format that is multiplied. */
function factor(tile: Tile): Tile {
  return tile.dtype.kind === "float" && tile.dtype.bits === 8 ? tile.cast(dtypes.f16) : tile;
}

function operandOf(shape: readonly number[], axes: DotAxes): Operand {
  return {
    segments: segmentsOf(shape, axes),
    batch: axes.batch.map((axis) => shape[axis] ?? 1),
  };
}

/** A tile [free, contracted] of an operand, or the other way round. */
function loadTile(
  ref: Ref,
  { segments, batch }: Operand,
  place: {
    readonly batch: Scalar<"i32">;
    readonly free: Index;
    readonly contracted: Index;
    readonly tile: { readonly free: number; readonly contracted: number };
    readonly order: readonly ["free" | "contracted", "free" | "contracted"];
  },
): Tile {
  const batches = axesOfPosition(place.batch, batch);
  const window: WindowIndex[] = [];
  const kept: Role[] = [];
  for (const { role, at } of segments) {
    if (role === "batch") window.push(batches[at] as Scalar<"i32">);
    else {
      window.push(slice(place[role] as Scalar<"i32">, place.tile[role]));
      kept.push(role);
    }
  }
  const shape = segments.map(({ extent }) => extent);
  const isScalar = shape.length === 0 || kept.length === 0;
  const view = isScalar
    ? ref.reshape([1, ...shape]).at(slice(0, 1), ...window)
    : ref.reshape(shape).at(...window);
  const [first, second] = place.order;
  const tile = view.load();
  const extents: { readonly [R in "free" | "contracted"]: number } = place.tile;
  // An axis of extent 1 is no axis in memory; its tile has one element, and zeros beyond.
  const present = (role: "free" | "contracted"): boolean => kept.includes(role);
  if (present("free") && present("contracted")) return kept[0] === first ? tile : tile.transpose();
  if (present(first)) return padded(tile.reshape([extents[first], 1]), 1, extents[second]);
  if (present(second)) return padded(tile.reshape([1, extents[second]]), 0, extents[first]);
  return padded(padded(tile.reshape([1, 1]), 0, extents[first]), 1, extents[second]);
}

/** A tile of extent 1 along an axis, with zeros up to an extent. */
function padded(tile: Tile, axis: number, extent: number): Tile {
  if (extent === 1) return tile;
  const shape = tile.shape.map((own, each) => (each === axis ? extent : own));
  const place = indexAlong(shape, axis);
  return place.eq(0).select(tile, zeros(tile.dtype, shape));
}

function indexAlong(shape: readonly number[], axis: number): Tile<"i32"> {
  return iota(dtypes.i32, shape, { axis });
}

/** The kernel of a product, where `dot` has its formats and its operands can be read as windows. */
export function tiledMatmul(
  op: GraphOp<"stablehlo.dot_general">,
  caches?: Caches,
): TiledKernel | undefined {
  const { lhs, rhs } = op.operands;
  const [result] = op.results;
  const precision = splitPrecisionOf(op);
  if (result === undefined || (precision === undefined && roundsOperands(op))) return undefined;
  const numbers = op.attributes.dot_dimension_numbers;
  return matmulKernel(lhs, rhs, result, { numbers, precision, caches });
}

interface ProductSettings {
  readonly numbers: DotNumbers;
  readonly precision: MatmulPrecision | undefined;
  readonly caches: Caches | undefined;
}

interface ProductTile {
  readonly m: number;
  readonly n: number;
  readonly k: number;
}

function tensorCoreTile(
  [m, n, k]: readonly [number, number, number],
  isExact: boolean,
): ProductTile {
  const most = isExact ? 64 : 128;
  return {
    m: tileExtent(m, 16, most),
    n: tileExtent(n, 16, most),
    k: tileExtent(k, 16, isExact ? 16 : 64),
  };
}

function matmulKernel(
  lhs: GraphValue,
  rhs: GraphValue,
  result: GraphValue,
  { numbers, precision, caches }: ProductSettings,
): TiledKernel | undefined {
  const [left, right, out] = [tensorTypeOf(lhs), tensorTypeOf(rhs), tensorTypeOf(result)];
  const sum = sums[left.element];
  if (sum === undefined || left.element !== right.element) return undefined;
  if (!(results[sum.name]?.includes(out.element) ?? false)) return undefined;
  const leftAxes = dotAxes(numbers, "lhs", left.shape.length);
  const rightAxes = dotAxes(numbers, "rhs", right.shape.length);
  if (!isReadable(left.shape, leftAxes) || !isReadable(right.shape, rightAxes)) return undefined;
  const extentOf = (shape: readonly number[], axes: readonly number[]): number =>
    sizeOf(axes.map((axis) => shape[axis] ?? 1));
  const [batch, m, n, k] = [
    extentOf(left.shape, leftAxes.batch),
    extentOf(left.shape, leftAxes.free),
    extentOf(right.shape, rightAxes.free),
    extentOf(left.shape, leftAxes.contracted),
  ];
  if (k === 0 || sizeOf(out.shape) === 0) return undefined;
  if (left.element === "f32" && out.element !== "f64" && k <= shortSum) return undefined;
  const isExact = left.element === "f32" || left.element === "f64";
  const tile =
    caches === undefined
      ? tensorCoreTile([m, n, k], isExact)
      : cacheTile([m, n, k], sum.bits / 8, caches);
  const [a, b] = [operandOf(left.shape, leftAxes), operandOf(right.shape, rightAxes)];
  return {
    title: "tiles",
    grid: { batch, row: cdiv(m, tile.m), column: cdiv(n, tile.n) },
    loadsWindows: true,
    body: ({ ref, outputs, at }) => {
      const [row, column] = [at("row").mul(tile.m), at("column").mul(tile.n)];
      const start = zeros(sum, [tile.m, tile.n]);
      const total = loop({ to: cdiv(k, tile.k), carry: start }, (step, partial) => {
        const depth = step.mul(tile.k);
        const x = loadTile(ref(lhs), a, {
          batch: at("batch"),
          free: row,
          contracted: depth,
          tile: { free: tile.m, contracted: tile.k },
          order: ["free", "contracted"],
        });
        const y = loadTile(ref(rhs), b, {
          batch: at("batch"),
          free: column,
          contracted: depth,
          tile: { free: tile.n, contracted: tile.k },
          order: ["contracted", "free"],
        });
        return dot(factor(x), factor(y), {
          accumulator: partial,
          dtype: sum,
          ...(precision !== undefined && { precision }),
        });
      });
      const [target] = outputs;
      const value = converted(total, sum.name as ElementType, out.element);
      target
        ?.reshape([batch, m, n])
        .at(at("batch"), slice(row, tile.m), slice(column, tile.n))
        .store(value);
    },
  };
}
