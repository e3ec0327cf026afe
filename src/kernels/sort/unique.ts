/**
 * `unique`: the distinct elements of an array in order, their counts, their first indices, and the inverse. Their number is known on the
 * device alone, so results have a given size, of which `count` elements are valid; nothing waits for the host.
 *
 *   x          5 2 5 9 2        sorted 2 2 5 5 9     permutation 1 4 0 2 3
 *   differs    1 0 1 0 1        from the one before; the running sums, less one, number the distinct ones: 0 0 1 1 2
 *   starts     0 2 4 5          where each number begins, and the end
 *   size 4     values 2 5 9 2 · counts 2 2 1 0 · indices 1 0 3 1 · count 3 · inverse 1 0 1 2 0
 *
 * −0 and 0 are one element but not one key, and neither are NaNs of different bits, so that the first of them in order need not be the
 * first in x: all blocks find that one together, by atomic minima.
 */
import { dtypes } from "../../formats/dtype.ts";
import type { DType, DTypeName, HostValue } from "../../formats/dtype.ts";
import { operation } from "../../device/operation.ts";
import type { Operation, PlannedLaunch, ScratchArray } from "../../device/operation.ts";
import { tensor, cdiv, dim, full, iota, kernel, slice } from "../../lang/index.ts";
import type { TensorSpec, Empty, KernelDefinition, Tile } from "../../lang/index.ts";
import { captureLocation } from "../../support/location.ts";
import { optionText } from "../../support/options.ts";
import type { Target } from "../../targets/target.ts";
import { fill } from "../elementwise/cast.ts";
import { scan } from "../scan/scan.ts";
import { composed } from "../support/compose.ts";
import type { Step } from "../support/compose.ts";
import { givenArray, refused, requireFields, requireRows } from "../support/arguments.ts";
import type { GivenArray } from "../support/arguments.ts";
import { laidOut, threadsPerBlock } from "../support/sizes.ts";
import { requireKeys } from "./sortable-keys.ts";
import { mostKeys } from "./decoupled-look-back.ts";
import { sort } from "./sort.ts";

const { i32 } = dtypes;

/** What `unique` is made for. */
export interface UniqueSpec<
  X extends DTypeName,
  C extends boolean,
  F extends boolean,
  V extends boolean,
> {
  /** A format is an array of n elements; more axes are taken one after the other. */
  readonly x: GivenArray<X>;
  /** How many distinct elements there is room for; the least ones are given where there are more. */
  readonly size: number;
  /** Whether `counts` says how often each occurs. */
  readonly counts?: C;
  /** Whether `indices` says where each is first. */
  readonly indices?: F;
  /** Whether `inverse` says which of the distinct elements each element is. */
  readonly inverse?: V;
  /** What stands behind the last one; the least by default. */
  readonly fill?: number | HostValue<X>;
}

type Given<Flag extends boolean, Outputs> = Flag extends true ? Outputs : Empty;

/** The operation that `unique` makes. */
export type UniqueOperation<
  X extends DTypeName,
  C extends boolean = false,
  F extends boolean = false,
  V extends boolean = false,
> = Operation<
  { readonly x: TensorSpec<X> },
  { readonly values: TensorSpec<X>; readonly count: TensorSpec<"i32"> } & Given<
    C,
    { readonly counts: TensorSpec<"i32"> }
  > &
    Given<F, { readonly indices: TensorSpec<"i32"> }> &
    Given<V, { readonly inverse: TensorSpec<"i32"> }>,
  Empty,
  { readonly span: number }
>;

const fields = {
  x: "array",
  size: "number",
  counts: "flag",
  indices: "flag",
  inverse: "flag",
  fill: "element",
} as const;

/** The distinct elements of an array in order: −0 and 0 are one, and so are all NaN. */
export function unique<
  X extends DTypeName,
  C extends boolean = false,
  F extends boolean = false,
  V extends boolean = false,
