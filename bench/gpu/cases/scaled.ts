/**
 * Numbers with scales, beside what would be done without:
 *
 *   quantisation by blocks        a copy of as many bytes
 *   FP8 with scales of blocks     our own product of FP8 with promoted sums, without scales
 *   … of rows in groups           likewise
 */
import {
  bf16,
  dim,
  f32,
  f8e4m3fn,
  fp8Block128x128,
  fp8Block1x128,
  fromNumbers,
  i32,
  mxfp4,
  mxfp6e3m2,
  mxfp8e4m3,
  nvfp4,
  tensor,
  toNumbers,
} from "tilewright";
import type { Device, DeviceArray, ScaledFormat } from "tilewright";
import { array, nn } from "tilewright/arrays";
import { copy, matmul, quantizeBlocks, raggedDot } from "tilewright/kernels";
import type { BenchCase, PreparedCase } from "../case.ts";
import { randomArray } from "../random.ts";

const globalScale = 2 ** -4;

function at<T>(all: readonly T[], set: number): T {
  const found = all[set % all.length];
  if (found === undefined) throw new RangeError("a case has one set at least");
  return found;
}

function requireAlike(name: string, found: Float64Array, wanted: Float64Array): void {
  const place = found.findIndex((value, index) => !Object.is(value, wanted[index]));
  if (place >= 0) throw new Error(`${name}[${place}] is ${found[place]}, not ${wanted[place]}`);
}

/** A matrix of bf16 in a format, whose first rows of blocks have to be what the evaluator makes of them. */
function quantisation(format: ScaledFormat, rows: number, columns: number): BenchCase {
  const [across, along] = format.block;
  const counts = [rows / across, columns / along];
  const written =
    rows * columns * format.element.bits + (rows * columns * format.scale.bits) / (across * along);
  const bytes = 2 * rows * columns + written / 8;
  const elements = Math.floor(bytes / 4);
  const op = quantizeBlocks({ x: tensor(bf16, [rows, columns]), format });
  const plain = copy({ x: tensor(bf16, [elements]) });
  return {
    name: `quantize_blocks ${format.name} ${rows}x${columns}`,
    task: { op: "quantize_blocks", format: format.name, rows, columns },
    unit: "TB/s",
    work: bytes,
    setBytes: bytes,
    prepare: (device, sets): PreparedCase => {
      const made = Array.from({ length: sets }, (_, seed) => ({
        x: randomArray(device, bf16, [rows, columns], seed),
        out: device.allocate(format.element, [rows, columns]),
        scale: device.allocate(format.scale, counts),
      }));
      const copied = Array.from({ length: sets }, (_, seed) => ({
        x: randomArray(device, bf16, [elements], seed),
        out: device.allocate(bf16, [elements]),
      }));
      const shared = device.allocate(f32, [1]);
      const ours = (set: number) =>
        device.bind(op, {
          ...at(made, set),
          ...(format.hasGlobalScale && { globalScale: shared }),
        } as never);
      return {
        ours,
        measures: { "a copy": (set) => device.bind(plain, at(copied, set)) },
        check: async () => {
          await device.fill(shared, globalScale);
          const once = ours(0);
          once.launch();
          await device.synchronize();
          once.dispose();
          const { x, out, scale } = at(made, 0);
          const wanted = nn.quantizeBlocks(
            array(await device.download(x.slice(0, across))),
            format.name,
            format.hasGlobalScale ? { globalScale } : {},
          );
          const found = [
            await device.download(out.slice(0, across)),
            await device.download(scale.slice(0, 1)),
          ].map(toNumbers);
          const own = [await wanted.elements.read(), await wanted.scales.read()].map(toNumbers);
          requireAlike("element", at(found, 0), at(own, 0));
          requireAlike("scale", at(found, 1), at(own, 1));
        },
        dispose: () => {
          for (const each of [...made, ...copied].flatMap((set) => Object.values(set)))
            each.dispose();
          shared.dispose();
        },
      };
    },
  };
}

/** m, n and k of a product, and groups of equally many rows, each with a matrix of its own. */
interface ScaledTask {
  readonly m: number;
  readonly n: number;
  readonly k: number;
  readonly groups?: number;
}

const blockScales = { a: [1, 128], b: [128, 128] } as const;

function operations({ n, k, groups }: ScaledTask) {
  const strides = [...(groups === undefined ? [] : [n * k]), 1, k];
  const b = tensor(f8e4m3fn, [...(groups === undefined ? [] : [groups]), k, n], { strides });
  const form = { a: tensor(f8e4m3fn, [dim("m"), k]), b, accumulation: "promoted" } as const;
  const make = (more: object) =>
    groups === undefined
      ? matmul({ ...form, ...more } as never)
      : raggedDot({ ...form, ...more } as never);
  return { scaled: make({ blockScales }), plain: make({}) };
}

