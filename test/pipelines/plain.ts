/**
 * Configurations of `pipeline`: one small kernel, in which every choice that a pipeline leaves can be made, and what it
 * should give, computed step by step without a pipeline.
 *
 *   for i < I, k < K:   t = i K + k     value = 2 x[t] + w[…]     y[…] = value, or what is there plus value     total += value
 */
import {
  tensor,
  block,
  constant,
  f32,
  fromNumbers,
  i32,
  kernel,
  pipeline,
  scalar,
  slice,
} from "tilewright";
import { threadIndex, when, zeros } from "tilewright";
import type { HostArray, KernelDefinition, Scalar, Tile } from "tilewright";

/** Where the block of a step lies: at the step itself, at the step halved, at the outer index, always at 0, at the inner index. */
export type Where = "step" | "half" | "outer" | "still" | "inner";

export interface PlainChoices {
  readonly outer?: number;
  readonly inner?: number;
  /** Counts are arguments of the kernel. */
  readonly dynamic?: boolean;
  readonly depth?: number;
  readonly lookahead?: number;
  readonly delay?: number;
  readonly prefetch?: readonly ("x" | "w")[];
  readonly weights?: Where;
  readonly weightDepth?: number;
  readonly results?: Where;
  readonly resultDepth?: number;
  readonly revisited?: boolean;
  readonly accumulate?: boolean;
  readonly threads?: number;
  readonly cluster?: number;
  readonly synchronous?: boolean;
}

/** Elements of a block; parts of one begin at multiples of 128 bytes, as multicasts need it. */
const sizeOf = ({ threads = 1, cluster = 1 }: PlainChoices) => 8 * (threads * cluster > 1 ? 8 : 1);

/** What stands in results before; nothing else may be written. */
const untouched = -1;

/** The number of the block for a step of the loops. */
function blockAt(where: Where, i: number, k: number, inner: number): number {
  const step = i * inner + k;
  return { step, half: Math.floor(step / 2), outer: i, still: 0, inner: k }[where];
}

function tracedBlock(
  where: Where,
  i: Scalar<"i32">,
  k: Scalar<"i32">,
  inner: number | Scalar<"i32">,
): Scalar<"i32"> {
  const step = i.mul(inner).add(k);
  const choices = { step: () => step, half: () => step.div(2), outer: () => i, inner: () => k };
  return where === "still" ? constant(i32, 0) : choices[where]();
}

export function plainKernel(choices: PlainChoices): KernelDefinition {
  const { outer = 1, inner = 5, dynamic = false, weights = "still", results = "step" } = choices;
  const { depth = 2, threads = 1, cluster = 1, accumulate = false } = choices;
  const steps = Math.max(outer * inner, 1);
  const size = sizeOf(choices);
  const names = Array.from({ length: threads }, (_, thread) => `thread${thread}`);
  return kernel(
    {
      name: "plain",
      grid: { rank: cluster },
      cluster: { rank: cluster },
      threads: names,
      inputs: {
        x: tensor(f32, [steps * size]),
        w: tensor(f32, [steps * size]),
        outers: scalar(i32),
        inners: scalar(i32),
      },
      inouts: {
        y: tensor(f32, [cluster, steps * size]),
        total: tensor(f32, [cluster, threads, size]),
      },
    },
    ({ rank, x, w, y, total, outers, inners }) => {
      const counts = dynamic ? { i: outers, k: inners } : { i: outer, k: inner };
      const place = (where: Where, i: Scalar<"i32">, k: Scalar<"i32">) =>
        block(tracedBlock(where, i, k, counts.k), size);
      const part = size / threads;
      const mine = threads === 1 ? slice(0, size) : slice(threadIndex().mul(part), part);
      const shared = cluster === 1 ? {} : { multicast: "rank" };
      const end = pipeline(
        {
          grid: counts,
          inputs: {
            x: { at: ({ i, k }) => x.at(place("step", i, k)), ...shared },
            w: {
              at: ({ i, k }) => w.at(place(weights, i, k)),
              ...shared,
              ...weightOptions(choices),
            },
          },
          outputs: {
            y: {
              at: ({ i, k }) => y.at(rank, place(results, i, k)),
              depth: choices.resultDepth ?? 2,
              revisited: choices.revisited ?? false,
            },
          },
          depth,
          ...copyingOptions(choices),
          carry: zeros(f32, [part]),
          synchronous: choices.synchronous ?? false,
        },
        ({ i, k, x, w, y }, sum) => {
          const value = x.at(mine).load().mul(2).add(w.at(mine).load());
          if (!accumulate) y.store(value);
          else
            when(
              firstVisit(results, i, k),
              () => {
                y.store(value);
              },
              () => {
                y.store(y.load().add(value));
              },
            );
          return sum.add(value);
        },
      );
      storeTotal(end);

      function storeTotal(tile: Tile<"f32">): void {
        const row = total.at(rank);
        if (threads === 1) row.at(0).store(tile);
        else row.at(threadIndex(), slice(0, part)).store(tile);
      }
    },
  );
}

