/**
 * Operands of random products: what a specification says of one, arrays for it, and the numbers that these stand for, taken
 * apart here by what the documentation says of memory.
 *
 *   dense       a format, by rows or by columns, with a batch or without
 *   computed    bytes or halves that a prologue multiplies by scales of rows, columns or groups along k
 *   quantised   weights of 4 or 8 bits with scales, and zero points or none
 *   sparse      two of every four along k
 */
import { bf16, dtypes, f32, i4, i8, u16 } from "../../../src/formats/dtype.ts";
import type { DType } from "../../../src/formats/dtype.ts";
import { fromNumbers, toNumbers } from "../../../src/formats/hostarray.ts";
import type { HostArray } from "../../../src/formats/hostarray.ts";
import { quantized, sparse24 } from "../../../src/kernels/index.ts";
import { tensor, cdiv, dim } from "../../../src/lang/index.ts";
import type { Tile } from "../../../src/lang/index.ts";
import type { Random } from "../../../src/support/random.ts";

export interface Sizes {
  readonly m: number;
  readonly n: number;
  readonly k: number;
  readonly batch: number;
}

export const symbols = { m: dim("m"), n: dim("n"), k: dim("k"), batch: dim("batch") };

/** An operand as drawn for some sizes. */
export interface DrawnOperand {
  readonly arrays: { readonly [name: string]: HostArray };
  readonly at: (layer: number, i: number, j: number) => number;
}

/** An operand that sizes are still to be drawn for. */
export interface OperandOption {
  readonly text: string;
  /** What the specification says of it: the operand itself, and what else it is given. */
  readonly operand: unknown;
  readonly inputs: { readonly [name: string]: unknown };
  readonly prologue: unknown;
  readonly batched: boolean;
  /** What each of its numbers is wrong by at most when it is multiplied, in parts of it. */
  readonly error: number;
  readonly draw: (random: Random, sizes: Sizes) => DrawnOperand;
}

function isWhole({ kind }: DType): boolean {
  return kind === "signed" || kind === "unsigned";
}

function numbersOf(random: Random, dtype: DType, count: number): Float64Array {
  const least = dtype.kind === "signed" ? -(2 ** (dtype.bits - 1)) : 0;
  return Float64Array.from({ length: count }, () =>
    isWhole(dtype) ? least + random.below(2 ** dtype.bits) : random.uniform() * 2 - 1,
  );
}

/** Rows and columns of an operand, as sizes or as dimensions. */
function extents<T>(name: "a" | "b", { m, n, k }: { readonly [S in "m" | "n" | "k"]: T }): [T, T] {
  return name === "a" ? [m, k] : [k, n];
}

/** Elements of a matrix that lies by rows or by columns. */
function drawDense(
  random: Random,
  dtype: DType,
  name: "a" | "b",
  { byColumns, batched }: { readonly byColumns: boolean; readonly batched: boolean },
  sizes: Sizes,
): DrawnOperand {
  const [rows, columns] = extents(name, sizes);
  const layers = batched ? sizes.batch : 1;
  const drawn = numbersOf(random, dtype, layers * rows * columns);
  // In memory, columns of a matrix by columns are rows.
  const matrix = byColumns ? [columns, rows] : [rows, columns];
  const given = fromNumbers(dtype, [...(batched ? [layers] : []), ...matrix], drawn);
  const values = toNumbers(given);
  const at = (layer: number, i: number, j: number): number =>
    values[(batched ? layer * rows * columns : 0) + (byColumns ? j * rows + i : i * columns + j)] ??
    NaN;
  return { arrays: { [name]: given }, at };
}

export function denseOperand(
  random: Random,
  name: "a" | "b",
  dtype: DType,
  batched: boolean,
): OperandOption {
  const byColumns = random.below(2) === 0;
  const [rows, columns] = extents(name, symbols);
  const { batch } = symbols;
  const strides = byColumns ? [...(batched ? [rows.mul(columns)] : []), 1, rows] : undefined;
  return {
    text: `${name} ${dtype.name}${byColumns ? " by columns" : ""}${batched ? ", batched" : ""}`,
    operand: tensor(
      dtype,
      batched ? [batch, rows, columns] : [rows, columns],
      strides === undefined ? {} : { strides },
    ),
    ...{ inputs: {}, prologue: undefined, batched, error: 0 },
    draw: (draws, sizes) => drawDense(draws, dtype, name, { byColumns, batched }, sizes),
  };
}

