/** Signs become parts of arithmetic where nothing else reads them. */
import { expect, test } from "vitest";
import type { Instruction, Operand, Register, Statement } from "./module.ts";
import { arithmeticSigns } from "./fold-neg-abs.ts";

const register = (name: string): Register => ({ kind: "register", name, type: "b32" });
const bits = (value: number): Operand => ({ kind: "integer", value });
const [x, y, z, w] = [register("%r0"), register("%r1"), register("%r2"), register("%r3")];
const instruction = (opcode: string, ...operands: Operand[]): Instruction => ({
  ...{ kind: "instruction", opcode, operands },
  ...({ guard: undefined, position: undefined } as Pick<Instruction, "guard" | "position">),
});
const opcodes = (statements: readonly Statement[]): readonly string[] =>
  arithmeticSigns(statements).flatMap((each) => (each.kind === "instruction" ? [each.opcode] : []));
const abs = instruction("and.b32", y, x, bits(0x7fffffff));
const least = instruction("min.NaN.f32", z, y, x);

test("signs that arithmetic reads are its operands", () => {
  expect(opcodes([abs, least])).toEqual(["abs.f32", "min.NaN.f32"]);
  const negated = instruction("xor.b32", y, x, bits(-0x80000000));
  expect(opcodes([negated, instruction("fma.rn.f32", z, y, x, w)])).toEqual([
    ...["neg.f32", "fma.rn.f32"],
  ]);
});

test.each([
  ["stored as they are", [abs, least, instruction("st.shared.b32", w, y)]],
  ["of other bits", [instruction("and.b32", y, x, bits(0x3fffffff)), least]],
  ["of which arithmetic writes another", [abs, least, instruction("add.rn.f32", y, x, x)]],
  ["of halves", [abs, instruction("add.rn.bf16x2", z, y, x)]],
  ["that only some lanes change", [{ ...abs, guard: { register: w, negated: false } }, least]],
  [
    "that inner blocks read",
    [abs, { kind: "block", body: [instruction("add.rn.f32", z, y, x)] } as Statement],
  ],
] as const)("signs stay bits, %s", (_, statements) => {
  expect(opcodes(statements as readonly Statement[])).not.toContain("abs.f32");
});
