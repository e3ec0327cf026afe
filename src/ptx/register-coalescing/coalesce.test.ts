/** Registers that become one: by example, and random programs that must store what they stored before. */
import { describe, expect, test } from "vitest";
import { Code, SourceFiles } from "../function-builder.ts";
import type { Operand, Register, Statement } from "../module.ts";
import { address, braces, integer, symbol } from "../operands.ts";
import { Random } from "../../support/random.ts";
import { coalesceRegisters } from "./index.ts";

const texts = (statements: readonly Statement[]): readonly string[] =>
  statements.flatMap((statement) => {
    if (statement.kind !== "instruction") return [];
    const guard = statement.guard === undefined ? "" : `@${statement.guard.register.name} `;
    return [`${guard}${statement.opcode} ${statement.operands.map(textOf).join(" ")}`.trim()];
  });

function textOf(operand: Operand): string {
  if (operand.kind === "register") return operand.name;
  if (operand.kind === "vector") return `{${operand.elements.map(textOf).join(" ")}}`;
  if (operand.kind === "integer") return String(operand.value);
  if (operand.kind === "address") return `[${textOf(operand.base)}]`;
  return operand.kind === "symbol" ? operand.name : operand.kind;
}

/** The coalesced body as text. */
function coalesced(write: (code: Code) => void): readonly string[] {
  const code = new Code(new SourceFiles());
  write(code);
  return texts(coalesceRegisters(code.statements));
}

const moves = (lines: readonly string[]): readonly string[] =>
  lines.filter((line) => /mov\.b32 %r\d+ %r/.test(line));

/** A loop that carries one register. */
function looped(code: Code, body: (carry: Register) => Register): void {
  const carry = code.register("b32");
  code.emit("mov.b32", [carry, code.constant("b32", 0)]);
  const head = code.label("loop");
  code.place(head);
  code.emit("mov.b32", [carry, body(carry)]);
  code.jumpIf(code.make("pred", "setp.lt.s32", carry, integer(9)), head);
  code.emit("st.global.b32", [address(carry), carry]);
}

describe("moves go", () => {
  test("of a carry that is computed anew", () => {
    const lines = coalesced((code) => {
      looped(code, (carry) => code.make("b32", "add.s32", carry, integer(1)));
    });
    expect(lines).toEqual([
      "mov.b32 %r0 0",
      "add.s32 %r0 %r0 1",
      "setp.lt.s32 %p0 %r0 9",
      "@%p0 bra.uni $loop0",
      "st.global.b32 [%r0] %r0",
    ]);
  });

  test("of an accumulator that begins with a carry and is waited for", () => {
    const lines = coalesced((code) => {
      looped(code, (carry) => {
        const sum = code.make("b32", "mov.b32", carry);
        code.emit("wgmma.mma_async", [braces([sum]), integer(0)]);
        code.emit("wgmma.commit_group.sync.aligned");
        code.emit("wgmma.wait_group.sync.aligned", [integer(0)]);
        return code.make("b32", "mul.f32", sum, integer(2));
      });
    });
    expect(moves(lines)).toEqual([]);
  });
});

describe("moves stay", () => {
  test("where the carry is read behind what is yielded", () => {
    const lines = coalesced((code) => {
      looped(code, (carry) => {
        const next = code.make("b32", "add.s32", carry, integer(1));
        code.emit("st.global.b32", [address(carry), next]);
        return next;
      });
    });
    expect(moves(lines)).toHaveLength(1);
  });

  test("of registers that change places", () => {
    const lines = coalesced((code) => {
      const [one, two] = [code.constant("b32", 1), code.constant("b32", 2)];
      const head = code.label("loop");
      code.place(head);
      const saved = code.make("b32", "mov.b32", one);
      code.emit("mov.b32", [one, two]);
      code.emit("mov.b32", [two, saved]);
      code.jumpIf(code.make("pred", "setp.lt.s32", one, two), head);
      code.emit("st.global.b32", [address(one), two]);
    });
    expect(moves(lines)).toHaveLength(3);
  });

  test("where a product may still read the left factor that is written anew", () => {
    const write = (pending: number) => (code: Code) => {
      looped(code, (carry) => {
        const left = code.make("b32", "mov.b32", carry);
        const sum = code.constant("b32", 0);
        code.emit("wgmma.mma_async", [braces([sum]), braces([left]), integer(0)]);
        code.emit("wgmma.commit_group.sync.aligned");
        code.emit("wgmma.wait_group.sync.aligned", [integer(pending)]);
        const next = code.make("b32", "add.s32", carry, integer(1));
        code.emit("wgmma.wait_group.sync.aligned", [integer(0)]);
        code.emit("st.global.b32", [address(next), sum]);
        return next;
      });
    };
    expect(moves(coalesced(write(0)))).toEqual([]);
    expect(moves(coalesced(write(1)))).toHaveLength(1);
  });

  test("where the left factor is read while the product runs", () => {
    const lines = coalesced((code) => {
      looped(code, (carry) => {
        const left = code.make("b32", "mov.b32", carry);
        code.emit("wgmma.mma_async", [braces([code.constant("b32", 0)]), braces([left])]);
        code.emit("wgmma.commit_group.sync.aligned");
        code.emit("st.global.b32", [address(symbol("out")), carry]);
        code.emit("wgmma.wait_group.sync.aligned", [integer(0)]);
        return code.make("b32", "add.s32", carry, integer(1));
      });
    });
    expect(moves(lines)).toHaveLength(1);
  });

  test("where the other holds what a product adds to", () => {
    const lines = coalesced((code) => {
      const sum = code.make("b32", "mov.b32", integer(1));
      const other = code.make("b32", "mov.b32", integer(2));
      code.emit("st.global.b32", [address(symbol("out")), other]);
      code.emit("wgmma.mma_async", [braces([sum]), integer(0)]);
      code.emit("wgmma.commit_group.sync.aligned");
      code.emit("wgmma.wait_group.sync.aligned", [integer(0)]);
      code.emit("mov.b32", [other, sum]);
      code.emit("st.global.b32", [address(symbol("out")), other]);
    });
    expect(moves(lines)).toHaveLength(1);
  });

  test("where one that has joined holds something else", () => {
    const lines = coalesced((code) => {
      const first = code.make("b32", "mov.b32", integer(1));
      const third = code.make("b32", "mov.b32", integer(2));
      code.emit("st.global.b32", [address(symbol("out")), third]);
      const second = code.make("b32", "mov.b32", first);
      code.emit("mov.b32", [third, second]);
      code.emit("st.global.b32", [address(symbol("out")), third]);
    });
    expect(moves(lines)).toHaveLength(1);
  });

  test("where a guard may leave the target as it was", () => {
    const lines = coalesced((code) => {
      const [one, two] = [code.constant("b32", 1), code.constant("b32", 2)];
      const flag = code.make("pred", "setp.lt.s32", one, two);
      code.guarded(flag, () => code.emit("mov.b32", [one, two]));
      code.emit("st.global.b32", [address(one), two]);
    });
    expect(moves(lines)).toHaveLength(1);
  });
});

