/**
 * How much is done between two looks at a limit: counted, not timed. On the evaluator a signal that counts how often it is
 * asked, beside the elements, products and comparisons that an op has by its definition; on devices the steps between two looks.
 */
import { afterEach, describe, expect, test, vi } from "vitest";
import { open, TilewrightError } from "tilewright";
import type { Device } from "tilewright";
import * as arrays from "tilewright/arrays";
import type { NDArray } from "tilewright/arrays";
import { evaluate, parseGraph } from "tilewright/graph";
import { evaluateWithBreaks, tensor } from "../src/graph/evaluate/index.ts";
import type { Tensor } from "../src/graph/evaluate/index.ts";
import { pieceWork } from "../src/graph/evaluate/frame.ts";
import { Random } from "../src/support/random.ts";
import { LimitWatch } from "../src/support/run-limits.ts";
import { sampleOf, takesAll } from "./support/sample.ts";

/* ---- the evaluator ---- */

/** A program of one op that takes long, and how many elements, products or comparisons that has at least. */
interface Sized {
  readonly name: string;
  readonly text: string;
  readonly inputs: readonly Tensor[];
  readonly work: number;
}

/** Arguments by their names: numbers in no order, so that there is something to sort. */
type Inputs = { readonly [name: string]: Tensor };

function floats(...shape: readonly number[]): Tensor {
  const count = shape.reduce((product, extent) => product * extent, 1);
  return tensor(
    "f32",
    shape,
    Float32Array.from({ length: count }, (_, i) => Math.sin(i)),
  );
}

function counted(count: number, ...shape: readonly number[]): Tensor {
  return tensor(
    "i32",
    [count, ...shape],
    Int32Array.from({ length: count }, (_, i) => i),
  );
}

/** A lower triangle of ones, or what is left of it. */
function triangle(n: number, holds: (row: number, column: number) => boolean): Tensor {
  const data = Float32Array.from({ length: n * n }, (_, i) =>
    holds(Math.floor(i / n), i % n) ? 1 : 0,
  );
  return tensor("f32", [n, n], data);
}

const typed = (element: string, shape: readonly number[]): string =>
  `tensor<${[...shape, element].join("x")}>`;

function program(result: string, inputs: Inputs, body: string): string {
  const parameters = Object.entries(inputs).map(
    ([name, { element, shape }]) => `%${name}: ${typed(element, shape)}`,
  );
  return `func.func @main(${parameters.join(", ")}) -> ${result} {\n${body}\n  return %r : ${result}\n}`;
}

const combine = (op: string, type: string): string => `({
    ^bb0(%a: tensor<${type}>, %b: tensor<${type}>):
      %c = stablehlo.${op} %a, %b : tensor<${type}>
      stablehlo.return %c : tensor<${type}>
  })`;

type Make = (random: Random) => Sized;

/** At least so many pieces of work in each program, which are more than it has ops. */
const pieces = takesAll ? 8 : 5;

function sizeFor(random: Random, work: number): number {
  return Math.ceil(work * pieceWork * (1 + random.uniform() / 4));
}

/** A made program with its arguments. */
function sized(name: string, work: number, result: string, inputs: Inputs, body: string): Sized {
  return { name, work, inputs: Object.values(inputs), text: program(result, inputs, body) };
}

/** Programs on vectors, of which each element counts as so much work. */
const vector: (name: string, op: (n: number) => string, each?: number) => Make =
  (name, op, each = 1) =>
  (random) => {
    const n = sizeFor(random, pieces / each);
    const inputs = { x: floats(n), y: floats(n), i: counted(n, 1) };
    return sized(`${name} of ${n}`, n * each, `tensor<${n}xf32>`, inputs, op(n));
  };

