/** Kernels of the user's own as ops of programs. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Device } from "../device/device.ts";
import { f32, i8 } from "../formats/dtype.ts";
import { opsWithin } from "../graph/ops/traverse.ts";
import { tensor as arraySpec, cdiv, dim, kernel, scalar, slice as span } from "../lang/index.ts";
import type { TensorSpecs, KernelDefinition } from "../lang/index.ts";
import { open } from "../runtime/open.ts";
import { TilewrightError } from "../support/diagnostics.ts";
import {
  add,
  arange,
  array,
  astype,
  customVjp,
  fromKernel,
  grad,
  jit,
  lower,
  mul,
  reshape,
  slice,
  stack,
  sum,
  tanh,
  useDevice,
  vmap,
  zeros,
} from "./index.ts";
import type { NDArray } from "./index.ts";
import { recordFunction } from "./trace-function.ts";

type F32 = NDArray<"f32">;

const n = dim("n");
const width = 32;

/** Both x·y and x + y, of which programs see one list. */
const both = kernel(
  {
    name: "both",
    grid: { i: cdiv(n, width) },
    inputs: { x: arraySpec(f32, [n]), y: arraySpec(f32, [n]) },
    outputs: { product: arraySpec(f32, [n]), total: arraySpec(f32, [n]) },
  },
  ({ i, x, y, product, total }) => {
    const at = span(i.mul(width), width);
    const [left, right] = [x.at(at).load(), y.at(at).load()];
    product.at(at).store(left.mul(right));
    total.at(at).store(left.add(right));
  },
);

const productAndSum = fromKernel(both, (x: F32, y: F32) => [mul(x, y), add(x, y)] as const);
const x = array([1, 2, 3, -4]);
const y = array([0.5, 0.25, 2, 1]);
const loss = (a: F32, b: F32): F32 => {
  const [product, total] = productAndSum(tanh(a), b);
  return sum(mul(product, total));
};

function codeOf(call: () => unknown): string {
  try {
    call();
    return "no error";
  } catch (error) {
    return error instanceof TilewrightError ? error.code : String(error);
  }
}

/** The derivative of loss by its first argument, by hand. */
function slopes(): readonly number[] {
  const [as, bs] = [
    [1, 2, 3, -4],
    [0.5, 0.25, 2, 1],
  ] as const;
  return as.map((a, i) => {
    const b = bs[i] ?? 0;
    const t = Math.tanh(a);
    return (2 * t * b + b * b) * (1 - t * t);
  });
}

async function expectSlopes(found: F32): Promise<void> {
  const numbers = (await found.values()) as unknown as readonly number[];
  for (const [i, slope] of slopes().entries()) expect(numbers[i]).toBeCloseTo(slope, 5);
}

describe("on the evaluator", () => {
  beforeAll(() => useDevice("evaluator"));
  afterAll(() => useDevice());

  test("a kernel is what it means, and so is its derivative", async () => {
    await expectSlopes(grad(loss)(x, y));
  });

  test("a derivative that is given is used", async () => {
    const own = fromKernel(
      both,
      (a: F32, b: F32) => [mul(a, b), add(a, b)] as const,
      ([a, b]) => [mul(a, 0), mul(b, 7)],
    );
    const gradient = grad((b: F32) => sum(own(x, b)[0]))(y);
    expect(await gradient.values()).toEqual([3.5, 1.75, 14, 7]);
  });

  test("second derivatives go through what it means", async () => {
    // The kernel's own result is kept for the way back, so that its derivative is asked for.
    const kept = customVjp(
      (a: F32) => productAndSum(a, a)[0],
      (a: F32) => [productAndSum(a, a)[0], [a, productAndSum(a, a)[1]]] as const,
      ([, twice], cotangent: F32) => [mul(twice, cotangent)],
    );
    const slope = (a: F32): F32 => sum(mul(grad((b: F32) => sum(kept(b)))(a), a));
    expect(await grad(slope)(x).values()).toEqual([4, 8, 12, -16]);
  });

  test("programs name the kernel", () => {
    expect(lower(loss, x, y)).toContain("both");
  });
});

