/**
 * Whether the evaluator is done with a program before a device could have compiled it. Only programs are asked that no device was chosen for:
 *
 *   add(x, y) of [2, 2]                   computed at once; a page loads no compiler for it
 *   matmul of 256 by 256 by 256           compiled
 *   jit(f), 100 operations of elements    the evaluator takes no longer for it than a device for a launch
 *   jit(f) with a loop                    compiled, however small its arrays are
 */
import { elementCount, productCount } from "../graph/ops/arithmetic-counts.ts";
import type { AnyGraphOp, GraphRegion, GraphValue } from "../graph/ops/node.ts";
import type { GraphOpKind } from "../graph/ops/table.ts";
import { operandsOf, regionsOf } from "../graph/ops/traverse.ts";
import { isTensor, sizeOf } from "../graph/ops/types.ts";

/** In elements, of which the evaluator does one in about 20 ns: some milliseconds, where compiling takes 50 and more. */
const quickOnce = 2 ** 18;

/** Of what is called again and again: about as long as a launch takes. */
const quickEachTime = 2 ** 13;

/** What an op takes besides its elements. */
const eachOp = 256;

/** Multiplications and additions of a product in the time of an element. */
const productsAnElement = 8;

/** How often their regions run is not known, or they run kernels. */
const unbounded: ReadonlySet<GraphOpKind> = new Set([
  "stablehlo.while",
  "stablehlo.custom_call",
  "stablehlo.cholesky",
  "stablehlo.triangular_solve",
  "stablehlo.fft",
]);

function elementsOf(values: readonly GraphValue[]): number {
  return values.reduce((sum, { type }) => sum + (isTensor(type) ? sizeOf(type.shape) : 0), 0);
}

function workOf(op: AnyGraphOp): number {
  if (unbounded.has(op.kind)) return Infinity;
  const touched = Math.max(elementCount(op), elementsOf(op.results), elementsOf(operandsOf(op)));
  const within = regionsOf(op).reduce((sum, { ops }) => sum + workOfAll(ops), 0);
  // What is done to pairs of elements is done for each of them.
  const steps = regionsOf(op).reduce((sum, { ops }) => sum + ops.length, 1);
  return eachOp + within + touched * steps + productCount(op) / productsAnElement;
}

function workOfAll(ops: readonly AnyGraphOp[]): number {
  return ops.reduce((sum, op) => sum + workOf(op), 0);
}

/** Whether ops that run once are left to the evaluator. */
export function isQuick(ops: readonly AnyGraphOp[]): boolean {
  return workOfAll(ops) <= quickOnce;
}

const known = new WeakMap<GraphRegion, boolean>();

/** Whether a compiled function, which may be called many times, is. */
export function isQuickEachTime(graph: GraphRegion): boolean {
  const found = known.get(graph) ?? workOfAll(graph.ops) <= quickEachTime;
  known.set(graph, found);
  return found;
}
