/** Products of two narrow factors are one instruction, where nothing can have changed a factor since it was widened. */
import { expect, test } from "vitest";
import type { Instruction, Operand, Register, Statement } from "./module.ts";
import { wideProducts } from "./mul-wide.ts";

const narrow = (name: string): Register => ({ kind: "register", name, type: "b32" });
const wide = (name: string): Register => ({ kind: "register", name, type: "b64" });
const number = (value: bigint): Operand => ({ kind: "integer", value });
const [x, y, p] = [narrow("%r0"), narrow("%r1"), narrow("%r2")];
const [a, b, c] = [wide("%d0"), wide("%d1"), wide("%d2")];
const instruction = (opcode: string, ...operands: Operand[]): Instruction => ({
  ...{ kind: "instruction", opcode, operands },
  ...({ guard: undefined, position: undefined } as Pick<Instruction, "guard" | "position">),
});
const given = [instruction("mov.u32", x, y), instruction("cvt.u64.u32", a, x)];
const last = (statements: readonly Statement[]): Instruction => {
  const found = wideProducts(statements).at(-1);
  if (found?.kind !== "instruction") throw new Error("no instruction");
  return found;
};
const product = instruction("mul.lo.u64", c, a, b);

test("factors of 32 bits", () => {
  const constant = number(0xd2511f53n);
  expect(last([...given, instruction("mov.b64", b, constant), product])).toMatchObject({
    opcode: "mul.wide.u32",
    operands: [c, x, constant],
  });
  const square = instruction("mul.lo.u64", c, a, a);
  expect(last([...given, square])).toMatchObject({ opcode: "mul.wide.u32", operands: [c, x, x] });
  const signed = [
    ...[instruction("mov.u32", x, y), instruction("cvt.s64.s32", a, x)],
    instruction("mov.b64", b, number(-(2n ** 31n))),
    instruction("mul.lo.s64", c, a, b),
  ];
  expect(last(signed).opcode).toBe("mul.wide.s32");
});

const seven = instruction("mov.b64", b, number(7n));

test.each([
  ["a number has more bits", [...given, instruction("mov.b64", b, number(2n ** 32n)), product]],
  ["a factor is wide", [...given, instruction("ld.global.b64", b, c), product]],
  ["a factor is signed", [instruction("cvt.s64.s32", a, x), seven, product]],
  [
    "another instruction writes the wide one",
    [...given, seven, instruction("mov.b64", a, c), product],
  ],
  [
    "another instruction writes the narrow one",
    [...given, seven, instruction("mov.u32", x, p), product],
  ],
  ["nothing is known of the narrow one", [instruction("cvt.u64.u32", a, x), seven, product]],
  [
    "only some lanes widen it",
    [
      instruction("mov.u32", x, y),
      { ...instruction("cvt.u64.u32", a, x), guard: { register: p, negated: false } },
      ...[seven, product],
    ],
  ],
  [
    "a block of its own may write it",
    [
      ...given,
      seven,
      { kind: "block", body: [instruction("add.u32", y, x, x)] } as Statement,
      product,
    ],
  ],
  ["both are numbers", [instruction("mov.b64", a, number(3n)), seven, product]],
] as const)("stays as it is where %s", (_, statements) => {
  expect(last(statements as readonly Statement[]).opcode).toBe("mul.lo.u64");
});
