/**
 * Signs as parts of arithmetic. `abs` and `neg` of f32 change a bit, so that a NaN keeps the others; but where nothing but arithmetic of f32 reads
 * the result, whose NaNs are all the same, nobody sees them. Assemblers then read |x| and -x as operands, without an instruction:
 *
 *   and.b32 %r1, %r0, 0x7fffffff;            abs.f32 %r1, %r0;
 *   min.NaN.f32 %r2, %r1, 0f41800000;        min.NaN.f32 %r2, %r1, 0f41800000;       FMNMX.NAN R2, |R0|, 16
 */
import type { Instruction, Register, Statement } from "./module.ts";
import { visitRegisters } from "./register-declarations.ts";

/** Instructions whose result does not tell one NaN from another. */
const arithmetic = /^(?:(?:add|sub|mul|fma)\.rn|min|max|min\.NaN|max\.NaN)(?:\.ftz)?\.f32$/;

/** The instruction that changes a sign as arithmetic does; undefined where it changes none. */
function signChange({ opcode, guard, operands }: Instruction): "abs.f32" | "neg.f32" | undefined {
  if (guard !== undefined || (opcode !== "and.b32" && opcode !== "xor.b32")) return undefined;
  const [to, from, bits] = operands;
  if (to?.kind !== "register" || from?.kind !== "register" || bits?.kind !== "integer")
    return undefined;
  const mask = BigInt.asUintN(32, BigInt(bits.value));
  if (opcode === "and.b32") return mask === 0x7fffffffn ? "abs.f32" : undefined;
  return mask === 0x80000000n ? "neg.f32" : undefined;
}

/** The same statements, with such signs that assemblers know. */
export function arithmeticSigns(statements: readonly Statement[]): readonly Statement[] {
  const changes = new Map<Register, Instruction>();
  statements.forEach((statement) => {
    if (statement.kind !== "instruction" || signChange(statement) === undefined) return;
    const to = statement.operands[0];
    if (to?.kind === "register") changes.set(to, statement);
  });
  if (changes.size === 0) return statements;
  for (const statement of statements) seeUses(statement, changes);
  return statements.map((statement) => {
    if (statement.kind !== "instruction") return statement;
    const [to, from] = statement.operands;
    const isSign = to?.kind === "register" && changes.get(to) === statement;
    const opcode = isSign ? signChange(statement) : undefined;
    if (to === undefined || from === undefined || opcode === undefined) return statement;
    return { ...statement, opcode, operands: [to, from] };
  });
}

/** Takes out what is used in any other way, or written twice. */
function seeUses(statement: Statement, changes: Map<Register, Instruction>): void {
  const remove = (register: Register): void => {
    changes.delete(register);
  };
  if (statement.kind === "block") {
    for (const inner of statement.body)
      if (inner.kind === "instruction")
        for (const operand of inner.operands) visitRegisters(operand, remove);
      else seeUses(inner, changes);
    return;
  }
  if (statement.kind !== "instruction") return;
  const isArithmetic = arithmetic.test(statement.opcode);
  for (const [position, operand] of statement.operands.entries()) {
    const isRead = isArithmetic && position > 0 && operand.kind === "register";
    const isOwn =
      position === 0 && operand.kind === "register" && changes.get(operand) === statement;
    if (!isRead && !isOwn) visitRegisters(operand, remove);
  }
}