/** What casts to a format are wrong by, in parts of a number. */
const castErrors = new Map<DType, number>([
  [bf16, 2 ** -8],
  [dtypes.f16, 2 ** -11],
  [dtypes.f8e4m3fn, 2 ** -4],
  [dtypes.f8e5m2, 2 ** -3],
]);

/** Numbers that a prologue casts, and multiplies by scales. */
export function computedOperand(
  random: Random,
  name: "a" | "b",
  as: DType,
  batched: boolean,
): OperandOption {
  const stored = random.pick([i8, bf16, f32]);
  const group = random.pick([16, 64, 128, Infinity]);
  const { k } = symbols;
  const extent = name === "a" ? symbols.m : symbols.n;
  const scale = `${name}Factor`;
  const dense = denseOperand(random, name, stored, batched);
  const compute = (tiles: { readonly [name: string]: Tile<"f32"> }): Tile => {
    const [numbers, factors] = [tiles[name], tiles[scale]];
    if (numbers === undefined || factors === undefined) throw new Error(name);
    // What is computed where k has ended must not count.
    return numbers.cast(f32).mul(factors).add(1).cast(as) as Tile;
  };
  return {
    ...dense,
    text: `${dense.text} with factors for ${group} of k, as ${as.name}`,
    inputs: { [scale]: tensor(f32, group === Infinity ? [extent] : [cdiv(k, group), extent]) },
    prologue: { inputs: [scale], as, compute },
    // Once in f32, and once in the format that it is multiplied in.
    error: 2 ** -22 + (castErrors.get(as) ?? 0),
    draw: (draws, sizes) => {
      const count = name === "a" ? sizes.m : sizes.n;
      const groups = group === Infinity ? 1 : Math.ceil(sizes.k / group);
      const factors = Float32Array.from({ length: groups * count }, () => draws.uniform() / 256);
      const shape = group === Infinity ? [count] : [groups, count];
      const { arrays, at } = dense.draw(draws, sizes);
      return {
        arrays: { ...arrays, [scale]: fromNumbers(f32, shape, factors) },
        at: (layer, i, j) => {
          const [along, across] = name === "a" ? [j, i] : [i, j];
          const row = group === Infinity ? 0 : Math.floor(along / group);
          return at(layer, i, j) * (factors[row * count + across] ?? NaN) + 1;
        },
      };
    },
  };
}

/** Where an element along k of quantised weights of so many bits is stored, as the documentation says. */
export function storedAt({ bits }: DType, element: number): number {
  const [unit, within] = [Math.floor(element / 128), element % 128];
  const [p, q] = [within % 2, Math.floor(within / 2) % 4];
  const [h, s] = [Math.floor(within / 8) % 2, Math.floor(within / 16)];
  const inWord = bits === 4 ? 8 * (s >> 1) + 4 * p + 2 * (s & 1) + h : 4 * s + 2 * h + p;
  return 128 * unit + 32 * q + inWord;
}

