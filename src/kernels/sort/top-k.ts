/**
 * `topK`: the greatest or least elements along an axis, best first, with their indices and payloads.
 *
 *   rows up to 1,024        one launch: several rows a block, sorted in its registers
 *   longer rows, k ≤ 512    pieces of rows give their best, and pieces of these theirs, until one is left:
 *                           rows of 131,072, k = 64      32 pieces of 4,096 ──▶ 2,048 candidates ──▶ 64
 *   k above 512             sorted, of which the first k are kept
 *   formats of 4 bits       as the same numbers in 8, of which the best are stored in 4 again
 *
 * Few long rows fill the GPU, since each of their pieces has a block of its own; every element is read once. Of equal elements the
 * first counts: pieces keep their order, and so do the elements of a piece.
 */
import { dtypes } from "../../formats/dtype.ts";
import type { DType, DTypeName } from "../../formats/dtype.ts";
import { operation } from "../../device/operation.ts";
import type { Operation, Planned, PlannedLaunch, ScratchArray } from "../../device/operation.ts";
import { tensor, dim } from "../../lang/index.ts";
import type { TensorSpec, TensorSpecs, Empty, KernelDefinition } from "../../lang/index.ts";
import { captureLocation } from "../../support/location.ts";
import type { Location } from "../../support/location.ts";
import { optionText } from "../../support/options.ts";
import type { Target } from "../../targets/target.ts";
import { casting, widened } from "../elementwise/four-bit-formats.ts";
import { slice } from "../movement/strided-copies.ts";
import { composed } from "../support/compose.ts";
import type { Step } from "../support/compose.ts";
import { givenArray, givenAxis, refused, requireFields } from "../support/arguments.ts";
import type { GivenArray } from "../support/arguments.ts";
import { alignment, laidOut } from "../support/sizes.ts";
import { PermutedRows } from "./permuted-rows.ts";
import { requireKeys } from "./sortable-keys.ts";
import { choosePiece, mostSelected, selectKernel } from "./select-kernel.ts";
import { chooseBlockSort, sortRowsKernel } from "./block-sort.ts";
import { requirePayloads, sort } from "./sort.ts";
import { takeAlongKernel, takeAlongLaunch } from "./take-along.ts";

/** What `topK` is made for. */
export interface TopKSpec<X extends DTypeName, P extends TensorSpecs> {
  /** A format is an array of [m, n]; with one axis, the whole array is a row. */
  readonly x: GivenArray<X>;
  /** How many, from 1 on. */
  readonly k: number;
  /** The last by default. */
  readonly axis?: number;
  /** Whether the greatest are wanted (the default) or the least. */
  readonly largest?: boolean;
  /** Arrays of x's shape, by rows, of which the same elements are taken: `weights` gives `topWeights`. */
  readonly payloads?: P;
}

/** Pieces of each stage; rows in the registers of a block; or whole rows sorted. */
export type TopKConfiguration =
  | { readonly kernel: "select"; readonly stages: readonly number[] }
  | { readonly kernel: "short"; readonly rows: number; readonly columns: number }
  | { readonly kernel: "sort" };

/** The payload `weights` leaves as `topWeights`. */
type TopNames<P extends TensorSpecs> = {
  readonly [N in keyof P & string as `top${Capitalize<N>}`]: P[N];
};

function topName(name: string): string {
  return `top${name.slice(0, 1).toUpperCase()}${name.slice(1)}`;
}

/** The operation that `topK` makes. */
export type TopKOperation<X extends DTypeName, P extends TensorSpecs = Empty> = Operation<
  { readonly x: TensorSpec<X> } & P,
  { readonly values: TensorSpec<X>; readonly indices: TensorSpec<"i32"> } & TopNames<P>,
  Empty,
  TopKConfiguration
>;

const fields = {
  x: "array",
  k: "number",
  axis: "number",
  largest: "flag",
  payloads: "named",
} as const;

/** The best elements along an axis, best first, and their positions; NaN is greater than all numbers. */
export function topK<X extends DTypeName, P extends TensorSpecs = Empty>(
  spec: TopKSpec<X, P>,
): TopKOperation<X, P> {
  const location = captureLocation();
  requireFields("topK", spec, fields, location);
  const { k, largest = true } = spec;
  const payloads: TensorSpecs = spec.payloads ?? {};
  const x = givenArray("x", "topK", spec.x, [dim("m"), dim("n")], location);
  const axis = givenAxis("topK", spec.axis ?? -1, x.shape.length, location);
  if (widened(x.dtype) === undefined) requireKeys("x", "topK", x, location);
  requirePayloads("topK", payloads, topName, x, location);
  if (!Number.isSafeInteger(k) || k < 1)
    throw refused(
      "TW9904",
      "topK cannot give so many",
      "a whole number from 1",
      optionText(k),
      location,
    );
  const results = (dtype: DType) => tensor(dtype, x.shape.with(axis, k));
  const wanted: Wanted = { x, axis, k, least: !largest, payloads, location, kernels: new Map() };
  const taken = Object.entries(payloads).map(([name, { dtype }]) => [
    topName(name),
    results(dtype),
  ]);
  return operation({
    name: "top_k",
    inputs: { x, ...payloads },
    outputs: {
      values: results(x.dtype),
      indices: results(dtypes.i32),
      ...(Object.fromEntries(taken) as TensorSpecs),
    },
    plan: (dimensions, target) => planTopK(wanted, dimensions, target),
  }) as unknown as TopKOperation<X, P>;
}

