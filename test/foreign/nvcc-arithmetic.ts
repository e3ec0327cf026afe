/** Arithmetic and control flow: matrix products, calls, tables, loops, wide integers, transcendentals. */
import { expect } from "vitest";
import { Random } from "../../src/support/random.ts";
import { at, doubleUlp, expectClose, input, made, output, scalar, singleUlp } from "./case.ts";
import type { ForeignCase } from "./case.ts";

/** Sums of products in float64, and the sums of their magnitudes. */
function product(
  rows: number,
  columns: number,
  inner: number,
  a: (row: number, k: number) => number,
  b: (k: number, column: number) => number,
): { readonly sums: number[]; readonly magnitudes: number[] } {
  const [sums, magnitudes]: [number[], number[]] = [[], []];
  for (let row = 0; row < rows; row++)
    for (let column = 0; column < columns; column++) {
      let [total, magnitude] = [0, 0];
      for (let k = 0; k < inner; k++) {
        const term = a(row, k) * b(k, column);
        total += term;
        magnitude += Math.abs(term);
      }
      sums.push(total);
      magnitudes.push(magnitude);
    }
  return { sums, magnitudes };
}

function tiledMatmul(): ForeignCase {
  const [rows, columns, inner] = [20, 37, 29];
  const random = new Random(11);
  const a = Float32Array.from(made(rows * inner, () => random.normal()));
  const b = Float32Array.from(made(inner * columns, () => random.normal()));
  return {
    file: "nvcc/tiled-matmul.ptx",
    entry: "tiled_matmul",
    blocks: [3, 2, 1],
    threads: [16, 16, 1],
    arguments: [
      input("a", a),
      input("b", b),
      output("c", new Float32Array(rows * columns)),
      scalar(rows),
      scalar(columns),
      scalar(inner),
    ],
    check(results) {
      const { sums, magnitudes } = product(
        rows,
        columns,
        inner,
        (row, k) => at(a, row * inner + k),
        (k, column) => at(b, k * columns + column),
      );
      // One rounding a fused step, 29 of them and 3 of zeros.
      expectClose(results.numbers("c"), sums, (i) => inner * 2 ** -24 * 1.01 * at(magnitudes, i));
    },
  };
}

/** bf16 bits of a small integer, which the upper half of its f32 holds exactly. */
function bf16Bits(value: number): number {
  const bits = new DataView(new ArrayBuffer(4));
  bits.setFloat32(0, value);
  return bits.getUint16(0);
}

/** f16 bits of an integer below 2048 in magnitude. */
function f16Bits(value: number): number {
  if (value === 0) return 0;
  const magnitude = Math.abs(value);
  const exponent = 31 - Math.clz32(magnitude);
  const fraction = (magnitude << (10 - exponent)) & 0x3ff;
  return (value < 0 ? 0x8000 : 0) | ((exponent + 15) << 10) | fraction;
}

function smallIntegers(seed: number, count: number): number[] {
  const random = new Random(seed);
  return made(count, () => random.below(31) - 15);
}

function mmaMatmul(): ForeignCase {
  const [rows, columns, inner] = [32, 24, 48];
  const a = smallIntegers(12, rows * inner);
  const b = smallIntegers(13, columns * inner);
  return {
    file: "nvcc/mma-matmul.ptx",
    entry: "mma_matmul",
    blocks: [columns / 8, rows / 16, 1],
    threads: [32, 1, 1],
    arguments: [
      input("a", Uint16Array.from(a, bf16Bits)),
      input("b", Uint16Array.from(b, bf16Bits)),
      output("c", new Float32Array(rows * columns)),
      scalar(columns),
      scalar(inner),
    ],
    check(results) {
      const { sums } = product(
        rows,
        columns,
        inner,
        (row, k) => at(a, row * inner + k),
        (k, column) => at(b, column * inner + k),
      );
      expect([...results.numbers("c")]).toEqual(sums);
    },
  };
}

function wmmaMatmul(): ForeignCase {
  const [rows, columns, inner] = [32, 32, 48];
  const a = smallIntegers(14, rows * inner);
  const b = smallIntegers(15, inner * columns);
  return {
    file: "nvcc/wmma-matmul.ptx",
    entry: "wmma_matmul",
    blocks: [columns / 16, rows / 16, 1],
    threads: [32, 1, 1],
    arguments: [
      input("a", Uint16Array.from(a, f16Bits)),
      input("b", Uint16Array.from(b, f16Bits)),
      output("c", new Float32Array(rows * columns)),
      scalar(columns),
      scalar(inner),
    ],
    check(results) {
      const { sums } = product(
        rows,
        columns,
        inner,
        (row, k) => at(a, row * inner + k),
        (k, column) => at(b, k * columns + column),
      );
      expect([...results.numbers("c")]).toEqual(sums);
    },
  };
}