function firstVisit(where: Where, i: Scalar<"i32">, k: Scalar<"i32">): Scalar<"bool"> {
  return where === "outer" ? k.eq(0) : i.eq(0).and(k.eq(0));
}

function copyingOptions({ lookahead, delay, prefetch }: PlainChoices) {
  return {
    ...(lookahead !== undefined && { lookahead }),
    ...(delay !== undefined && { delay }),
    ...(prefetch !== undefined && { prefetch }),
  };
}

function weightOptions({ weightDepth }: PlainChoices): { readonly depth?: number } {
  return weightDepth === undefined ? {} : { depth: weightDepth };
}

export interface Expected {
  readonly inputs: { readonly [name: string]: HostArray | number };
  readonly results: { readonly [name: string]: readonly number[] };
}

/** The inputs of a kernel, and what it makes of them in exact arithmetic. */
export function plainExpected(choices: PlainChoices): Expected {
  const { outer = 1, inner = 5, weights = "still", results = "step" } = choices;
  const { threads = 1, cluster = 1, accumulate = false } = choices;
  const steps = Math.max(outer * inner, 1);
  const size = sizeOf(choices);
  const numbers = (seed: number) =>
    Array.from({ length: steps * size }, (_, place) => ((place * 37 + seed * 11) % 64) / 4);
  const [x, w] = [numbers(1), numbers(2)];
  const y = new Array<number>(cluster * steps * size).fill(untouched);
  const total = new Array<number>(cluster * threads * size).fill(untouched);
  const part = size / threads;
  for (let rank = 0; rank < cluster; rank += 1)
    for (let element = 0; element < size; element += 1) {
      let sum = 0;
      const seen = new Set<number>();
      for (let i = 0; i < outer; i += 1)
        for (let k = 0; k < inner; k += 1) {
          const at = (where: Where) => blockAt(where, i, k, inner) * size + element;
          const value = 2 * (x[at("step")] ?? 0) + (w[at(weights)] ?? 0);
          const place = rank * steps * size + at(results);
          const first = !seen.has(place);
          seen.add(place);
          y[place] = accumulate && !first ? (y[place] ?? 0) + value : value;
          sum += value;
        }
      const thread = Math.floor(element / part);
      total[rank * threads * size + thread * size + (element % part)] = sum;
    }
  const array1 = (values: readonly number[]) => fromNumbers(f32, [steps * size], values);
  return {
    inputs: {
      x: array1(x),
      w: array1(w),
      outers: outer,
      inners: inner,
      y: fromNumbers(
        f32,
        [cluster, steps * size],
        y.map(() => untouched),
      ),
      total: fromNumbers(
        f32,
        [cluster, threads, size],
        total.map(() => untouched),
      ),
    },
    results: { y, total },
  };
}