const makers: readonly Make[] = [
  vector("exponential", (n) => `%r = stablehlo.exponential %x : tensor<${n}xf32>`),
  vector("add", (n) => `%r = stablehlo.add %x, %y : tensor<${n}xf32>`),
  vector("reverse", (n) => `%r = stablehlo.reverse %x, dims = [0] : tensor<${n}xf32>`),
  vector("iota", (n) => `%r = stablehlo.iota dim = 0 : tensor<${n}xf32>`),
  vector(
    "sort",
    (n) => `%r = "stablehlo.sort"(%x) <{dimension = 0 : i64, is_stable = true}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %c = stablehlo.compare LT, %a, %b, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %c : tensor<i1>
  }) : (tensor<${n}xf32>) -> tensor<${n}xf32>`,
    // At least so many comparisons for each.
    10,
  ),
  vector(
    "cumulative sum",
    (n) => `%z = stablehlo.constant dense<0.0> : tensor<f32>
  %r = "stablehlo.reduce_window"(%x, %z) <{window_dimensions = array<i64: ${n}>, padding = dense<[[${n - 1}, 0]]> : tensor<1x2xi64>}> ${combine("add", "f32")} : (tensor<${n}xf32>, tensor<f32>) -> tensor<${n}xf32>`,
  ),
  vector(
    "windows",
    (n) => `%z = stablehlo.constant dense<0.0> : tensor<f32>
  %r = "stablehlo.reduce_window"(%x, %z) <{window_dimensions = array<i64: 9>, padding = dense<[[4, 4]]> : tensor<1x2xi64>}> ${combine("maximum", "f32")} : (tensor<${n}xf32>, tensor<f32>) -> tensor<${n}xf32>`,
    9,
  ),
  vector(
    "map",
    (n) =>
      `%r = "stablehlo.map"(%x, %y) <{dimensions = array<i64: 0>}> ${combine("multiply", "f32")} : (tensor<${n}xf32>, tensor<${n}xf32>) -> tensor<${n}xf32>`,
  ),
  vector(
    "gather",
    (n) =>
      `%r = "stablehlo.gather"(%x, %i) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1>}> : (tensor<${n}xf32>, tensor<${n}x1xi32>) -> tensor<${n}xf32>`,
    // Finding a place is as much as some elements.
    8,
  ),
  vector(
    "scatter",
    (n) =>
      `%r = "stablehlo.scatter"(%x, %i, %y) <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ${combine("add", "f32")} : (tensor<${n}xf32>, tensor<${n}x1xi32>, tensor<${n}xf32>) -> tensor<${n}xf32>`,
    // Finding a place is as much as some elements.
    8,
  ),
  (random) => {
    const n = sizeFor(random, pieces);
    const body = `%z = stablehlo.constant dense<0.0> : tensor<f32>
  %r = stablehlo.reduce(%x init: %z) applies stablehlo.add across dimensions = [0] : (tensor<${n}xf32>, tensor<f32>) -> tensor<f32>`;
    return sized(`sum of ${n}`, n, "tensor<f32>", { x: floats(n) }, body);
  },
  (random) => {
    const columns = 50 + random.below(100);
    const rows = Math.ceil((pieces * pieceWork) / columns);
    const result = `tensor<${columns}x${rows}xf32>`;
    const body = `%r = stablehlo.transpose %x, dims = [1, 0] : (tensor<${rows}x${columns}xf32>) -> ${result}`;
    const inputs = { x: floats(rows, columns) };
    return sized(`transpose ${rows}×${columns}`, rows * columns, result, inputs, body);
  },
  (random) => {
    const [rows, columns] = [8 + random.below(64), 8 + random.below(64)];
    const length = Math.ceil((pieces * pieceWork) / (rows * columns));
    const result = `tensor<${rows}x${columns}xf32>`;
    const body = `%r = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0] : (tensor<${rows}x${length}xf32>, tensor<${length}x${columns}xf32>) -> ${result}`;
    const inputs = { x: floats(rows, length), y: floats(length, columns) };
    const name = `product ${rows}×${columns}×${length}`;
    return sized(name, rows * columns * length, result, inputs, body);
  },
  (random) => {
    const [features, taps] = [2 + random.below(3), 3 + random.below(3)];
    const side = Math.ceil(Math.sqrt((pieces * pieceWork) / (features * taps) ** 2)) + taps;
    const out = side - taps + 1;
    const result = `tensor<1x${out}x${out}x${features}xf32>`;
    const inputs = {
      x: floats(1, side, side, features),
      y: floats(taps, taps, features, features),
    };
    const types = Object.values(inputs).map(({ element, shape }) => typed(element, shape));
    const body = `%r = stablehlo.convolution(%x, %y) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (${types.join(", ")}) -> ${result}`;
    const work = (out * taps * features) ** 2;
    return sized(`convolution ${side}×${side}, ${taps} taps`, work, result, inputs, body);
  },
  (random) => {
    const n = Math.ceil(Math.cbrt(6 * pieces * pieceWork)) + random.below(10);
    const type = `tensor<${n}x${n}xf32>`;
    const inputs = { x: triangle(n, (row, column) => row === column) };
    const body = `%r = stablehlo.cholesky %x, lower = true : ${type}`;
    return sized(`cholesky of ${n}`, n ** 3 / 6, type, inputs, body);
  },
  (random) => {
    const n = Math.ceil(Math.cbrt(2 * pieces * pieceWork)) + random.below(10);
    const type = `tensor<${n}x${n}xf32>`;
    const inputs = { x: triangle(n, (row, column) => row >= column), y: floats(n, n) };
    const body = `%r = "stablehlo.triangular_solve"(%x, %y) <{left_side = true, lower = true, unit_diagonal = false, transpose_a = #stablehlo<transpose NO_TRANSPOSE>}> : (${type}, ${type}) -> ${type}`;
    return sized(`triangular solve of ${n}`, n ** 3 / 2, type, inputs, body);
  },
  (random) => {
    const n = 2 + random.below(3);
    const count = Math.ceil((pieces * pieceWork) / n ** 2);
    const type = `tensor<${count}x${n}x${n}xf32>`;
    const body = `%r = stablehlo.cholesky %x, lower = true : ${type}`;
    return sized(`${count} factors`, count * n * n, type, { x: floats(count, n, n) }, body);
  },
  (random) => {
    const n = Math.ceil(Math.sqrt(pieces * pieceWork)) + random.below(100);
    const type = `tensor<${n}xcomplex<f32>>`;
    const body = `%c = stablehlo.complex %x, %x : ${type}
  %r = stablehlo.fft %c, type = FFT, length = [${n}] : (${type}) -> ${type}`;
    return sized(`Fourier transform of ${n}`, n * n, type, { x: floats(n) }, body);
  },
  (random) => {
    const hashes = Math.ceil(((1 + random.uniform()) * pieces * pieceWork) / 32);
    const type = `tensor<${4 * hashes}xui32>`;
    const body = `%s = stablehlo.constant dense<[1, 2]> : tensor<2xui64>
  %t, %r = stablehlo.rng_bit_generator %s, algorithm = PHILOX : (tensor<2xui64>) -> (tensor<2xui64>, ${type})`;
    return sized(`${hashes} hashes`, 32 * hashes, type, {}, body);
  },
  (random) => {
    const [outer, inner] = [20 + random.below(20), 20 + random.below(20)];
    const loop = (turns: number, index: string, body: string): string => `
    %${index}z = stablehlo.constant dense<0> : tensor<i32>
    %${index}o = stablehlo.constant dense<1> : tensor<i32>
    %${index}m = stablehlo.constant dense<${turns}> : tensor<i32>
    %${index}r = stablehlo.while(%${index} = %${index}z) : tensor<i32>
    cond {
      %p = stablehlo.compare LT, %${index}, %${index}m : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %p : tensor<i1>
    } do {${body}
      %n = stablehlo.add %${index}, %${index}o : tensor<i32>
      stablehlo.return %n : tensor<i32>
    }`;
    const body = `${loop(outer, "i", loop(inner, "j", ""))}
    %r = stablehlo.add %ir, %io : tensor<i32>`;
    // Each op counts as a piece.
    const work = 2 * outer * inner * pieceWork;
    return sized(`loops of ${outer}×${inner}`, work, "tensor<i32>", {}, body);
  },
];

