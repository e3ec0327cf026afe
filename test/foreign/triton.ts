/** Kernels that Triton emitted, with what they must compute. */
import { expect } from "vitest";
import { decodeFloat, encodeFloat } from "../../src/formats/floats.ts";
import { Random } from "../../src/support/random.ts";
import { at, expectClose, input, made, output, scalar, singleUlp, sum } from "./case.ts";
import type { Data, ForeignCase } from "./case.ts";

function normals(seed: number, count: number): Float32Array<ArrayBuffer> {
  const random = new Random(seed);
  return Float32Array.from(made(count, () => random.normal()));
}

function add(): ForeignCase {
  const count = 1000;
  const [x, y] = [normals(31, count), normals(32, count)];
  return {
    file: "triton/add.ptx",
    entry: "add_kernel",
    blocks: [4, 1, 1],
    threads: [128, 1, 1],
    arguments: [
      input("x", x),
      input("y", y),
      output("sums", new Float32Array(count)),
      scalar(count),
    ],
    check(results) {
      const sums = made(count, (i) => 2 * at(x, i) + at(y, i));
      // One rounding; the reference's own is far below.
      expectClose(results.numbers("sums"), sums, (i) => 0.5001 * singleUlp(at(sums, i)));
    },
  };
}

function softmax(): ForeignCase {
  const [rows, columns] = [5, 300];
  const x = normals(33, rows * columns).map((value) => 3 * value);
  return {
    file: "triton/softmax.ptx",
    entry: "softmax_kernel",
    blocks: [rows, 1, 1],
    threads: [128, 1, 1],
    sharedBytes: 16,
    arguments: [input("x", x), output("out", new Float32Array(rows * columns)), scalar(columns)],
    check(results) {
      const lines = made(rows, (row) => [...x.subarray(row * columns, (row + 1) * columns)]);
      const parts = lines.flatMap((line) => {
        const largest = Math.max(...line);
        const powers = line.map((value) => Math.exp(value - largest));
        return powers.map((power) => power / sum(powers));
      });
      const span = Math.max(...x) - Math.min(...x);
      // An exponent is off by three roundings of at most the span, 2^x by 2^-22; so are numerator and sum
      // alike. The sum takes 2 additions in a lane and 7 across lanes, the division is off by 2^-22.
      const relative = 2 * (3 * span * 2 ** -24 * Math.LOG2E + 2 ** -22) + 9 * 2 ** -24 + 2 ** -22;
      expectClose(results.numbers("out"), parts, (i) => 1.01 * relative * at(parts, i));
    },
  };
}

/** Quarters from −4 to 4: exact in all formats, and so are all sums of their products. */
function quarters(seed: number, count: number): number[] {
  const random = new Random(seed);
  return made(count, () => (random.below(33) - 16) / 4);
}

function encoded(format: "f16" | "bf16", values: readonly number[]): Uint16Array {
  return Uint16Array.from(values, (value) => encodeFloat(format, value));
}

interface Product {
  readonly file: string;
  readonly blocks: readonly [number, number, number];
  readonly lanes: number;
  readonly sharedBytes: number;
  readonly size: readonly [rows: number, columns: number, inner: number];
  readonly data: (values: readonly number[]) => Data;
}

function matmul({ file, blocks, lanes, sharedBytes, size, data }: Product): ForeignCase {
  const [rows, columns, inner] = size;
  const a = quarters(34, rows * inner);
  const b = quarters(35, inner * columns);
  return {
    file,
    entry: "matmul_kernel",
    blocks,
    threads: [lanes, 1, 1],
    sharedBytes,
    arguments: [
      input("a", data(a)),
      input("b", data(b)),
      output("c", new Float32Array(rows * columns)),
      scalar(rows),
      scalar(columns),
      scalar(inner),
    ],
    check(results) {
      const sums = made(rows * columns, (index) => {
        const [row, column] = [Math.floor(index / columns), index % columns];
        return sum(made(inner, (k) => at(a, row * inner + k) * at(b, k * columns + column)));
      });
      expect([...results.numbers("c")]).toEqual(sums.map((value) => value + 0));
    },
  };
}

