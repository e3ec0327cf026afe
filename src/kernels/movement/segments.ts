/**
 * Segmented reduction of rows, in a fixed order. Segment ids are sorted with their indices; each row of the result then has a range of
 * indices, which one block combines:
 *
 *   ids 2 0 2 1          sorted 0 1 2 2      indices 1 3 0 2     starts 0 1 2 4
 *
 *   row 2 of the result = x[0] + x[2], in this order, whatever else runs
 */
import { dtypes } from "../../formats/dtype.ts";
import type { DType } from "../../formats/dtype.ts";
import type { PlannedLaunch, ScratchArray } from "../../device/operation.ts";
import { tensor, cdiv, constant, dim, full, iota, kernel, loop, slice } from "../../lang/index.ts";
import type { KernelDefinition, LaunchSize, Ref, Scalar, Tile } from "../../lang/index.ts";
import type { Location } from "../../support/location.ts";
import { collapsed, combinations, stateFormat } from "../reduce/combiners.ts";
import { searchKernel, searchSteps } from "../sort/search-sorted.ts";
import { sort } from "../sort/sort.ts";
import type { Step } from "../support/compose.ts";
import { alignedDimension, alignment, threadsPerBlock, powerOfTwoFrom } from "../support/sizes.ts";

/** How rows are combined; `"set"` keeps the last of them. */
export type SegmentCombination = "sum" | "prod" | "min" | "max" | "set";

export interface SegmentRule {
  readonly dtype: DType;
  readonly indexed: DType;
  readonly combine: SegmentCombination;
  /** Whether numbers are in order already. */
  readonly isSorted: boolean;
  /** Whether rows of the result count, too, and every number has to be one of them. */
  readonly updates: boolean;
}

export interface SegmentSizes {
  /** Rows that are combined, rows of the result, and elements of a row. */
  readonly count: number;
  readonly extent: number;
  readonly inner: number;
}

/** Formats that are combined, and in which. */
export function segmentState(
  of: string,
  dtype: DType,
  combine: SegmentCombination,
  location: Location,
): DType {
  return combine === "set" ? dtype : stateFormat(of, dtype, combine, location);
}

/** Arguments of the whole: `indices` [count], `x` [count, inner], `out` [extent, inner]. */
export interface SegmentNames {
  readonly indices: string;
  readonly x: string;
  readonly out: string;
}

export interface SegmentSteps {
  readonly steps: readonly Step[];
  readonly scratch: { readonly [name: string]: ScratchArray };
}

/** The steps that combine rows; there is at least one row. */
export function segmentSteps(
  rule: SegmentRule,
  names: SegmentNames,
  { count, extent, inner }: SegmentSizes,
  state: DType,
  kernels: Map<string, KernelDefinition>,
): SegmentSteps {
  const scratch: { [name: string]: ScratchArray } = {
    starts: { dtype: dtypes.i32, shape: [extent + 1] },
  };
  const steps: Step[] = [];
  const sorted = rule.isSorted ? names.indices : "sorted";
  if (!rule.isSorted) {
    scratch["sorted"] = { dtype: rule.indexed, shape: [count] };
    scratch["places"] = { dtype: dtypes.i32, shape: [count] };
    steps.push({
      operation: sort({ x: rule.indexed, indices: true }),
      dimensions: { n: count },
      arrays: { x: names.indices, out: "sorted", indices: "places" },
    });
  }
  const known = (text: string, make: () => KernelDefinition): KernelDefinition => {
    const found = kernels.get(text) ?? make();
    kernels.set(text, found);
    return found;
  };
  const halvings = searchSteps(count);
  steps.push((): readonly PlannedLaunch[] => [
    {
      kernel: known(`search ${halvings}`, () =>
        searchKernel(rule.indexed, "left", halvings, false),
      ),
      arguments: {
        sorted: { argument: sorted, shape: [count] },
        out: { argument: "starts" },
      },
    },
    {
      kernel: known(`combine ${rule.isSorted} ${alignment(inner)} ${windowText(inner)}`, () =>
        combineKernel(rule, state, inner),
      ),
      arguments: {
        starts: { argument: "starts" },
        ...(!rule.isSorted && { places: { argument: "places" } }),
        ...(rule.updates && { sorted: { argument: sorted, shape: [count] } }),
        x: { argument: names.x, shape: [count, inner] },
        out: { argument: names.out, shape: [extent, inner] },
      },
    },
  ]);
  return { steps, scratch };
}

/** Elements that a block takes at a time. */
const span = 4 * threadsPerBlock;