function localArray(): ForeignCase {
  const threads = 48;
  const random = new Random(16);
  const values = made(threads * 24, () => random.below(400) - 200);
  const which = made(threads, () => random.below(256));
  return {
    file: "nvcc/local-array.ptx",
    entry: "local_array",
    blocks: [1, 1, 1],
    threads: [threads, 1, 1],
    arguments: [
      input("input", Int16Array.from(values)),
      output("sorted", new Int16Array(threads * 24)),
      output("picked", new Int16Array(threads)),
      input("which", Uint8Array.from(which)),
    ],
    check(results) {
      const rows = made(threads, (thread) =>
        values.slice(thread * 24, thread * 24 + 24).sort((left, right) => left - right),
      );
      expect([...results.numbers("sorted")]).toEqual(rows.flat());
      const picked = rows.map((row, thread) => at(row, at(which, thread) % 24));
      expect([...results.numbers("picked")]).toEqual(picked);
    },
  };
}

function divergentLoops(): ForeignCase {
  const count = 70;
  const random = new Random(17);
  const values = made(count, (index) =>
    index % 3 === 0 ? random.bits() >>> 12 : random.below(100),
  );
  return {
    file: "nvcc/divergent-loops.ptx",
    entry: "divergent_loops",
    blocks: [2, 1, 1],
    threads: [48, 1, 1],
    arguments: [
      input("input", Uint32Array.from(values)),
      output("steps", new Uint32Array(count)),
      output("divisor", new Uint32Array(count)),
      scalar(count),
    ],
    check(results) {
      expect([...results.numbers("steps")]).toEqual(values.map(collatzSteps));
      const divisors = values.map((value, index) =>
        greatestDivisor(value, at(values, count - 1 - index)),
      );
      expect([...results.numbers("divisor")]).toEqual(divisors);
    },
  };
}

function collatzSteps(start: number): number {
  let turns = 0;
  for (let n = BigInt(start); n > 1n && turns < 1000; turns++)
    n = n % 2n === 1n ? 3n * n + 1n : n / 2n;
  return turns;
}

/** By trying all, so as not to repeat the kernel's algorithm. */
function greatestDivisor(left: number, right: number): number {
  if (left === 0 || right === 0) return left + right;
  let candidate = Math.min(left, right);
  while (left % candidate !== 0 || right % candidate !== 0) candidate--;
  return candidate;
}

function calls(): ForeignCase {
  const threads = 64;
  const random = new Random(18);
  const values = made(2 * threads, () => 1 + random.below(2000));
  const pairs = made(threads, (i) =>
    [at(values, 2 * i), at(values, 2 * i + 1)].sort((l, r) => r - l),
  );
  return {
    file: "nvcc/calls.ptx",
    entry: "calls",
    blocks: [2, 1, 1],
    threads: [32, 1, 1],
    arguments: [
      input("input", Int32Array.from(values)),
      output("quotients", new Int32Array(threads)),
      output("rests", new Int32Array(threads)),
      output("numbers", new BigInt64Array(threads)),
      output("results", new Float32Array(threads)),
    ],
    check(results) {
      const [larger, smaller] = [
        pairs.map((pair) => at(pair, 0)),
        pairs.map((pair) => at(pair, 1)),
      ];
      const quotients = larger.map((value, i) => Math.floor(value / at(smaller, i)));
      expect([...results.numbers("quotients")]).toEqual(quotients);
      const rests = larger.map((value, i) => value % at(smaller, i));
      expect([...results.numbers("rests")]).toEqual(rests);
      const fibonacci = [0n, 1n, 1n, 2n, 3n, 5n, 8n, 13n, 21n];
      expect([...results.bigints("numbers")]).toEqual(made(threads, (i) => fibonacci[i % 9]));
      const applied = larger.map((value, i) => (i % 2 === 0 ? 2 * value : value * value));
      expect([...results.numbers("results")]).toEqual(applied);
    },
  };
}