interface ScaledArrays {
  readonly a: DeviceArray<"f8e4m3fn">;
  readonly b: DeviceArray<"f8e4m3fn">;
  readonly aScale: DeviceArray<"f32">;
  readonly bScale: DeviceArray<"f32">;
  readonly out: DeviceArray<"bf16">;
}

/** Some elements of a product, of the first group where there are some, against float64. */
async function checkElements(device: Device, arrays: ScaledArrays, task: ScaledTask) {
  const { n, k, groups = 1 } = task;
  const blocks = k / 128;
  const last = task.m / groups - 1;
  for (const row of new Set([0, last >> 1, last]))
    for (const column of [0, n >> 1, n - 1]) {
      const numbers = async (of: DeviceArray): Promise<Float64Array> =>
        toNumbers(await device.download(of));
      const left = await numbers(arrays.a.slice(row, row + 1));
      const right = await numbers(arrays.b.reshape([groups * n, k]).slice(column, column + 1));
      const block = Math.floor(column / 128);
      const aScale = await numbers(arrays.aScale.slice(row, row + 1));
      const bScales = arrays.bScale.reshape([groups * Math.ceil(n / 128), blocks]);
      const bScale = await numbers(bScales.slice(block, block + 1));
      let [sum, magnitude] = [0, 0];
      for (let at = 0; at < k; at += 1) {
        const each = at >> 7;
        const scale = (aScale[each] ?? NaN) * (bScale[each] ?? NaN);
        const term = scale * (left[at] ?? NaN) * (right[at] ?? NaN);
        sum += term;
        magnitude += Math.abs(term);
      }
      const found = (await numbers(arrays.out.slice(row, row + 1)))[column] ?? NaN;
      if (!(Math.abs(found - sum) <= 2 ** -8 * Math.abs(sum) + 2 ** -9 * magnitude))
        throw new Error(`out[${row}, ${column}] is ${found}, not ${sum}`);
    }
}

function product(task: ScaledTask): BenchCase {
  const { m, n, k, groups } = task;
  const layers = groups === undefined ? [] : [groups];
  const matrices = groups ?? 1;
  return {
    name: `FP8 with scales of blocks ${groups === undefined ? "" : `${groups} groups `}${m}x${n}x${k}`,
    task: { op: "block_scaled_product", m, n, k, groups: matrices },
    unit: "TFLOP/s",
    work: 2 * m * n * k,
    setBytes: m * k + matrices * n * k + 2 * m * n,
    prepare: async (device, sets) => {
      const { scaled, plain } = operations(task);
      const made = Array.from({ length: sets }, (_, seed): ScaledArrays => ({
        a: randomArray(device, f8e4m3fn, [m, k], seed),
        b: randomArray(device, f8e4m3fn, [...layers, n, k], seed + 50),
        aScale: randomArray(device, f32, [m, k / 128], seed + 100),
        bScale: randomArray(device, f32, [...layers, Math.ceil(n / 128), k / 128], seed + 150),
        out: device.allocate(bf16, [m, n]),
      }));
      const sizes = fromNumbers(
        i32,
        [matrices],
        Array.from({ length: matrices }, () => m / matrices),
      );
      const groupSizes = await device.upload(sizes);
      const further = groups === undefined ? {} : { groupSizes };
      const bind = (op: typeof scaled, given: object) =>
        device.bind(op, { ...given, ...further } as never);
      const ours = (set: number) => bind(scaled, at(made, set));
      return {
        ours,
        measures: {
          "the product without scales": (set) => {
            const { a, b, out } = at(made, set);
            return bind(plain, { a, b, out });
          },
        },
        check: async () => {
          const once = ours(0);
          once.launch();
          await device.synchronize();
          once.dispose();
          await checkElements(device, at(made, 0), task);
        },
        dispose: () => {
          groupSizes.dispose();
          for (const { a, b, aScale, bScale, out } of made)
            for (const each of [a, b, aScale, bScale, out]) each.dispose();
        },
      };
    },
  };
}

/** Formats of a large matrix, and products of the sizes that DeepGEMM tells of. */
export const scaledCases: readonly BenchCase[] = [
  ...[mxfp8e4m3, mxfp6e3m2, mxfp4, nvfp4, fp8Block1x128, fp8Block128x128].map((format) =>
    quantisation(format, 8192, 8192),
  ),
  ...[
    { m: 4096, n: 7168, k: 16384 },
    { m: 4096, n: 4096, k: 7168 },
    { m: 4096, n: 24576, k: 1536 },
    { m: 4096, n: 2112, k: 7168 },
    { m: 64, n: 7168, k: 16384 },
    { m: 8192, n: 4096, k: 7168, groups: 8 },
  ].map(product),
];
