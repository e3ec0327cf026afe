/** Functions made of others, against JavaScript and Python's definitions, on the simulator and the emulator. */
import { describe, expect, test } from "vitest";
import { testMistakes, trace } from "../../test/language.ts";
import { bf16, f16, f32, f64, i32, u32 } from "../formats/dtype.ts";
import type { DType } from "../formats/dtype.ts";
import { fromNumbers, toNumbers } from "../formats/hostarray.ts";
import { open } from "../runtime/open.ts";
import { kernel, tensor } from "./index.ts";
import type { Tile } from "./index.ts";

const specials = [0, -0, 1, -1, 2.5, -2.5, 3, -7, 0.5, 1e-3, 100, Infinity, -Infinity, NaN];
const pairs = specials.flatMap((x) => specials.map((y) => [x, y] as const));
const whole = [0, 1, -1, 2, -2, 3, -3, 7, -7, 100, -128, 2 ** 31 - 1, -(2 ** 31)];
const wholePairs = whole.flatMap((x) => whole.map((y) => [x, y] as const));

async function compute(
  backend: "simulator" | "emulator",
  dtype: DType,
  operands: readonly (readonly [number, number])[],
  fn: (x: Tile, y: Tile) => Tile,
): Promise<readonly (number | bigint)[]> {
  const shape = [operands.length];
  const definition = kernel(
    {
      name: "composed",
      inputs: { x: tensor(dtype, shape), y: tensor(dtype, shape) },
      outputs: { out: tensor(dtype, shape) },
    },
    ({ x, y, out }) => {
      out.store(fn(x.load(), y.load()));
    },
  );
  const device = await open(backend);
  try {
    const [x, y] = [0, 1].map((side) =>
      fromNumbers(
        dtype,
        shape,
        operands.map((pair) => pair[side] ?? 0),
      ),
    );
    if (x === undefined || y === undefined) throw new Error("no operands");
    const { out } = await device.run(definition, { x, y });
    return [...toNumbers(out)];
  } finally {
    device.dispose();
  }
}

function remainder(x: number, y: number): number {
  const rest = x % y;
  if (rest === 0) return y < 0 || Object.is(y, -0) ? -0 : 0;
  return rest < 0 === y < 0 ? rest : rest + y;
}

function floorDivide(x: number, y: number): number {
  if (y === 0) return x / y;
  const rest = x % y;
  const quotient = (x - rest) / y - (rest !== 0 && rest < 0 !== y < 0 ? 1 : 0);
  return quotient === 0
    ? Math.sign(x / y) * 0 || (Object.is(x / y, -0) || x / y < 0 ? -0 : 0)
    : Math.round(quotient);
}

describe.each(["simulator", "emulator"] as const)("on the %s", (backend) => {
  test("remainder and floorDivide of floats", async () => {
    const rests = await compute(backend, f64, pairs, (x, y) => x.remainder(y));
    expect(rests).toEqual(pairs.map(([x, y]) => remainder(x, y)));
    const quotients = await compute(backend, f64, pairs, (x, y) => x.floorDivide(y));
    expect(quotients).toEqual(pairs.map(([x, y]) => floorDivide(x, y)));
  });

  test("remainder and floorDivide of integers", async () => {
    const rests = await compute(backend, i32, wholePairs, (x, y) => x.remainder(y));
    expect(rests).toEqual(wholePairs.map(([x, y]) => (y === 0 ? x : remainder(x, y) + 0 || 0)));
    const quotients = await compute(backend, i32, wholePairs, (x, y) => x.floorDivide(y));
    expect(quotients).toEqual(wholePairs.map(([x, y]) => (y === 0 ? -1 : Math.floor(x / y) | 0)));
    const unsigned = wholePairs.map(([x, y]) => [Math.abs(x), Math.abs(y)] as const);
    const natural = await compute(backend, u32, unsigned, (x, y) => x.floorDivide(y));
    expect(natural).toEqual(unsigned.map(([x, y]) => (y === 0 ? 2 ** 32 - 1 : Math.floor(x / y))));
  });

  test("nextAfter steps through the format", async () => {
    const step = 2 ** -23;
    const cases = [
      [1, 2, 1 + step],
      [1, 0, 1 - step / 2],
      [-1, 2, -1 + step / 2],
      [-1, -2, -1 - step],
      [0, 1, 2 ** -149],
      [0, -1, -(2 ** -149)],
      [0, -0, -0],
      [2 ** -149, 0, 0],
      [-Infinity, Infinity, -(2 - step) * 2 ** 127],
      [Infinity, Infinity, Infinity],
      [1, NaN, NaN],
      [NaN, 1, NaN],
    ] as const;
    const operands = cases.map(([x, y]) => [x, y] as const);
    const found = await compute(backend, f32, operands, (x, y) => x.nextAfter(y));
    expect(found).toEqual(cases.map(([, , next]) => next));
    const halves = await compute(backend, f16, [[1, 2]], (x, y) => x.nextAfter(y));
    expect(halves).toEqual([1 + 2 ** -10]);
    const brain = await compute(backend, bf16, [[1, 2]], (x, y) => x.nextAfter(y));
    expect(brain).toEqual([1 + 2 ** -7]);
  });

  test("fmin and fmax pass NaN over", async () => {
    for (const dtype of [f32, f64, f16]) {
      const least = await compute(backend, dtype, pairs, (x, y) => x.fmin(y));
      const greatest = await compute(backend, dtype, pairs, (x, y) => x.fmax(y));
      const number = (x: number): number =>
        dtype === f64 ? x : dtype === f16 && x === 1e-3 ? 0.0010004043579101562 : Math.fround(x);
      const pick = (fn: (x: number, y: number) => number): readonly number[] =>
        pairs.map(([x, y]) => number(Number.isNaN(x) ? y : Number.isNaN(y) ? x : fn(x, y)));
      expect(least).toEqual(pick(Math.min));
      expect(greatest).toEqual(pick(Math.max));
    }
  });

  test("integers stay whole", async () => {
    const found = await compute(backend, i32, wholePairs, (x) => x.floor().ceil().round().trunc());
    expect(found).toEqual(wholePairs.map(([x]) => x));
  });
});

/** A tile of which the type does not say the dtype. */
const anyTile = (tile: Tile): Tile => tile;

testMistakes("of formats without them", [
  {
    name: "nextAfter of integers",
    code: "TW2005",
    make: () => trace(({ row }) => anyTile(row.cast(i32)).nextAfter(1)), // <- here
    message: "nextAfter is not defined for i32",
    remedy: ".cast(f32)",
  },
  {
    name: "remainder of bools",
    code: "TW2005",
    make: () => trace(({ row }) => row.lt(0).remainder(row.lt(1))), // <- here
    message: "remainder is not defined for bool",
  },
  {
    name: "fmin of integers",
    code: "TW2005",
    make: () => trace(({ row }) => anyTile(row.cast(i32)).fmin(1)), // <- here
    message: "fmin is not defined for i32",
  },
]);