>(spec: UniqueSpec<X, C, F, V>): UniqueOperation<X, C, F, V> {
  const location = captureLocation();
  requireFields("unique", spec, fields, location);
  const { size, counts = false, indices = false, inverse = false } = spec;
  const x = givenArray("x", "unique", spec.x, [dim("n")], location);
  requireKeys("x", "unique", x, location);
  requireRows("x", "unique", x, location);
  if (!Number.isSafeInteger(size) || size < 1 || size > mostKeys)
    throw refused(
      "TW9904",
      "unique has no room for distinct elements",
      "a whole number from 1",
      optionText(size),
      location,
    );
  const wanted: Wanted = { dtype: x.dtype, size, counts, indices, inverse, fill: spec.fill };
  // What the format cannot hold is refused here, not when sizes are known.
  if (spec.fill !== undefined) fill({ out: tensor(x.dtype, [size]), value: spec.fill });
  const row = dim("length");
  const parts: Parts = {
    sort: sort({ x: tensor(x.dtype, [row]), indices: indices || inverse }),
    scan: scan({ x: tensor(i32, [row]) }),
    kernels: new Map(),
  };
  return operation({
    name: "unique",
    inputs: { x },
    outputs: {
      values: tensor(x.dtype, [size]),
      count: tensor(i32, [1]),
      ...(counts && { counts: tensor(i32, [size]) }),
      ...(indices && { indices: tensor(i32, [size]) }),
      ...(inverse && { inverse: tensor(i32, x.shape) }),
    },
    plan: (dimensions, target) => {
      const length = laidOut(x, dimensions).shape.reduce((all, extent) => all * extent, 1);
      if (length > mostKeys)
        throw refused(
          "TW9902",
          "x of unique is too long",
          `${mostKeys} elements at most`,
          String(length),
          location,
        );
      return {
        configuration: { span },
        source: "heuristic",
        ...(length === 0 ? ofNothing(wanted, target) : ofElements(wanted, length, parts, target)),
      };
    },
  }) as unknown as UniqueOperation<X, C, F, V>;
}

interface Wanted {
  readonly dtype: DType;
  readonly size: number;
  readonly counts: boolean;
  readonly indices: boolean;
  readonly inverse: boolean;
  readonly fill: unknown;
}

/** What all sizes share: the operations that it is made of, and kernels of its own. */
interface Parts {
  readonly sort: Operation;
  readonly scan: Operation;
  readonly kernels: Map<string, KernelDefinition>;
}

function filled(argument: string, out: TensorSpec, value: unknown): Step {
  return {
    operation: fill({ out, value: value as number }) as unknown as Operation,
    dimensions: {},
    arrays: { out: argument },
  };
}

/** Without an element there is nothing that could be the least: zeros stand for it. */
function ofNothing({ dtype, size, counts, indices, fill: value }: Wanted, target: Target) {
  const steps = [
    filled("values", tensor(dtype, [size]), value ?? (dtype.kind === "bool" ? false : 0)),
    filled("count", tensor(i32, [1]), 0),
    ...(counts ? [filled("counts", tensor(i32, [size]), 0)] : []),
    ...(indices ? [filled("indices", tensor(i32, [size]), 0)] : []),
  ];
  return composed(steps, target);
}