/** A signal that counts how often it is asked, and is aborted when it has been asked so often. */
function countingSignal(abortAt = Infinity) {
  let looks = 0;
  const signal = {
    get aborted() {
      looks += 1;
      return looks >= abortAt;
    },
    reason: "counted",
    addEventListener: () => undefined,
    removeEventListener: () => undefined,
  };
  return { signal: signal as unknown as AbortSignal, looks: () => looks };
}

function moduleOf(text: string) {
  const [module] = parseGraph(text);
  if (module === undefined) throw new Error("a program is missing");
  return module;
}

async function failureOf(work: () => unknown): Promise<TilewrightError> {
  try {
    await work();
  } catch (error) {
    if (error instanceof TilewrightError) return error;
    throw error;
  }
  throw new Error("the run came to an end");
}

const rounds = takesAll ? 4 : 1;
const programs = Array.from({ length: rounds }, (_, round) =>
  makers.map((make, kind) => {
    const seed = 1000 * round + kind;
    return [`seed ${seed}`, make, seed] as const;
  }),
).flat();

afterEach(() => {
  vi.restoreAllMocks();
});

describe("on the evaluator", () => {
  test.each(sampleOf(programs, 2))("a look comes after each piece of work, %s", (_, make, seed) => {
    const random = new Random(seed);
    const { name, text, inputs, work } = make(random);
    const module = moduleOf(text);
    const { signal, looks } = countingSignal();
    evaluate(module, "main", inputs, { signal });
    expect(looks(), name).toBeGreaterThanOrEqual(work / pieceWork - 1);
    // And what is aborted at some look ends there.
    const at = 3 + random.below(looks() - 4);
    const aborted = countingSignal(at);
    expect(() => evaluate(module, "main", inputs, { signal: aborted.signal }), name).toThrow(
      "TW3022",
    );
    expect(aborted.looks(), name).toBeLessThanOrEqual(at + 2);
  });

  test.each(sampleOf(programs, 6))("the host has its turn as often, %s", async (_, make, seed) => {
    const { name, text, inputs, work } = make(new Random(seed));
    const module = moduleOf(text);
    // A clock by which every look is late.
    let now = 0;
    vi.spyOn(performance, "now").mockImplementation(() => (now += 20));
    let turns = 0;
    let isDone = false;
    const count = (): void => {
      turns += 1;
      if (!isDone) setImmediate(count);
    };
    setImmediate(count);
    await evaluateWithBreaks(module, "main", inputs);
    isDone = true;
    expect(turns, name).toBeGreaterThanOrEqual(work / pieceWork - 2);
  });

  test("results of what is done in pieces are those of what is done at once", () => {
    const random = new Random(7);
    const values = Array.from({ length: 5000 }, () => random.below(700));
    const text = `func.func @main(%x: tensor<5000xi32>) -> (tensor<5000xi32>, tensor<5000xi32>) {
  %i = stablehlo.iota dim = 0 : tensor<5000xi32>
  %r:2 = "stablehlo.sort"(%x, %i) <{dimension = 0 : i64, is_stable = true}> ({
    ^bb0(%a: tensor<i32>, %b: tensor<i32>, %c: tensor<i32>, %d: tensor<i32>):
      %l = stablehlo.compare LT, %a, %b : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %l : tensor<i1>
  }) : (tensor<5000xi32>, tensor<5000xi32>) -> (tensor<5000xi32>, tensor<5000xi32>)
  return %r#0, %r#1 : tensor<5000xi32>, tensor<5000xi32>
}`;
    const data = Int32Array.from(values);
    const input = { kind: "tensor", element: "i32", shape: [5000], data } as const;
    const [sorted, places] = evaluate(moduleOf(text), "main", [input]).map((each) =>
      each.kind === "tensor" ? Array.from(each.data as Int32Array) : [],
    );
    const expected = values
      .map((value, place) => ({ value, place }))
      .sort((a, b) => a.value - b.value || a.place - b.place);
    expect(sorted).toEqual(expected.map(({ value }) => value));
    expect(places).toEqual(expected.map(({ place }) => place));
  });

  test("a compiled function with a signal runs when it is read, and ends with it", async () => {
    const controller = new AbortController();
    const { signal } = controller;
    const endless = arrays.jit(
      (x: NDArray<"f32">) =>
        arrays.whileLoop(
          (state) => arrays.greaterEqual(arrays.sum(state), -1),
          (state) => arrays.add(state, 1),
          x,
        ),
      { signal },
    );
    const plus = arrays.jit((x: NDArray<"f32">) => arrays.add(x, 1), { signal });
    const first = plus(arrays.array([1, 2]));
    const second = plus(arrays.mul(first, 2));
    expect(await second.values()).toEqual([5, 7]);
    expect(await plus(second).values()).toEqual([6, 8]);
    const result = endless(second);
    setTimeout(() => {
      controller.abort("enough");
    }, 5);
    const { code, summary } = await failureOf(() => result.read());
    expect([code, summary]).toEqual(["TW3022", "the run was aborted: enough"]);
    expect(await arrays.add(second, 1).values()).toEqual([6, 8]);
    expect((await failureOf(() => plus(second))).code).toBe("TW3022");
  });
});

