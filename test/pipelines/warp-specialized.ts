/**
 * Configurations of `warpSpecialized`: one small kernel, in which every choice can be made, and what it should give.
 *
 *   for tiles (i, j), steps k < K:   t = i J + j     value = 2 x[t K + k] + w[…]     y[t K + k] = value     z[t] = Σ value
 *
 * Every block has a row for each of the computing threads.
 */
import {
  tensor,
  constant,
  f32,
  fromNumbers,
  gmem,
  i32,
  kernel,
  semaphore,
  tiles,
} from "tilewright";
import { warpSpecialized, zeros } from "tilewright";
import type { KernelDefinition, Scalar, Tile, TileOptions } from "tilewright";
import type { Expected } from "./plain.ts";

export interface WarpSpecializedChoices {
  readonly computing?: number;
  readonly rows?: number;
  readonly columns?: number;
  readonly workers?: number;
  readonly order?: NonNullable<TileOptions["order"]>;
  readonly alternate?: boolean;
  readonly steps?: number;
  /** Tile t has t modulo (steps + 1) steps. */
  readonly uneven?: boolean;
  readonly depth?: number;
  readonly delay?: number;
  readonly prefetch?: readonly ("x" | "w")[];
  readonly weights?: "step" | "half" | "tile" | "once";
  readonly weightDepth?: number;
  readonly manual?: boolean;
  readonly copy?: "first" | "last";
  readonly cluster?: number;
  /** Tiles are taken from a counter. */
  readonly counted?: boolean;
  /** Tiles of the last round are split along their steps. */
  readonly split?: boolean;
  readonly synchronous?: boolean;
}

function sizes(choices: WarpSpecializedChoices) {
  const { computing = 2, rows = 1, columns = 3, workers = 2, steps = 4, cluster = 1 } = choices;
  const size = cluster > 1 ? 64 : 8;
  const count = rows * columns;
  return { computing, rows, columns, workers, steps, cluster, size, count };
}

const stepsOf = (choices: WarpSpecializedChoices, tile: number): number => {
  const { steps } = sizes(choices);
  return choices.uneven === true ? tile % (steps + 1) : steps;
};

function weightBlock(choices: WarpSpecializedChoices, tile: number, step: number): number {
  const { steps } = sizes(choices);
  const at = tile * steps + step;
  return { step: at, half: Math.floor(at / 2), tile, once: 0 }[choices.weights ?? "tile"];
}

export function warpSpecializedKernel(choices: WarpSpecializedChoices): KernelDefinition {
  const { computing, rows, columns, workers, steps, cluster, size, count } = sizes(choices);
  const { weights = "tile", manual = false, counted = false, split = false } = choices;
  const lone = counted || split;
  const names = Array.from({ length: computing }, (_, part) => `compute${part}`);
  const blocks = Math.max(count * steps, count);
  const shared = cluster === 1 ? {} : { multicast: "rank" };
  return kernel(
    {
      name: "warp_specialized",
      grid: lone ? { worker: workers } : { worker: workers, rank: cluster },
      cluster: lone ? {} : { rank: cluster },
      threads: choices.copy === "last" ? [...names, "copier"] : ["copier", ...names],
      inputs: {
        x: tensor(f32, [blocks, computing, size]),
        w: tensor(f32, [blocks, computing, size]),
      },
      inouts: {
        y: tensor(f32, [cluster, blocks, computing, size]),
        z: tensor(f32, [cluster, count, computing, size]),
        counter: tensor(i32, [1]),
      },
      scratch: {
        sums: gmem(f32, [workers, computing, size]),
        flags: semaphore([workers, computing]),
      },
    },
    ({ x, w, y, z, counter, sums, flags, ...axes }) => {
      const rank = lone ? constant(i32, 0) : (axes as { rank: Scalar<"i32"> }).rank;
      const number = ({ i, j }: { readonly i: Scalar<"i32">; readonly j: Scalar<"i32"> }) =>
        i.mul(columns).add(j);
      const weightAt = (t: Scalar<"i32">, k: Scalar<"i32">): Scalar<"i32"> =>
        ({
          step: () => t.mul(steps).add(k),
          half: () => t.mul(steps).add(k).div(2),
          tile: () => t,
          once: () => constant(i32, 0),
        })[weights]();
      warpSpecialized(
        {
          tiles: tiles({ i: rows, j: columns }, tileOptions(choices, { counter, sums, flags })),
          grid: split
            ? { k: constant(i32, steps) }
            : (tile) => ({
                k: choices.uneven === true ? number(tile).rem(steps + 1) : constant(i32, steps),
              }),
          inputs: {
            x: { at: ({ k, ...tile }) => x.at(number(tile).mul(steps).add(k)), manual, ...shared },
            w: {
              at: ({ k, ...tile }) => w.at(weightAt(number(tile), k)),
              ...shared,
              ...(choices.weightDepth !== undefined && { depth: choices.weightDepth }),
            },
          },
          outputs: {
            y: ({ k, part, ...tile }) => y.at(rank, number(tile).mul(steps).add(k), part),
          },
          ...copyingOptions(choices),
        },
        ({ part, steps: run, ...tile }) => {
          const done = (total: Tile<"f32">): void => {
            z.at(rank, number(tile), part).store(total);
          };
          run(
            zeros(f32, [size]),
            ({ x, w, y, wait, release }, sum) => {
              if (manual) wait("x");
              const value = x.at(part).load().mul(2).add(w.at(part).load());
              if (manual) release("x");
              y.store(value);
              return sum.add(value);
            },
            done,
          );
        },
      );
    },
  );
}

