/** Kernels beside their meanings: what agrees passes within its bound, what does not is told, derivatives included. */
import { describe, expect, test } from "vitest";
import {
  abs,
  add,
  astype,
  cond,
  exp,
  fromKernel,
  full,
  less,
  log,
  matmul,
  maximum,
  mul,
  scan,
  stack,
  stopGradient,
  sub,
  sum,
  whileLoop,
} from "../arrays/index.ts";
import type { NDArray } from "../arrays/index.ts";
import { bf16, f32 } from "../formats/dtype.ts";
import { fromNumbers } from "../formats/hostarray.ts";
import { matmul as product } from "../kernels/matmul/matmul.ts";
import type { Operation } from "../device/operation.ts";
import { tensor, cdiv, dim, kernel, slice } from "../lang/index.ts";
import { TilewrightError } from "../support/diagnostics.ts";
import { checkMeaning } from "./index.ts";

type F32 = NDArray<"f32">;

const n = dim("n");
const width = 32;

/** x where it is above 0, and x times `slope` elsewhere. */
function leaky(slope: number) {
  return kernel(
    {
      name: "leaky",
      grid: { i: cdiv(n, width) },
      inputs: { x: tensor(f32, [n]) },
      outputs: { y: tensor(f32, [n]) },
    },
    ({ i, x, y }) => {
      const at = slice(i.mul(width), width);
      const value = x.at(at).load();
      y.at(at).store(value.gt(0).select(value, value.mul(slope)));
    },
  );
}

function leakyBack(slope: number) {
  return kernel(
    {
      name: "leaky_back",
      grid: { i: cdiv(n, width) },
      inputs: { x: tensor(f32, [n]), g: tensor(f32, [n]) },
      outputs: { dx: tensor(f32, [n]) },
    },
    ({ i, x, g, dx }) => {
      const at = slice(i.mul(width), width);
      const [value, cotangent] = [x.at(at).load(), g.at(at).load()];
      dx.at(at).store(value.gt(0).select(cotangent, cotangent.mul(slope)));
    },
  );
}

const meaning = (x: F32): F32 => add(maximum(x, 0), mul(sub(x, maximum(x, 0)), 0.1));
const back = (slope: number) => fromKernel(leakyBack(slope), (_: F32, g: F32): F32 => g);

async function report(work: () => Promise<unknown>): Promise<TilewrightError> {
  try {
    await work();
  } catch (error) {
    if (error instanceof TilewrightError) return error;
    throw error;
  }
  throw new Error("nothing was told");
}

describe.each(["simulator", "emulator"] as const)("on the %s", (device) => {
  test("a kernel that is what it means passes, and so does its backward kernel", async () => {
    const call = fromKernel(leaky(0.1), meaning, ([x], g: F32) => [back(0.1)(x, g)]);
    const { outputs, cotangents } = await checkMeaning(call, { device });
    expect(Object.keys(outputs)).toEqual(["y"]);
    expect(outputs["y"]).toMatchObject({ elements: 100 });
    expect(outputs["y"]?.worst).toBeLessThanOrEqual(1);
    expect(cotangents["x"]).toMatchObject({ elements: 100 });
  });

  test("wrong numbers are told, however few units they are off", async () => {
    const slightly = 0.1 + 2 ** -20;
    const error = await report(() =>
      checkMeaning(fromKernel(leaky(slightly), meaning), { device }),
    );
    expect(error.code).toBe("TW5101");
    expect(error.message).toContain("output y of leaky");
    expect(error.position?.file).toMatch(/check-meaning\.test\.ts$/);
  });

  test("a wrong backward kernel is told", async () => {
    const call = fromKernel(leaky(0.1), meaning, ([x], g: F32) => [back(0.2)(x, g)]);
    const error = await report(() => checkMeaning(call, { device }));
    expect(error.code).toBe("TW5101");
    expect(error.message).toContain("the cotangent of x of leaky");
    await checkMeaning(call, { device, derivatives: false });
  });
});

const twice = (name: string) =>
  kernel(
    {
      name,
      grid: { i: cdiv(n, width) },
      inputs: { x: tensor(f32, [n]) },
      outputs: { z: tensor(f32, [n]), a: tensor(f32, [n]) },
    },
    ({ i, x, z, a }) => {
      const at = slice(i.mul(width), width);
      const value = x.at(at).load();
      z.at(at).store(value.mul(2));
      a.at(at).store(value.mul(value));
    },
  );

