/** `mma.sync`: a product of matrices that a warp holds in its registers. */
import { fusedMultiplyAdd } from "../../formats/arithmetic/fused.ts";
import type { Collective, CollectiveInstruction, OperandView, WarpView } from "../collective.ts";
import {
  gatherColumns,
  gatherHalves,
  gatherRows,
  gatherWords,
  scatterHalves,
  scatterWords,
} from "./fragments.ts";
import type { RegisterWords } from "./fragments.ts";
import { isOperandType, multiplyBytes } from "./multiply.ts";
import type { ProductForm } from "./multiply.ts";

/** m, n and k of a shape such as m16n8k16. */
export function parseShape(
  modifiers: readonly string[],
): { readonly m: number; readonly n: number; readonly k: number } | undefined {
  for (const modifier of modifiers) {
    const match = /^m(\d+)n(\d+)k(\d+)$/.exec(modifier);
    if (match !== null) return { m: Number(match[1]), n: Number(match[2]), k: Number(match[3]) };
  }
  return undefined;
}

/** The registers of an operand; a single one may stand without braces. */
export function registersOf(operand: OperandView): readonly OperandView[] {
  return operand.operand.kind === "vector" ? operand.elements : [operand];
}

export function readRegisters(
  operands: readonly OperandView[],
  warp: WarpView,
): readonly RegisterWords[] {
  return operands.map((operand) => {
    if (operand.operand.kind !== "register")
      return Int32Array.from({ length: 32 }, (_, lane) => operand.word(warp, lane));
    const start = operand.start(warp);
    return warp.words.slice(start, start + 32);
  });
}

export function writeRegisters(
  operands: readonly OperandView[],
  warp: WarpView,
  values: readonly RegisterWords[],
): void {
  for (const [index, operand] of operands.entries())
    for (let lane = 0; lane < 32; lane++)
      operand.setWord(warp, lane, (values[index]?.[lane] ?? 0) >>> 0);
}

const typeNames = /^(?:f16|bf16|tf32|f32|f64|e4m3|e5m2|s8|u8|s4|u4|b1|s32)$/;

/** The types of a product in the order D, A, B, C. */
export function productTypes(modifiers: readonly string[]): readonly string[] {
  return modifiers.filter((modifier) => typeNames.test(modifier));
}

export function productForm(
  modifiers: readonly string[],
  unit: ProductForm["unit"],
): ProductForm | undefined {
  const [accumulator, a, b] = productTypes(modifiers);
  if (accumulator !== "f32" && accumulator !== "f16" && accumulator !== "s32") return undefined;
  if (a === undefined || b === undefined || !isOperandType(a) || !isOperandType(b))
    return undefined;
  return {
    unit,
    a,
    b,
    accumulator,
    saturates: modifiers.includes("satfinite"),
    bits: modifiers.includes("xor") ? "xor" : "and",
    signA: 1,
    signB: 1,
  };
}

const chunk = 16;

/** `mma.sync.aligned.shape.row.col.… d, a, b, c` */
export function mma(instruction: CollectiveInstruction): Collective | undefined {
  const { modifiers, operands } = instruction;
  const shape = parseShape(modifiers);
  const [d, a, b, c] = operands.map(registersOf);
  if (shape === undefined || d === undefined || a === undefined || b === undefined)
    return undefined;
  if (c === undefined || modifiers.includes("sp")) return undefined;
  if (productTypes(modifiers).includes("f64")) return doubleProduct(shape.m, shape.k, [d, a, b, c]);
  const form = productForm(modifiers, "mma");
  const { m, n } = shape;
  if (form === undefined || (m !== 8 && m !== 16) || n !== 8) return undefined;
  if (m === 8 && shape.k === 4) return undefined;
  const rowBytes = (chunk * a.length) / (m / 8);
  if (b.length * chunk !== rowBytes) return undefined;
  return {
    aligned: true,
    run: ({ warp }) => {
      const rows = new Uint8Array(m * rowBytes);
      gatherRows(readRegisters(a, warp), m, rows, rowBytes);
      const columns = gatherColumns(readRegisters(b, warp), rowBytes);
      const sums = new Uint32Array(m * n);
      const registers = readRegisters(c, warp);
      if (form.accumulator === "f16") gatherHalves(registers, n, sums);
      else gatherWords(registers, m, n, sums);
      multiplyBytes(form, rows, m, columns, n, sums);
      const results = d.map(() => new Int32Array(32));
      if (form.accumulator === "f16") scatterHalves(sums, n, results);
      else scatterWords(sums, m, n, results);
      writeRegisters(d, warp, results);
      return "done";
    },
  };
}

const doubles = new Float64Array(1);
const doubleBits = new BigUint64Array(doubles.buffer);

function toDouble(bits: bigint): number {
  doubleBits[0] = bits;
  return doubles[0] as number;
}

function toBits(value: number): bigint {
  doubles[0] = value;
  return doubleBits[0] as bigint;
}

const quiet = 0x8_0000_0000_0000n;
/** The NaN that an operation on f64 numbers makes. */
const madeNaN = 0xfff8_0000_0000_0000n;

/** a·b + c; of NaN operands that of B comes through before that of C and that of A. */
function fuse(a: bigint, b: bigint, c: bigint): bigint {
  for (const operand of [b, c, a]) if (Number.isNaN(toDouble(operand))) return operand | quiet;
  const result = fusedMultiplyAdd(toDouble(a), toDouble(b), toDouble(c));
  return Number.isNaN(result) ? madeNaN : toBits(result);
}

type Registers = readonly OperandView[];

/** f64: a lane holds row g (and g + 8) at k = t + 4i of A, column g at the same k of B. */
function doubleProduct(
  m: number,
  depth: number,
  [d, a, b, c]: readonly [Registers, Registers, Registers, Registers],
): Collective | undefined {
  const rowGroups = m / 8;
  if (a.length !== (rowGroups * depth) / 4 || b.length !== depth / 4) return undefined;
  return {
    aligned: true,
    run: ({ warp }) => {
      const left = readDoubles(a, warp);
      const right = readDoubles(b, warp);
      const sums = readDoubles(c, warp);
      for (const [index, sum] of sums.entries()) {
        const row = ((index % 32) >> 2) + 8 * (index >> 6);
        const column = 2 * (index & 3) + ((index >> 5) & 1);
        let total = sum;
        for (let k = 0; k < depth; k++) {
          const at = (k >> 2) * 32 * rowGroups + 32 * (row >> 3) + 4 * (row & 7) + (k & 3);
          const from = (k >> 2) * 32 + 4 * column + (k & 3);
          total = fuse(left[at] ?? 0n, right[from] ?? 0n, total);
        }
        sums[index] = total;
      }
      for (const [index, operand] of d.entries())
        for (let lane = 0; lane < 32; lane++)
          operand.setWide(warp, lane, sums[32 * index + lane] ?? 0n);
      return "done";
    },
  };
}

/** All lanes of the first register, then all of the second … */
function readDoubles(operands: Registers, warp: WarpView): BigUint64Array {
  const bits = new BigUint64Array(32 * operands.length);
  for (const [index, operand] of operands.entries())
    for (let lane = 0; lane < 32; lane++) bits[32 * index + lane] = operand.wide(warp, lane);
  return bits;
}