/* ---- devices ---- */

/** Steps of program threads, or instructions of warps, between two looks. */
const mostSteps = { simulator: 64, emulator: 1024 };

const { add, matmul, mul, cond, cumsum, greater, less, nn, softmax, sum, sort, take, topK } =
  arrays;
type F32 = NDArray<"f32">;

const computations: readonly (readonly [string, () => NDArray])[] = [
  [
    "a loop with a branch",
    () => {
      const body = (x: F32): F32 =>
        cond(
          greater(sum(x), 3),
          () => mul(x, 0.5) as F32,
          () => add(x, 1) as F32,
        );
      return arrays.scan((x: F32, _: F32) => [body(x), sum(x)] as const, ones(4), ones(5))[0];
    },
  ],
  [
    "nested loops",
    () => {
      const inner = (x: F32): F32 =>
        arrays.whileLoop(
          (y) => less(sum(y), 9),
          (y) => add(y, 1),
          x,
        );
      return arrays.whileLoop(
        (x) => less(sum(x), 30),
        (x) => add(inner(x), 1),
        ones(3),
      );
    },
  ],
  ["a sort", () => sort(mul(arrays.sin(arrays.arange(3000, "f32")), 3))],
  ["the largest", () => topK(arrays.sin(arrays.arange(900, "f32")), 5)[0]],
  ["a sum", () => sum(arrays.arange(20_000, "f32"))],
  ["a cumulative sum", () => cumsum(arrays.arange(3000, "f32"))],
  ["a product", () => matmul(matrix(32, 32), matrix(32, 48))],
  ["attention", () => nn.attention(heads(), heads(), heads())],
  ["rows by their indices", () => take(matrix(50, 30), arrays.array([3, 1, 49], "i32"))],
  ["softmax", () => softmax(matrix(8, 40))],
  ["random bits", () => arrays.random.uniform(arrays.random.key(1), [500])],
];

