/** Work that memory bounds, by the kernels of `../kernels.ts`: copies, sums, rows. */
import { bf16, f32, toNumbers } from "tilewright";
import type { BoundLaunch, Device, DeviceArray, DTypeName } from "tilewright";
import type { BenchCase, PreparedCase } from "../case.ts";
import { axpy, copy, rmsNorm, rowSoftmax } from "../kernels.ts";
import { randomArray } from "../random.ts";

export type Arrays = { readonly [name: string]: DeviceArray<DTypeName> };

/** Sets of arrays, our work on each, and what its first result must be. */
export function prepared<A extends Arrays>(
  device: Device,
  sets: readonly A[],
  bind: (arrays: A) => BoundLaunch,
  check: (arrays: A) => Promise<void>,
): PreparedCase {
  const [first] = sets;
  if (first === undefined) throw new RangeError("a case has one set at least");
  return {
    ours: (set) => bind(sets[set % sets.length] ?? first),
    check: async () => {
      const once = bind(first);
      once.launch();
      await device.synchronize();
      once.dispose();
      await check(first);
    },
    dispose: () => {
      // Sets may share an array, such as weights.
      for (const each of new Set(sets.flatMap((set) => Object.values(set)))) each.dispose();
    },
  };
}

function requireEqual(
  name: string,
  place: number,
  found: number | undefined,
  expected: number,
): void {
  if (found !== expected) throw new Error(`${name}[${place}] is ${found}, not ${expected}`);
}

async function numbers(
  device: Device,
  array: DeviceArray<DTypeName>,
  count: number,
): Promise<Float64Array> {
  return toNumbers(await device.download(array.slice(0, count)));
}

/** Elements of the pointwise work, and those that are checked. */
const count = 1 << 27;
const checked = 1 << 20;

function listOf<T>(length: number, make: (index: number) => T): readonly T[] {
  return Array.from({ length }, (_, index) => make(index));
}

const copyCase: BenchCase = {
  name: "copy f32 2^27",
  task: { op: "copy", count },
  unit: "TB/s",
  work: count * 8,
  setBytes: count * 8,
  prepare: (device, sets) => {
    const made = listOf(sets, (seed) => ({
      x: randomArray(device, f32, [count], seed),
      out: device.allocate(f32, [count]),
    }));
    return prepared(
      device,
      made,
      (arrays) => device.bind(copy, arrays),
      async ({ x, out }) => {
        const [given, found] = [
          await numbers(device, x, checked),
          await numbers(device, out, checked),
        ];
        for (const [place, value] of given.entries())
          requireEqual("copy", place, found[place], value);
      },
    );
  },
};

const axpyCase: BenchCase = {
  name: "axpy f32 2^27",
  task: { op: "axpy", count },
  unit: "TB/s",
  work: count * 12,
  setBytes: count * 12,
  prepare: (device, sets) => {
    const made = listOf(sets, (seed) => ({
      x: randomArray(device, f32, [count], seed),
      y: randomArray(device, f32, [count], seed + 9),
      out: device.allocate(f32, [count]),
    }));
    return prepared(
      device,
      made,
      (arrays) => device.bind(axpy, arrays),
      async ({ x, y, out }) => {
        const given = await numbers(device, x, checked);
        const added = await numbers(device, y, checked);
        const found = await numbers(device, out, checked);
        for (const [place, value] of given.entries())
          requireEqual("axpy", place, found[place], Math.fround(2 * value + (added[place] ?? NaN)));
      },
    );
  },
};

const [rows, columns] = [16384, 8192];

interface RowArrays extends Arrays {
  readonly x: DeviceArray<"bf16">;
  readonly weight: DeviceArray<"bf16">;
  readonly out: DeviceArray<"bf16">;
}

/** What a row becomes, in float64. */
type RowReference = (row: Float64Array, weights: Float64Array) => (column: number) => number;

function rowCase(
  op: "softmax" | "rms_norm",
  bind: (device: Device, arrays: RowArrays) => BoundLaunch,
  reference: RowReference,
): BenchCase {
  return {
    name: `${op} bf16 ${rows}x${columns}`,
    task: { op, rows, columns, dtype: "bf16" },
    unit: "TB/s",
    work: rows * columns * 4,
    setBytes: rows * columns * 4,
    prepare: (device, sets) => {
      const weight = randomArray(device, bf16, [columns], 5);
      const made = listOf(sets, (seed) => ({
        x: randomArray(device, bf16, [rows, columns], seed),
        weight,
        out: device.allocate(bf16, [rows, columns]),
      }));
      return prepared<RowArrays>(
        device,
        made,
        (arrays) => bind(device, arrays),
        async ({ x, out }) => {
          const weights = toNumbers(await device.download(weight));
          for (const row of [0, 777, rows - 1]) {
            const given = toNumbers(await device.download(x.slice(row, row + 1)));
            const found = toNumbers(await device.download(out.slice(row, row + 1)));
            const expected = reference(given, weights);
            for (const [column, value] of found.entries())
              requireClose(`${op}[${row}, ${column}]`, value, expected(column));
          }
        },
      );
    },
  };
}

/** bf16 rounds by at most 2^-8 of the value; f32 arithmetic before that by far less. */
function requireClose(name: string, found: number, expected: number): void {
  if (!(Math.abs(found - expected) <= Math.abs(expected) * 2 ** -7.99 + 1e-30))
    throw new Error(`${name} is ${found}, not ${expected}`);
}

const softmaxReference: RowReference = (row) => {
  const largest = row.reduce((a, b) => Math.max(a, b));
  const sum = row.reduce((total, value) => total + Math.exp(value - largest), 0);
  return (column) => Math.exp((row[column] ?? NaN) - largest) / sum;
};

const normReference: RowReference = (row, weights) => {
  const mean = row.reduce((total, value) => total + value * value, 0) / row.length;
  return (column) => ((row[column] ?? NaN) / Math.sqrt(mean + 1e-6)) * (weights[column] ?? NaN);
};

export const memoryCases: readonly BenchCase[] = [
  copyCase,
  axpyCase,
  rowCase(
    "softmax",
    (device, { x, out }) => device.bind(rowSoftmax(rows, columns), { x, out }),
    softmaxReference,
  ),
  rowCase(
    "rms_norm",
    (device, arrays) => device.bind(rmsNorm(rows, columns), arrays),
    normReference,
  ),
];
