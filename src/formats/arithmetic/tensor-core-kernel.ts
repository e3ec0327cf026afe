/**
 * The arithmetic of tensor cores for four columns at a time, in WebAssembly with vectors of 128 bits. It
 * serves numbers of ordinary size with sums in f32; whoever calls it takes the slow way for the rest.
 *
 * For each row of A and panel of four columns of B, and each step of k:
 *
 *   largest = max over k of exponent(a) + exponent(b), and the exponent of c         i32 × 4
 *   sum     = Σ over k of trunc(a · b · 2^(F − largest))                             f32 × 4, i32 × 4
 *   c       = (sum + trunc(c · 2^(F − largest))) · 2^(largest − F), cut off          f64 × 2, twice
 *
 * A product has at most 22 significant bits and is exact in f32, and so is what is left of it on the grid.
 * Sixteen of them stay within 32 bits. Cutting off a sum means clearing the bits of its f64 that an f32
 * (or the FP8 unit) has not.
 */

/** Exponents of nonzero operands must be within ± this. */
export const largestExponent = 50;
/** The exponent that stands for a zero. */
export const zeroExponent = -1000;
/** Exponents of c, if it is not zero. */
export const smallestSum = -102;
export const largestSum = 120;

export const panelColumns = 4;

function unsigned(value: number): number[] {
  const bytes: number[] = [];
  let rest = value;
  for (; rest >= 128; rest = Math.floor(rest / 128)) bytes.push((rest % 128) + 128);
  return [...bytes, rest];
}

function signed(value: number): number[] {
  const bytes: number[] = [];
  let rest = value;
  for (;;) {
    const byte = rest & 127;
    rest >>= 7;
    if ((rest === 0 && byte < 64) || (rest === -1 && byte >= 64)) return [...bytes, byte];
    bytes.push(byte + 128);
  }
}

type Code = readonly number[];
const vector = (operation: number): Code => [0xfd, ...unsigned(operation)];

const i32 = (value: number): Code => [0x41, ...signed(value)];
const get = (local: number): Code => [0x20, local];
const set = (local: number): Code => [0x21, local];
const add: Code = [0x6a];
const multiply: Code = [0x6c];
const load: Code = [...vector(0x00), 2, 0];
const loadSplat: Code = [...vector(0x09), 2, 0];
const store: Code = [...vector(0x0b), 2, 0];
const splat32 = vector(0x11);
const splat64 = vector(0x12);
const lessThan = vector(0x39);
const greaterThan = vector(0x3b);
const isNotEqual = vector(0x38);
const and = vector(0x4e);
const or = vector(0x50);
const anyTrue = vector(0x53);
const shiftLeft = vector(0xab);
const shiftRight = vector(0xad);
const addWords = vector(0xae);
const subtractWords = vector(0xb1);
const maximum = vector(0xb8);
const multiplySingles = vector(0xe6);
const addDoubles = vector(0xf0);
const multiplyDoubles = vector(0xf2);
const truncate = vector(0xf8);
const lowToDoubles = vector(0xfe);
const widenLow = vector(0xc7);
const shiftLeftWide = vector(0xcb);
const toSingles = vector(0x5e);
const shuffle = (bytes: readonly number[]): Code => [...vector(0x0d), ...bytes];
const highToLow = shuffle([8, 9, 10, 11, 12, 13, 14, 15, 8, 9, 10, 11, 12, 13, 14, 15]);
const joinLows = shuffle([0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23]);

/** Parameters, then locals: words first, vectors behind. */
const names = [
  "aValues",
  "aExponents",
  "bValues",
  "bExponents",
  "c",
  "rows",
  "panels",
  "depth",
  "steps",
  "fraction",
  "mask",
  "row",
  "panel",
  "step",
  "k",
  "left",
  "right",
  "bad",
  "kept",
  "sums",
  "largest",
  "scale",
  "added",
  "back",
  "clears",
] as const;
type Name = (typeof names)[number];
const at: { readonly [N in Name]: number } = Object.fromEntries(
  names.map((name, index) => [name, index]),
) as { [N in Name]: number };
const read = (name: Name): Code => get(at[name]);
const write = (name: Name): Code => set(at[name]);

/** Repeats `body` with a counter from 0 up to a limit, at least once. */
function repeat(counter: Name, limit: Name, body: readonly Code[]): Code {
  return [
    ...i32(0),
    ...write(counter),
    0x03,
    0x40,
    ...body.flat(),
    ...read(counter),
    ...i32(1),
    ...add,
    ...write(counter),
    ...read(counter),
    ...read(limit),
    0x49,
    0x0d,
    0,
    0x0b,
  ];
}

