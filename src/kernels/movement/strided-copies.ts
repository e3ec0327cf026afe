/**
 * `permute`, `slice`, `concatenate` and `pad`. All of them are strided copies, which access memory as widely as both sides
 * allow.
 */
import type { DType, DTypeName, HostValue } from "../../formats/dtype.ts";
import { operation } from "../../device/operation.ts";
import type { Operation, Planned } from "../../device/operation.ts";
import { addSizes, sameSize, shapeText } from "../../ir/size.ts";
import type { Size } from "../../ir/size.ts";
import { tensor, full } from "../../lang/index.ts";
import type { TensorSpec, Empty, KernelDefinition, Tile } from "../../lang/index.ts";
import { requireLiteral } from "../../lang/constants.ts";
import { captureLocation } from "../../support/location.ts";
import type { Location } from "../../support/location.ts";
import { isRecord, optionText } from "../../support/options.ts";
import type { Target } from "../../targets/target.ts";
import type { MapConfiguration } from "../elementwise/map-kernel.ts";
import { planStridedMap } from "../elementwise/strided-map.ts";
import { givenAxis, refused, requireFields, requiredArray } from "../support/arguments.ts";
import { laidOut } from "../support/sizes.ts";

type FromX<D extends DTypeName> = Operation<
  { readonly x: TensorSpec<D> },
  { readonly out: TensorSpec<D> },
  Empty,
  MapConfiguration
>;

/** One side of a copy: its strides and offset. */
interface Side {
  /** Of a result of which other launches write the rest. */
  readonly isPart?: boolean;
  readonly argument: string;
  readonly strides: readonly number[];
  readonly offset: number;
}

type Kernels = Map<string, KernelDefinition>;

function planCopy(
  name: string,
  { dtype }: TensorSpec,
  extents: readonly number[],
  from: Side,
  to: Side,
  kernels: Kernels,
  target: Target,
): Planned<MapConfiguration> {
  return planStridedMap(
    {
      name,
      arrays: [
        { ...to, name: "to", parameter: "to", dtype, isOutput: true },
        { ...from, name: "from", parameter: "from", dtype, isOutput: false },
      ],
      scalars: {},
      extents,
      body: ({ from: tile }) => ({ to: tile as Tile }),
    },
    kernels,
    target,
  );
}

/** What `permute` is made for. */
export interface PermuteSpec<D extends DTypeName> {
  /** The array whose axes are permuted. */
  readonly x: TensorSpec<D>;
  /** Axis i of the result is axis `permutation[i]` of x. */
  readonly permutation: readonly number[];
}

/** The axes in another order. */
export function permute<D extends DTypeName>(spec: PermuteSpec<D>): FromX<D> {
  const location = captureLocation();
  requireFields("permute", spec, { x: "array", permutation: "axes" }, location);
  const x = requiredArray("x", "permute", spec.x, location);
  const rank = x.shape.length;
  const given: unknown = spec.permutation;
  const axes = Array.isArray(given)
    ? given.map((axis) => givenAxis("permute", axis, rank, location))
    : [];
  if (axes.length !== rank || new Set(axes).size !== rank)
    throw refused(
      "TW9902",
      "permute does not name each axis once",
      `${rank} axes`,
      optionText(given),
      location,
    );
  const out = tensor(
    x.dtype,
    axes.map((axis) => x.shape[axis] ?? 1),
  );
  const kernels: Kernels = new Map();
  return operation({
    name: "permute",
    inputs: { x },
    outputs: { out },
    plan: (dimensions, target) => {
      const { strides } = laidOut(x, dimensions);
      const made = laidOut(out, dimensions);
      const from = { argument: "x", strides: axes.map((axis) => strides[axis] ?? 0), offset: 0 };
      const to = { argument: "out", strides: made.strides, offset: 0 };
      return planCopy("permute", x, made.shape, from, to, kernels, target);
    },
  }) as unknown as FromX<D>;
}

/** What `slice` is made for. */
export interface SliceSpec<D extends DTypeName> {
  /** The array that a part is taken of. */
  readonly x: TensorSpec<D>;
  /** The first element along each axis. */
  readonly starts: readonly number[];
  /** Elements along each axis. */
  readonly sizes: readonly Size[];
  /** How far apart elements are along each axis; 1 by default. */
  readonly steps?: readonly number[];
}

