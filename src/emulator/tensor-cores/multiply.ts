/** Products of matrices given as bytes, for every operand type that tensor cores have. */
import { decodeTensorOperand, multiplyAccumulate } from "../../formats/arithmetic/tensor-core.ts";
import type { TensorCoreFormat, TensorCoreUnit } from "../../formats/arithmetic/tensor-core.ts";

const floatFormats = {
  f16: "f16",
  bf16: "bf16",
  tf32: "tf32",
  e4m3: "f8e4m3fn",
  e5m2: "f8e5m2",
} as const satisfies { readonly [type: string]: TensorCoreFormat };
type FloatType = keyof typeof floatFormats;
const integerTypes = ["s8", "u8", "s4", "u4"] as const;
type IntegerType = (typeof integerTypes)[number];

export type OperandType = FloatType | IntegerType | "b1";

export interface ProductForm {
  readonly unit: TensorCoreUnit;
  readonly a: OperandType;
  readonly b: OperandType;
  readonly accumulator: "f32" | "f16" | "s32";
  readonly saturates: boolean;
  /** What bits of b1 operands are combined with. */
  readonly bits: "and" | "xor";
  readonly signA: 1 | -1;
  readonly signB: 1 | -1;
}

function isFloatType(type: string): type is FloatType {
  return type in floatFormats;
}

export function isOperandType(type: string): type is OperandType {
  return isFloatType(type) || type === "b1" || integerTypes.some((known) => known === type);
}

/** Both operands of a product of floats; undefined where they are integers or bits. */
function decodeFloats(form: ProductForm, a: Uint8Array, m: number, b: Uint8Array, n: number) {
  if (!isFloatType(form.a) || !isFloatType(form.b)) return undefined;
  const { accumulator } = form;
  if (accumulator === "s32") throw new Error(`${form.a} accumulated in s32`);
  const left = decodeTensorOperand(floatFormats[form.a], a, m, form.signA);
  const right = decodeTensorOperand(floatFormats[form.b], b, n, form.signB);
  return { accumulator, left, right };
}

/** c += a·b. A has `m` rows, B has `n` columns, each as bytes of k; `c` holds bits, rows of `n`. */
export function multiplyBytes(
  form: ProductForm,
  a: Uint8Array,
  m: number,
  b: Uint8Array,
  n: number,
  c: Uint32Array,
): void {
  const floats = decodeFloats(form, a, m, b, n);
  if (floats !== undefined)
    multiplyAccumulate(form.unit, floats.accumulator, floats.left, floats.right, c);
  else if (form.a === "b1" || form.b === "b1") multiplyBits(form, a, m, b, n, c);
  else multiplyIntegers(form, a, m, b, n, c);
}

function decodeIntegers(type: OperandType, bytes: Uint8Array): Int16Array {
  if (type === "s8")
    return Int16Array.from(new Int8Array(bytes.buffer, bytes.byteOffset, bytes.length));
  if (type === "u8") return Int16Array.from(bytes);
  const signed = type === "s4";
  const values = new Int16Array(2 * bytes.length);
  for (let index = 0; index < values.length; index++) {
    const nibble = ((bytes[index >> 1] as number) >> (4 * (index & 1))) & 15;
    values[index] = signed ? (nibble << 28) >> 28 : nibble;
  }
  return values;
}

/** Sums are exact; beyond 32 bits they wrap, or stop at the limits. */
function addInteger(old: number, sum: number, saturates: boolean): number {
  const total = (old | 0) + sum;
  return saturates ? Math.min(2 ** 31 - 1, Math.max(-(2 ** 31), total)) : total;
}

function multiplyIntegers(
  { a: typeA, b: typeB, saturates }: ProductForm,
  a: Uint8Array,
  m: number,
  b: Uint8Array,
  n: number,
  c: Uint32Array,
): void {
  sumIntegers(decodeIntegers(typeA, a), m, decodeIntegers(typeB, b), n, c, saturates);
}

function sumIntegers(
  left: Int16Array,
  m: number,
  right: Int16Array,
  n: number,
  c: Uint32Array,
  saturates: boolean,
): void {
  const depth = left.length / m;
  for (let row = 0; row < m; row++)
    for (let column = 0; column < n; column++) {
      let sum = 0;
      for (let k = 0; k < depth; k++)
        sum += (left[row * depth + k] as number) * (right[column * depth + k] as number);
      const index = row * n + column;
      c[index] = addInteger(c[index] as number, sum, saturates);
    }
}

/** For each element of a row of a sparse A, its k of B; rows one behind the other. */
export type SparseIndices = Uint16Array;

/** c += a·b where A has only some elements of its rows, each with its k of B. */
export function multiplySparse(
  form: ProductForm,
  a: Uint8Array,
  m: number,
  b: Uint8Array,
  n: number,
  c: Uint32Array,
  indices: SparseIndices,
): void {
  const floats = decodeFloats(form, a, m, b, n);
  if (floats !== undefined) {
    const { accumulator, left, right } = floats;
    const gathered = {
      ...right,
      k: left.k,
      values: new Float32Array(n * left.k),
      exponents: new Int32Array(n * left.k),
    };
    for (let row = 0; row < m; row++) {
      const [from, to] = [row * left.k, (row + 1) * left.k];
      const own = indices.subarray(from, to);
      gatherColumn(right.values, right.k, own, gathered.values);
      gatherColumn(right.exponents, right.k, own, gathered.exponents);
      const values = left.values.subarray(from, to);
      const exponents = left.exponents.subarray(from, to);
      const line = { ...left, rows: 1, values, exponents };
      multiplyAccumulate(
        form.unit,
        accumulator,
        line,
        gathered,
        c.subarray(row * n, (row + 1) * n),
      );
    }
    return;
  }
  const left = decodeIntegers(form.a, a);
  const right = decodeIntegers(form.b, b);
  const depth = left.length / m;
  const gathered = new Int16Array(n * depth);
  for (let row = 0; row < m; row++) {
    const [from, to] = [row * depth, (row + 1) * depth];
    gatherColumn(right, right.length / n, indices.subarray(from, to), gathered);
    const line = c.subarray(row * n, (row + 1) * n);
    sumIntegers(left.subarray(from, to), 1, gathered, n, line, form.saturates);
  }
}

/** Of every column of B, the elements that a row of A is multiplied by. */
function gatherColumn<T extends Float32Array | Int32Array | Int16Array>(
  columns: T,
  depth: number,
  indices: SparseIndices,
  gathered: T,
): void {
  const { length } = indices;
  for (let start = 0, to = 0; to < gathered.length; start += depth)
    for (let at = 0; at < length; at++, to++)
      gathered[to] = columns[start + (indices[at] as number)] as number;
}

function bitCount(byte: number): number {
  let count = 0;
  for (let rest = byte; rest !== 0; rest &= rest - 1) count += 1;
  return count;
}

function multiplyBits(
  { bits, saturates }: ProductForm,
  a: Uint8Array,
  m: number,
  b: Uint8Array,
  n: number,
  c: Uint32Array,
): void {
  const depth = a.length / m;
  for (let row = 0; row < m; row++)
    for (let column = 0; column < n; column++) {
      let sum = 0;
      for (let k = 0; k < depth; k++) {
        const left = a[row * depth + k] as number;
        const right = b[column * depth + k] as number;
        sum += bitCount(bits === "and" ? left & right : left ^ right);
      }
      const index = row * n + column;
      c[index] = addInteger(c[index] as number, sum, saturates);
    }
}