interface Wanted {
  readonly x: TensorSpec;
  readonly axis: number;
  readonly k: number;
  readonly least: boolean;
  readonly payloads: TensorSpecs;
  readonly location: Location;
  readonly kernels: Map<string, KernelDefinition>;
}

function known({ kernels }: Wanted, key: unknown, make: () => KernelDefinition): KernelDefinition {
  const text = JSON.stringify(key);
  const found = kernels.get(text) ?? make();
  kernels.set(text, found);
  return found;
}

/** Scratch by names that no payload of a user's can have. */
const wideX = "x in 8 bits";
const wideValues = "values in 8 bits";

/** The plan for numbers of 4 bits: they are widened, and the best become narrow again. */
function planWidened(
  wanted: Wanted,
  wide: DType,
  dimensions: { readonly [name: string]: number },
  target: Target,
): Planned<TopKConfiguration> {
  const { x, axis, k, least, payloads } = wanted;
  const { shape, strides } = laidOut(x, dimensions);
  const given = tensor(x.dtype, shape, x.strides === undefined ? {} : { strides });
  const results = shape.with(axis, k);
  const whole = Object.entries(payloads).map(([name, { dtype }]) => [name, tensor(dtype, shape)]);
  const named = { payloads: Object.fromEntries(whole) as TensorSpecs };
  const best = topK({ x: tensor(wide, shape), axis, k, largest: !least, ...named });
  const own = Object.keys(payloads).flatMap((name) => [name, topName(name)]);
  const steps = composed(
    [
      casting(given, wide, "x", wideX),
      {
        operation: best as unknown as Operation,
        dimensions: {},
        arrays: {
          ...{ x: wideX, values: wideValues, indices: "indices" },
          ...Object.fromEntries(own.map((name) => [name, name])),
        },
      },
      casting(tensor(wide, results), x.dtype, wideValues, "values"),
    ],
    target,
  );
  return {
    configuration: best.planFor(new Map(), target).configuration,
    source: "heuristic",
    launches: steps.launches,
    scratch: {
      ...steps.scratch,
      [wideX]: { dtype: wide, shape },
      [wideValues]: { dtype: wide, shape: results },
    },
  };
}

function planTopK(
  wanted: Wanted,
  dimensions: { readonly [name: string]: number },
  target: Target,
): Planned<TopKConfiguration> {
  const { x, axis, k, payloads, location } = wanted;
  const along = new PermutedRows(x, axis, dimensions);
  const { outer, length, inner, rows, isDirect } = along;
  if (length < k)
    throw refused(
      "TW9902",
      "rows of topK are shorter than what is wanted",
      `rows of ${k} or more`,
      String(length),
      location,
    );
  const wide = widened(x.dtype);
  const configuration = chooseTopK(wide ?? x.dtype, k, rows, length, target);
  const source = "heuristic" as const;
  if (rows === 0) return { configuration, source, launches: [] };
  if (wide !== undefined) return planWidened(wanted, wide, dimensions, target);
  const names = isDirect
    ? { x: "x", values: "values", indices: "indices" }
    : { x: "rows of x", values: "rows of values", indices: "rows of indices" };
  const found = selecting[configuration.kernel](
    wanted,
    configuration as never,
    { rows, length, names },
    target,
  );
  const scratch: { [name: string]: ScratchArray } = { ...found.scratch };
  const steps: Step[] = [...found.steps];
  if (!isDirect) {
    scratch[names.x] = { dtype: x.dtype, shape: [rows, length] };
    scratch[names.values] = { dtype: x.dtype, shape: [rows, k] };
    scratch[names.indices] = { dtype: dtypes.i32, shape: [rows, k] };
    steps.unshift(along.toRows("x", names.x));
    steps.push(along.fromRows(names.values, "values", x.dtype, k));
    steps.push(along.fromRows(names.indices, "indices", dtypes.i32, k));
  }
  for (const [name, { dtype }] of Object.entries(payloads))
    steps.push(() => [
      takeAlongLaunch({
        kernel: known(wanted, ["take", dtype.name], () => takeAlongKernel(dtype)),
        x: name,
        indices: "indices",
        out: topName(name),
        shapes: { outer, length, kept: k, inner },
      }),
    ]);
  const { launches, scratch: more } = composed(steps, target);
  return { configuration, source, launches, scratch: { ...scratch, ...more } };
}

