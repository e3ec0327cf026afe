/** What instructions of tensor cores have in common: shapes, types, and registers of a warp. */
import type { OperandView, WarpView } from "../collective.ts";
import type { RegisterWords } from "./fragments.ts";
import type { ProductShape } from "./forms.ts";
import { isOperandType } from "./multiply.ts";
import type { ProductForm } from "./multiply.ts";

/** m, n and k of a shape such as m16n8k16. */
export function parseShape(modifiers: readonly string[]): ProductShape | undefined {
  for (const modifier of modifiers) {
    const match = /^m(\d+)n(\d+)k(\d+)$/.exec(modifier);
    if (match !== null) return { m: Number(match[1]), n: Number(match[2]), k: Number(match[3]) };
  }
  return undefined;
}

export type Registers = readonly OperandView[];

/** The registers of an operand; a single one may stand without braces. */
export function registersOf(operand: OperandView): Registers {
  return operand.operand.kind === "vector" ? operand.elements : [operand];
}

export function readRegisters(operands: Registers, warp: WarpView): readonly RegisterWords[] {
  return operands.map((operand) => {
    if (operand.operand.kind !== "register")
      return Int32Array.from({ length: 32 }, (_, lane) => operand.word(warp, lane));
    const start = operand.start(warp);
    return warp.words.slice(start, start + 32);
  });
}

export function writeRegisters(
  operands: Registers,
  warp: WarpView,
  values: readonly RegisterWords[],
): void {
  for (const [index, operand] of operands.entries())
    for (let lane = 0; lane < 32; lane++)
      operand.setWord(warp, lane, (values[index]?.[lane] ?? 0) >>> 0);
}

const typeNames = /^(?:f16|bf16|tf32|f32|f64|e4m3|e5m2|e2m3|e3m2|e2m1|s8|u8|s4|u4|b1|s32)$/;

/** The types of a product in the order D, A, B, C. */
export function productTypes(modifiers: readonly string[]): readonly string[] {
  return modifiers.filter((modifier) => typeNames.test(modifier));
}

/** The layouts of A and B: "row col". */
export function layoutsOf(modifiers: readonly string[]): string {
  return modifiers.filter((modifier) => modifier === "row" || modifier === "col").join(" ");
}

export function productForm(
  modifiers: readonly string[],
  unit: ProductForm["unit"],
): ProductForm | undefined {
  const [accumulator, a, b] = productTypes(modifiers);
  if (accumulator !== "f32" && accumulator !== "f16" && accumulator !== "s32") return undefined;
  if (a === undefined || b === undefined || !isOperandType(a) || !isOperandType(b))
    return undefined;
  if (a === "b1" && !modifiers.includes("popc")) return undefined;
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

/** The value of an operand that must be a constant. */
export function constantOf(operand: OperandView | undefined): number | undefined {
  return operand?.operand.kind === "integer" ? Number(operand.operand.value) : undefined;
}
