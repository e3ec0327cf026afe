/** Elements in order, and what goes along, against JavaScript's own sort. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { codeOf } from "../../../test/support/library-checks.ts";
import { inOrder, oddNumbers } from "../../../test/support/orders.ts";
import { takesAll } from "../../../test/support/sample.ts";
import type { Device } from "../../device/device.ts";
import type { DType } from "../../formats/dtype.ts";
import {
  bf16,
  bool,
  f16,
  f32,
  f64,
  f8e4m3fn,
  f8e5m2,
  f8e8m0fnu,
  i16,
  i32,
  i4,
  i64,
  i8,
  u16,
  u32,
  u64,
  u8,
} from "../../formats/dtype.ts";
import { fromNumbers, toNumbers } from "../../formats/hostarray.ts";
import type { HostArray } from "../../formats/hostarray.ts";
import { tensor, dim, kernel } from "../../lang/index.ts";
import type { KernelDefinition } from "../../lang/index.ts";
import { keyFormat, keysOf, numbersOf } from "./sortable-keys.ts";
import { open } from "../../runtime/open.ts";
import { Random } from "../../support/random.ts";
import { argsort, sort } from "./sort.ts";

const [m, n] = [dim("m"), dim("n")];
/** Tiles that are small enough for short arrays to have several. */
const small = { warps: 2, items: 2 };

function expectOrder(
  x: HostArray,
  descending: boolean,
  results: { readonly out?: HostArray; readonly indices?: HostArray },
): void {
  const [rows, columns] = [x.shape.length > 1 ? (x.shape[0] ?? 0) : 1, x.shape.at(-1) ?? 0];
  const values = [...toNumbers(x)];
  const indices = Array.from({ length: rows }, (_, row) =>
    inOrder(values.slice(row * columns, (row + 1) * columns), descending),
  );
  if (results.indices) expect([...toNumbers(results.indices)]).toEqual(indices.flat());
  if (results.out)
    expect([...toNumbers(results.out)]).toEqual(
      indices.flatMap((own, row) => own.map((place) => values[row * columns + place])),
    );
}

describe.each(["simulator", "emulator"] as const)("on the %s", (kind) => {
  let device: Device;
  beforeAll(async () => {
    device = await open(kind);
  });
  afterAll(() => {
    device.dispose();
  });

  test("rows by digits, of many lengths", async () => {
    const random = new Random(71);
    const x = tensor(i16, [m, n]);
    const op = sort({ x, indices: true, configuration: small });
    const shapes = Array.from(
      { length: kind !== "emulator" ? 3 : takesAll ? 20 : 5 },
      (_, index) => [
        1 + random.below(3),
        index === 0 ? 128 : index === 1 ? 1 : 1 + random.below(180),
      ],
    );
    for (const shape of [...shapes, [0, 5], [2, 0]]) {
      const given = oddNumbers(i16, shape, random);
      const { out, indices } = await device.run(op, { x: given });
      expectOrder(given, false, { out, indices });
    }
  });

  test("floats by digits and in registers", async () => {
    const random = new Random(5);
    for (const descending of kind === "emulator" ? [true] : [false, true]) {
      const x = oddNumbers(f32, [150], random);
      const byDigits = sort({ x: f32, descending, indices: true, configuration: small });
      expectOrder(x, descending, await device.run(byDigits, { x }));
      const inRegisters = sort({ x: f32, descending, indices: true });
      expectOrder(x, descending, await device.run(inRegisters, { x }));
    }
  });

  test("keys of every format are in the order of numbers, and give them back", async () => {
    const random = new Random(6);
    const floats = [f8e4m3fn, f8e5m2, f16, bf16, f32, f64];
    for (const dtype of [bool, i8, u8, i16, u16, i32, u32, i64, u64, ...floats]) {
      const x = oddNumbers(dtype, [64], random);
      for (const descending of [false, true]) {
        const { keys = x, back = x } = await run(device, keysKernel(dtype, descending), { x });
        const own = [...(keys.data as Uint32Array | BigUint64Array)];
        const byKey = own.map((_, place) => place);
        byKey.sort((left, right) => {
          const [a = 0, b = 0] = [own[left], own[right]];
          return a < b ? -1 : Number(a > b) || left - right;
        });
        expect(byKey).toEqual(inOrder([...toNumbers(x)], descending));
        expect(back.data).toEqual(x.data);
      }
    }
  });

  test("keys alone, indices alone, and payloads", async () => {
    const random = new Random(9);
    const x = oddNumbers(u8, [3, 200], random);
    const spec = tensor(u8, [m, n]);
    expectOrder(
      x,
      true,
      await device.run(sort({ x: spec, descending: true, configuration: small }), { x }),
    );
    expectOrder(x, false, await device.run(argsort({ x: spec, configuration: small }), { x }));
    const weights = oddNumbers(f32, [3, 200], random);
    const paired = sort({ x: spec, payloads: { weights: tensor(f32, [m, n]) } });
    const { sortedWeights } = await device.run(paired, { x, weights });
    const [keys, own] = [[...toNumbers(x)], [...toNumbers(weights)]];
    const expected = [0, 200, 400].flatMap((first) =>
      inOrder(keys.slice(first, first + 200), false).map((place) => own[first + place]),
    );
    expect([...toNumbers(sortedWeights)]).toEqual(expected);
  });

  test("along any axis, through any strides", async () => {
    const values = [5, 1, 9, 2, 2, 7, 3, 3, 0, 8, 4, 6];
    const x = fromNumbers(i32, [2, 3, 2], values);
    const op = sort({ x: tensor(i32, [2, n, 2]), axis: 1, indices: true });
    const { out, indices } = await device.run(op, { x });
    expect([...toNumbers(out)]).toEqual([2, 1, 5, 2, 9, 7, 0, 3, 3, 6, 4, 8]);
    expect([...toNumbers(indices)]).toEqual([2, 0, 0, 1, 1, 2, 1, 0, 0, 2, 2, 1]);
    // Columns of memory are rows of the array.
    const turned = sort({ x: tensor(i32, [3, n], { strides: [1, 3] }) });
    const { out: sorted } = await device.run(turned, { x: fromNumbers(i32, [3, 4], values) });
    const rows = [0, 1, 2].flatMap((row) => [0, 3, 6, 9].map((at) => values[row + at] ?? 0));
    expectOrder(fromNumbers(i32, [3, 4], rows), false, { out: sorted });
  });
});