function ofElements(wanted: Wanted, length: number, parts: Parts, target: Target) {
  const { kernels } = parts;
  const { dtype, size, indices, inverse } = wanted;
  const hasPermutation = indices || inverse;
  const known = (name: string, make: () => KernelDefinition): KernelDefinition => {
    const found = kernels.get(name) ?? make();
    kernels.set(name, found);
    return found;
  };
  const scratch: { [name: string]: ScratchArray } = {
    sorted: { dtype, shape: [length] },
    differs: { dtype: i32, shape: [length] },
    numbers: { dtype: i32, shape: [length] },
    starts: { dtype: i32, shape: [size + 1] },
    ...(hasPermutation && { permutation: { dtype: i32, shape: [length] } }),
    ...(hasKinds(wanted) && { firsts: { dtype: i32, shape: [kinds.length] } }),
  };
  const firsts = hasKinds(wanted) && { firsts: { argument: "firsts" } };
  const same = (name: string) => ({ argument: name });
  const mark = (): readonly PlannedLaunch[] => [
    {
      kernel: known("mark", () => markKernel(wanted)),
      arguments: {
        ...{ sorted: same("sorted"), differs: same("differs") },
        ...(hasKinds(wanted) && { permutation: same("permutation"), ...firsts }),
      },
    },
  ];
  const finish = (): readonly PlannedLaunch[] => [
    {
      kernel: known("number", () => numberKernel(size, inverse)),
      arguments: {
        numbers: same("numbers"),
        ...(inverse && {
          permutation: same("permutation"),
          inverse: { argument: "inverse", shape: [length] },
        }),
        ...{ starts: same("starts"), count: same("count") },
      },
    },
    {
      kernel: known("take", () => takeKernel(wanted)),
      arguments: {
        ...{ sorted: same("sorted"), starts: same("starts"), count: same("count") },
        values: same("values"),
        ...(wanted.counts && { counts: same("counts") }),
        ...(indices && { permutation: same("permutation"), indices: same("indices") }),
        ...firsts,
      },
    },
  ];
  const steps: readonly Step[] = [
    {
      operation: parts.sort,
      dimensions: { length },
      arrays: { x: "x", out: "sorted", ...(hasPermutation && { indices: "permutation" }) },
    },
    ...(hasKinds(wanted) ? [filled("firsts", tensor(i32, [kinds.length]), nowhere)] : []),
    mark,
    {
      operation: parts.scan,
      dimensions: { length },
      arrays: { x: "differs", out: "numbers" },
    },
    finish,
  ];
  const { launches, scratch: more } = composed(steps, target);
  return { launches, scratch: { ...scratch, ...more } };
}

/** Elements of a block. */
const span = 8 * threadsPerBlock;

/** Whether there are elements that are equal without having the same key. */
function hasKinds({ dtype, indices }: Wanted): boolean {
  return indices && dtype.kind === "float";
}

/** Those elements. */
const kinds: readonly ((tile: Tile<"f32">) => Tile<"bool">)[] = [
  (tile) => tile.eq(0),
  (tile) => tile.isNan(),
];

/** Beyond every place. */
const nowhere = 2 ** 31 - 1;

/** Formats of 8 bits that the language does not compare are compared in one that has all of their numbers. */
function compared(tile: Tile, { kind, bits }: DType): Tile<"f32"> {
  return kind === "bool" || (kind === "float" && bits < 16)
    ? tile.cast(dtypes.f32)
    : (tile as Tile<"f32">);
}

/** Which elements differ from the one before, 1 for the first of each kind; and where the first zero and the first NaN are in x. */
function markKernel(wanted: Wanted): KernelDefinition {
  const { dtype } = wanted;
  const length = dim("length");
  return kernel(
    {
      name: "unique_mark",
      grid: { i: cdiv(length, span) },
      inputs: {
        sorted: tensor(dtype, [length]),
        ...(hasKinds(wanted) && { permutation: tensor(i32, [length]) }),
      },
      outputs: { differs: tensor(i32, [length]) },
      inouts: { ...(hasKinds(wanted) && { firsts: tensor(i32, [kinds.length]) }) },
    },
    ({ i, sorted, differs, ...given }) => {
      const here = slice(i.mul(span), span);
      const position = iota(i32, [span], { axis: 0 }).add(i.mul(span));
      const own = compared(sorted.at(here).load(), dtype);
      const isInside = position.gt(0).and(position.lt(length));
      const previous = sorted.at(position.sub(1).maximum(0)).load({ where: isInside });
      const before = compared(previous, dtype);
      let isSame = own.eq(before);
      if (dtype.kind === "float") isSame = isSame.or(own.isNan().and(before.isNan()));
      differs.at(here).store(isInside.and(isSame).not().cast(i32));
      const { permutation, firsts } = given;
      if (permutation === undefined || firsts === undefined) return;
      for (const [at, isOf] of kinds.entries()) {
        const where = isOf(own).and(position.lt(length));
        const first = permutation
          .at(here)
          .load({ where, fill: nowhere })
          .min({ axis: 0, keepDims: true });
        firsts.at(full(i32, [1], at)).atomic("min", first, { where: first.lt(nowhere) });
      }
    },
  );
}

