/**
 * Random permutations, and samples of categorical distributions. Both equal JAX's for the same key, with either generator.
 *
 *   permutation    integers sorted by random bits; repeated with other bits where n is so large that ties would bias it
 *   categorical    the argmax of logits plus Gumbel noise
 */
import { dtypes } from "../../formats/dtype.ts";
import type { DTypeName, FloatName } from "../../formats/dtype.ts";
import { operation } from "../../device/operation.ts";
import type { Operation, PlannedLaunch, ScratchArray } from "../../device/operation.ts";
import {
  tensor,
  cdiv,
  constant,
  dim,
  elementRun,
  iota,
  kernel,
  loop,
  slice,
} from "../../lang/index.ts";
import type { TensorSpec, Empty, KernelDefinition } from "../../lang/index.ts";
import { captureLocation } from "../../support/location.ts";
import { sort } from "../sort/sort.ts";
import { composed } from "../support/compose.ts";
import type { Step } from "../support/compose.ts";
import {
  givenArray,
  refused,
  requireFields,
  requireFloat,
  requireRows,
} from "../support/arguments.ts";
import type { GivenArray } from "../support/arguments.ts";
import { laidOut, threadsPerBlock, powerOfTwoFrom } from "../support/sizes.ts";
import { givenGenerator, keyIn, keyOf } from "./keys.ts";
import type { GeneratorSpec, KeyGenerator, KeySpec } from "./keys.ts";

const { f32, i32, u32 } = dtypes;

/** What `random.permutation` is made for. */
export interface PermutationSpec extends GeneratorSpec {
  /** A format is an array of n elements, whose number is given with the launch. */
  readonly out?: GivenArray<"i32">;
}

/** The operation that `random.permutation` makes. */
export type PermutationOperation = Operation<
  KeySpec,
  { readonly out: TensorSpec<"i32"> },
  Empty,
  { readonly rounds: number }
>;

/** As often as JAX sorts: so that three times as many bits are drawn as numbers have. */
function roundsOf(count: number): number {
  return Math.ceil((3 * Math.log(Math.max(1, count))) / Math.log(2 ** 32 - 1));
}

/** The numbers from 0 to n − 1 in random order. */
export function permutation(spec: PermutationSpec = {}): PermutationOperation {
  const location = captureLocation();
  const fields = { out: "array", generator: "choice" } as const;
  requireFields("random.permutation", spec, fields, location);
  const generator = givenGenerator("random.permutation", spec, location);
  const out = givenArray("out", "random.permutation", spec.out ?? i32, [dim("n")], location);
  requireRows("out", "random.permutation", out, location);
  if (out.dtype !== i32 || out.shape.length !== 1)
    throw refused(
      "TW9902",
      "random.permutation gives another array",
      "i32, with one axis",
      `${out.dtype.name}, with ${out.shape.length}`,
      location,
    );
  const kernels = new Map<number, KernelDefinition>();
  return operation({
    name: "random_permutation",
    inputs: { key: keyOf(generator) },
    outputs: { out },
    plan: (dimensions, target) => {
      const [count = 0] = laidOut(out, dimensions).shape;
      // A lone number is in order without drawing, but has to be written.
      const rounds = Math.max(1, roundsOf(count));
      const configuration = { rounds };
      const source = "heuristic" as const;
      if (count === 0) return { configuration, source, launches: [] };
      const steps = Array.from({ length: rounds }, (_, round) =>
        shuffleSteps(generator, round, rounds, count, kernels),
      ).flat();
      const { launches, scratch } = composed(steps, target);
      return {
        configuration,
        source,
        launches,
        scratch: { ...scratchOf(rounds, count), ...scratch },
      };
    },
  }) as unknown as PermutationOperation;
}

function scratchOf(rounds: number, count: number): { readonly [name: string]: ScratchArray } {
  const one = (dtype: ScratchArray["dtype"]) => ({ dtype, shape: [count] });
  return {
    bits: one(u32),
    sorted: one(u32),
    ...(rounds > 1 && { order0: one(i32), order1: one(i32) }),
  };
}

function shuffleSteps(
  generator: KeyGenerator,
  round: number,
  rounds: number,
  count: number,
  kernels: Map<number, KernelDefinition>,
): readonly Step[] {
  const drawn = (): readonly PlannedLaunch[] => {
    const known = kernels.get(round) ?? sortBitsKernel(generator, round);
    kernels.set(round, known);
    return [{ kernel: known, arguments: { key: { argument: "key" }, bits: { argument: "bits" } } }];
  };
  const result = round === rounds - 1 ? "out" : `order${round % 2}`;
  const dimensions = { n: count };
  const bits = { x: "bits", out: "sorted" };
  const order: Step =
    round === 0
      ? {
          operation: sort({ x: u32, indices: true }),
          dimensions,
          arrays: { ...bits, indices: result },
        }
      : {
          operation: sort({
            x: u32,
            payloads: { order: tensor(i32, [dim("n")]) },
          }),
          dimensions,
          arrays: { ...bits, order: `order${(round - 1) % 2}`, sortedOrder: result },
        };
  return [drawn, order];
}