function tileOptions(
  { order, alternate, counted = false, split = false }: WarpSpecializedChoices,
  { counter, ...handed }: Required<Pick<TileOptions, "counter">> & Required<TileOptions>["streamK"],
): TileOptions {
  return {
    along: "worker",
    ...(order !== undefined && { order, groupSize: 2 }),
    ...(alternate !== undefined && { alternate }),
    ...(counted && { counter }),
    ...(split && { streamK: handed }),
  };
}

function copyingOptions({ depth, delay, prefetch, copy, synchronous }: WarpSpecializedChoices) {
  return {
    ...(depth !== undefined && { depth }),
    ...(delay !== undefined && { delay }),
    ...(prefetch !== undefined && { prefetch }),
    ...(copy === "last" && { copy: "copier" }),
    synchronous: synchronous ?? false,
  };
}

const untouched = -1;

/** The inputs of a kernel, and what it makes of them in exact arithmetic. */
export function specializedExpected(choices: WarpSpecializedChoices): Expected {
  const { computing, steps, cluster, size, count } = sizes(choices);
  const blocks = Math.max(count * steps, count);
  const row = computing * size;
  const numbers = (seed: number) =>
    Array.from({ length: blocks * row }, (_, place) => ((place * 29 + seed * 13) % 64) / 4);
  const [x, w] = [numbers(1), numbers(2)];
  const y = new Array<number>(cluster * blocks * row).fill(untouched);
  const z = new Array<number>(cluster * count * row).fill(untouched);
  for (let rank = 0; rank < cluster; rank += 1)
    for (let tile = 0; tile < count; tile += 1)
      for (let element = 0; element < row; element += 1) {
        let sum = 0;
        for (let step = 0; step < stepsOf(choices, tile); step += 1) {
          const at = tile * steps + step;
          const weight = w[weightBlock(choices, tile, step) * row + element] ?? 0;
          const value = 2 * (x[at * row + element] ?? 0) + weight;
          y[(rank * blocks + at) * row + element] = value;
          sum += value;
        }
        z[(rank * count + tile) * row + element] = sum;
      }
  const shape = [blocks, computing, size];
  return {
    inputs: {
      x: fromNumbers(f32, shape, x),
      w: fromNumbers(f32, shape, w),
      y: fromNumbers(
        f32,
        [cluster, ...shape],
        y.map(() => untouched),
      ),
      z: fromNumbers(
        f32,
        [cluster, count, computing, size],
        z.map(() => untouched),
      ),
      counter: fromNumbers(i32, [1], [0]),
    },
    results: { y, z, counter: [0] },
  };
}