const products: readonly Product[] = [
  {
    file: "triton/matmul-fp16.ptx",
    blocks: [2, 2, 1],
    lanes: 128,
    sharedBytes: 16384,
    size: [100, 90, 72],
    data: (values) => encoded("f16", values),
  },
  {
    file: "triton/matmul-mma.ptx",
    blocks: [4, 3, 1],
    lanes: 32,
    sharedBytes: 1024,
    size: [60, 44, 40],
    data: (values) => encoded("bf16", values),
  },
  {
    file: "triton/matmul-tf32.ptx",
    blocks: [1, 1, 1],
    lanes: 128,
    sharedBytes: 49152,
    size: [64, 64, 64],
    data: (values) => Float32Array.from(values),
  },
];

function histogram(): ForeignCase {
  const count = 1000;
  const random = new Random(36);
  const values = made(count, () => random.below(1000));
  return {
    file: "triton/histogram.ptx",
    entry: "histogram_kernel",
    blocks: [4, 1, 1],
    threads: [128, 1, 1],
    sharedBytes: 2048,
    arguments: [
      input("x", Int32Array.from(values)),
      input("counts", new Int32Array(16)),
      scalar(count),
    ],
    check(results) {
      const counts = made(16, (bin) => values.filter((value) => value % 16 === bin).length);
      expect([...results.numbers("counts")]).toEqual(counts);
    },
  };
}

function scan(): ForeignCase {
  const [rows, columns] = [3, 200];
  const random = new Random(37);
  const values = made(rows * columns, () => random.below(100) - 50);
  return {
    file: "triton/scan.ptx",
    entry: "scan_kernel",
    blocks: [rows, 1, 1],
    threads: [128, 1, 1],
    sharedBytes: 32,
    arguments: [
      input("x", Int32Array.from(values)),
      output("out", new Int32Array(rows * columns)),
      scalar(columns),
    ],
    check(results) {
      let total = 0;
      const sums = values.map(
        (value, index) => (total = (index % columns === 0 ? 0 : total) + value),
      );
      expect([...results.numbers("out")]).toEqual(sums);
    },
  };
}

function norm(): ForeignCase {
  const [rows, columns, epsilon] = [4, 250, 1e-5];
  const x = encoded("bf16", [...normals(38, rows * columns)]);
  const weights = encoded("bf16", [...normals(39, columns)]);
  const number = (bits: number): number => decodeFloat("bf16", bits);
  return {
    file: "triton/norm.ptx",
    entry: "norm_kernel",
    blocks: [rows, 1, 1],
    threads: [128, 1, 1],
    sharedBytes: 512,
    arguments: [
      input("x", x),
      input("weights", weights),
      output("out", new Uint16Array(rows * columns)),
      scalar(columns),
      { kind: "single", value: epsilon },
    ],
    check(results) {
      const weight = [...weights].map(number);
      const largest = Math.max(...[...x].map((bits) => Math.abs(number(bits))));
      const scales: number[] = [];
      const expected = made(rows, (row) => {
        const line = [...x.subarray(row * columns, (row + 1) * columns)].map(number);
        const mean = sum(line) / columns;
        const centred = line.map((value) => value - mean);
        const scale = 1 / Math.sqrt(sum(centred.map((value) => value * value)) / columns + epsilon);
        scales.push(scale);
        return centred.map((value, i) => value * scale * at(weight, i));
      }).flat();
      // bf16 rounds once. Before that the sums take 2 additions in a lane and 7 across lanes, the mean is
      // off by a division, and the scale by half of what its variance is: below 32 roundings of f32.
      expectClose([...results.numbers("out")].map(number), expected, (i) => {
        const before = at(scales, Math.floor(i / columns)) * largest * 32 * 2 ** -24;
        return (
          2 ** -8 * 1.01 * Math.abs(at(expected, i)) + before * Math.abs(at(weight, i % columns))
        );
      });
    },
  };
}

export const tritonCases: readonly ForeignCase[] = [
  add(),
  softmax(),
  ...products.map(matmul),
  histogram(),
  scan(),
  norm(),
];
