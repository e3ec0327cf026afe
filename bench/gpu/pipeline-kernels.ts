/** A product whose tiles are given out in one way or another, and kernels of files that are timed beside the examples. */
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import {
  accumulator,
  tensor,
  bf16,
  block,
  cdiv,
  constant,
  f32,
  gmem,
  i32,
  kernel,
  processors,
  semaphore,
  slice,
  smem,
  storeThrough,
  tiles,
  warpSpecialized,
  wgmma,
} from "tilewright";
import type { KernelDefinition, TileOptions } from "tilewright";
import type { Kernels } from "./alike.ts";

export type Shape = readonly [m: number, n: number, k: number];

type Handed = NonNullable<TileOptions["streamK"]>;

/**
 * Products whose tiles are scheduled statically or dynamically, from a counter. Where they are skewed, one of eight, at random,
 * sums over all of the depth and the others over an eighth of it. Split, those of the last round are everybody's.
 */
export const productOf = (
  [m, n, k]: Shape,
  { counted = false, skewed = false, split = false } = {},
): KernelDefinition =>
  kernel(
    {
      name: counted ? "counted" : split ? "split" : "dealt",
      grid: { worker: processors },
      threads: ["copy", "first", "second"],
      inputs: { a: tensor(bf16, [m, k]), b: tensor(bf16, [k, n]) },
      outputs: { c: tensor(bf16, [m, n]) },
      inouts: { counter: tensor(i32, [1]) },
      scratch: {
        result: smem(bf16, [2, 2, 64, 64]),
        ...(split && {
          sums: gmem(f32, [processors, 2, 64, 256]),
          flags: semaphore([processors, 2]),
        }),
      },
    },
    ({ a, b, c, counter, result, ...handed }) => {
      const all = Math.ceil(k / 64);
      const order = { order: "grouped" } as const;
      warpSpecialized(
        {
          tiles: tiles(
            { i: cdiv(m, 128), j: cdiv(n, 256) },
            { ...order, ...(counted && { counter }), ...(split && { streamK: handed as Handed }) },
          ),
          grid: skewed
            ? ({ i, j }) => {
                const mixed = i.mul(40503).add(j.mul(30011)).shr(4).and(7);
                const few = constant(i32, Math.ceil(all / 8));
                return { step: mixed.eq(0).select(constant(i32, all), few) };
              }
            : { step: constant(i32, all) },
          inputs: {
            left: ({ i, step }) => a.at(block(i, 128), block(step, 64)),
            right: ({ j, step }) => b.at(block(step, 64), block(j, 256)),
          },
          depth: 4,
        },
        ({ i, j, part, steps }) => {
          steps(
            accumulator(f32, [64, 256]),
            ({ left, right }, sum) => wgmma(sum, left.at(slice(part.mul(64), 64)), right),
            (product) => {
              const top = i.mul(2).add(part).mul(64);
              storeThrough(result.at(part), product.cast(bf16), c, [top, j.mul(256)]);
            },
          );
        },
      );
    },
  );

/** What a file exports: a kernel, or a function that makes one from the options of the example that it is held against. */
type Exported = KernelDefinition | ((options: object | undefined) => KernelDefinition);

/** The kernels that files export under a name, each called by its file. */
export async function kernelsBeside(
  files: readonly string[],
  name: string,
  options?: object,
): Promise<Kernels> {
  const kernels: { [name: string]: KernelDefinition } = {};
  for (const file of files) {
    const { [name]: exported } = (await import(pathToFileURL(resolve(file)).href)) as {
      readonly [name: string]: Exported | undefined;
    };
    if (exported === undefined) continue;
    kernels[file] = typeof exported === "function" ? exported(options) : exported;
  }
  return kernels;
}