const span = 8 * threadsPerBlock;

/** The bits that a round sorts by: of the second key of a split, whose first key is split in the next round. */
function sortBitsKernel(generator: KeyGenerator, round: number): KernelDefinition {
  const count = dim("count");
  return kernel(
    {
      name: "sort_bits",
      grid: { i: cdiv(count, span) },
      inputs: { key: keyOf(generator) },
      outputs: { bits: tensor(u32, [count]) },
    },
    ({ i, key, bits }) => {
      let own = keyIn(key, generator);
      for (let turn = 0; turn < round; turn += 1) own = own.split(1)[0] ?? own;
      const [, drawing = own] = own.split(2);
      bits.at(slice(i.mul(span), span)).store(drawing.bits(elementRun(i, [span])));
    },
  );
}

/** What `random.categorical` is made for. */
export interface CategoricalSpec<X extends FloatName> extends GeneratorSpec {
  /** A format is an array of [m, n]; rows lie along the last axis. */
  readonly logits: GivenArray<X>;
}

/** The operation that `random.categorical` makes. */
export type CategoricalOperation<X extends DTypeName> = Operation<
  KeySpec & { readonly logits: TensorSpec<X> },
  { readonly out: TensorSpec<"i32"> },
  Empty,
  { readonly columns: number }
>;

/** Elements of a row that a block has at a time. */
const mostColumns = 8 * threadsPerBlock;

/** Samples an index of each row, with the probabilities of a softmax of its logits. */
export function categorical<X extends FloatName>(
  spec: CategoricalSpec<X>,
): CategoricalOperation<X> {
  const location = captureLocation();
  const of = "random.categorical";
  requireFields(of, spec, { logits: "array", generator: "choice" }, location);
  const generator = givenGenerator(of, spec, location);
  const logits = givenArray("logits", of, spec.logits, [dim("m"), dim("n")], location);
  requireFloat("logits", of, logits, location);
  requireRows("logits", of, logits, location);
  if (logits.shape.length === 0)
    throw refused("TW9902", `${of} has no rows`, "logits with an axis", "none", location);
  const kernels = new Map<number, KernelDefinition>();
  return operation({
    name: "random_categorical",
    inputs: { key: keyOf(generator), logits },
    outputs: { out: tensor(i32, logits.shape.slice(0, -1)) },
    plan: (dimensions) => {
      const { shape } = laidOut(logits, dimensions);
      const length = shape.at(-1) ?? 0;
      const rows = shape.slice(0, -1).reduce((all, extent) => all * extent, 1);
      if (length === 0)
        throw refused(
          "TW9902",
          `${of} has nothing to choose from`,
          "rows of 1 or more",
          "0",
          location,
        );
      const columns = Math.min(mostColumns, powerOfTwoFrom(length));
      const configuration = { columns };
      const source = "heuristic" as const;
      if (rows === 0) return { configuration, source, launches: [] };
      return {
        configuration,
        source,
        launches: () => {
          const known = kernels.get(columns) ?? categoricalKernel(logits, generator, columns);
          kernels.set(columns, known);
          return [
            {
              kernel: known,
              arguments: {
                key: { argument: "key" },
                logits: { argument: "logits", shape: [rows, length] },
                out: { argument: "out", shape: [rows] },
              },
            },
          ];
        },
      };
    },
  }) as unknown as CategoricalOperation<X>;
}

function categoricalKernel(
  { dtype }: TensorSpec,
  generator: KeyGenerator,
  columns: number,
): KernelDefinition {
  const [rows, length] = [dim("rows"), dim("length")];
  return kernel(
    {
      name: "random_categorical",
      grid: { row: rows },
      inputs: { key: keyOf(generator), logits: tensor(dtype, [rows, length]) },
      outputs: { out: tensor(i32, [rows]) },
    },
    ({ row, key, logits, out }) => {
      const own = keyIn(key, generator);
      const carry = { best: constant(f32, -Infinity), place: constant(i32, 0) };
      const found = loop({ to: cdiv(length, columns), carry }, (piece, { best, place }) => {
        const start = piece.mul(columns);
        const numbers = iota(i32, [columns], { axis: 0 }).add(start);
        const counters = numbers
          .cast(u32)
          .add(row.cast(u32).mul(constant(i32, 0).add(length).cast(u32)));
        const loaded = logits.at(row, slice(start, columns)).load().cast(f32);
        const noisy = numbers.lt(length).select(loaded.add(own.gumbel(counters)), -Infinity);
        const value = noisy.max();
        // NaN comes before all numbers, and the first of equals stays.
        const isBetter = value.gt(best).or(value.isNan().and(best.isNan().not()));
        return {
          best: isBetter.select(value, best),
          place: isBetter.select(noisy.argmax().add(start), place),
        };
      });
      out.at(row).store(found.place);
    },
  );
}
