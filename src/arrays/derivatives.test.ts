/** Derivatives that functions state themselves: of their own, computed again, and none. */
import { describe, expect, test } from "vitest";
import { TilewrightError } from "../support/diagnostics.ts";
import {
  add,
  array,
  checkpoint,
  checkpointName,
  cos,
  customVjp,
  exp,
  grad,
  jit,
  jvp,
  lower,
  matmul,
  mul,
  scan,
  sin,
  stopGradient,
  sum,
  switchCase,
  tanh,
  valueAndGrad,
  vmap,
} from "./index.ts";
import type { NDArray } from "./index.ts";

type F64 = NDArray<"f64">;

function codeOf(body: () => unknown): string | undefined {
  try {
    body();
    return undefined;
  } catch (error) {
    return error instanceof TilewrightError ? error.code : String(error);
  }
}

const x = array([0.3, -0.4, 0.9], "f64");

/** sin with a cotangent that is doubled, so that one sees which derivative was taken. */
const doubled = customVjp(
  (a: F64) => sin(a),
  (a: F64) => [sin(a), cos(a)] as const,
  (slope: F64, c: F64) => [mul(mul(c, slope), 2)],
);

describe("customVjp", () => {
  const expected = [0.3, -0.4, 0.9].map((each) => 2 * Math.cos(each));
  test("is taken instead of the function's own derivative", async () => {
    expect(await doubled(x).values()).toEqual(await sin(x).values());
    const found = (await grad((a: F64) => sum(doubled(a)))(x).values()) as number[];
    for (const [i, each] of found.entries()) expect(each).toBeCloseTo(expected[i] ?? NaN, 12);
  });
  test("is taken inside jit, vmap and loops", async () => {
    const one = jit(grad((a: F64) => sum(jit(doubled)(a))));
    const each = vmap(grad((a: F64) => doubled(a)));
    expect(await one(x).values()).toEqual(await each(x).values());
    const looped = grad((a: F64) =>
      sum(scan((carry: F64, row: F64) => [doubled(add(carry, row)), carry], array(0, "f64"), a)[0]),
    );
    const found = (await looped(array([0.3], "f64")).values()) as number[];
    expect(found[0]).toBeCloseTo(expected[0] ?? NaN, 12);
  });
  test("has no forward derivative", () => {
    expect(codeOf(() => jvp((a: F64) => doubled(a), [x], [x]))).toBe("TW9201");
  });
  test("does not hide a differentiated value from around it", () => {
    const hidden = (a: F64): F64 =>
      sum(
        customVjp(
          (b: F64) => mul(a, b),
          (b: F64) => [mul(a, b), null] as const,
          (_: null, c: F64) => [c],
        )(x),
      );
    expect(codeOf(() => grad(hidden)(x))).toBe("TW9204");
  });
  test("says what does not fit", () => {
    const wrong =
      (backward: (residuals: null, c: F64) => readonly [unknown]): (() => unknown) =>
      () =>
        customVjp(
          (a: F64) => sum(a),
          (a: F64) => [sum(a), null] as const,
          backward,
        )(x);
    expect(codeOf(wrong((_, c) => [c]))).toBe("TW9316");
    expect(codeOf(wrong(() => [] as unknown as [unknown]))).toBe("TW9316");
    expect(codeOf(() => customVjp(sin, sin as never, (_: unknown, c) => [c])(x))).toBe("TW9316");
  });
  test("is gone from the text of a program", () => {
    expect(lower(doubled, x)).not.toContain("tilewright.");
  });
});

describe("checkpoint", () => {
  const w = array(
    [
      [0.5, 0.1],
      [0.2, 0.4],
    ],
    "f64",
  );
  const block = (a: F64): F64 => exp(tanh(checkpointName(matmul(a, w), "hidden")));
  const policies = [
    {},
    { policy: "dots" },
    { policy: "dotsWithoutBatch" },
    { names: ["hidden"] },
  ] as const;
  const input = array([0.7, -0.2], "f64");
  const gradient = (f: (a: F64) => F64) => grad((a: F64) => sum(mul(f(f(a)), a)));
  for (const options of policies)
    test(`gives the same gradients: ${JSON.stringify(options)}`, async () => {
      const plain = await gradient(block)(input).values();
      expect(await gradient(checkpoint(block, options))(input).values()).toEqual(plain);
      const twice = (f: (a: F64) => F64) => grad((a: F64) => sum(gradient(f)(a)));
      const found = (await twice(checkpoint(block, options))(input).values()) as number[];
      const expected = (await twice(block)(input).values()) as number[];
      for (const [i, each] of found.entries()) expect(each).toBeCloseTo(expected[i] ?? NaN, 12);
    });
  const count = (text: string, what: string): number => text.split(what).length - 1;
  test("computes again what its policy does not keep", () => {
    const text = (options: Parameters<typeof checkpoint>[1]): string =>
      lower((a: F64) => valueAndGrad((b: F64) => sum(checkpoint(block, options)(b)))(a), input);
    const plain = lower((a: F64) => valueAndGrad((b: F64) => sum(block(b)))(a), input);
    expect(count(plain, "stablehlo.tanh")).toBe(1);
    expect(count(plain, "stablehlo.dot_general")).toBe(2);
    expect(count(text({}), "stablehlo.tanh")).toBe(2);
    expect(count(text({}), "stablehlo.dot_general")).toBe(3);
    expect(count(text({ policy: "dots" }), "stablehlo.dot_general")).toBe(2);
    expect(count(text({ names: ["hidden"] }), "stablehlo.dot_general")).toBe(2);
  });
  test("goes through values from around it", async () => {
    const closed = (wrap: typeof checkpoint | undefined) => (a: F64) => {
      const f = (): F64 => mul(sin(a), a);
      return sum(wrap === undefined ? f() : wrap(f)());
    };
    expect(await grad(closed(checkpoint))(x).values()).toEqual(
      await grad(closed(undefined))(x).values(),
    );
  });
});

test("stopGradient is a constant to derivatives", async () => {
  const found = await grad((a: F64) => sum(mul(a, stopGradient(a))))(x).values();
  expect(found).toEqual(await x.values());
});

describe("switchCase", () => {
  const chosen = jit((index: NDArray<"i32">, a: F64) =>
    switchCase(index, [() => sin(a), () => mul(a, 2), () => exp(a)]),
  );
  test("takes one of several, the nearest where there is none", async () => {
    const at = (index: number) => chosen(array(index, "i32"), x).values();
    expect(await at(1)).toEqual(await mul(x, 2).values());
    expect(await at(-3)).toEqual(await sin(x).values());
    expect(await at(7)).toEqual(await exp(x).values());
  });
  test("has derivatives and batches", async () => {
    const slopes = vmap(grad((a: F64, index: NDArray<"i32">) => chosen(index, a)));
    const found = (await slopes(x, array([0, 1, 2], "i32")).values()) as number[];
    expect(found[0]).toBeCloseTo(Math.cos(0.3), 12);
    expect(found[1]).toBe(2);
    expect(found[2]).toBeCloseTo(Math.exp(0.9), 12);
  });
  test("refuses indices that are none, and branches that return other arrays", () => {
    expect(codeOf(() => switchCase(x as never, [() => x]))).toBe("TW4023");
    expect(codeOf(() => switchCase(array(0, "i32"), [() => x, () => sum(x)]))).toBe("TW9311");
  });
});