function windowOf(inner: number): { readonly rows: number; readonly columns: number } {
  const columns = Math.min(span, powerOfTwoFrom(inner));
  return { rows: span / columns, columns };
}

function windowText(inner: number): string {
  return JSON.stringify(windowOf(inner));
}

function combineKernel(rule: SegmentRule, state: DType, width: number): KernelDefinition {
  const { dtype, indexed, isSorted, updates } = rule;
  const { columns } = windowOf(width);
  const [count, extent] = [dim("count"), dim("extent")];
  const inner = alignedDimension("inner", width);
  const out = tensor(dtype, [extent, inner]);
  return kernel(
    {
      name: "combine_segments",
      grid: { row: extent, part: cdiv(inner, columns) },
      inputs: {
        starts: tensor(dtypes.i32, [extent.add(1)]),
        ...(!isSorted && { places: tensor(dtypes.i32, [count]) }),
        ...(updates && { sorted: tensor(indexed, [count]) }),
        x: tensor(dtype, [count, inner]),
      },
      ...(updates ? { inouts: { out } } : { outputs: { out } }),
    },
    (given) => {
      const values = given as unknown as SegmentValues;
      const { row, starts } = values;
      const first = starts.at(row).loadScalar();
      const from = updates ? first.maximum(checked(values, { count, extent })) : first;
      combineRow(rule, state, width, values, from, starts.at(row.add(1)).loadScalar());
    },
  ) as unknown as KernelDefinition;
}

interface SegmentValues {
  readonly row: Scalar<"i32">;
  readonly part: Scalar<"i32">;
  readonly starts: Ref<"i32">;
  readonly places: Ref<"i32">;
  readonly sorted: Ref<"i32">;
  readonly x: Ref;
  readonly out: Ref;
}

/**
 * At most 0. The least and the greatest number pick rows' starts, which stops the kernel where there is no such row. Of 64 bits, what lies
 * further off comes to the next number that is no row: cut to 32 bits it could be one.
 */
function checked(
  { starts, sorted }: SegmentValues,
  { count, extent }: { readonly count: LaunchSize; readonly extent: LaunchSize },
): Scalar<"i32"> {
  const zero = constant(dtypes.i32, 0);
  const number = (place: Scalar<"i32">): Scalar<"i32"> => {
    const found = sorted.at(place).loadScalar();
    const end = zero.add(extent).cast(found.dtype);
    return found.maximum(-1).minimum(end).cast(dtypes.i32);
  };
  const first = starts.at(number(zero)).loadScalar();
  const afterLast = starts.at(number(zero.add(count).sub(1)).add(1)).loadScalar();
  return zero.minimum(first).minimum(afterLast);
}

function combineRow(
  { combine, isSorted, updates, dtype }: SegmentRule,
  state: DType,
  width: number,
  values: SegmentValues,
  from: Scalar<"i32">,
  end: Scalar<"i32">,
): void {
  const { row, part, x, out } = values;
  const { rows, columns } = windowOf(width);
  const across = slice(part.mul(columns), columns);
  const target = out.at(slice(row, 1), across);
  const rowsAt = (start: Scalar<"i32">, count: number): Tile<"i32"> =>
    isSorted
      ? iota(dtypes.i32, [count], { axis: 0 }).add(start)
      : values.places.at(slice(start, count, { end })).load();
  const old = updates ? target.load() : undefined;
  if (combine === "set") {
    const own = rowsAt(end.sub(1).maximum(0), 1);
    const where = full(dtypes.i32, [1, 1], 0).add(from).lt(end);
    const last = x.at(own, across).load({ where });
    target.store(from.lt(end).select(last, old ?? last));
    return;
  }
  const { merge, identity } = combinations[combine];
  const nothing = full(state, [rows, columns], identity(state)) as Tile<"f32">;
  const steps = end
    .sub(from)
    .maximum(0)
    .add(rows - 1)
    .div(rows);
  const total = loop({ to: steps, carry: nothing }, (step, sum) => {
    const start = from.add(step.mul(rows));
    const where = iota(dtypes.i32, [rows, 1], { axis: 0 }).add(start).lt(end);
    const loaded = x.at(rowsAt(start, rows), across).load({ where }).cast(state);
    return merge(sum, where.select(loaded, nothing) as Tile<"f32">);
  });
  const own = collapsed(total, combine, [0]) as Tile<"f32">;
  const result = old === undefined ? own : merge(old.cast(state) as Tile<"f32">, own);
  target.store(result.cast(dtype));
}
