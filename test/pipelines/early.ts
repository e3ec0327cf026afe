/**
 * Configurations of `warpSpecialized` whose steps are shifted against each other: blocks of x come a step early.
 *
 *   for tiles t, steps k < K:   z[t] = Σ x[t K + k] · w[t K + k]      x of step k + 1 is taken together with w of step k
 */
import {
  tensor,
  constant,
  f32,
  fromNumbers,
  i32,
  kernel,
  tiles,
  warpSpecialized,
} from "tilewright";
import { zeros } from "tilewright";
import type { KernelDefinition, Scalar } from "tilewright";
import type { Expected } from "./plain.ts";

export interface EarlyChoices {
  readonly computing?: number;
  readonly count?: number;
  readonly workers?: number;
  readonly steps?: number;
  /** Tile t has 1 + t modulo steps steps. */
  readonly uneven?: boolean;
  readonly depth?: number;
  readonly counted?: boolean;
  readonly copy?: "first" | "last";
  readonly prefetch?: readonly ("x" | "w")[];
  readonly synchronous?: boolean;
}

export const earlyChoices: readonly EarlyChoices[] = [
  { depth: 1, prefetch: ["w", "x"] },
  {},
  { depth: 3, computing: 1 },
  { steps: 1 },
  { uneven: true, count: 5, steps: 3 },
  { uneven: true, count: 5, workers: 1, depth: 4, copy: "last" },
  { counted: true, uneven: true, count: 5, workers: 3 },
];

const size = 8;

function sizes({ computing = 2, count = 3, workers = 2, steps = 4 }: EarlyChoices) {
  return { computing, count, workers, steps, blocks: count * steps };
}

export function earlyKernel(choices: EarlyChoices): KernelDefinition {
  const { computing, count, workers, steps, blocks } = sizes(choices);
  const names = Array.from({ length: computing }, (_, part) => `compute${part}`);
  const operand = tensor(f32, [blocks, computing, size]);
  return kernel(
    {
      name: "early",
      grid: { worker: workers },
      threads: choices.copy === "last" ? [...names, "copier"] : ["copier", ...names],
      inputs: { x: operand, w: operand },
      outputs: { z: tensor(f32, [count, computing, size]) },
      inouts: { counter: tensor(i32, [1]) },
    },
    ({ x, w, z, counter }) => {
      const at = ({ t, k }: { readonly t: Scalar<"i32">; readonly k: Scalar<"i32"> }) =>
        t.mul(steps).add(k);
      warpSpecialized(
        {
          tiles: tiles({ t: count }, choices.counted === true ? { counter } : {}),
          grid: ({ t }) => ({
            k: choices.uneven === true ? t.rem(steps).add(1) : constant(i32, steps),
          }),
          inputs: {
            x: { at: (axes) => x.at(at(axes)), manual: true, early: true },
            w: { at: (axes) => w.at(at(axes)), manual: true },
          },
          depth: choices.depth ?? 2,
          prefetch: choices.prefetch ?? [],
          synchronous: choices.synchronous ?? false,
          copy: "copier",
        },
        ({ t, part, steps: run, wait, release }) => {
          const first = wait("x").at(part).load();
          release("x");
          const start = { sum: zeros(f32, [size]), ahead: first };
          const { sum, ahead } = run(start, ({ wait, release }, before) => {
            const next = wait("x").at(part).load();
            release("x");
            const product = before.ahead.mul(wait("w").at(part).load());
            release("w");
            return { sum: before.sum.add(product), ahead: next };
          });
          z.at(t, part).store(sum.add(ahead.mul(wait("w").at(part).load())));
          release("w");
        },
      );
    },
  );
}

/** The inputs of a kernel, and what it makes of them in exact arithmetic. */
export function earlyExpected(choices: EarlyChoices): Expected {
  const { computing, count, steps, blocks } = sizes(choices);
  const row = computing * size;
  const numbers = (seed: number) =>
    Array.from({ length: blocks * row }, (_, place) => ((place * 29 + seed * 13) % 64) / 4);
  const [x, w] = [numbers(1), numbers(2)];
  const z = Array.from({ length: count * row }, (_, place) => {
    const [tile, element] = [Math.floor(place / row), place % row];
    const own = choices.uneven === true ? 1 + (tile % steps) : steps;
    const terms = Array.from({ length: own }, (_, step) => {
      const at = (tile * steps + step) * row + element;
      return (x[at] ?? 0) * (w[at] ?? 0);
    });
    return terms.reduce((sum, term) => sum + term, 0);
  });
  const shape = [blocks, computing, size];
  return {
    inputs: {
      x: fromNumbers(f32, shape, x),
      w: fromNumbers(f32, shape, w),
      counter: fromNumbers(i32, [1], [0]),
    },
    results: { z, counter: [0] },
  };
}
