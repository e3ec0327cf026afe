import { expect, expectTypeOf, test } from "vitest";
import type { DType, DTypeName } from "../formats/dtype.ts";
import { bf16, f16, f32, f64, i32, i8, u64, u8 } from "../formats/dtype.ts";
import {
  accumulator,
  tensor,
  assert,
  barrier,
  cdiv,
  constant,
  dim,
  dot,
  kernel,
  loop,
  scalar,
  scoped,
  semaphore,
  smem,
  union,
  when,
  zeros,
} from "./index.ts";
import type {
  TensorSpec,
  Ref,
  Scalar,
  ScalarSpec,
  Tile,
  Accumulator,
  KernelDefinition,
  Barrier,
  Semaphore,
} from "./index.ts";

/**
 * What the types promise. The compiler checks these when the sources are type-checked; the bodies run
 * too, so that types and behaviour cannot drift apart.
 */
const n = dim("n");

const definition = kernel(
  {
    name: "typed",
    grid: { i: cdiv(n, 64) },
    threads: ["load", "compute"],
    inputs: { x: tensor(f32, [n]), alpha: scalar(f32), seed: scalar(u64) },
    outputs: { out: tensor(bf16, [n]) },
    inouts: { state: tensor(i32, [4]) },
    scratch: {
      tile: smem(bf16, [64]),
      ready: barrier(),
      done: semaphore(),
      either: union({ a: smem(f32, [4]), b: smem(i32, [4]) }, { c: smem(u8, [64]) }),
    },
  },
  (argument) => {
    const { i, x, alpha, seed, out, state, tile, ready, done, either, load } = argument;
    expectTypeOf(i).toEqualTypeOf<Scalar<"i32">>();
    expectTypeOf(x).toEqualTypeOf<Ref<"f32">>();
    expectTypeOf(alpha).toEqualTypeOf<Scalar<"f32">>();
    expectTypeOf(seed).toEqualTypeOf<Scalar<"u64">>();
    expectTypeOf(out).toEqualTypeOf<Ref<"bf16">>();
    expectTypeOf(state).toEqualTypeOf<Ref<"i32">>();
    expectTypeOf(tile).toEqualTypeOf<Ref<"bf16">>();
    expectTypeOf(ready).toEqualTypeOf<Barrier>();
    expectTypeOf(done).toEqualTypeOf<Semaphore>();
    expectTypeOf(either.a).toEqualTypeOf<Ref<"f32">>();
    expectTypeOf(either.b).toEqualTypeOf<Ref<"i32">>();
    expectTypeOf(either.c).toEqualTypeOf<Ref<"u8">>();
    expectTypeOf(load).toEqualTypeOf<(body: () => void) => void>();
    // @ts-expect-error the specification has no such name
    expect(() => argument.missing as unknown).toThrow("TW1022");
  },
);

/** Runs `body` in a kernel. */
function traced(body: () => void): void {
  kernel({ name: "k" }, body);
}

test("a kernel's type knows its arguments", () => {
  type Inputs = (typeof definition)["inputs"];
  type Outputs = (typeof definition)["outputs"];
  type Inouts = (typeof definition)["inouts"];
  expectTypeOf<Inputs["x"]>().toEqualTypeOf<TensorSpec<"f32">>();
  expectTypeOf<Inputs["alpha"]>().toEqualTypeOf<ScalarSpec<"f32">>();
  expectTypeOf<Inputs["seed"]>().toEqualTypeOf<ScalarSpec<"u64">>();
  expectTypeOf<Inouts["state"]>().toEqualTypeOf<TensorSpec<"i32">>();
  expectTypeOf<keyof Inputs>().toEqualTypeOf<"x" | "alpha" | "seed">();
  expectTypeOf<Outputs["out"]>().toEqualTypeOf<TensorSpec<"bf16">>();
  expectTypeOf(definition).toExtend<KernelDefinition>();
});

test("without a part of the specification its names are missing from the types", () => {
  kernel({ name: "k" }, (argument) => {
    expectTypeOf<keyof typeof argument>().toEqualTypeOf<never>();
  });
});