test("results by name are reported by name, on given inputs", async () => {
  const call = fromKernel(twice("named"), (x: F32) => ({ a: mul(x, x), z: mul(x, 2) }));
  const inputs = [fromNumbers(f32, [3], [1, -2, 0.3])];
  const { outputs } = await checkMeaning(call, { inputs });
  expect(outputs["z"]).toEqual({ elements: 3, worst: 0 });
  // A product is rounded once; the bound is four times that and the rounding of the result.
  expect(outputs["a"]?.worst).toBeLessThanOrEqual(1 / 8);
  const swapped = fromKernel(twice("swapped"), (x: F32) => [mul(x, x), mul(x, 2)] as const);
  expect((await report(() => checkMeaning(swapped, { inputs }))).code).toBe("TW5101");
});

test("sums have room for their length alone: products of bf16 pass, with one factor changed they do not", async () => {
  const operation = product({ a: bf16, b: bf16, out: f32 }) as unknown as Operation;
  type B = NDArray<"bf16">;
  const options = { dimensions: { m: 16, n: 16, k: 64 } };
  const right = fromKernel(operation, (a: B, b: B) => matmul(wide(a), wide(b)));
  const { outputs } = await checkMeaning(right, options);
  expect(outputs["out"]?.worst).toBeLessThan(1);
  const wrong = fromKernel(operation, (a: B, b: B) => mul(matmul(wide(a), wide(b)), 1.0005));
  expect((await report(() => checkMeaning(wrong, options))).code).toBe("TW5101");
});

function wide(x: NDArray<"bf16">): F32 {
  return astype(x, "f32");
}

test("a derivative of the meaning that is not its slope is told", async () => {
  const call = fromKernel(leaky(0.1), (x: F32) => sub(meaning(stopGradient(x)), 0));
  const error = await report(() => checkMeaning(call));
  expect(error.code).toBe("TW5103");
  expect(error.message).toContain("leaky");
  expect(error.position?.file).toMatch(/check-meaning\.test\.ts$/);
});

test("what is no function of fromKernel, and inputs of another number, are refused", async () => {
  const call = fromKernel(leaky(0.1), meaning);
  expect((await report(() => checkMeaning((x: F32) => sum(x)))).code).toBe("TW4023");
  expect((await report(() => checkMeaning(call, { inputs: [] }))).code).toBe("TW4023");
  expect((await report(() => checkMeaning(call, { seeds: 1 } as never))).code).toBe("TW4015");
  expect((await report(() => checkMeaning(call, { factor: 0 }))).code).toBe("TW4016");
  expect((await report(() => checkMeaning(call, { dimensions: { m: 3 } }))).code).toBe("TW4006");
});

describe("meanings of every form have bounds", () => {
  const square = kernel(
    {
      name: "square",
      grid: { i: cdiv(n, width) },
      inputs: { x: tensor(f32, [n]) },
      outputs: { y: tensor(f32, [n]) },
    },
    ({ i, x, y }) => {
      const at = slice(i.mul(width), width);
      const value = x.at(at).load();
      y.at(at).store(value.mul(value));
    },
  );
  const forms: { readonly [name: string]: (x: F32) => F32 } = {
    loop: (x) =>
      whileLoop(
        ([at]: readonly [F32, F32]) => less(at, 3),
        ([at, state]) => [add(at, 1), mul(state, 1)] as const,
        [array0(0), mul(x, x)] as const,
      )[1],
    scan: (x) => scan((carry: F32, row: F32) => [add(carry, row), mul(row, row)], array0(0), x)[1],
    branch: (x) =>
      cond(
        less(sum(x), Infinity),
        () => mul(x, x),
        () => x,
      ),
    sum: (x) => mul(sum(stack([x, sub(x, x)]), { axis: 0 }), x),
    kernel: fromKernel(square, (x: F32) => mul(x, x)),
    functions: (x) => exp(mul(2, log(abs(x)))),
  };
  test.each(Object.entries(forms))("%s", async (_, form) => {
    const call = fromKernel(square, form, ([x], g: F32) => [mul(mul(x, g), 2)]);
    const { outputs, cotangents } = await checkMeaning(call, { dimensions: { n: 7 } });
    expect(outputs["y"]?.elements).toBe(7);
    expect(cotangents["x"]?.elements).toBe(7);
  });
});

function array0(value: number): F32 {
  return full([], value, "f32");
}
