import { describe, expect, test } from "vitest";
import type { Instruction, Operand, Register, Statement } from "./module.ts";
import { integer } from "./operands.ts";
import { registerDeclarations, registerHomes } from "./register-declarations.ts";

function register(name: string, type: Register["type"] = "b32"): Register {
  return { kind: "register", name, type };
}

function use(...operands: readonly Operand[]): Instruction {
  return { kind: "instruction", opcode: "use", operands };
}

function block(...body: readonly Statement[]): Statement & { readonly kind: "block" } {
  return { kind: "block", body };
}

describe("the block that declares a register", () => {
  const [a, b, c, d] = ["%r0", "%r1", "%r2", "%r3"].map((name) => register(name));
  if (a === undefined || b === undefined || c === undefined || d === undefined)
    throw new Error("four registers");

  test("is the innermost that holds all its uses", () => {
    const deepest = block(use(c, d));
    const first = block(use(a, b), deepest);
    const second = block(use(c));
    const body = [first, second, use(a)];
    const homes = registerHomes(body);
    expect(homes.get(body)).toEqual([a, c]);
    expect(homes.get(first.body)).toEqual([b]);
    expect(homes.get(deepest.body)).toEqual([d]);
    expect(homes.get(second.body)).toBeUndefined();
  });

  test("is found through every kind of operand, and guards", () => {
    const guard = register("%p0", "pred");
    const body: Statement[] = [
      { ...use(integer(1)), guard: { register: guard, negated: true } },
      use({ kind: "address", base: a, offset: 0, coordinates: [b] }),
      use({ kind: "pair", first: { kind: "discard" }, second: { kind: "not", operand: c } }),
      use({ kind: "list", elements: [{ kind: "negated", operand: d }] }),
      use({ kind: "element", register: register("%v", "f32"), element: "x" }),
    ];
    const names = registerHomes(body)
      .get(body)
      ?.map(({ name }) => name);
    expect(names).toEqual(["%p0", "%r0", "%r1", "%r2", "%r3", "%v"]);
  });
});

describe("declarations", () => {
  const named = (...names: readonly string[]): Register[] => names.map((name) => register(name));

  test("a dense range, in any order", () => {
    expect(registerDeclarations(named("%r1", "%r0", "%r2"), false)).toEqual([".reg .b32 %r<3>;"]);
  });

  test("names with gaps are listed where a range could hide others", () => {
    expect(registerDeclarations(named("%r1", "%r2"), false)).toEqual([".reg .b32 %r1, %r2;"]);
    expect(registerDeclarations(named("%r1", "%r2"), true)).toEqual([".reg .b32 %r<3>;"]);
  });

  test("few names of a wide range are listed", () => {
    expect(registerDeclarations(named("%r1", "%r900"), true)).toEqual([".reg .b32 %r1, %r900;"]);
    // A number has no zeros in front, and nine digits at most.
    expect(registerDeclarations(named("%r00", "%r01"), false)).toEqual([".reg .b32 %r0<2>;"]);
    expect(registerDeclarations(named("%r1034567890", "%x"), false)).toEqual([
      ".reg .b32 %r1034567890;",
      ".reg .b32 %x;",
    ]);
  });

  test("types that share a prefix are listed, each its own", () => {
    const mixed = [register("%x1"), register("%x2", "b64")];
    expect(registerDeclarations(mixed, true)).toEqual([".reg .b32 %x1;", ".reg .b64 %x2;"]);
  });

  test("names without numbers, and vectors", () => {
    const vector: Register = { kind: "register", name: "v", type: "f32", vector: 4 };
    expect(registerDeclarations([register("a"), register("b"), vector], true)).toEqual([
      ".reg .b32 a, b;",
      ".reg .v4 .f32 v;",
    ]);
  });
});