describe("on the simulator", () => {
  let device: Device;
  beforeAll(async () => {
    device = await open("simulator");
    await useDevice(device);
  });
  afterAll(async () => {
    await useDevice();
    device.dispose();
  });

  test("the kernel runs, in compiled functions and with derivatives", async () => {
    const [product, total] = jit((a: F32, b: F32) => productAndSum(a, b))(x, y);
    expect(await product.values()).toEqual([0.5, 0.5, 6, -4]);
    expect(await total.values()).toEqual([1.5, 2.25, 5, -3]);
    const slope = jit(grad(loss))(x, y);
    await expectSlopes(slope);
    for (const each of [product, total, slope]) each.dispose();
  });
});

describe("names", () => {
  const namesOf = (f: (a: F32) => unknown): readonly string[] =>
    [...opsWithin(recordFunction("main", f, [x]).graph)].map(({ name }) => name);

  test("a call is named after its kernel, wherever it is", () => {
    const step = jit((a: F32) => productAndSum(a, y)[0], { name: "step" });
    expect(namesOf(step)).toContain("main/jit(step)/customVjp/both");
    expect(namesOf((a) => mul(step(a), step(a)))).toContain("main/jit(step)/customVjp/both");
  });
});

/** The report of what a call ends in. */
function refusal(call: () => unknown): TilewrightError {
  try {
    call();
  } catch (error) {
    if (error instanceof TilewrightError) return error;
    throw error;
  }
  throw new Error("nothing was refused");
}

const m = dim("m");

function copying(name: string, inputs: TensorSpecs, outputs: TensorSpecs): KernelDefinition {
  return kernel({ name, inputs, outputs }, () => undefined) as unknown as KernelDefinition;
}

const [vector, pair] = [arraySpec(f32, [n]), arraySpec(f32, [n, 2])];
const one = copying("one", { x: vector }, { y: vector });
const two = copying("two", { x: vector, w: arraySpec(f32, [m, n]) }, { b: vector, a: pair });
const even = copying(
  "even",
  { x: arraySpec(f32, [dim("n", { multipleOf: 2 })]) },
  { y: arraySpec(f32, [2, dim("n", { multipleOf: 2 })]) },
);
const made = copying("made", {}, { y: vector, z: arraySpec(f32, [n, n]) });
const packed = copying("packed", { x: arraySpec(i8, [n]) }, { y: arraySpec(i8, [n]) });

const twice = (a: F32): F32 => stack([a, a], { axis: 1 });

/** A kernel that is called with what it does not take, or means what it does not make; how that is told. */
interface Disagreement {
  readonly what: string;
  readonly kernel: KernelDefinition;
  readonly meaning: (...args: F32[]) => unknown;
  readonly args: readonly unknown[];
  readonly code: string;
  readonly told: readonly string[];
}

