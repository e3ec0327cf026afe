/**
 * The block's place in the grid. All axes are launched as one, the last fastest; with clusters, the blocks
 * of a cluster follow one another:
 *
 *   grid { i: 4, j: 6 }, cluster { j: 2 }     %ctaid.x = ((i · 3 + j / 2) · 2) + j % 2
 *
 *   rank    = %ctaid.x % 2                     position in the cluster, last axis fastest
 *   cluster = %ctaid.x / 2 = i · 3 + j / 2
 */
import { i32 } from "../../formats/dtype.ts";
import type { GridAxis } from "../../ir/node.ts";
import { ceilDivSize } from "../../ir/size.ts";
import type { Size } from "../../ir/size.ts";
import type { Register } from "../module.ts";
import { integer } from "../operands.ts";
import type { EmitContext } from "./context.ts";
import { indexQuotient, indexRemainder } from "./elementwise/division.ts";
import type { ScalarValue } from "./values.ts";

/** Blocks of a cluster, all axes together. */
export function clusterSize(grid: readonly GridAxis[]): number {
  return grid.reduce((size, axis) => size * axis.cluster, 1);
}

function positionOf(grid: readonly GridAxis[], name: string): number {
  const position = grid.findIndex((axis) => axis.name === name);
  if (position < 0) throw new Error(`the grid has no axis ${name}`);
  return position;
}

export function scalarOf(register: Register): ScalarValue {
  return { kind: "scalar", dtype: i32, register };
}

/** The block's position in its cluster along an axis. */
export function clusterRank(context: EmitContext, name: string): Register {
  const { code, kernel, numbers } = context;
  const position = positionOf(kernel.grid, name);
  const size = clusterSize(kernel.grid);
  const own = kernel.grid[position]?.cluster ?? 1;
  if (own === 1) return code.constant("b32", 0);
  const inner = clusterSize(kernel.grid.slice(position + 1));
  return code.inPrologue(() => {
    const rank = divided(context, numbers.block, size).remainder;
    return divided(context, divided(context, rank, inner).quotient, own).remainder;
  });
}

/** The block's index along an axis. */
export function blockIndex(context: EmitContext, name: string): Register {
  const { code, kernel, numbers } = context;
  const position = positionOf(kernel.grid, name);
  const axis = kernel.grid[position];
  if (axis === undefined) throw new Error(`the grid has no axis ${name}`);
  return code.inPrologue(() => {
    let index = divided(context, numbers.block, clusterSize(kernel.grid)).quotient;
    for (const later of kernel.grid.slice(position + 1).toReversed())
      index = divided(context, index, clustersAlong(later)).quotient;
    if (position > 0) index = divided(context, index, clustersAlong(axis)).remainder;
    if (axis.cluster === 1) return index;
    const rank = clusterRank(context, name);
    return code.make("b32", "mad.lo.u32", index, integer(axis.cluster), rank);
  });
}

function clustersAlong({ extent, cluster }: GridAxis): Size {
  return ceilDivSize(extent, cluster);
}

interface Divided {
  readonly quotient: Register;
  readonly remainder: Register;
}

function divided(context: EmitContext, value: Register, by: Size): Divided {
  const { code } = context;
  if (typeof by === "number")
    return {
      quotient: indexQuotient(code, value, by),
      remainder: indexRemainder(code, value, by),
    };
  const divisor = context.size(by);
  const quotient = code.make("b32", "div.u32", value, divisor);
  const covered = code.make("b32", "mul.lo.u32", quotient, divisor);
  return { quotient, remainder: code.make("b32", "sub.s32", value, covered) };
}

/** The number of blocks along an axis. */
export function gridExtent(context: EmitContext, name: string): Register {
  const extent = context.kernel.grid[positionOf(context.kernel.grid, name)]?.extent ?? 1;
  return context.size(extent);
}