function constantTable(): ForeignCase {
  const [threads, length] = [40, 19];
  const random = new Random(19);
  const bytes = made(threads * length, () => random.below(256));
  const points = made(threads, () => random.normal() * 3);
  const coefficients = [1.5, -0.25, 3, 0.125];
  const polynomial = (x: number, sign: (value: number) => number): number =>
    coefficients.reduce((total, value, power) => total + sign(value * x ** power), 0);
  return {
    file: "nvcc/constant-table.ptx",
    entry: "constant_table",
    blocks: [1, 1, 1],
    threads: [threads, 1, 1],
    arguments: [
      input("bytes", Uint8Array.from(bytes)),
      output("checks", new Uint32Array(threads)),
      input("points", Float64Array.from(points)),
      output("values", new Float64Array(threads)),
      scalar(length),
    ],
    check(results) {
      const checks = made(threads, (i) => crc32(bytes.slice(i * length, (i + 1) * length)));
      expect([...results.numbers("checks")]).toEqual(checks);
      // At most 8 roundings on either side touch a term.
      expectClose(
        results.numbers("values"),
        points.map((x) => polynomial(x, (value) => value)),
        (i) => 16 * 2 ** -53 * polynomial(at(points, i), Math.abs),
      );
    },
  };
}

/** Bit by bit, without a table. */
function crc32(bytes: readonly number[]): number {
  let check = -1;
  for (const byte of bytes) {
    check ^= byte;
    for (let bit = 0; bit < 8; bit++) check = (check >>> 1) ^ ((check & 1) * 0xedb88320);
  }
  return ~check >>> 0;
}

function jumpTable(): ForeignCase {
  const [threads, length] = [64, 12];
  const random = new Random(20);
  const programs = made(threads * length, () => random.below(12));
  const inputs = made(threads, () => random.bits() | 0);
  const run = (program: readonly number[], start: number, thread: number): number => {
    let [x, y] = [start, thread];
    const steps = [
      () => (x = (x + y) | 0),
      () => (x = (x - Math.imul(3, y)) | 0),
      () => (x = Math.imul(x, y | 1)),
      () => (y ^= x),
      () => (y = x >> 3),
      () => (x = ~x),
      () => ([x, y] = [y, x]),
      () => (x = Math.min(x, y)),
      () => (x = (x >>> 0).toString(2).replaceAll("0", "").length + Math.clz32(y)),
    ];
    for (const code of program) (steps[code] ?? (() => (x = (x + 1) | 0)))();
    return x ^ y;
  };
  return {
    file: "nvcc/jump-table.ptx",
    entry: "jump_table",
    blocks: [1, 1, 1],
    threads: [threads, 1, 1],
    arguments: [
      input("programs", Uint8Array.from(programs)),
      input("inputs", Int32Array.from(inputs)),
      output("outputs", new Int32Array(threads)),
      scalar(length),
    ],
    check(results) {
      const expected = inputs.map((start, i) =>
        run(programs.slice(i * length, (i + 1) * length), start, i),
      );
      expect([...results.numbers("outputs")]).toEqual(expected);
    },
  };
}

function doubleMath(): ForeignCase {
  const random = new Random(21);
  const values = made(64, (i) => random.normal() * 10 ** (i % 8 < 6 ? (i % 4) - 1 : 9));
  return {
    file: "nvcc/double-math.ptx",
    entry: "double_math",
    blocks: [2, 1, 1],
    threads: [32, 1, 1],
    arguments: [
      input("input", Float64Array.from(values)),
      ...["exponentials", "logarithms", "sines", "roots", "quotients"].map((name) =>
        output(name, new Float64Array(64)),
      ),
    ],
    check(results) {
      // CUDA documents 1 ulp for exp and log and 2 for sin; the host's functions are within 1.
      const within = (name: string, ulps: number, reference: (x: number) => number): void => {
        const expected = values.map(reference);
        expectClose(results.numbers(name), expected, (i) => ulps * doubleUlp(at(expected, i)));
      };
      within("exponentials", 2, Math.exp);
      within("logarithms", 2, (x) => Math.log(Math.abs(x)));
      within("sines", 3, Math.sin);
      within("roots", 0, (x) => Math.sqrt(Math.abs(x)));
      // The kernel rounds x x + 1 once and the quotient once; the reference rounds three times.
      within("quotients", 4, (x) => Math.floor(x) / (1 + x * x));
    },
  };
}

