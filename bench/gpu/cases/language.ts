/**
 * The language's own words beside Triton's: rows and elements picked by index tiles, a softmax of rows over all warps of a
 * block, the greatest of rows, counts, and a linear recurrence. Results are checked on a sample before anything is timed.
 */
import { bf16, f32, i32, toNumbers } from "tilewright";
import type { BoundLaunch, Device, DeviceArray, DTypeName } from "tilewright";
import type { BenchCase, PreparedCase } from "../case.ts";
import {
  clear,
  counts,
  gatherElements,
  gatherRows,
  greatest,
  longSoftmax,
  recurrence,
  wideSoftmax,
} from "../language-kernels.ts";
import { randomArray, randomIndices } from "../random.ts";

type Arrays = { readonly [name: string]: DeviceArray<DTypeName> };

/** Sets of arrays, our work on each, and what its first result must be. */
function prepared<A extends Arrays>(
  device: Device,
  sets: number,
  make: (seed: number) => A,
  bind: (arrays: A) => BoundLaunch,
  check: (arrays: A) => Promise<void>,
): PreparedCase {
  const made = Array.from({ length: sets }, (_, seed) => make(seed));
  const first = made[0] ?? make(0);
  return {
    ours: (set) => bind(made[set % sets] ?? first),
    check: async () => {
      const once = bind(first);
      once.launch();
      await device.synchronize();
      once.dispose();
      await check(first);
    },
    dispose: () => {
      for (const each of new Set(made.flatMap((arrays) => Object.values(arrays)))) each.dispose();
    },
  };
}

function requireEqual(what: string, found: number | undefined, expected: number | undefined): void {
  if (found !== expected) throw new Error(`${what} is ${found}, not ${expected}`);
}

function requireClose(what: string, found: number, expected: number, share: number): void {
  if (!(Math.abs(found - expected) <= Math.abs(expected) * share + 1e-6))
    throw new Error(`${what} is ${found}, not ${expected}`);
}

function zeroed(device: Device, count: number): DeviceArray<"i32"> {
  const out = device.allocate(i32, [count]);
  device.launch(clear(count), { out });
  return out;
}

async function rowOf(
  device: Device,
  array: DeviceArray<DTypeName>,
  row: number,
): Promise<Float64Array> {
  return toNumbers(await device.download(array.slice(row, row + 1)));
}

/** Rows of a table of 256 MB, picked at random. */
function rowsCase(columns: number, together: number): BenchCase {
  const rows = 2 ** 26 / columns;
  return {
    name: `gather of rows of ${columns * 4} B ${rows}`,
    task: { op: "gather_rows", rows, columns },
    unit: "TB/s",
    work: rows * (columns * 8 + 4),
    setBytes: rows * columns * 8,
    prepare: (device, sets) =>
      prepared(
        device,
        sets,
        (seed) => ({
          table: randomArray(device, f32, [rows, columns], seed),
          ids: randomIndices(device, rows, rows, seed),
          out: device.allocate(f32, [rows, columns]),
        }),
        (arrays) => device.bind(gatherRows(rows, rows, columns, together), arrays),
        async ({ table, ids, out }) => {
          const picked = toNumbers(await device.download(ids.slice(0, 64)));
          for (const [place, id] of picked.entries()) {
            const expected = await rowOf(device, table, id);
            for (const [column, value] of (await rowOf(device, out, place)).entries())
              requireEqual(`row ${place}, column ${column}`, value, expected[column]);
          }
        },
      ),
  };
}

/** Elements of a table that a cache holds, or does not. */
function elementsCase(table: number, together: number): BenchCase {
  const count = 2 ** 26;
  return {
    name: `gather of elements of ${table / 2 ** 18} MB ${count}`,
    task: { op: "gather_elements", table, count },
    unit: "TB/s",
    work: count * 12,
    setBytes: count * 8 + table * 4,
    prepare: (device, sets) =>
      prepared(
        device,
        sets,
        (seed) => ({
          table: randomArray(device, f32, [table], seed),
          ids: randomIndices(device, count, table, seed),
          out: device.allocate(f32, [count]),
        }),
        (arrays) => device.bind(gatherElements(table, count, together), arrays),
        async ({ table: from, ids, out }) => {
          const all = toNumbers(await device.download(from));
          const picked = toNumbers(await device.download(ids.slice(0, 4096)));
          const found = toNumbers(await device.download(out.slice(0, 4096)));
          for (const [place, id] of picked.entries())
            requireEqual(`element ${place}`, found[place], all[id]);
        },
      ),
  };
}

