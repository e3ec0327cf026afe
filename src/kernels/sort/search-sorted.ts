/**
 * `searchSorted`: where numbers belong in an array that is in order, by halving:
 *
 *   sorted 1 3 3 7     of 3: "left" 1, "right" 3     of 9: 4
 */
import type { DType, DTypeName } from "../../formats/dtype.ts";
import { dtypes, isFloat } from "../../formats/dtype.ts";
import { operation } from "../../device/operation.ts";
import type { Operation } from "../../device/operation.ts";
import { tensor, cdiv, dim, full, iota, kernel, loop, slice, zeros } from "../../lang/index.ts";
import type { TensorSpec, Empty, KernelDefinition, Ref, Tile } from "../../lang/index.ts";
import { captureLocation } from "../../support/location.ts";
import { optionText } from "../../support/options.ts";
import {
  givenArray,
  refused,
  requireComparable,
  requireFields,
  requireRows,
} from "../support/arguments.ts";
import type { GivenArray } from "../support/arguments.ts";
import { laidOut, threadsPerBlock } from "../support/sizes.ts";

/** What `searchSorted` is made for. */
export interface SearchSortedSpec<D extends DTypeName> {
  /** In order, least first; a format is an array of n elements. */
  readonly sorted: GivenArray<D>;
  /** What is looked for; of the same format by default, an array of q elements. */
  readonly queries?: GivenArray<D>;
  /** Before equal elements or behind them; `"left"` by default. */
  readonly side?: "left" | "right";
}

/** The operation that `searchSorted` makes. */
export type SearchSortedOperation<D extends DTypeName> = Operation<
  { readonly sorted: TensorSpec<D>; readonly queries: TensorSpec<D> },
  { readonly out: TensorSpec<"i32"> },
  Empty,
  { readonly span: number }
>;

/** Queries of a block. */
const span = 4 * threadsPerBlock;

/** The number of elements before the place of each query. */
export function searchSorted<D extends DTypeName>(
  spec: SearchSortedSpec<D>,
): SearchSortedOperation<D> {
  const location = captureLocation();
  requireFields(
    "searchSorted",
    spec,
    { sorted: "array", queries: "array", side: "choice" },
    location,
  );
  const { side = "left" } = spec;
  if (side !== "left" && side !== "right")
    throw refused(
      "TW9904",
      "searchSorted has no such side",
      '"left" or "right"',
      optionText(side),
      location,
    );
  const sorted = givenArray("sorted", "searchSorted", spec.sorted, [dim("n")], location);
  const queries = givenArray(
    "queries",
    "searchSorted",
    spec.queries ?? sorted.dtype,
    [dim("q")],
    location,
  );
  requireComparable("sorted", "searchSorted", sorted, location);
  for (const [name, each] of Object.entries({ sorted, queries }))
    requireRows(name, "searchSorted", each, location);
  if (queries.dtype !== sorted.dtype || sorted.shape.length !== 1)
    throw refused(
      "TW9902",
      "what searchSorted looks for does not fit what it looks in",
      "one axis in order, and queries of its format",
      `${sorted.dtype.name} of ${sorted.shape.length} axes, and ${queries.dtype.name}`,
      location,
    );
  const kernels = new Map<number, KernelDefinition>();
  return operation({
    name: "search_sorted",
    inputs: { sorted, queries },
    outputs: { out: tensor(dtypes.i32, queries.shape) },
    plan: (dimensions) => {
      const [length = 0] = laidOut(sorted, dimensions).shape;
      const count = laidOut(queries, dimensions).shape.reduce((all, extent) => all * extent, 1);
      if (count === 0) return { configuration: { span }, source: "heuristic", launches: [] };
      const flat = (argument: string) => ({ argument, shape: [count] });
      return {
        configuration: { span },
        source: "heuristic",
        launches: () => {
          const steps = searchSteps(length);
          const known = kernels.get(steps) ?? searchKernel(sorted.dtype, side, steps);
          kernels.set(steps, known);
          const arrays = {
            sorted: { argument: "sorted" },
            queries: flat("queries"),
            out: flat("out"),
          };
          return [{ kernel: known, arguments: arrays }];
        },
      };
    },
  }) as unknown as SearchSortedOperation<D>;
}

/** Steps of halving that find a place among `length` elements. */
export function searchSteps(length: number): number {
  return Math.ceil(Math.log2(length + 1));
}

/** Whether a found element stands before the place of a wanted one. NaN stands behind all numbers, as `sort` leaves it, which no comparison says. */
function standsBefore(found: Tile<"f32">, wanted: Tile<"f32">, side: "left" | "right") {
  const isLess = side === "left" ? found.lt(wanted) : found.le(wanted);
  if (!isFloat(wanted.dtype)) return isLess;
  const isWantedNaN = wanted.ne(wanted);
  return isLess.or(side === "left" ? isWantedNaN.and(found.eq(found)) : isWantedNaN);
}

/** Without queries, each number from 0 to `count` − 1 is looked for. */
export function searchKernel(
  dtype: DType,
  side: "left" | "right",
  steps: number,
  hasQueries = true,
): KernelDefinition {
  const [length, count] = [dim("length"), dim("count")];
  return kernel(
    {
      name: "search_sorted",
      grid: { i: cdiv(count, span) },
      inputs: {
        sorted: tensor(dtype, [length]),
        ...(hasQueries && { queries: tensor(dtype, [count]) }),
      },
      outputs: { out: tensor(dtypes.i32, [count]) },
    },
    ({ i, sorted, out, ...given }) => {
      const here = slice(i.mul(span), span);
      const queries = hasQueries ? (given as { readonly queries: Ref }).queries : undefined;
      const wanted = (queries?.at(here).load() ??
        iota(dtypes.i32, [span], { axis: 0 }).add(i.mul(span)).cast(dtype)) as Tile<"f32">;
      const carry = { low: zeros(dtypes.i32, [span]), high: full(dtypes.i32, [span], length) };
      const { low } = loop({ to: steps, carry }, (_, range) => {
        const middle = range.low.add(range.high.sub(range.low).shr(1));
        const isOpen = range.low.lt(range.high);
        const found = sorted.at(middle).load({ where: isOpen }) as Tile<"f32">;
        const isBefore = standsBefore(found, wanted, side);
        const isRight = isOpen.and(isBefore);
        return {
          low: isRight.select(middle.add(1), range.low),
          high: isOpen.and(isRight.not()).select(middle, range.high),
        };
      });
      out.at(here).store(low);
    },
  ) as unknown as KernelDefinition;
}