/** Where each distinct element begins, how many there are, and which of them each element is. */
function numberKernel(size: number, inverse: boolean): KernelDefinition {
  const length = dim("length");
  const ofLength = tensor(i32, [length]);
  return kernel(
    {
      name: "unique_number",
      grid: { i: cdiv(length, span) },
      inputs: { numbers: ofLength, ...(inverse && { permutation: ofLength }) },
      outputs: {
        ...(inverse && { inverse: ofLength }),
        count: tensor(i32, [1]),
      },
      // What is behind the last one is never written, and never read.
      inouts: { starts: tensor(i32, [size + 1]) },
    },
    ({ i, numbers, starts, count, ...given }) => {
      const here = slice(i.mul(span), span);
      const position = iota(i32, [span], { axis: 0 }).add(i.mul(span));
      const isInside = position.lt(length);
      // Numbers count from 1.
      const own = numbers.at(here).load();
      const before = numbers
        .at(position.sub(1).maximum(0))
        .load({ where: isInside.and(position.gt(0)) });
      const isFirst = isInside.and(own.ne(before));
      starts.at(own.sub(1)).store(position, { where: isFirst.and(own.le(size + 1)) });
      const isLast = position.eq(length.sub(1));
      starts.at(own).store(full(i32, [span], length), { where: isLast.and(own.le(size)) });
      count.at(full(i32, [span], 0)).store(own, { where: isLast });
      if (given.permutation === undefined) return;
      given.inverse?.at(given.permutation.at(here).load()).store(own.sub(1), { where: isInside });
    },
  );
}

/** The distinct elements, how often each occurs, and where each is first. */
function takeKernel(wanted: Wanted): KernelDefinition {
  const { dtype, size, counts, indices, fill: value } = wanted;
  const length = dim("length");
  const ofSize = tensor(i32, [size]);
  return kernel(
    {
      name: "unique_take",
      grid: { i: Math.ceil(size / span) },
      inputs: {
        ...{ sorted: tensor(dtype, [length]), starts: tensor(i32, [size + 1]) },
        count: tensor(i32, [1]),
        ...(indices && { permutation: tensor(i32, [length]) }),
        ...(hasKinds(wanted) && { firsts: tensor(i32, [kinds.length]) }),
      },
      outputs: {
        values: tensor(dtype, [size]),
        ...(counts && { counts: ofSize }),
        ...(indices && { indices: ofSize }),
      },
    },
    ({ i, sorted, starts, count, values, ...given }) => {
      const here = slice(i.mul(span), span);
      const number = iota(i32, [span], { axis: 0 }).add(i.mul(span));
      const isThere = number.lt(count.at(0).loadScalar()).and(number.lt(size));
      // What stands behind the last one is the least, the first in order.
      const start = starts.at(number).load({ where: isThere, fill: 0 });
      const least = sorted.at(start).load();
      const filled =
        value === undefined ? least : isThere.select(least, full(dtype, [1], value as number));
      values.at(here).store(filled);
      const end = starts.at(number.add(1)).load({ where: isThere, fill: 0 });
      if (counts) given["counts"]?.at(here).store(end.sub(start));
      const { permutation, firsts, indices: out } = given;
      if (permutation === undefined || out === undefined) return;
      let place = permutation.at(start).load();
      if (firsts !== undefined)
        for (const [at, isOf] of kinds.entries()) {
          const where = isOf(compared(least, dtype));
          place = where.select(firsts.at(full(i32, [span], at)).load({ where }), place);
        }
      out.at(here).store(place);
    },
  ) as unknown as KernelDefinition;
}
