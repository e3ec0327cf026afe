/**
 * Running sums and their kin, and scans by any function that is associative, in about 2 · log2(n) steps over whole arrays:
 *
 *   x      a    b    c    d    e
 *   pairs  ab        cd               scanned the same way:  ab  abcd
 *   rest             ab·c      abcd·e
 *   result a    ab   abc  abcd abcde
 */
import type { DTypeName } from "../formats/dtype.ts";
import { neutralNumbers } from "../graph/ops/combiner.ts";
import { tensorType } from "../graph/ops/types.ts";
import { combiner, splatOf } from "../graph/transform/arithmetic.ts";
import { NDArray, recordWith, typeOfArray } from "./array.ts";
import { requireSame } from "./control.ts";
import { countRemedy, requireKind } from "./dtype-checks.ts";
import { axisOf, concatenate, expandDims, flip, reshape, slice } from "./shapes.ts";
import type { Range } from "./shapes.ts";
import { flatten, mapTree, rebuild } from "./tree.ts";

/** Options of `cumsum` and the other running operations. */
export interface CumulativeOptions {
  /** The last by default. */
  readonly axis?: number | undefined;
  /** Whether it runs from the last element to the first. */
  readonly reverse?: boolean | undefined;
}

function running(kind: keyof typeof neutralNumbers) {
  return <D extends DTypeName>(x: NDArray<D>, options: CumulativeOptions = {}): NDArray<D> => {
    const axis = axisOf(options.axis ?? -1, x.rank);
    const extent = x.shape[axis] ?? 1;
    if (extent === 0) return x;
    const { element } = typeOfArray(x.value);
    const before = options.reverse === true ? [0, extent - 1] : [extent - 1, 0];
    const value = recordWith("cumulative", (builder) =>
      builder.one(
        "stablehlo.reduce_window",
        {
          inputs: [x.value],
          init_values: [splatOf(builder, tensorType(element, []), neutralNumbers[kind](element))],
        },
        {
          window_dimensions: x.shape.map((_, each) => (each === axis ? extent : 1)),
          padding: x.shape.map((_, each) => (each === axis ? before : [0, 0])),
        },
        { regions: { body: combiner(builder, element, kind) } },
      ),
    );
    return new NDArray<D>(value);
  };
}

const runningSum = running("stablehlo.add");

export function cumsum<D extends DTypeName>(
  x: NDArray<D>,
  options: CumulativeOptions = {},
): NDArray<D> {
  requireKind("cumsum", x, ["float", "signed", "unsigned"], countRemedy);
  return runningSum(x, options);
}

export const cumprod = running("stablehlo.multiply");
export const cummax = running("stablehlo.maximum");
export const cummin = running("stablehlo.minimum");

/** Options of `associativeScan`. */
export interface AssociativeScanOptions {
  /** The first by default. */
  readonly axis?: number | undefined;
  /** Whether it runs from the last element to the first. */
  readonly reverse?: boolean | undefined;
}

/** Elements of an axis, from `start` on and before `stop`, every `step`-th. */
function along(x: NDArray, axis: number, range: Range): NDArray {
  return slice(
    x,
    x.shape.map((_, each) => (each === axis ? range : null)),
  );
}

/** a0 b0 a1 b1 …; there may be one more of the first. */
function interleaved(even: NDArray, odd: NDArray, axis: number): NDArray {
  const count = odd.shape[axis] ?? 0;
  const shape = odd.shape.map((extent, each) => (each === axis ? 2 * extent : extent));
  const pairs = [along(even, axis, [0, count]), odd].map((each) =>
    expandDims(each, { axis: axis + 1 }),
  );
  const mixed = reshape(concatenate(pairs, { axis: axis + 1 }), shape);
  const length = even.shape[axis] ?? 0;
  return length === count
    ? mixed
    : concatenate([mixed, along(even, axis, [count, length])], { axis });
}

/** Every element along an axis combined with all before it, by a function of two trees of arrays like `xs`, which must be associative. */
export function associativeScan<T>(
  f: (left: T, right: T) => T,
  xs: T,
  options: AssociativeScanOptions = {},
): T {
  const { leaves } = flatten(xs);
  const axis = axisOf(options.axis ?? 0, leaves[0]?.rank ?? 0);
  const combine = (left: readonly NDArray[], right: readonly NDArray[]) => {
    const before = rebuild(xs, left);
    const after = f(before, rebuild(xs, right));
    requireSame("the function of associativeScan", before, after);
    return flatten(after).leaves;
  };
  const scanned = (all: readonly NDArray[]): readonly NDArray[] => {
    const length = all[0]?.shape[axis] ?? 0;
    if (length < 2) return all;
    const cut = (of: readonly NDArray[], range: Range) =>
      of.map((each) => along(each, axis, range));
    const half = Math.floor(length / 2);
    const odd = scanned(combine(cut(all, [0, 2 * half, 2]), cut(all, [1, length, 2])));
    const first = cut(all, [0, 1]);
    if (length === 2) return first.map((each, i) => concatenate([each, odd[i] ?? each], { axis }));
    const rest = combine(cut(odd, [0, Math.ceil(length / 2) - 1]), cut(all, [2, length, 2]));
    return first.map((each, i) =>
      interleaved(concatenate([each, rest[i] ?? each], { axis }), odd[i] ?? each, axis),
    );
  };
  if (options.reverse !== true) return rebuild(xs, scanned(leaves));
  const turned = scanned(leaves.map((each) => flip(each, { axis })));
  return mapTree(xs, (_, i) => flip(turned[i] as NDArray, { axis }));
}
