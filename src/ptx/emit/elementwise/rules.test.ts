import { describe, expect, test } from "vitest";
import { bf16, bool, f16, f32, f8e4m3fn, i32, i4, i8, u8 } from "../../../formats/dtype.ts";
import type { DType, DTypeName } from "../../../formats/dtype.ts";
import type { AnyOp } from "../../../ir/node.ts";
import { tensor, full, kernel } from "../../../lang/index.ts";
import type { Tile } from "../../../lang/index.ts";
import { placeKernel } from "../../../layout/plan/place.ts";
import { defaultTarget, targets } from "../../../targets/target.ts";
import type { Target } from "../../../targets/target.ts";
import { EmitContext } from "../context.ts";
import { freshValue } from "../moves.ts";
import type { EmittedValue } from "../values.ts";
import { valueRules } from "./rules.ts";
import { ruleOf } from "../../../ir/ops.ts";
import { placedKernel } from "../../../layout/plan/placed-kernel.ts";
import { emitRules } from "../rules.ts";

interface Emitted {
  /** The opcodes that the elementwise ops wrote. */
  readonly opcodes: readonly string[];
  /** What was stored. */
  readonly last: EmittedValue;
}

const block = 1024;

/** Emits the elementwise ops of a kernel that computes `out` from tiles of one format. */
function emitted(
  from: DType,
  to: DType,
  compute: (left: Tile<DTypeName>, right: Tile<DTypeName>) => Tile<DTypeName>,
  target: Target = defaultTarget,
): Emitted {
  const { kernel: body } = kernel(
    {
      name: "elementwise",
      grid: { i: 1 },
      inputs: { x: tensor(from, [block]), y: tensor(from, [block]) },
      outputs: { out: tensor(to, [block]) },
    },
    ({ x, y, out }) => {
      out.store(compute(x.load(), y.load()));
    },
  );
  const placed = placedKernel(placeKernel(body, target));
  const context = new EmitContext(placed, () => undefined);
  for (const op of placed.body.ops) {
    if (isElementwise(op) || op.kind === "convert_layout") {
      ruleOf(emitRules, op)(op, context);
    } else {
      for (const result of op.results)
        if (result.type.kind === "tile") context.define(result, freshValue(context, result));
    }
  }
  const stored = placed.body.ops.find((op) => op.kind === "store");
  if (stored === undefined) throw new Error("nothing was stored");
  const { value } = stored.operands;
  // A splat is spread out for the store.
  const spread = placed.body.ops.find((op) => op.results[0] === value);
  const last = context.value(spread?.kind === "convert_layout" ? spread.operands.source : value);
  const opcodes = context.code.statements.flatMap((statement) =>
    statement.kind === "instruction" ? [statement.opcode] : [],
  );
  return { opcodes, last };
}

function isElementwise(op: AnyOp): op is AnyOp & { readonly kind: keyof typeof valueRules } {
  return op.kind in valueRules;
}

function countsOf(opcodes: readonly string[]): { readonly [opcode: string]: number } {
  const counts: { [opcode: string]: number } = {};
  for (const opcode of opcodes) counts[opcode] = (counts[opcode] ?? 0) + 1;
  return counts;
}

/** Elements of a lane: 1024 over 128 lanes. */
const held = block / 128;

describe("words are computed together where PTX can", () => {
  test("sums of f16 take an instruction for two elements", () => {
    const { opcodes } = emitted(f16, f16, (x, y) => x.add(y));
    expect(countsOf(opcodes)).toEqual({ "add.rn.f16x2": held / 2 });
  });

  test("products of bf16 are fused sums before sm_90", () => {
    const { opcodes } = emitted(bf16, bf16, (x, y) => x.mul(y), targets.sm_80);
    expect(countsOf(opcodes)).toEqual({ "mov.b32": held / 2, "fma.rn.bf16x2": held / 2 });
  });

  test("bits of narrow integers are combined in whole words", () => {
    const { opcodes } = emitted(u8, u8, (x, y) => x.xor(y));
    expect(countsOf(opcodes)).toEqual({ "xor.b32": held / 4 });
  });

  test("bf16 becomes f32 by moving bits, and f32 bf16 by one conversion for two", () => {
    expect(countsOf(emitted(bf16, f32, (x) => x.cast(f32)).opcodes)).toEqual({
      "shl.b32": held / 2,
      "and.b32": held / 2,
    });
    expect(countsOf(emitted(f32, bf16, (x) => x.cast(bf16)).opcodes)).toEqual({
      "cvt.rn.bf16x2.f32": held / 2,
    });
  });

  test("integers of four and eight bits become f16 without a conversion", () => {
    for (const from of [i4, i8, u8]) {
      const { opcodes } = emitted(from, f16, (x) => x.cast(f16));
      expect(opcodes.filter((opcode) => opcode.startsWith("cvt"))).toEqual([]);
    }
  });

  test("FP8 becomes f16 two at a time", () => {
    const { opcodes } = emitted(f8e4m3fn, f16, (x) => x.cast(f16));
    expect(countsOf(opcodes)["cvt.rn.f16x2.e4m3x2"]).toBe(held / 2);
  });

  test("a bitcast writes nothing", () => {
    expect(emitted(i32, f32, (x) => x.bitcast(f32)).opcodes).toEqual([]);
  });
});

describe("what is the same everywhere is computed once", () => {
  test("a function of a splat is a splat", () => {
    const { opcodes, last } = emitted(f16, f16, () =>
      full(f16, [block], 2).add(full(f16, [block], 3)),
    );
    expect(last).toMatchObject({ kind: "tile", layout: { kind: "splat" } });
    expect(countsOf(opcodes)["add.rn.f16"]).toBe(1);
  });

  test("a comparison of a splat has one predicate", () => {
    const { last } = emitted(f16, bool, () => full(f16, [block], 2).lt(full(f16, [block], 3)));
    expect(last).toMatchObject({ kind: "tile", words: [{ type: "pred" }] });
  });

  test("the number of a splat serves all words of a tile", () => {
    const { opcodes } = emitted(f16, f16, (x) => x.mul(full(f16, [block], 3)));
    expect(countsOf(opcodes)).toEqual({ "mov.b32": 1, "mul.rn.f16x2": held / 2 });
  });
});

describe("comparison and selection", () => {
  test("a predicate for each element, two from an instruction of f16", () => {
    const { opcodes, last } = emitted(f16, bool, (x, y) => x.lt(y));
    expect(last.kind === "tile" && last.words.map(({ type }) => type)).toEqual(
      Array<string>(held).fill("pred"),
    );
    expect(countsOf(opcodes)).toEqual({ "setp.lt.f16x2": held / 2 });
  });

  test("a word of narrow elements is chosen by a mask", () => {
    const { opcodes } = emitted(u8, u8, (x, y) => x.lt(y).select(x, y));
    expect(countsOf(opcodes)["lop3.b32"]).toBe(held / 4);
  });
});

test("an approximation is one instruction where it was asked for", () => {
  const { opcodes } = emitted(f32, f32, (x) => x.exp2({ approximate: true }));
  expect(countsOf(opcodes)).toEqual({ "ex2.approx.ftz.f32": held });
});