const advance = (name: Name, by: number): Code => [
  ...read(name),
  ...i32(by),
  ...add,
  ...write(name),
];

/** 2 to the exponents in a vector of words, as f32. */
const powers: Code = [...i32(127), ...splat32, ...addWords, ...i32(23), ...shiftLeft];

/** The exponent of c: its field less 127, that of subnormal numbers too low by one; zeros far below. */
const exponentOfSum: Code = [
  ...read("kept"),
  ...i32(1),
  ...shiftLeft,
  ...i32(24),
  ...shiftRight,
  ...i32(127),
  ...splat32,
  ...subtractWords,
];

const isSum: Code = [
  ...read("kept"),
  ...i32(0x7fff_ffff),
  ...splat32,
  ...and,
  ...i32(0),
  ...splat32,
  ...isNotEqual,
];

/** Notes c of unusual size in `bad`. */
const noteBad: Code = [
  ...read("largest"),
  ...i32(smallestSum),
  ...splat32,
  ...lessThan,
  ...isSum,
  ...and,
  ...read("largest"),
  ...i32(largestSum),
  ...splat32,
  ...greaterThan,
  ...or,
  ...anyTrue,
  ...read("bad"),
  0x72,
  ...write("bad"),
];

const findLargest: readonly Code[] = [
  exponentOfSum,
  write("largest"),
  noteBad,
  // Below this scales would leave f32; of c only zeros are.
  read("largest"),
  i32(smallestSum),
  splat32,
  maximum,
  write("largest"),
  repeat("k", "depth", [
    read("largest"),
    [...read("aExponents"), ...read("left"), ...add, ...loadSplat],
    [...read("bExponents"), ...read("right"), ...add, ...load],
    addWords,
    maximum,
    write("largest"),
    advance("left", 4),
    advance("right", 16),
  ]),
];

const rewind = (name: Name, bytes: number): Code => [
  ...read(name),
  ...read("depth"),
  ...i32(-bytes),
  ...multiply,
  ...add,
  ...write(name),
];

const addProducts: readonly Code[] = [
  [
    ...read("fraction"),
    ...splat32,
    ...read("largest"),
    ...subtractWords,
    ...powers,
    ...write("scale"),
  ],
  [...i32(0), ...splat32, ...write("sums")],
  repeat("k", "depth", [
    read("sums"),
    [...read("aValues"), ...read("left"), ...add, ...loadSplat],
    [...read("bValues"), ...read("right"), ...add, ...load],
    multiplySingles,
    read("scale"),
    multiplySingles,
    truncate,
    addWords,
    write("sums"),
    advance("left", 4),
    advance("right", 16),
  ]),
];

const lowHalf = (name: Name): Code => read(name);
const highHalf = (name: Name): Code => [...read(name), ...read(name), ...highToLow];

/** Two of the four sums as f64, scaled back and cut off, as two f32. */
const settleHalf = (half: (name: Name) => Code): Code => [
  ...half("sums"),
  ...lowToDoubles,
  ...half("added"),
  ...lowToDoubles,
  ...addDoubles,
  ...half("back"),
  ...widenLow,
  ...i32(52),
  ...shiftLeftWide,
  ...multiplyDoubles,
  ...read("clears"),
  ...and,
  ...toSingles,
];

const settle: readonly Code[] = [
  [...read("kept"), ...read("scale"), ...multiplySingles, ...truncate, ...write("added")],
  [
    ...i32(1023),
    ...read("fraction"),
    0x6b,
    ...splat32,
    ...read("largest"),
    ...addWords,
    ...write("back"),
  ],
  settleHalf(lowHalf),
  settleHalf(highHalf),
  joinLows,
  write("kept"),
];

/** `c` walks along the sums; `right` along the panel, `left` along the row. */
const body: Code = [
  ...read("mask"),
  ...splat64,
  ...write("clears"),
  ...i32(0),
  ...write("bad"),
  ...repeat("row", "rows", [
    [...i32(0), ...write("right")],
    repeat("panel", "panels", [
      [
        ...read("row"),
        ...read("steps"),
        ...multiply,
        ...read("depth"),
        ...multiply,
        ...i32(4),
        ...multiply,
        ...write("left"),
      ],
      [...read("c"), ...load, ...write("kept")],
      repeat("step", "steps", [
        ...findLargest,
        rewind("left", 4),
        rewind("right", 16),
        ...addProducts,
        ...settle,
      ]),
      [...read("c"), ...read("kept"), ...store],
      advance("c", 16),
    ]),
  ]),
  ...read("bad"),
  0x0b,
];

