/** Arrays of operations may be called as kernels of the library call things of their own. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { codeOf } from "../../../test/support/library-checks.ts";
import type { Device } from "../../device/device.ts";
import type { Operation } from "../../device/operation.ts";
import { f32 } from "../../formats/dtype.ts";
import { fromNumbers, toNumbers } from "../../formats/hostarray.ts";
import { walkOps } from "../../ir/traverse.ts";
import { tensor, dim } from "../../lang/index.ts";
import type { Tile } from "../../lang/index.ts";
import { open } from "../../runtime/open.ts";
import { map } from "../elementwise/map.ts";
import { reduce, reduceNames } from "../reduce/reduce.ts";
import { reduceWith } from "../reduce/reduce-with.ts";
import { scanNames, scanWith } from "../scan/scan-with.ts";

const [m, n] = [dim("m"), dim("n")];
type Tiles = { readonly [name: string]: Tile<"f32"> };
const of = (tiles: Tiles, name: string): Tile<"f32"> => tiles[name] as Tile<"f32">;

const combination = (input: string, part: string) => ({
  inputs: { [input]: tensor(f32, [m, n]) },
  load: (tiles: Tiles) => ({ [part]: of(tiles, input) }),
  combine: (left: Tiles, right: Tiles) => ({ [part]: of(left, part).add(of(right, part)) }),
  identity: { [part]: 0 },
});
const mapped = (input: string, output: string) =>
  map({ [input]: tensor(f32, [m, n]) }, (tiles) => ({ [output]: of(tiles as Tiles, input).neg() }));

let device: Device;
beforeAll(async () => {
  device = await open("simulator", { onNotes: () => undefined });
});
afterAll(() => device.dispose());

const given = fromNumbers(
  f32,
  [8, 8],
  Float64Array.from({ length: 64 }, (_, at) => at),
);
const numbers = [...toNumbers(given)];

async function results(op: unknown, inputs: object): Promise<{ [name: string]: number[] }> {
  const found = await device.run(op as Operation, inputs as never);
  return Object.fromEntries(
    Object.entries(found).map(([name, each]) => [name, [...toNumbers(each as typeof given)]]),
  );
}

test("maps, reductions and scans", async () => {
  expect(await results(mapped("block0", "block1"), { block0: given })).toEqual({
    block1: numbers.map((each) => -each),
  });
  // Every record has a constructor, given or not.
  expect(await results(mapped("x", "constructor"), { x: given })).toHaveProperty(
    "constructor",
    numbers.map((each) => -each),
  );
  const weighed = reduce({
    ...{ x: tensor(f32, [m, n]), inputs: { part: tensor(f32, [m, n]) } },
    load: (tiles) => tiles.x.mul(tiles.part),
  });
  const sum = numbers.reduce((all, each) => all + each, 0);
  const ones = fromNumbers(f32, [8, 8], new Float64Array(64).fill(1));
  expect(await results(weighed, { x: given, part: ones })).toEqual({ out: [sum] });
  const total = reduceWith(combination("main", "block1") as never);
  expect(await results(total, { main: given })).toEqual({ block1: [sum] });
  const running = scanWith(combination("row", "worker") as never);
  const { worker = [] } = await results(running, { row: given });
  expect([worker[7], worker[15]]).toEqual([28, 92]);
});

test("inputs of reduce are not called as what it takes or gives", () => {
  for (const name of ["x", "out"])
    expect(codeOf(() => reduce({ x: f32, inputs: { [name]: f32 } }))).toBe("TW9905");
});

/** What plans and their kernels call something, besides the arrays of the operation. */
function ownNames(op: Operation, sizes: { readonly [name: string]: number }): readonly string[] {
  const arrays = { ...op.inputs, ...op.outputs, ...op.inouts };
  const plan = op.plan(sizes);
  const found = new Set(Object.keys(plan.scratch));
  for (const { kernel: traced } of plan.launches) {
    const { parameters, grid, threads, body } = traced.kernel;
    // Kernels that see none of them have names to themselves.
    if (!parameters.some(({ name }) => Object.hasOwn(arrays, name))) continue;
    for (const { name } of [...parameters, ...grid]) found.add(name);
    for (const thread of threads) found.add(thread);
    walkOps(body, ({ attributes }) => {
      if ("name" in attributes && attributes.name !== undefined) found.add(attributes.name);
    });
  }
  return [...found].filter((name) => !Object.hasOwn(arrays, name));
}

test("all names that kernels have are known", () => {
  const rows = [
    { m: 64, n: 64 },
    { m: 7, n: 100_000 },
    { m: 1, n: 4_194_304 },
  ];
  const known: readonly (readonly [RegExp, unknown, readonly { [name: string]: number }[]])[] = [
    [reduceNames, reduceWith(combination("more", "further") as never), rows],
    [scanNames, scanWith(combination("more", "further") as never), rows],
  ];
  for (const [names, op, sizes] of known)
    for (const each of sizes)
      expect(ownNames(op as Operation, each).filter((name) => !names.test(name))).toEqual([]);
});