test("arithmetic keeps kind and dtype", () => {
  traced(() => {
    const tile = zeros(f32, [4]);
    const one = constant(f32, 1);
    expectTypeOf(tile.add(1)).toEqualTypeOf<Tile<"f32">>();
    expectTypeOf(tile.add(one)).toEqualTypeOf<Tile<"f32">>();
    expectTypeOf(one.add(one)).toEqualTypeOf<Scalar<"f32">>();
    expectTypeOf(one.add(tile)).toEqualTypeOf<Tile<"f32">>();
    expectTypeOf(one.fma(1, tile)).toEqualTypeOf<Tile<"f32">>();
    expectTypeOf(tile.exp()).toEqualTypeOf<Tile<"f32">>();
    expectTypeOf(tile.cast(bf16)).toEqualTypeOf<Tile<"bf16">>();
    expectTypeOf(one.cast(i32)).toEqualTypeOf<Scalar<"i32">>();
    expectTypeOf(tile.sum()).toEqualTypeOf<Scalar<"f32">>();
    expectTypeOf(tile.sum({ axis: 0, keepDims: true })).toEqualTypeOf<Tile<"f32">>();
    expectTypeOf(tile.argmax()).toEqualTypeOf<Scalar<"i32">>();
  });
});

test("comparisons give bool, and bool chooses", () => {
  traced(() => {
    const tile = zeros(f32, [4]);
    const one = constant(f32, 1);
    const mask = tile.lt(0);
    const condition = one.ge(0);
    expectTypeOf(mask).toEqualTypeOf<Tile<"bool">>();
    expectTypeOf(condition).toEqualTypeOf<Scalar<"bool">>();
    expectTypeOf(mask.select(tile, 0)).toEqualTypeOf<Tile<"f32">>();
    expectTypeOf(mask.select(0, one)).toEqualTypeOf<Tile<"f32">>();
    expectTypeOf(condition.select(one, 0)).toEqualTypeOf<Scalar<"f32">>();
    expectTypeOf(condition.select(1, tile)).toEqualTypeOf<Tile<"f32">>();
    const every = one.lt(tile).all();
    expectTypeOf(every).toEqualTypeOf<Scalar<"bool">>();
    assert(every, "used");
  });
});

test("dtypes do not mix", () => {
  traced(() => {
    const tile = zeros(f32, [4]);
    const half = zeros(f16, [4]);
    // @ts-expect-error f32 and f16
    expect(() => tile.add(half)).toThrow("TW2003");
    // @ts-expect-error a bool is no number
    expect(() => tile.add(true)).toThrow("TW1007");
    // @ts-expect-error only bool chooses
    expect(() => tile.select(tile, tile)).toThrow("TW2006");
    // @ts-expect-error f32 or f16
    expect(() => tile.lt(0).select(tile, half)).toThrow("TW2003");
    // @ts-expect-error only bools are all true
    expect(() => tile.all()).toThrow("TW2005");
    // @ts-expect-error a size stands beside i32
    expect(() => tile.add(n)).toThrow("TW2011");
    // @ts-expect-error a tile is not a scalar
    const scalar: Scalar<"f32"> = tile;
    expect(scalar).toBe(tile);
  });
});

test("refs give and take their dtype", () => {
  kernel({ name: "k", inouts: { x: tensor(f32, [4]), y: tensor(i32, [4]) } }, ({ x, y }) => {
    expectTypeOf(x.load()).toEqualTypeOf<Tile<"f32">>();
    expectTypeOf(x.at(0).loadScalar()).toEqualTypeOf<Scalar<"f32">>();
    expectTypeOf(y.at(0).atomicAdd(1)).toEqualTypeOf<Scalar<"i32">>();
    expectTypeOf(y.atomicAdd(zeros(i32, [4]))).toEqualTypeOf<Tile<"i32">>();
    // @ts-expect-error an i32 array does not take f32
    expect(() => y.store(x.load())).toThrow("TW2042");
  });
});

test("carries and results keep their form", () => {
  traced(() => {
    const carry = { sum: zeros(f32, [4]), pair: [constant(i32, 0), zeros(f16, [2])] } as const;
    const end = loop({ to: 4, carry }, (k, { sum, pair }) => {
      expectTypeOf(k).toEqualTypeOf<Scalar<"i32">>();
      expectTypeOf(sum).toEqualTypeOf<Tile<"f32">>();
      expectTypeOf(pair[0]).toEqualTypeOf<Scalar<"i32">>();
      return { sum, pair: [pair[0], pair[1]] };
    });
    expectTypeOf(end.pair[1]).toEqualTypeOf<Tile<"f16">>();
    const [first, second] = loop({ to: 4, carry: [end.sum, constant(i32, 1)] }, (_, [a, b]) => [
      a,
      b,
    ]);
    expectTypeOf(first).toEqualTypeOf<Tile<"f32">>();
    expectTypeOf(second).toEqualTypeOf<Scalar<"i32">>();
    const pair = when(
      second.lt(3),
      () => [first, second],
      () => [first, second.add(1)],
    );
    expectTypeOf(pair[1]).toEqualTypeOf<Scalar<"i32">>();
    // @ts-expect-error the body must return what it carries
    expect(() => loop({ to: 4, carry: first }, () => second)).toThrow("TW1012");
    const nothing = scoped({ buffer: smem(f32, [4]) }, ({ buffer }) => {
      expectTypeOf(buffer).toEqualTypeOf<Ref<"f32">>();
    });
    expectTypeOf(nothing).toEqualTypeOf<void>();
  });
});