const section = (id: number, content: readonly number[]): number[] => [
  id,
  ...unsigned(content.length),
  ...content,
];

const parameterTypes = [...Array.from({ length: 10 }, () => 0x7f), 0x7e];
const text = (name: string): number[] => [
  name.length,
  ...[...name].map((each) => each.charCodeAt(0)),
];

function moduleBytes(): Uint8Array<ArrayBuffer> {
  const locals = [2, 7, 0x7f, 7, 0x7b];
  const code = [...locals, ...body];
  return Uint8Array.from([
    ...[0x00, 0x61, 0x73, 0x6d, 0x01, 0x00, 0x00, 0x00],
    ...section(1, [1, 0x60, parameterTypes.length, ...parameterTypes, 1, 0x7f]),
    ...section(3, [1, 0]),
    ...section(5, [1, 0, 1]),
    ...section(7, [2, ...text("memory"), 2, 0, ...text("multiply"), 0, 0]),
    ...section(10, [1, ...unsigned(code.length), ...code]),
  ]);
}

interface KernelExports {
  readonly memory: WebAssembly.Memory;
  readonly multiply: (...operands: (number | bigint)[]) => number;
}

let kernel: KernelExports | "forbidden" | undefined;

/** The kernel with so much memory; undefined where WebAssembly may not be compiled, as under a strict policy of a page. */
function kernelOf(bytes: number): KernelExports | undefined {
  kernel ??= compiledKernel() ?? "forbidden";
  if (kernel === "forbidden") return undefined;
  const missing = bytes - kernel.memory.buffer.byteLength;
  if (missing > 0) kernel.memory.grow(Math.ceil(missing / 65536));
  return kernel;
}

function compiledKernel(): KernelExports | undefined {
  if (typeof WebAssembly === "undefined") return undefined;
  try {
    const module = new WebAssembly.Module(moduleBytes());
    return new WebAssembly.Instance(module).exports as unknown as KernelExports;
  } catch (error) {
    if (error instanceof WebAssembly.CompileError) return undefined;
    throw error;
  }
}

/** A job for the kernel: how large it is, and where its parts are to be written. */
export interface PanelJob {
  /** Rows of A, `steps · depth` elements each: numbers and exponents. */
  readonly aValues: Float32Array;
  readonly aExponents: Int32Array;
  /** Panels of four columns of B, k by k. */
  readonly bValues: Float32Array;
  readonly bExponents: Int32Array;
  /** Rows of sums, as f32 and as their codes; four columns a panel. */
  readonly sums: Float32Array;
  readonly codes: Uint32Array;
  /** Adds the products; whether all sums were of ordinary size. If not, they mean nothing. */
  readonly run: () => boolean;
}

export interface PanelShape {
  readonly rows: number;
  readonly panels: number;
  /** Elements of k in a step, and steps. */
  readonly depth: number;
  readonly steps: number;
  /** Fraction bits that are kept, and mantissa bits of a result. */
  readonly fraction: number;
  readonly mantissaBits: number;
}

/** Room for a job; undefined where the kernel may not be compiled. The views are good until the next job is asked for. */
export function panelJob({
  rows,
  panels,
  depth,
  steps,
  fraction,
  mantissaBits,
}: PanelShape): PanelJob | undefined {
  const aCount = rows * depth * steps;
  const bCount = panels * panelColumns * depth * steps;
  const cCount = rows * panels * panelColumns;
  const starts = [0, aCount, 2 * aCount, 2 * aCount + bCount, 2 * (aCount + bCount)].map(
    (elements) => 4 * elements,
  );
  const [aValues = 0, aExponents = 0, bValues = 0, bExponents = 0, c = 0] = starts;
  const found = kernelOf(c + 4 * cCount);
  if (found === undefined) return undefined;
  const { memory, multiply: run } = found;
  const { buffer } = memory;
  const mask = -(1n << BigInt(52 - mantissaBits));
  return {
    aValues: new Float32Array(buffer, aValues, aCount),
    aExponents: new Int32Array(buffer, aExponents, aCount),
    bValues: new Float32Array(buffer, bValues, bCount),
    bExponents: new Int32Array(buffer, bExponents, bCount),
    sums: new Float32Array(buffer, c, cCount),
    codes: new Uint32Array(buffer, c, cCount),
    run: () =>
      run(
        aValues,
        aExponents,
        bValues,
        bExponents,
        c,
        rows,
        panels,
        depth,
        steps,
        fraction,
        mask,
      ) === 0,
  };
}
