import { describe, expect, test } from "vitest";
import type { FunctionDirective } from "../../ptx/module.ts";
import { entryRegisters, RegisterBudget } from "./register-pool.ts";

const lanes = (count: number): readonly FunctionDirective[] => [
  { name: "reqntid", values: [count, 1, 1] },
  { name: "minnctapersm", values: [1] },
];

describe("registers of a lane at the start", () => {
  test.each([
    [lanes(128), 255],
    [lanes(256), 255],
    [lanes(384), 168],
    [[...lanes(256), { name: "maxnreg", values: [96] }], 96],
    [[{ name: "reqntid", values: [256, 1, 1] }], undefined],
  ] as const)("%j: %s", (directives, registers) => {
    expect(entryRegisters(directives)).toBe(registers);
  });
});

describe("a block's registers", () => {
  test("are given once others have given them back", () => {
    const budget = new RegisterBudget(12, lanes(384));
    expect(budget.set(4, 240, true)).toEqual({ kind: "wait" });
    expect(budget.set(0, 96, false)).toEqual({ kind: "granted" });
    expect(budget.set(4, 240, true)).toEqual({ kind: "granted" });
    expect(budget.set(5, 176, true)).toEqual({ kind: "wait" });
  });

  test("change by multiples of 8 from 24 to 256, in the direction that is said", () => {
    const budget = new RegisterBudget(12, lanes(384));
    for (const [registers, increases] of [
      [20, false],
      [100, false],
      [264, true],
      [160, true],
      [176, false],
    ] as const)
      expect(budget.set(0, registers, increases).kind, `${registers}`).toBe("illegal");
  });

  test("are whatever they are where the assembler decides", () => {
    expect(new RegisterBudget(4, []).set(0, 240, true)).toEqual({ kind: "granted" });
  });
});