test("products sum in the format that fits", () => {
  traced(() => {
    const of = <D extends DTypeName>(dtype: DType<D>) => zeros(dtype, [16, 16]);
    expectTypeOf(dot(of(bf16), of(bf16))).toEqualTypeOf<Tile<"f32">>();
    expectTypeOf(dot(of(i8), of(u8))).toEqualTypeOf<Tile<"i32">>();
    expectTypeOf(dot(of(f64), of(f64))).toEqualTypeOf<Tile<"f64">>();
    expectTypeOf(dot(of(f16), of(f16), { dtype: f16 })).toEqualTypeOf<Tile<"f16">>();
    // @ts-expect-error bf16 sums in f32, whatever is expected
    const sums: Tile<"f64"> = dot(of(bf16), of(bf16));
    expectTypeOf(dot(of(f32), of(f32), { precision: "ieee" })).toEqualTypeOf<Tile<"f32">>();
    expectTypeOf(dot(of(bf16), of(bf16), { accumulator: of(f32) })).toEqualTypeOf<Tile<"f32">>();
    expect(sums.dtype).toBe(f32);
    const sum = accumulator(f32, [64, 8]);
    expectTypeOf(sum).toEqualTypeOf<Accumulator<"f32">>();
    expectTypeOf(sum.wait()).toEqualTypeOf<Tile<"f32">>();
  });
});

test("functions are of the dtypes that have them", () => {
  traced(() => {
    const [float, integer, one] = [zeros(f32, [4]), zeros(i32, [4]), constant(f32, 1)];
    const isLess = float.lt(0);
    expectTypeOf(integer.and(1).shl(2).popcount().clz().bitReverse().not()).toEqualTypeOf(integer);
    const both = isLess.and(isLess).or(isLess.not());
    expectTypeOf(both).toEqualTypeOf<Tile<"bool">>();
    expectTypeOf(integer.reduce("xor")).toEqualTypeOf<Scalar<"i32">>();
    assert(both.any(), "used");
    // @ts-expect-error floats are no sets of bits
    expect(() => float.and(1)).toThrow("TW2005");
    // @ts-expect-error nor are scalars of them
    expect(() => one.xor(1)).toThrow("TW2005");
    // @ts-expect-error floats are not shifted
    expect(() => float.shl(1)).toThrow("TW2005");
    // @ts-expect-error bits of floats are counted after bitcast
    expect(() => float.popcount()).toThrow("TW2005");
    // @ts-expect-error a reduction by bits
    expect(() => float.reduce("and")).toThrow("TW2005");
    // @ts-expect-error bools have one bit
    expect(() => isLess.clz()).toThrow("TW2005");
    // @ts-expect-error integers have no exponential
    expect(() => integer.exp()).toThrow("TW2005");
    expectTypeOf(integer.floor()).toEqualTypeOf<Tile<"i32">>();
    // @ts-expect-error bools are no numbers
    expect(() => isLess.floor()).toThrow("TW2005");
    // @ts-expect-error integers are never NaN
    expect(() => integer.isNan()).toThrow("TW2005");
  });
});

test("what may have a function has it: dtypes that are not known, and unions", () => {
  const soft = <D extends "f32" | "bf16">(tile: Tile<D>): Tile<D> => tile.exp();
  const masked = <D extends "i32" | "u32">(tile: Tile<D>): Tile<D> => tile.and(1);
  const any = (tile: Tile): Tile => tile.exp();
  traced(() => {
    const narrow: Tile<"f32"> | Tile<"bf16"> = zeros(f32, [4]);
    narrow.exp();
    soft(narrow);
    any(narrow);
    masked(zeros(i32, [4]));
  });
});

test("helpers can be written for any dtype", () => {
  function double<D extends DTypeName>(tile: Tile<D>): Tile<D> {
    return tile.mul(2);
  }
  traced(() => {
    expectTypeOf(double(zeros(f16, [4]))).toEqualTypeOf<Tile<"f16">>();
  });
});
