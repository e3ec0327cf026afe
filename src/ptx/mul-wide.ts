/**
 * Products of 64 bits whose factors have 32. The language has them as products of wide integers, of which assemblers do not see that the upper
 * halves are nothing, and add their shares; one instruction multiplies the narrow ones:
 *
 *   cvt.u64.u32 %d0, %r0;
 *   mov.b64 %d1, 3528531795;
 *   mul.lo.u64 %d2, %d0, %d1;                mul.wide.u32 %d2, %r0, 3528531795;         IMAD.WIDE.U32 R2, R0, R1, RZ
 *
 * A factor counts where it is written in one place, from a register that is written in one place: no path leads from there to the product
 * past the conversion, so that the register still holds what was converted.
 */
import type { Instruction, Operand, Register, Statement } from "./module.ts";
import { visitRegisters } from "./register-declarations.ts";

interface Narrow {
  readonly convert: string;
  readonly product: string;
  readonly least: bigint;
  readonly most: bigint;
}

const narrow: ReadonlyMap<string, Narrow> = new Map([
  [
    "mul.lo.u64",
    { convert: "cvt.u64.u32", product: "mul.wide.u32", least: 0n, most: 2n ** 32n - 1n },
  ],
  [
    "mul.lo.s64",
    { convert: "cvt.s64.s32", product: "mul.wide.s32", least: -(2n ** 31n), most: 2n ** 31n - 1n },
  ],
]);

/** The same statements, with products of narrow factors where these are seen. */
export function wideProducts(statements: readonly Statement[]): readonly Statement[] {
  if (!statements.some((each) => each.kind === "instruction" && narrow.has(each.opcode)))
    return statements;
  const written = new Map<Register, Instruction | undefined>();
  for (const statement of statements) seeWrites(statement, written);
  return statements.map((statement) => {
    if (statement.kind !== "instruction") return statement;
    const form = narrow.get(statement.opcode);
    const [to, left, right] = statement.operands;
    if (form === undefined || to === undefined) return statement;
    const [one, other] = [narrowed(left, form, written), narrowed(right, form, written)];
    // A product of two numbers is for whoever folds constants, and an instruction has room for one.
    if (one === undefined || other === undefined || one.kind === "integer") return statement;
    return { ...statement, opcode: form.product, operands: [to, one, other] };
  });
}

/** The instruction that writes each register; undefined of those that several write, or that may be read and written. */
function seeWrites(statement: Statement, written: Map<Register, Instruction | undefined>): void {
  const never = (register: Register): void => {
    written.set(register, undefined);
  };
  if (statement.kind === "block") {
    for (const inner of statement.body) {
      seeWrites(inner, written);
      if (inner.kind === "instruction")
        for (const operand of inner.operands) visitRegisters(operand, never);
    }
    return;
  }
  if (statement.kind !== "instruction") return;
  const [first] = statement.operands;
  if (first === undefined) return;
  visitRegisters(first, (register) => {
    const isFirst = !written.has(register) && statement.guard === undefined;
    written.set(register, isFirst ? statement : undefined);
  });
}

/** What a wide factor has been made of: a register of 32 bits, or a number that fits into one. */
function narrowed(
  factor: Operand | undefined,
  { convert, least, most }: Narrow,
  written: ReadonlyMap<Register, Instruction | undefined>,
): Operand | undefined {
  if (factor?.kind !== "register") return undefined;
  const { opcode, operands } = written.get(factor) ?? {};
  const from = operands?.[1];
  if (opcode === convert && from?.kind === "register")
    return written.get(from) === undefined ? undefined : from;
  if (opcode !== "mov.b64" || from?.kind !== "integer") return undefined;
  const value = BigInt(from.value);
  return value >= least && value <= most ? from : undefined;
}
