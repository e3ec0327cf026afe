/** `sortRows`: rows of up to 4,096 elements in order, each by one block, with arrays whose elements move along. */
import type { DType, DTypeName } from "../../formats/dtype.ts";
import { dtypes } from "../../formats/dtype.ts";
import { operation } from "../../device/operation.ts";
import type { Operation } from "../../device/operation.ts";
import { array, dim, iota, kernel, slice } from "../../lang/index.ts";
import type { ArraySpec, Empty, KernelDefinition, Ref, Scalar } from "../../lang/index.ts";
import { captureLocation } from "../../support/location.ts";
import { extreme } from "../reduce/combinations.ts";
import {
  givenArray,
  refused,
  requireComparable,
  requireFields,
  requireRows,
} from "../support/given.ts";
import type { GivenArray } from "../support/given.ts";
import { alignedDimension, alignment, laidOut, powerOfTwoFrom } from "../support/sizes.ts";

/** Elements that a block sorts. */
const mostElements = 4096;

export interface SortRowsSpec<X extends DTypeName> {
  /** A format is an array of [m, n]; rows lie along the last axis, and have 4,096 elements at most. */
  readonly x: GivenArray<X>;
  /** Greatest first. */
  readonly descending?: boolean;
}

export type SortRowsOperation<X extends DTypeName> = Operation<
  { readonly x: ArraySpec<X> },
  { readonly out: ArraySpec<X>; readonly indices: ArraySpec<"i32"> },
  Empty,
  { readonly columns: number }
>;

/** Rows in order, and where each element was; equal elements keep their order. Payloads follow by `gather`. */
export function sortRows<X extends DTypeName>(spec: SortRowsSpec<X>): SortRowsOperation<X> {
  const location = captureLocation();
  requireFields("sortRows", spec, { x: "array", descending: "flag" }, location);
  const { descending = false } = spec;
  const x = givenArray("x", "sortRows", spec.x, [dim("m"), dim("n")], location);
  requireComparable("x", "sortRows", x, location);
  requireRows("x", "sortRows", x, location);
  const kernels = new Map<string, KernelDefinition>();
  return operation({
    name: "sort_rows",
    inputs: { x },
    outputs: { out: array(x.dtype, x.shape), indices: array(dtypes.i32, x.shape) },
    plan: (dimensions) => {
      const { shape } = laidOut(x, dimensions);
      const length = shape.at(-1) ?? 0;
      if (length > mostElements)
        throw refused(
          "TW9902",
          "rows of sortRows are longer than a block sorts",
          `rows of ${mostElements} elements at most`,
          `${length}`,
          location,
        );
      const rows = shape.slice(0, -1).reduce((all, extent) => all * extent, 1);
      const columns = powerOfTwoFrom(length);
      const configuration = { columns };
      if (rows * length === 0) return { configuration, source: "heuristic", launches: [] };
      return {
        configuration,
        source: "heuristic",
        launches: () => {
          const text = JSON.stringify([columns, alignment(length)]);
          const known = kernels.get(text) ?? sortKernel(x.dtype, columns, length, descending);
          kernels.set(text, known);
          const flat = (argument: string) => ({ argument, shape: [rows, length] });
          return [
            {
              kernel: known,
              arguments: { x: flat("x"), out: flat("out"), indices: flat("indices") },
            },
          ];
        },
      };
    },
  }) as unknown as SortRowsOperation<X>;
}

function sortKernel(
  dtype: DType,
  columns: number,
  length: number,
  descending: boolean,
): KernelDefinition {
  const [rows, width] = [dim("rows"), alignedDimension("width", length)];
  return kernel(
    {
      name: "sort_rows",
      grid: { row: rows },
      inputs: { x: array(dtype, [rows, width]) },
      outputs: { out: array(dtype, [rows, width]), indices: array(dtypes.i32, [rows, width]) },
    },
    (given) => {
      const argument = given as unknown as { readonly [name: string]: unknown };
      const window = [slice(argument["row"] as Scalar<"i32">, 1), slice(0, columns)] as const;
      // What is beyond the end is sorted behind every element, since equal ones keep their order.
      const fill = extreme(dtype, descending ? -1 : 1);
      const tile = (argument["x"] as Ref).at(...window).load({ fill } as never);
      const places = iota(dtypes.i32, [1, columns], 1);
      const [sorted, moved] = tile.sortWith(1, [places] as never, { descending });
      (argument["out"] as Ref).at(...window).store(sorted);
      (argument["indices"] as Ref).at(...window).store(moved as never);
    },
  ) as unknown as KernelDefinition;
}