/** Rows up to this are sorted, several by a block. */
const mostInRegisters = 1024;

function chooseTopK(
  dtype: DType,
  k: number,
  rows: number,
  length: number,
  { processors }: Target,
): TopKConfiguration {
  if (length <= mostInRegisters)
    return { kernel: "short", ...chooseBlockSort(rows, length, processors) };
  if (k > mostSelected) return { kernel: "sort" };
  const stages: number[] = [];
  let left = length;
  do {
    const pieces = Math.ceil(left / choosePiece(dtype, k, left).piece);
    stages.push(pieces);
    left = pieces * k;
  } while (stages.at(-1) !== 1);
  return { kernel: "select", stages };
}

/** Rows, and the names of the arrays that hold them. */
interface Rows {
  readonly rows: number;
  readonly length: number;
  readonly names: { readonly x: string; readonly values: string; readonly indices: string };
}

interface Steps {
  readonly steps: readonly Step[];
  readonly scratch: { readonly [name: string]: ScratchArray };
}

type Selecting = {
  readonly [K in TopKConfiguration["kernel"]]: (
    wanted: Wanted,
    configuration: Extract<TopKConfiguration, { readonly kernel: K }>,
    rows: Rows,
    target: Target,
  ) => Steps;
};

const selecting: Selecting = {
  short: (wanted, { rows: each, columns }, { rows, length, names }) => {
    const { x, k, least } = wanted;
    const form = { dtype: x.dtype, descending: !least, rows: each, columns, kept: k };
    const launch = (): readonly PlannedLaunch[] => [
      {
        kernel: known(wanted, ["short", each, columns, alignment(length)], () =>
          sortRowsKernel({ ...form, writesKeys: true, writesIndices: true }, length),
        ),
        arguments: {
          x: { argument: names.x, shape: [rows, length] },
          out: { argument: names.values, shape: [rows, k] },
          to: { argument: names.indices, shape: [rows, k] },
        },
      },
    ];
    return { steps: [launch], scratch: {} };
  },
  select: (wanted, { stages }, given) => ({
    steps: [() => stages.map((_, stage) => stageLaunch(wanted, stages, stage, given))],
    scratch: Object.fromEntries(
      stages.slice(0, -1).flatMap((pieces, stage) => {
        const shape = [given.rows, pieces, wanted.k];
        return [
          [`values ${stage}`, { dtype: wanted.x.dtype, shape }],
          [`indices ${stage}`, { dtype: dtypes.i32, shape }],
        ] as const;
      }),
    ),
  }),
  sort: ({ x, k, least }, _, { rows, length, names }) => {
    const whole = [rows, length];
    const ordered = sort({ x: tensor(x.dtype, whole), descending: !least, indices: true });
    const kept = (dtype: DType, from: string, to: string): Step => ({
      operation: slice({
        x: tensor(dtype, whole),
        starts: [0, 0],
        sizes: [rows, k],
      }) as unknown as Operation,
      dimensions: {},
      arrays: { x: from, out: to },
    });
    return {
      steps: [
        {
          operation: ordered as unknown as Operation,
          dimensions: {},
          arrays: { x: names.x, out: "sorted values", indices: "sorted indices" },
        },
        kept(x.dtype, "sorted values", names.values),
        kept(dtypes.i32, "sorted indices", names.indices),
      ],
      scratch: {
        "sorted values": { dtype: x.dtype, shape: whole },
        "sorted indices": { dtype: dtypes.i32, shape: whole },
      },
    };
  },
};

/** What a stage reads is what the one before has written. */
function stageLaunch(
  wanted: Wanted,
  stages: readonly number[],
  stage: number,
  { rows, length, names }: Rows,
): PlannedLaunch {
  const { x, k, least } = wanted;
  const isFirst = stage === 0;
  const isLast = stage === stages.length - 1;
  const width = isFirst ? length : (stages[stage - 1] ?? 1) * k;
  const form = { dtype: x.dtype, k, least, ...choosePiece(x.dtype, k, width) };
  const written = [rows, stages[stage] ?? 1, k];
  return {
    kernel: known(wanted, ["select", form.piece, isFirst, alignment(width)], () =>
      selectKernel(form, width, !isFirst),
    ),
    arguments: {
      x: { argument: isFirst ? names.x : `values ${stage - 1}`, shape: [rows, width] },
      ...(!isFirst && { positions: { argument: `indices ${stage - 1}`, shape: [rows, width] } }),
      values: { argument: isLast ? names.values : `values ${stage}`, shape: written },
      indices: { argument: isLast ? names.indices : `indices ${stage}`, shape: written },
    },
  };
}
