/**
 * Programs of arrays on the emulator with threads, each of several launches, whose results are allocated while those run. All
 * numbers are whole and small, so that every sum is exact, and what comes back is compared with plain loops or with the
 * evaluator.
 *
 *   add        [n]              one large result, of which threads make parts
 *   products   y = z·z, w = y·z, w + y, yᵀ, w upside down
 *   conv       a convolution and both of its gradients
 */
import * as T from "tilewright/arrays";
import { Device } from "../../src/device/device.ts";
import type { ThreadHost } from "../../src/emulator/host-workers/worker-pool.ts";
import { EmulatorBackend } from "../../src/runtime/emulator-backend.ts";
import { Random } from "../../src/support/random.ts";

type Results = readonly (readonly number[])[];

interface ArrayProgram {
  /** What the device gives. */
  run(): Promise<Results>;
  expected(): Promise<Results>;
}

/** Each by a generator and how large it may be, from 0 to 1. */
const programs: readonly ((random: Random, size: number) => ArrayProgram)[] = [add, products, conv];

export interface ProgramOptions {
  readonly seed: number;
  readonly host: ThreadHost;
  readonly threads: number;
  readonly size: number;
}

/** Runs the program of a seed on a device of its own. */
export async function runArrayProgram(options: ProgramOptions): Promise<void> {
  const { seed, host, threads, size } = options;
  const make = programs[seed % programs.length] as (typeof programs)[0];
  const program = make(new Random(seed), size);
  const backend = new EmulatorBackend({
    checks: seed % 2 === 0,
    pool: { threads, host, handover: { patience: 0, gain: 0 } },
  });
  const device = new Device(backend, { onLeak: () => undefined });
  await T.useDevice(device);
  let found: Results;
  try {
    found = await program.run();
  } catch (error) {
    throw new Error(`seed ${seed}, ${threads} threads: ${String(error)}`, { cause: error });
  } finally {
    await T.useDevice();
    device.dispose();
  }
  const expected = await program.expected();
  for (const [place, values] of expected.entries()) {
    const wrong = values.findIndex((value, at) => value !== found[place]?.[at]);
    if (wrong >= 0 || found[place]?.length !== values.length)
      throw new Error(
        `seed ${seed}, ${threads} threads: element ${wrong} of result ${place} is ${found[place]?.[wrong]}, not ${values[wrong]}`,
      );
  }
}

async function valuesOf(arrays: readonly T.NDArray[]): Promise<Results> {
  const read = await Promise.all(arrays.map((each) => each.read()));
  return read.map(({ data }) => Array.from(data, Number));
}

function add(random: Random, size: number): ArrayProgram {
  const n = 1 + random.below(300_000 * size);
  return {
    run: () => valuesOf([T.add(T.ones([n]), T.iota([n], "f32", { axis: 0 }))]),
    expected: () => Promise.resolve([Array.from({ length: n }, (_, at) => at + 1)]),
  };
}

function products(random: Random, size: number): ArrayProgram {
  const m = 16 * (1 + random.below(12 * size));
  const z = Array.from({ length: m * m }, () => random.below(3) - 1);
  const step = T.jit((given: T.NDArray) => {
    const y = T.matmul(given, given);
    const w = T.matmul(y, given);
    return [y, w, T.add(w, y), T.transpose(y), T.flip(w)];
  });
  return {
    run: async () => valuesOf(step(T.reshape(T.array(z, "f32"), [m, m]))),
    expected: () => {
      const y = productOf(z, z, m);
      const w = productOf(y, z, m);
      const sum = w.map((value, at) => value + (y[at] ?? 0));
      const turned = y.map((_, at) => y[(at % m) * m + Math.floor(at / m)] ?? 0);
      const flipped = w.map((_, at) => w[(m - 1 - Math.floor(at / m)) * m + (at % m)] ?? 0);
      return Promise.resolve([y, w, sum, turned, flipped]);
    },
  };
}

function productOf(left: readonly number[], right: readonly number[], m: number): number[] {
  const sums = new Float64Array(m * m);
  for (let row = 0; row < m; row++)
    for (let inner = 0; inner < m; inner++)
      for (let column = 0; column < m; column++) {
        const at = row * m + column;
        sums[at] =
          (sums[at] ?? 0) + (left[row * m + inner] ?? 0) * (right[inner * m + column] ?? 0);
      }
  return [...sums];
}

function conv(random: Random, size: number): ArrayProgram {
  const extent = 3 + random.below(8 * size);
  const channels = 8 * (1 + random.below(2));
  const shapes = { x: [2, extent, extent + 2, channels], w: [3, 3, channels, 16] };
  const filled = (shape: readonly number[]): number[] =>
    Array.from({ length: shape.reduce((all, each) => all * each, 1) }, () => random.below(3) - 1);
  const [x, w] = [filled(shapes.x), filled(shapes.w)];
  const settings = { inputDilation: 2, padding: [[1, 1] as const, [2, 0] as const] };
  const run = async (): Promise<Results> => {
    const step = T.jit((left: T.NDArray, right: T.NDArray) => {
      const [y, back] = T.vjp(
        (a: T.NDArray, b: T.NDArray) => T.nn.conv(a, b, settings),
        left,
        right,
      );
      return [y, ...back(y)];
    });
    return valuesOf(
      step(T.reshape(T.array(x, "f32"), shapes.x), T.reshape(T.array(w, "f32"), shapes.w)),
    );
  };
  // Without a device it is the evaluator that runs it.
  return { run, expected: run };
}
