import { afterAll, expect, test } from "vitest";
import { testMistakes, trace, wrong } from "../../test/language.ts";
import { f32, i32 } from "../formats/dtype.ts";
import { fromNumbers } from "../formats/hostarray.ts";
import { open } from "../runtime/open.ts";
import { block, extract, insert, kernel, slice, tensor, warps, zeros } from "./index.ts";

const devices = [open("simulator"), open("emulator", { onNotes: () => undefined })] as const;
afterAll(async () => {
  for (const device of devices) (await device).dispose();
});

function at(place: number, inserts: boolean) {
  const definition = kernel(
    {
      name: "outside",
      inputs: { x: tensor(f32, [8, 4]), p: tensor(i32, [1]) },
      outputs: { out: tensor(f32, [8, 4]) },
    },
    ({ x, p, out }) => {
      const start = p.at(0).loadScalar();
      const tile = x.load();
      const part = inserts ? zeros(f32, [2, 4]) : extract(tile, [slice(start, 2)]);
      out.store(insert(tile, [inserts ? slice(start, 2) : slice(0, 2)], part));
    },
  );
  const x = fromNumbers(
    f32,
    [8, 4],
    Array.from({ length: 32 }, () => 1),
  );
  return { definition, given: { x, p: fromNumbers(i32, [1], [place]) } };
}

test.each([
  [7, false],
  [-1, false],
  [7, true],
  [2 ** 30, true],
])("a part from %d on is outside, and no device goes on (inserted: %s)", async (place, inserts) => {
  const { definition, given } = at(place, inserts);
  for (const device of devices)
    await expect((await device).run(definition, given)).rejects.toThrow(/outside|bounds|TW3|TW8/);
});

testMistakes("of extract and insert", [
  {
    name: "more indices than axes",
    code: "TW1017",
    make: () => trace(({ row, i }) => extract(row, [i, i])), // <- here
    message: "2 indices",
  },
  {
    name: "a part that is outside for certain",
    code: "TW1016",
    make: () => trace(({ row }) => insert(row, [block(4, 16)], 0)), // <- here
    found: "16 elements from 64",
  },
  {
    name: "a window",
    code: "TW1008",
    make: () => trace(({ x, i }) => extract(wrong(x), [i])), // <- here
    message: "what extract takes must be a tile",
  },
  {
    name: "a place that is no list",
    code: "TW1008",
    make: () => trace(({ row, i }) => extract(row, wrong(i))), // <- here
    message: "the place of extract must be a list of slices and indices",
  },
  {
    name: "a part of another format",
    code: "TW2042",
    make: () => trace(({ row, i }) => insert(row, [i], wrong(zeros(i32, [])))), // <- here
  },
  {
    name: "in the code of warps",
    code: "TW2209",
    make: () =>
      trace(({ row }) => {
        warps((warp) => {
          extract(row, [warp]); // <- here
        });
      }),
    message: "extract needs the whole program thread",
  },
]);