/** A part of an array, as an array of its own. */
export function slice<D extends DTypeName>(spec: SliceSpec<D>): FromX<D> {
  const location = captureLocation();
  const fields = { x: "array", starts: "axes", sizes: "axes", steps: "axes" } as const;
  requireFields("slice", spec, fields, location);
  const x = requiredArray("x", "slice", spec.x, location);
  const { starts, sizes, steps = x.shape.map(() => 1) } = spec;
  const rank = x.shape.length;
  wholeNumbersFor("the starts of slice", starts, rank, 0, location);
  wholeNumbersFor("the steps of slice", steps, rank, 1, location);
  const out = tensor(x.dtype, sizes);
  if (out.shape.length !== rank)
    throw refused(
      "TW9902",
      "the sizes of slice do not fit x",
      `${rank} sizes`,
      shapeText(out.shape),
      location,
    );
  const kernels: Kernels = new Map();
  return operation({
    name: "slice",
    inputs: { x },
    outputs: { out },
    plan: (dimensions, target) => {
      const given = laidOut(x, dimensions);
      const made = laidOut(out, dimensions);
      for (const [axis, extent] of made.shape.entries()) {
        const end = (starts[axis] ?? 0) + (extent - 1) * (steps[axis] ?? 1);
        if (extent > 0 && end >= (given.shape[axis] ?? 0))
          throw refused(
            "TW9902",
            `the slice reaches beyond axis ${axis} of x`,
            `elements below ${given.shape[axis] ?? 0}`,
            `element ${end}`,
            location,
          );
      }
      const offset = given.strides.reduce(
        (sum, stride, axis) => sum + stride * (starts[axis] ?? 0),
        0,
      );
      const strides = given.strides.map((stride, axis) => stride * (steps[axis] ?? 1));
      const from = { argument: "x", strides, offset };
      const to = { argument: "out", strides: made.strides, offset: 0 };
      return planCopy("slice", x, made.shape, from, to, kernels, target);
    },
  }) as unknown as FromX<D>;
}

function wholeNumbersFor(
  what: string,
  given: unknown,
  rank: number,
  least: number,
  location: Location,
): void {
  const fits =
    Array.isArray(given) &&
    given.length === rank &&
    given.every((item) => Number.isSafeInteger(item) && (item as number) >= least);
  if (fits) return;
  throw refused(
    "TW9902",
    `${what} do not fit x`,
    `${rank} whole numbers from ${least} on`,
    optionText(given),
    location,
  );
}

/** What `concatenate` is made for. */
export interface ConcatenateSpec<P extends { readonly [name: string]: TensorSpec }> {
  /** Arrays of one format, by name, in their order. */
  readonly parts: P;
  /** The axis along which they follow each other; the first by default. */
  readonly axis?: number;
}

type FormatOfParts<P> = P[keyof P] extends TensorSpec<infer D> ? D : never;

/** The operation that `concatenate` makes. */
export type ConcatenateOperation<P extends { readonly [name: string]: TensorSpec }> = Operation<
  P,
  { readonly out: TensorSpec<FormatOfParts<P>> },
  Empty
>;

/** Arrays one after the other along an axis. */
export function concatenate<const P extends { readonly [name: string]: TensorSpec }>(
  spec: ConcatenateSpec<P>,
): ConcatenateOperation<P> {
  const location = captureLocation();
  requireFields("concatenate", spec, { parts: "named", axis: "number" }, location);
  const entries = isRecord(spec.parts) ? Object.entries(spec.parts) : [];
  const [first] = entries;
  if (first === undefined)
    throw refused(
      "TW9902",
      "concatenate has no arrays",
      "parts: { a: tensor(…), … }",
      optionText(spec.parts),
      location,
    );
  const parts = entries.map(
    ([name, given]) => [name, requiredArray(name, "concatenate", given, location)] as const,
  );
  const [, model] = parts[0] ?? [undefined, first[1]];
  const axis = givenAxis("concatenate", spec.axis ?? 0, model.shape.length, location);
  for (const [name, { dtype, shape }] of parts) {
    const alike =
      dtype === model.dtype &&
      shape.length === model.shape.length &&
      shape.every((size, each) => each === axis || sameSize(size, model.shape[each] ?? -1));
    if (!alike)
      throw refused(
        "TW9902",
        `${name} of concatenate does not go with the others`,
        `${model.dtype.name}${shapeText(model.shape)}, but for axis ${axis}`,
        `${dtype.name}${shapeText(shape)}`,
        location,
      );
  }
  const total = addSizes(...parts.map(([, { shape }]) => shape[axis] ?? 0));
  const out = tensor(model.dtype, model.shape.with(axis, total));
  const kernels: Kernels = new Map();
  return operation({
    name: "concatenate",
    inputs: Object.fromEntries(parts),
    outputs: { out },
    plan: (dimensions, target) => {
      const made = laidOut(out, dimensions);
      let at = 0;
      const plans = parts.map(([name, part]) => {
        const given = laidOut(part, dimensions);
        const from = { argument: name, strides: given.strides, offset: 0 };
        const to = {
          argument: "out",
          isPart: true,
          strides: made.strides,
          offset: at * (made.strides[axis] ?? 1),
        };
        at += given.shape[axis] ?? 0;
        return planCopy("concatenate", part, given.shape, from, to, kernels, target);
      });
      return joined(plans);
    },
  }) as unknown as ConcatenateOperation<P>;
}