/** A program of nested loops and branches over a few registers, which stores some of them on the way. */
function randomProgram(random: Random): readonly Statement[] {
  const code = new Code(new SourceFiles());
  const next = (limit: number): number => random.below(limit);
  const registers = Array.from({ length: 6 }, (_, index) => code.constant("b32", index + 1));
  const pick = (): Register => registers[next(registers.length)] ?? expect.fail();
  const step = (depth: number): void => {
    const kind = next(depth > 2 ? 7 : 9);
    if (kind < 4) code.emit("mov.b32", [pick(), pick()]);
    else if (kind === 4) code.emit("add.s32", [pick(), pick(), pick()]);
    else if (kind === 5) code.emit("st.global.b32", [address(symbol("out")), pick()]);
    else if (kind === 6) {
      const flag = code.make("pred", "setp.lt.s32", pick(), pick());
      code.guarded(flag, () => code.emit("mov.b32", [pick(), pick()]));
    } else if (kind === 7) {
      const end = code.label("end");
      code.jumpIf(code.make("pred", "setp.lt.s32", pick(), pick()), end);
      sequence(depth + 1);
      code.place(end);
    } else {
      const count = code.constant("b32", 0);
      const head = code.label("loop");
      code.place(head);
      sequence(depth + 1);
      code.emit("add.s32", [count, count, integer(1)]);
      code.jumpIf(code.make("pred", "setp.lt.s32", count, integer(3)), head);
    }
  };
  const sequence = (depth: number): void => {
    for (let left = 1 + next(6); left > 0; left -= 1) step(depth);
  };
  for (let part = 0; part < 4; part += 1) sequence(0);
  for (const register of registers) code.emit("st.global.b32", [address(symbol("out")), register]);
  code.emit("ret");
  return code.statements;
}

/** What the program stores, one after another. */
function stored(statements: readonly Statement[]): readonly number[] {
  const values = new Map<Register, number>();
  const labels = new Map(
    statements.flatMap((each, at) => (each.kind === "label" ? [[each.name, at] as const] : [])),
  );
  const valueOf = (operand: Operand | undefined): number =>
    operand?.kind === "register"
      ? (values.get(operand) ?? expect.fail("read before it is written"))
      : operand?.kind === "integer"
        ? Number(operand.value)
        : expect.fail("no number");
  const found: number[] = [];
  for (let at = 0; at < statements.length; at += 1) {
    const statement = statements[at];
    if (statement?.kind !== "instruction") continue;
    const { guard, opcode, operands } = statement;
    if (guard !== undefined && (valueOf(guard.register) !== 0) === guard.negated) continue;
    const [first, second, third] = operands;
    if (opcode === "ret") break;
    if (opcode === "st.global.b32") found.push(valueOf(second));
    else if (opcode.startsWith("bra"))
      at = labels.get(first?.kind === "symbol" ? first.name : "") ?? expect.fail("no label");
    else if (first?.kind === "register") {
      const result = opcode.startsWith("mov")
        ? valueOf(second)
        : opcode.startsWith("add")
          ? (valueOf(second) + valueOf(third)) | 0
          : Number(valueOf(second) < valueOf(third));
      values.set(first, result);
    }
  }
  return found;
}

test("random programs store what they stored before, with fewer moves", () => {
  let [before, after] = [0, 0];
  for (let seed = 1; seed <= 200; seed += 1) {
    const program = randomProgram(new Random(seed));
    const fewer = coalesceRegisters(program);
    expect(stored(fewer), `seed ${seed}`).toEqual(stored(program));
    before += moves(texts(program)).length;
    after += moves(texts(fewer)).length;
  }
  expect(after).toBeLessThan(before);
});
