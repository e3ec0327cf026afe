/**
 * Gives products registers of their own where a loop holds their factor (`held.ts`), written anew in every round:
 *
 *   mov.u32 %z, %ctaid.z                          0, since grids have one axis, which no assembler knows
 *   $loop:
 *     xor.b32 %c, %q, %z
 *     wgmma.fence
 *     wgmma.mma_async … {%s}, {%c}, …
 *
 * A mere copy would not do: assemblers take a register and its copy for one. The product is over before the round ends
 * (`lower/barriers/wgmma-register-waits.ts`), so that the copies of the next round find nobody who reads theirs.
 */
import type { Instruction, Operand, Register, Statement } from "../module.ts";
import { symbol } from "../operands.ts";
import { heldFactors } from "./held.ts";

/** Why a factor is written anew, by which notes know it. */
export const renewal = "for the product alone: the loop holds the factor";

export function renewFactors(
  body: readonly Statement[],
  newRegister: () => Register,
): readonly Statement[] {
  const held = heldFactors(body);
  if (held.length === 0) return body;
  const zero = newRegister();
  const result: Statement[] = [instruction("mov.u32", [zero, symbol("%ctaid.z")])];
  const copies = new Map<number, Map<Register, Register>>();
  const changed = new Map<number, Instruction>();
  for (const { index, product, registers } of held) {
    const start = fenceBefore(body, index);
    const known = copies.get(start) ?? new Map<Register, Register>();
    copies.set(start, known);
    for (const register of registers) if (!known.has(register)) known.set(register, newRegister());
    const [sums, ...others] = product.operands;
    if (sums === undefined) throw new Error("a product without sums");
    const operands = [sums, ...others.map((operand) => replaced(operand, known))];
    changed.set(index, { ...product, operands });
  }
  for (const [index, statement] of body.entries()) {
    const position = statement.kind === "instruction" ? statement.position : undefined;
    for (const [register, copy] of copies.get(index) ?? [])
      result.push({
        ...instruction("xor.b32", [copy, register, zero]),
        position,
        comment: renewal,
      });
    result.push(changed.get(index) ?? statement);
  }
  return result;
}

function instruction(opcode: string, operands: readonly Operand[]): Instruction {
  return { kind: "instruction", opcode, operands };
}

/** The fence that hands the registers of a product over, behind which nothing may write them. */
function fenceBefore(body: readonly Statement[], index: number): number {
  for (let at = index; at >= 0; at -= 1) {
    const statement = body[at];
    if (statement?.kind === "label") break;
    if (statement?.kind === "instruction" && statement.opcode.startsWith("wgmma.fence")) return at;
  }
  throw new Error("a product without a fence before it");
}

function replaced(operand: Operand, copies: ReadonlyMap<Register, Register>): Operand {
  if (operand.kind === "register") return copies.get(operand) ?? operand;
  if (operand.kind !== "vector") return operand;
  return { ...operand, elements: operand.elements.map((each) => replaced(each, copies)) };
}