/** Keys of 64 numbers, and the numbers of these keys. */
function keysKernel(dtype: DType, descending: boolean): KernelDefinition {
  return kernel(
    {
      name: "keys",
      inputs: { x: tensor(dtype, [64]) },
      outputs: { keys: tensor(keyFormat(dtype), [64]), back: tensor(dtype, [64]) },
    },
    ({ x, keys, back }) => {
      const own = keysOf(x.load(), descending);
      keys.store(own);
      back.store(numbersOf(own, dtype, descending));
    },
  ) as unknown as KernelDefinition;
}

/** Runs an operation whose results are not all known to TypeScript. */
async function run(
  device: Device,
  op: Parameters<Device["run"]>[0],
  given: { readonly [name: string]: HostArray },
): Promise<{ readonly [name: string]: HostArray }> {
  return (await device.run(op, given as never)) as never;
}

test("rows are cut into tiles, and results of passes take turns", () => {
  const plan = sort({ x: u32 }).plan({ n: 2 ** 20 });
  expect(plan.configuration).toEqual({ warps: 8, items: 32 });
  expect(plan.blocks()).toEqual([expect.anything(), expect.anything(), 128, 128, 128, 128]);
  expect(Object.keys(plan.scratch).sort()).toEqual(["counts of digits", "keys 0"]);
  expect(sort({ x: u8 }).plan({ n: 2 ** 20 }).launches).toHaveLength(3);
  expect(sort({ x: u8 }).plan({ n: 100 }).configuration).toEqual({ rows: 1, columns: 128 });
});

test("payloads have any name, those of what plans keep among them", () => {
  const name = tensor(i32, [m, n, 2]);
  const payloads = { state: name, places: name, keys0: name, rows_x: name, step0_out: name };
  for (const length of [3, 5000])
    expect(sort({ x: name, axis: 1, payloads }).plan({ m: 2, n: length }).launches).not.toEqual([]);
});

test("mistakes are reported", () => {
  const x = tensor(f32, [m, n]);
  const refused: readonly (readonly [string, () => unknown])[] = [
    ["TW9901", () => sort({ x: f8e8m0fnu })],
    ["TW9901", () => argsort({ x: i4 })],
    ["TW9902", () => sort({ x, axis: 2 })],
    ["TW9902", () => sort({ x, payloads: { y: tensor(f32, [n, m]) } })],
    ["TW9902", () => sort({ x, payloads: { y: tensor(f32, [m, n], { strides: [1, m] }) } })],
    ["TW9902", () => sort({ x, payloads: { y: tensor(i4, [m, n]) } })],
    // Both would be sortedY.
    ["TW9902", () => sort({ x, payloads: { y: x, Y: x } })],
    ["TW9902", () => sort({ x }).plan({ m: 1, n: 2 ** 30 })],
    ["TW9904", () => sort({ x, configuration: { warps: 3, items: 4 } })],
    ["TW1033", () => sort({ x, stable: true } as never)],
    ["TW1033", () => argsort({ x, payloads: {} } as never)],
  ];
  for (const [code, make] of refused) expect(codeOf(make), String(make)).toBe(code);
});