const w = array([
  [1, 2, 3, 4],
  [5, 6, 7, 8],
]);
const disagreements: readonly Disagreement[] = [
  {
    what: "too many arguments",
    kernel: one,
    meaning: (a) => a,
    args: [x, x],
    code: "TW9318",
    told: ["1 array: x: f32[n]", "2: tensor<4xf32>, tensor<4xf32>"],
  },
  {
    what: "too few arguments",
    kernel: two,
    meaning: (a) => [a, twice(a)],
    args: [x],
    code: "TW9318",
    told: ["2 arrays: x: f32[n], w: f32[m, n]", "1: tensor<4xf32>"],
  },
  {
    what: "a record of arguments",
    kernel: two,
    meaning: (a) => [a, twice(a)],
    args: [{ x, w }],
    code: "TW9318",
    told: ["1: an object"],
  },
  {
    what: "a number for an array",
    kernel: one,
    meaning: (a) => a,
    args: [3],
    code: "TW9318",
    told: ["1: 3"],
  },
  {
    what: "an argument of another rank",
    kernel: one,
    meaning: (a) => a,
    args: [w],
    code: "TW4004",
    told: ["argument x of kernel one", "[n]", "[2, 4]"],
  },
  {
    what: "a dimension with two values",
    kernel: two,
    meaning: (a) => [a, twice(a)],
    args: [x, array([[1, 2, 3]])],
    code: "TW4005",
    told: ["dimension n", "4, from axis 0 of x", "3, from axis 1 of w"],
  },
  {
    what: "an extent that is no promised multiple",
    kernel: even,
    meaning: (a) => stack([a, a]),
    args: [array([1, 2, 3])],
    code: "TW4007",
    told: ["3"],
  },
  {
    what: "a result of another shape",
    kernel: one,
    meaning: (a) => reshape(a, [1, 4]),
    args: [x],
    code: "TW9318",
    told: ["makes y of another shape", "[4], which is [n] here", "[1, 4]"],
  },
  {
    what: "a result of fewer elements",
    kernel: one,
    meaning: (a) => sum(a),
    args: [x],
    code: "TW9318",
    told: ["[4]", "[]"],
  },
  {
    what: "a result of other elements",
    kernel: one,
    meaning: (a) => astype(a, "i32"),
    args: [x],
    code: "TW9318",
    told: ["y is of f32", "tensor<4xi32>"],
  },
  {
    what: "results in another order",
    kernel: two,
    meaning: (a) => [twice(a), a],
    args: [x, w],
    code: "TW9318",
    told: ["makes b of another shape", "[4, 2]"],
  },
  {
    what: "one result of two",
    kernel: two,
    meaning: (a) => a,
    args: [x, w],
    code: "TW9318",
    told: ["b: f32[n], a: f32[n, 2]: [b, a] or { b, a }", "1: tensor<4xf32>"],
  },
  {
    what: "results by other names",
    kernel: two,
    meaning: (a) => ({ b: a, c: twice(a) }),
    args: [x, w],
    code: "TW9318",
    told: ["names other results", "b, c"],
  },
  {
    what: "a name too few",
    kernel: two,
    meaning: (a) => ({ b: a }),
    args: [x, w],
    code: "TW9318",
    told: ["names other results"],
  },
  {
    what: "a number among the results",
    kernel: two,
    meaning: (a) => [a, 3],
    args: [x, w],
    code: "TW9318",
    told: ["2: tensor<4xf32>, 3"],
  },
  {
    what: "a record within the results",
    kernel: two,
    meaning: (a) => [a, { a: twice(a) }],
    args: [x, w],
    code: "TW9318",
    told: ["2: tensor<4xf32>, an object"],
  },
  {
    what: "no result",
    kernel: one,
    meaning: () => undefined,
    args: [x],
    code: "TW9318",
    told: ["1: undefined"],
  },
  {
    what: "results that give a dimension two values",
    kernel: made,
    meaning: () => [zeros([3]), zeros([4, 4])],
    args: [],
    code: "TW9318",
    told: ["makes arrays of other shapes", "3, from axis 0 of y", "4, from axis 0 of z"],
  },
  {
    what: "integers of few bits, which lie otherwise in kernels",
    kernel: packed,
    meaning: (a) => a,
    args: [array([1, 2], "i4")],
    code: "TW9318",
    told: ["arguments have other formats", "tensor<2xi4>"],
  },
];

describe.each(["evaluator", "simulator", "emulator"] as const)(
  "kernels that are not what they mean, with the %s",
  (name) => {
    let device: Device | undefined;
    beforeAll(async () => {
      device = name === "evaluator" ? undefined : await open(name);
      await useDevice(device ?? "evaluator");
    });
    afterAll(async () => {
      await useDevice();
      device?.dispose();
    });

    test.each(disagreements)("$what", ({ kernel: given, meaning, args, code, told }) => {
      const call = fromKernel(given, meaning) as (...values: readonly unknown[]) => unknown;
      const error = refusal(() => call(...args));
      expect(error.code).toBe(code);
      expect(error.position?.file).toMatch(/kernels\.test\.ts$/);
      for (const text of told) expect(error.message).toContain(text);
      // It is not forgotten: the second call is refused as well.
      expect(refusal(() => call(...args)).code).toBe(code);
    });

    test("is also found within jit, grad and vmap", () => {
      const wrong = fromKernel(one, (a: F32) => reshape(a, [1, 4]));
      const total = (a: F32): F32 => sum(wrong(a));
      for (const call of [
        () => jit(total)(x),
        () => grad(total)(x),
        () => vmap(total)(array([[1, 2, 3, 4]])),
      ])
        expect(refusal(call).code).toBe("TW9318");
    });

    test("each set of types is looked at by itself", () => {
      const flat = fromKernel(one, (a: F32) => reshape(a, [3]));
      expect(flat(array([1, 2, 3])).shape).toEqual([3]);
      expect(refusal(() => flat(x)).code).toBe("TW9104");
      const cut = fromKernel(one, (a: F32) => slice(a, [[0, 3]]));
      expect(cut(array([1, 2, 3])).shape).toEqual([3]);
      expect(refusal(() => cut(x)).code).toBe("TW9318");
    });
  },
);