function floatMath(): ForeignCase {
  const random = new Random(22);
  const values = made(96, (i) => Math.fround(random.normal() * 10 ** (i % 6 < 5 ? i % 5 : 7)));
  return {
    file: "nvcc/float-math.ptx",
    entry: "float_math",
    blocks: [3, 1, 1],
    threads: [32, 1, 1],
    arguments: [
      input("input", Float32Array.from(values)),
      ...["sines", "exponentials", "powers", "quotients"].map((name) =>
        output(name, new Float32Array(96)),
      ),
    ],
    check(results) {
      // The bounds that CUDA documents, and half an ulp that the f64 reference is not rounded.
      const within = (name: string, ulps: number, reference: (x: number) => number): void => {
        const expected = values.map((x) => Math.min(Infinity, overflow(reference(x))));
        expectClose(
          results.numbers(name),
          expected,
          (i) => (ulps + 0.5) * singleUlp(at(expected, i)),
        );
      };
      within("sines", 2, Math.sin);
      within("exponentials", 2, (x) => Math.exp(Math.fround(x * Math.fround(0.01))));
      within("powers", 4, (x) => Math.abs(x) ** Math.fround(0.3));
      const sums = values.map((x) => 1 / x + 1 / Math.sqrt(Math.abs(x)));
      // Division and sum are exact to half an ulp each, rsqrtf to 2 ulps, each of its own result.
      expectClose(results.numbers("quotients"), sums, (i) => {
        const x = at(values, i);
        const root = 1 / Math.sqrt(Math.abs(x));
        return singleUlp(1 / x) / 2 + 2 * singleUlp(root) + singleUlp(at(sums, i));
      });
    },
  };
}

/** What is too large for an f32 is infinite. */
function overflow(value: number): number {
  return Number.isFinite(Math.fround(value)) ? value : Math.fround(value);
}

const wrap = (value: bigint): bigint => BigInt.asIntN(64, value);
const word = (value: bigint): bigint => BigInt.asUintN(32, value);
const half = (value: bigint): bigint => BigInt.asIntN(32, value);

function wideIntegers(): ForeignCase {
  const threads = 32;
  const random = new Random(23);
  const values = made(2 * threads, (i) => {
    const bits = (BigInt(random.bits()) << 32n) | BigInt(random.bits());
    const shifted = bits >> BigInt(random.below(i % 2 === 0 ? 20 : 60));
    return wrap(random.below(2) === 0 ? shifted : -shifted) || 1n;
  });
  return {
    file: "nvcc/wide-integers.ptx",
    entry: "wide_integers",
    blocks: [1, 1, 1],
    threads: [threads, 1, 1],
    arguments: [
      input("input", BigInt64Array.from(values)),
      output("output", new BigInt64Array(12 * threads)),
    ],
    check(results) {
      const expected = made(threads, (i) =>
        wideResults(values[2 * i] ?? 0n, values[2 * i + 1] ?? 0n),
      );
      expect([...results.bigints("output")]).toEqual(expected.flat());
    },
  };
}

function wideResults(a: bigint, b: bigint): bigint[] {
  const [ua, ub] = [BigInt.asUintN(64, a), BigInt.asUintN(64, b)];
  const binary = ua.toString(2).padStart(64, "0");
  const ones = BigInt(binary.replaceAll("0", "").length);
  const leading = BigInt(binary.indexOf("1"));
  const lastOne = BigInt(64 - binary.lastIndexOf("1"));
  const shift = ub & 63n;
  const reversed = BigInt(`0b${[...binary].reverse().join("")}`);
  return [
    a / b,
    a % b,
    ua / ub,
    ua % ub,
    (a * b) >> 64n,
    (ua * ub) >> 64n,
    (a >> shift) ^ wrap(ua << shift),
    ones * 100n + leading,
    reversed,
    word(permuted(word(a), word(b)) + (((word(b) << 13n) | (word(a) >> 19n)) & 0xffffffffn)),
    saturatedSum(word(a), word(b)) + word(absolute(half(a) - half(b)) + 7n),
    half(
      half(a) / half(b | 1n) +
        BigInt.asIntN(16, a) * BigInt.asIntN(16, b) +
        (a === 0n ? 0n : lastOne),
    ),
  ].map(wrap);
}

function absolute(value: bigint): bigint {
  return value < 0n ? -value : value;
}

function byteOf(value: bigint, index: number): bigint {
  return (value >> BigInt(8 * index)) & 0xffn;
}

/** Bytes 3, 6, 1 and 5 of b:a, the lowest first. */
function permuted(a: bigint, b: bigint): bigint {
  const bytes = [3, 6, 1, 5].map((index) => byteOf((b << 32n) | a, index));
  return bytes.reduce((total, byte, index) => total | (byte << BigInt(8 * index)), 0n);
}

function saturatedSum(a: bigint, b: bigint): bigint {
  let total = 0n;
  for (let index = 0; index < 4; index++) {
    const byte = byteOf(a, index) + byteOf(b, index);
    total |= (byte > 255n ? 255n : byte) << BigInt(8 * index);
  }
  return total;
}

export const arithmeticCases: readonly ForeignCase[] = [
  tiledMatmul(),
  mmaMatmul(),
  wmmaMatmul(),
  localArray(),
  divergentLoops(),
  calls(),
  constantTable(),
  jumpTable(),
  doubleMath(),
  floatMath(),
  wideIntegers(),
];
