/** Kernels of the user's own as ops of programs. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Device } from "../device/device.ts";
import { f32 } from "../formats/dtype.ts";
import { array as arraySpec, cdiv, dim, kernel, scalar, slice } from "../lang/index.ts";
import { open } from "../runtime/open.ts";
import { TilewrightError } from "../support/diagnostics.ts";
import {
  add,
  array,
  customVjp,
  fromKernel,
  grad,
  jit,
  lower,
  mul,
  sum,
  tanh,
  useDevice,
} from "./index.ts";
import type { LazyArray } from "./index.ts";

type F32 = LazyArray<"f32">;

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
    const at = slice(i.mul(width), width);
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

describe("TW9318", () => {
  const scaled = kernel(
    {
      name: "scaled",
      grid: { i: cdiv(n, width) },
      inputs: { x: arraySpec(f32, [n]), factor: scalar(f32) },
      outputs: { out: arraySpec(f32, [n]) },
    },
    ({ i, x: from, factor, out }) => {
      const at = slice(i.mul(width), width);
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