/** Several launches as one plan. */
function joined(plans: readonly Planned<MapConfiguration>[]): Planned<readonly MapConfiguration[]> {
  return {
    configuration: plans.map(({ configuration }) => configuration),
    source: "heuristic",
    launches: () =>
      plans.flatMap(({ launches }) => (typeof launches === "function" ? launches() : launches)),
  };
}

/** What `pad` is made for. */
export interface PadSpec<D extends DTypeName> {
  /** What is padded. */
  readonly x: TensorSpec<D>;
  /** Elements before and behind x along each axis. */
  readonly before: readonly number[];
  /** Elements behind x along each axis. */
  readonly after: readonly number[];
  /** What they are; 0 by default. */
  readonly value?: number | HostValue<D>;
}

function requireBorder(dtype: DType, value: unknown, location: Location): void {
  const kinds =
    dtype.kind === "bool" ? ["boolean"] : dtype.bits === 64 ? ["number", "bigint"] : ["number"];
  if (!kinds.includes(typeof value))
    throw refused(
      "TW9904",
      `the value of pad is no element of ${dtype.name}`,
      kinds.join(" or "),
      optionText(value),
      location,
    );
}

/** An array with a border. */
export function pad<D extends DTypeName>(
  spec: PadSpec<D>,
): Operation<{ readonly x: TensorSpec<D> }, { readonly out: TensorSpec<D> }, Empty> {
  const location = captureLocation();
  const fields = { x: "array", before: "axes", after: "axes", value: "element" } as const;
  requireFields("pad", spec, fields, location);
  const x = requiredArray("x", "pad", spec.x, location);
  const rank = x.shape.length;
  const { before, after } = spec;
  const value = spec.value ?? (x.dtype.kind === "bool" ? false : 0);
  requireBorder(x.dtype, value, location);
  requireLiteral(x.dtype, value, location);
  wholeNumbersFor("the elements before", before, rank, 0, location);
  wholeNumbersFor("the elements after", after, rank, 0, location);
  const out = tensor(
    x.dtype,
    x.shape.map((size, axis) => addSizes(size, before[axis] ?? 0, after[axis] ?? 0)),
  );
  const border = (): Tile => full(x.dtype, [1, 1], value as never);
  const kernels: Kernels = new Map();
  return operation({
    name: "pad",
    inputs: { x },
    outputs: { out },
    plan: (dimensions, target) => {
      const given = laidOut(x, dimensions);
      const { shape, strides } = laidOut(out, dimensions);
      const offsetOf = (starts: readonly number[]): number =>
        strides.reduce((sum, stride, axis) => sum + stride * (starts[axis] ?? 0), 0);
      const from = { argument: "x", strides: given.strides, offset: 0 };
      const to = { argument: "out", isPart: true, strides, offset: offsetOf(before) };
      const inner = planCopy("pad", x, given.shape, from, to, kernels, target);
      const slabs = borders(given.shape, shape, before).map(({ starts, extents }) =>
        planStridedMap(
          {
            name: "pad_border",
            arrays: [
              {
                ...{
                  name: "to",
                  parameter: "to",
                  argument: "out",
                  dtype: x.dtype,
                  isOutput: true,
                  isPart: true,
                },
                strides,
                offset: offsetOf(starts),
              },
            ],
            scalars: {},
            extents,
            body: () => ({ to: border() }),
          },
          kernels,
          target,
        ),
      );
      return joined([inner, ...slabs]);
    },
  }) as never;
}

interface Box {
  readonly starts: readonly number[];
  readonly extents: readonly number[];
}

/** The border as boxes that do not overlap: before and behind x along each axis, as wide as x along the axes before it. */
function borders(
  inner: readonly number[],
  outer: readonly number[],
  before: readonly number[],
): readonly Box[] {
  return inner.flatMap((extent, axis) => {
    const starts = outer.map((_, each) => (each < axis ? (before[each] ?? 0) : 0));
    const extents = outer.map((all, each) => (each < axis ? (inner[each] ?? 0) : all));
    const low = before[axis] ?? 0;
    const high = (outer[axis] ?? 0) - low - extent;
    const slabs = [
      { starts, extents: extents.with(axis, low) },
      { starts: starts.with(axis, low + extent), extents: extents.with(axis, high) },
    ];
    return slabs.filter((box) => !box.extents.includes(0));
  });
}