/** Rows of a softmax, one a block. */
function softmaxOf(
  name: string,
  [rows, columns]: readonly [number, number],
  made: () => ReturnType<typeof wideSoftmax>,
): BenchCase {
  return {
    name: `${name} bf16 ${rows}x${columns}`,
    task: { op: "softmax_rows", rows, columns },
    unit: "TB/s",
    work: rows * columns * 4,
    setBytes: rows * columns * 4,
    prepare: (device, sets) =>
      prepared(
        device,
        sets,
        (seed) => ({
          x: randomArray(device, bf16, [rows, columns], seed),
          out: device.allocate(bf16, [rows, columns]),
        }),
        (arrays) => device.bind(made(), arrays),
        async ({ x, out }) => {
          const given = await rowOf(device, x, 777);
          const sum = given.reduce((total, value) => total + Math.exp(value), 0);
          for (const [column, value] of (await rowOf(device, out, 777)).entries())
            requireClose(
              `column ${column}`,
              value,
              Math.exp(given[column] ?? NaN) / sum,
              2 ** -7.9,
            );
          requireNoSpills(device);
        },
      ),
  };
}

/** What was compiled keeps its tiles in registers. */
function requireNoSpills(device: Device): void {
  for (const { kernel, machineCode } of device.compilations)
    if (kernel.includes("softmax"))
      requireEqual(`local bytes of ${kernel}`, machineCode?.localBytes ?? 0, 0);
}

function softmaxCase(warps: number): BenchCase {
  const shape = [16384, 8192] as const;
  return softmaxOf(`softmax of ${warps} warps`, shape, () => wideSoftmax(...shape, warps));
}

function longSoftmaxCase(part: number, warps: number): BenchCase {
  const shape = [2048, 65536] as const;
  return softmaxOf("softmax in parts", shape, () => longSoftmax(...shape, part, warps));
}

function greatestCase(together: number, warps: number): BenchCase {
  const [width, k] = [1024, 8];
  return {
    name: `topK of 8, f32 65536x${width}`,
    task: { op: "top_k", rows: 65536, columns: width, k },
    unit: "TB/s",
    work: 65536 * (width + k) * 4,
    setBytes: 65536 * (width + k) * 4,
    prepare: (device, sets) =>
      prepared(
        device,
        sets,
        (seed) => ({
          x: randomArray(device, f32, [65536, width], seed),
          values: device.allocate(f32, [65536, k]),
        }),
        (arrays) => device.bind(greatest(65536, width, k, together, warps), arrays),
        async ({ x, values }) => {
          const sorted = [...(await rowOf(device, x, 99))].sort((a, b) => b - a);
          for (const [place, value] of (await rowOf(device, values, 99)).entries())
            requireEqual(`greatest ${place}`, value, sorted[place]);
        },
      ),
  };
}

function countsCase(together: number, warps: number): BenchCase {
  const [count, bins] = [2 ** 26, 256];
  return {
    name: `histogram of 256 bins, i32 ${count}`,
    task: { op: "histogram", count, bins },
    unit: "TB/s",
    work: count * 4,
    setBytes: count * 4,
    prepare: (device, sets) =>
      prepared(
        device,
        sets,
        (seed) => ({
          x: randomIndices(device, count, bins, seed),
          totals: zeroed(device, bins),
        }),
        (arrays) => device.bind(counts(count, bins, together, warps), arrays),
        async ({ totals }) => {
          const found = toNumbers(await device.download(totals));
          requireEqual(
            "the sum of all counts",
            found.reduce((total, each) => total + each, 0),
            count,
          );
        },
      ),
  };
}

function recurrenceCase(together: number, warps: number): BenchCase {
  const [height, width] = [16384, 2048];
  return {
    name: `linear recurrence, f32 ${height}x${width}`,
    task: { op: "recurrence", rows: height, columns: width },
    unit: "TB/s",
    work: height * width * 12,
    setBytes: height * width * 12,
    prepare: (device, sets) =>
      prepared(
        device,
        sets,
        (seed) => ({
          a: randomArray(device, f32, [height, width], seed),
          b: randomArray(device, f32, [height, width], seed + 9),
          y: device.allocate(f32, [height, width]),
        }),
        (arrays) => device.bind(recurrence(height, width, together, warps), arrays),
        async ({ a, b, y }) => {
          const [scale, added] = [await rowOf(device, a, 5), await rowOf(device, b, 5)];
          let [last, size] = [0, 0];
          for (const [place, value] of (await rowOf(device, y, 5)).entries()) {
            last = last * (scale[place] ?? NaN) + (added[place] ?? NaN);
            size = Math.abs(size * (scale[place] ?? NaN)) + Math.abs(added[place] ?? NaN);
            // Errors are relative to what was added up, which may have cancelled.
            requireClose(`element ${place}`, value + size, last + size, 1e-4);
          }
        },
      ),
  };
}

export const languageCases: readonly BenchCase[] = [
  rowsCase(1024, 1),
  rowsCase(32, 32),
  elementsCase(2 ** 18, 512),
  elementsCase(2 ** 26, 512),
  softmaxCase(4),
  softmaxCase(8),
  longSoftmaxCase(8192, 8),
  greatestCase(4, 4),
  countsCase(32768, 16),
  recurrenceCase(1, 4),
];