/** Weights in few bits, multiplied in a format of 16 bits. */
export function quantizedOperand(random: Random, as: DType, batched: boolean): OperandOption {
  const dtype = random.pick([i4, i8, dtypes.f8e4m3fn, dtypes.f8e5m2]);
  const scale = random.pick([as, f32]);
  const [group, span] = random.pick([
    ...([[undefined, 1] as const, [128, 1], [256, 1]] as const),
    ...([[128, 128] as const, [256, 64]] as const),
  ]);
  const zero = isWhole(dtype) && random.below(2) === 0;
  const options = {
    ...(span > 1 ? { blockSize: [group, span] } : group !== undefined && { groupSize: group }),
    ...{ scale, as, ...(zero && { zeroPoint: dtype }) },
  };
  return {
    text: `b quantised: ${dtype.name}, ${group ?? "all"} of k, ${span} columns, scales of ${scale.name}${zero ? ", zero points" : ""}${batched ? ", batched" : ""}`,
    operand: quantized(
      dtype as never,
      batched ? [symbols.batch, symbols.k, symbols.n] : [symbols.k, symbols.n],
      options as never,
    ),
    ...{ inputs: {}, prologue: undefined, batched },
    error: 2 ** -22 + (castErrors.get(as) ?? 0),
    draw: (draws, { n, k, batch }) => {
      const [pitch, across] = [Math.ceil(k / 128) * 128, Math.ceil(n / span)];
      const groups = group === undefined ? 1 : Math.ceil(k / group);
      const layers = batched ? [batch] : [];
      const matrices = batched ? batch : 1;
      const stored = numbersOf(draws, dtype, matrices * n * pitch);
      for (let column = 0; column < matrices * n; column += 1)
        for (let element = k; element < pitch; element += 1)
          stored[column * pitch + storedAt(dtype, element)] = 0;
      const shape = [...layers, ...(group === undefined ? [] : [groups]), across];
      const count = matrices * groups * across;
      const scales = fromNumbers(
        scale,
        shape,
        Float64Array.from({ length: count }, () => draws.uniform() / 8),
      );
      const zeros = fromNumbers(
        dtype,
        shape,
        zero ? numbersOf(draws, dtype, count) : new Float64Array(count),
      );
      const [scaleValues, zeroValues] = [toNumbers(scales), toNumbers(zeros)];
      const b = fromNumbers(dtype, [...layers, n, pitch], stored);
      const values = toNumbers(b);
      return {
        arrays: { b, bScale: scales, ...(zero && { bZero: zeros }) },
        at: (layer, i, j) => {
          const matrix = batched ? layer : 0;
          const row = group === undefined ? 0 : Math.floor(i / group);
          const of = (matrix * groups + row) * across + Math.floor(j / span);
          const value = values[(matrix * n + j) * pitch + storedAt(dtype, i)] ?? NaN;
          return (value - (zeroValues[of] ?? NaN)) * (scaleValues[of] ?? NaN);
        },
      };
    },
  };
}

/** Where the word of a column and of sixteen elements is, in a block of 64 by 64. */
function wordAt(column: number, sixteenth: number, bits: number): number {
  const [w, h, g] = [Math.floor(column / 16), Math.floor(column / 8) % 2, column % 8];
  if (bits >= 16) return ((w * 8 + g) * 4 + sixteenth) * 2 + h;
  return (((w * 8 + g) * 2 + Math.floor(sixteenth / 2)) * 2 + h) * 2 + (sixteenth % 2);
}

/** Weights of which two of every four along k are held. */
export function sparseOperand(dtype: DType): OperandOption {
  return {
    text: `b sparse ${dtype.name}`,
    operand: sparse24(dtype as never, [symbols.k, symbols.n]),
    ...{ inputs: {}, prologue: undefined, batched: false, error: 0 },
    draw: (random, { n, k }) => {
      const blocks = Math.ceil(k / 64);
      const pitch = 32 * blocks;
      const stored = numbersOf(random, dtype, n * pitch);
      const words = new Uint16Array(Math.ceil(n / 64) * blocks * 256);
      const whole = new Map<number, number>();
      for (let column = 0; column < n; column += 1)
        for (let chunk = 0; chunk < 16 * blocks; chunk += 1) {
          const first = random.below(3);
          const second = first + 1 + random.below(3 - first);
          const code = first | (second << 2);
          const sixteenth = Math.floor(chunk / 4);
          const block = Math.floor(column / 64) * blocks + Math.floor(sixteenth / 4);
          const at = 256 * block + wordAt(column % 64, sixteenth % 4, dtype.bits);
          words[at] = (words[at] ?? 0) | ((code ^ 4) << (4 * (chunk % 4)));
          [first, second].forEach((place, which) => {
            const element = 4 * chunk + place;
            const from = column * pitch + 2 * chunk + which;
            if (element >= k) stored[from] = 0;
            whole.set(element * n + column, from);
          });
        }
      const b = fromNumbers(dtype, [n, pitch], stored);
      const values = toNumbers(b);
      const bMetadata = fromNumbers(u16, [Math.ceil(n / 64), blocks, 256], words);
      return {
        arrays: { b, bMetadata },
        at: (_, i, j) => {
          const from = whole.get(i * n + j);
          return from === undefined ? 0 : (values[from] ?? NaN);
        },
      };
    },
  };
}