describe("results by name", () => {
  const named = fromKernel(both, (a: F32, b: F32) => ({ total: add(a, b), product: mul(a, b) }));
  const swapped = kernel(
    {
      name: "swapped",
      grid: { i: cdiv(n, width) },
      inputs: { x: arraySpec(f32, [n]) },
      outputs: { z: arraySpec(f32, [n]), a: arraySpec(f32, [n]) },
    },
    ({ i, x: from, z, a }) => {
      const at = span(i.mul(width), width);
      z.at(at).store(from.at(at).load().mul(2));
      a.at(at).store(from.at(at).load().mul(3));
    },
  );
  const both23 = fromKernel(swapped, (b: F32) => ({ a: mul(b, 3), z: mul(b, 2) }));

  test.each(["evaluator", "simulator"] as const)(
    "are the kernel's outputs on the %s",
    async (on) => {
      const device = on === "evaluator" ? undefined : await open(on);
      await useDevice(device ?? "evaluator");
      const { product, total } = named(x, y);
      expect(await product.values()).toEqual([0.5, 0.5, 6, -4]);
      expect(await total.values()).toEqual([1.5, 2.25, 5, -3]);
      const { a, z } = both23(x);
      expect(await z.values()).toEqual([2, 4, 6, -8]);
      expect(await a.values()).toEqual([3, 6, 9, -12]);
      const slope = grad((b: F32) => sum(both23(b).z))(x);
      expect(await slope.values()).toEqual([2, 2, 2, 2]);
      const rows = vmap((b: F32) => both23(b))(
        array([
          [1, 2],
          [3, 4],
        ]),
      );
      expect(await rows.a.values()).toEqual([
        [3, 6],
        [9, 12],
      ]);
      for (const each of [product, total, a, z, slope, rows.a, rows.z]) each.dispose();
      await useDevice();
      device?.dispose();
    },
  );

  test("a dimension that only outputs have is what the meaning makes of it", async () => {
    const count = kernel(
      { name: "count", grid: { i: n }, outputs: { y: arraySpec(f32, [n]) } },
      ({ i, y: out }) => {
        out.at(i).store(i.cast(f32));
      },
    );
    const counted = fromKernel(count, () => astype(arange(5), "f32"));
    const device = await open("simulator");
    await useDevice("evaluator");
    const before = await counted().values();
    await useDevice(device);
    const there = counted();
    expect(await there.values()).toEqual(before);
    there.dispose();
    await useDevice();
    device.dispose();
  });
});

describe("TW9318", () => {
  const scaled = kernel(
    {
      name: "scaled",
      grid: { i: cdiv(n, width) },
      inputs: { x: arraySpec(f32, [n]), factor: scalar(f32) },
      outputs: { out: arraySpec(f32, [n]) },
    },
    ({ i, x: from, factor, out }) => {
      const at = span(i.mul(width), width);
      out.at(at).store(from.at(at).load().mul(factor));
    },
  );

  test("scalars are no arrays", () => {
    expect(codeOf(() => fromKernel(scaled, (a: F32) => a))).toBe("TW9318");
  });

  test("a meaning with other results", () => {
    const wrong = fromKernel(both, (a: F32, b: F32) => mul(a, b));
    expect(codeOf(() => wrong(x, y))).toBe("TW9318");
  });

  test("a meaning that depends on other arrays", () => {
    const wrong = fromKernel(both, (a: F32, b: F32) => [mul(a, x), add(a, b)] as const);
    expect(codeOf(() => wrong(x, y))).toBe("TW9318");
  });

  test("arguments of another type", () => {
    const whole = array([1, 2], "i32") as unknown as F32;
    expect(codeOf(() => productAndSum(whole, whole))).toBe("TW9318");
  });
});
