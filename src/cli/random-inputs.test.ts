import { describe, expect, test } from "vitest";
import { dtypes } from "../formats/dtype.ts";
import type { DType } from "../formats/dtype.ts";
import { toNumbers } from "../formats/hostarray.ts";
import { elementCount } from "../formats/shape.ts";
import type { HostArray } from "../formats/hostarray.ts";
import { tensor, cdiv, dim, kernel, processors, scalar } from "../lang/index.ts";
import { defaultTarget } from "../targets/target.ts";
import { chooseDimensions, randomInputs, randomNote, requireTaken } from "./random-inputs.ts";

const n = dim("n");
const m = dim("m", { multipleOf: 64 });

/** A kernel that does nothing, over arrays of every role. */
function idle(dtype: DType) {
  return kernel(
    {
      name: "idle",
      grid: { i: cdiv(n, 64) },
      inputs: { x: tensor(dtype, [n, m]), factor: scalar(dtype) },
      outputs: { out: tensor(dtype, [m]) },
      inouts: { total: tensor(dtype, [3, m], { strides: [128, 1] }) },
    },
    () => undefined,
  ).kernel;
}

function numbersOf(value: unknown): Float64Array {
  return toNumbers(value as HostArray);
}

describe("dimensions", () => {
  test("are 1000, rounded up to the promised multiple, unless given", () => {
    expect(chooseDimensions(idle(dtypes.f32), {}, defaultTarget)).toEqual({ n: 1000, m: 1024 });
    expect(chooseDimensions(idle(dtypes.f32), { n: 7 }, defaultTarget)).toEqual({ n: 7, m: 1024 });
  });

  test("of processors are the target's", () => {
    const persistent = kernel(
      { name: "k", grid: { worker: processors }, inputs: { x: tensor(dtypes.f32, [n]) } },
      () => undefined,
    ).kernel;
    expect(chooseDimensions(persistent, {}, defaultTarget)).toEqual({ n: 1000, processors: 132 });
    expect(chooseDimensions(persistent, { processors: 2 }, defaultTarget, 8)).toEqual({
      n: 8,
      processors: 2,
    });
  });

  test("that no kernel has are TW5006", () => {
    const definition = kernel(
      { name: "k", inputs: { x: tensor(dtypes.f32, [n]) } },
      () => undefined,
    );
    const kernels = [{ name: "k", definition }];
    expect(() => {
      requireTaken({ n: 3 }, kernels);
    }).not.toThrow();
    const refusal = (work: () => void): unknown => {
      try {
        return work();
      } catch (error) {
        return error;
      }
    };
    const unknown = refusal(() => {
      requireTaken({ n: 3, m: 8 }, kernels);
    });
    expect(unknown).toMatchObject({ code: "TW5006", expected: "n", found: "m" });
    const useless = refusal(() => {
      requireTaken({ n: 3 }, []);
    });
    expect(useless).toMatchObject({ code: "TW5006", expected: "no --dim" });
  });
});

describe("random inputs", () => {
  test("are the kernel's inputs and in-out arrays, in its shapes", () => {
    const inputs = randomInputs(idle(dtypes.f32), { n: 5, m: 64 }, 1);
    expect(Object.keys(inputs)).toEqual(["x", "factor", "total"]);
    expect(inputs["x"]).toMatchObject({ dtype: dtypes.f32, shape: [5, 64] });
    // Two rows 128 apart and the 64 elements of the third.
    expect(inputs["total"]).toMatchObject({ shape: [320] });
  });

  test("follow the seed", () => {
    const make = (seed: number) => randomInputs(idle(dtypes.bf16), { n: 5, m: 64 }, seed);
    expect(make(3)).toEqual(make(3));
    expect(make(3)).not.toEqual(make(4));
  });

  test("of floats are standard normal", () => {
    const numbers = numbersOf(randomInputs(idle(dtypes.f32), { n: 500, m: 64 }, 9)["x"]);
    const mean = numbers.reduce((sum, x) => sum + x, 0) / numbers.length;
    const variance = numbers.reduce((sum, x) => sum + x * x, 0) / numbers.length - mean ** 2;
    // Six standard errors of 32000 samples, seed 9.
    expect(Math.abs(mean)).toBeLessThan(6 / Math.sqrt(32_000));
    expect(Math.abs(variance - 1)).toBeLessThan((6 * Math.SQRT2) / Math.sqrt(32_000));
  });

  test.each(Object.values(dtypes))("of $name are values that the format has", (dtype: DType) => {
    const inputs = randomInputs(idle(dtype), { n: 5, m: 64 }, 2);
    const numbers = numbersOf(inputs["x"]);
    expect(numbers.length).toBe(elementCount([5, 64]));
    expect(numbers.every(Number.isFinite), "every number is finite").toBe(true);
    expect(new Set(numbers).size, "the numbers differ").toBeGreaterThan(1);
    const limits: { readonly [K in DType["kind"]]: readonly [number, number] } = {
      float: [-6, 6],
      signed: [-8, 7],
      unsigned: [0, 15],
      bool: [0, 1],
    };
    const [least, most] = limits[dtype.kind];
    expect(Math.min(...numbers)).toBeGreaterThanOrEqual(least);
    expect(Math.max(...numbers)).toBeLessThanOrEqual(most);
  });

  test.each([
    [dtypes.f32, "number"],
    [dtypes.i32, "number"],
    [dtypes.i64, "bigint"],
    [dtypes.bool, "boolean"],
  ] as const)("a scalar of $name is a JavaScript %s", (dtype, type) => {
    expect(typeof randomInputs(idle(dtype), { n: 5, m: 64 }, 2)["factor"]).toBe(type);
  });
});

test("reports are told that whole numbers in memory are random, and which", () => {
  expect(randomNote(idle(dtypes.i32), 5)).toMatch(
    /^the whole numbers in x(?:, \w+)* are random, of seed 5;/,
  );
  expect(randomNote(idle(dtypes.f32), 5)).toBeUndefined();
});

test("arrays of more elements than a process can hold are refused", () => {
  const most = 2 ** 31 - 64;
  expect(() => randomInputs(idle(dtypes.f32), { n: most, m: most }, 1)).toThrow("TW0009");
});