function ones(count: number): F32 {
  return arrays.ones([count], "f32");
}

function matrix(rows: number, columns: number): F32 {
  return arrays.reshape(arrays.sin(arrays.arange(rows * columns, "f32")), [rows, columns]) as F32;
}

function heads(): F32 {
  return arrays.reshape(matrix(64, 32), [1, 64, 1, 32]) as F32;
}

describe.each(["simulator", "emulator"] as const)("on the %s", (name) => {
  let device: Device | undefined;
  afterEach(async () => {
    await arrays.useDevice();
    device?.dispose();
    device = undefined;
  });

  test.each(sampleOf(computations, name === "emulator" ? 5 : 2))(
    "few steps are taken between two looks, %s",
    async (_, compute) => {
      device = await open(name, { ...(name === "emulator" && { threads: 1 }) });
      await arrays.useDevice(device);
      const { reached } = LimitWatch.prototype;
      const before = new WeakMap<LimitWatch, number>();
      let most = 0;
      let looks = 0;
      vi.spyOn(LimitWatch.prototype, "reached").mockImplementation(function (
        this: LimitWatch,
        steps,
      ) {
        most = Math.max(most, steps - (before.get(this) ?? 0));
        looks += 1;
        before.set(this, steps);
        return reached.call(this, steps);
      });
      const result = compute();
      await result.read({ signal: new AbortController().signal });
      expect(looks).toBeGreaterThan(5);
      expect(most).toBeLessThanOrEqual(mostSteps[name]);
      result.dispose();
    },
  );
});
