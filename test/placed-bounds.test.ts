/**
 * The rule `bounds` of the verifier: kernels in which a bound is neither tested nor proved, or an access moves what does
 * not lie side by side, are rejected.
 */
import { expect, test } from "vitest";
import {
  all,
  tensor,
  barrier,
  bf16,
  copyAsync,
  dim,
  dot,
  f32,
  i32,
  kernel,
  scalar,
  semaphore,
  slice,
  smem,
} from "tilewright";
import type { KernelDefinition } from "tilewright";
import { printModule } from "../src/ir/printer.ts";
import { place } from "../src/lower/stages.ts";
import { targets } from "../src/targets/target.ts";
import { readText } from "./source-files.ts";
import { rejectsBroken } from "./support/broken-placed.ts";

/** Windows that may lie outside in every way that is tested, and accesses of every unit. */
const windows = placedText(
  kernel(
    {
      name: "windows",
      grid: { i: 4 },
      inputs: {
        x: tensor(f32, [dim("n"), 64]),
        ids: tensor(i32, [16]),
        halves: tensor(bf16, [64, 64]),
        at: scalar(i32),
      },
      outputs: { out: tensor(f32, [64, 64]), picked: tensor(f32, [16, 64]) },
      scratch: { buffer: smem(f32, [2112]), turned: smem(bf16, [64, 64]) },
    },
    ({ i, x, ids, halves, out, picked, at, buffer, turned }) => {
      const view = x.at(slice(i.mul(64).sub(1), 66), all).at(slice(at, 8), all);
      const row = x.at(at).load();
      buffer.at(slice(at, 64)).store(row);
      out.at(slice(0, 8), all).store(view.load());
      picked.store(x.at(ids.load()).load());
      turned.store(halves.load());
      out.store(dot(turned.load(), turned.load(), { dtype: f32 }));
    },
  ),
);

/** Copies that lanes make, of which one has no two sides alike. */
const copied = placedText(
  kernel(
    {
      name: "copied",
      inputs: { x: tensor(f32, [64, 32]), y: tensor(f32, [64, 33]) },
      outputs: { out: tensor(f32, [64, 32]) },
      scratch: { a: smem(f32, [64, 32]), b: smem(f32, [64, 32]), full: barrier({ arrivals: 2 }) },
    },
    ({ x, y, out, a, b, full }) => {
      copyAsync(x, a, { barrier: full });
      copyAsync(y.at(all, slice(1, 32)), b, { barrier: full });
      full.wait();
      out.store(a.load().add(b.load()));
    },
  ),
);

/** Barriers and counters that may not be there. */
const places = placedText(
  kernel(
    {
      name: "places",
      inputs: { x: tensor(f32, [64]), at: scalar(i32) },
      outputs: { out: tensor(f32, [64]) },
      scratch: { room: smem(f32, [64]), full: barrier({ count: 2 }), counts: semaphore([2, 3]) },
    },
    ({ x, at, out, room, full, counts }) => {
      copyAsync(x, room, { barrier: full.at(at) });
      full.at(at).wait();
      full.at(at.and(1)).arrive();
      counts.at(at.and(1), at).signal();
      counts.at(at, at.and(1)).wait(1);
      out.store(room.load());
    },
  ),
);

function placedText({ kernel: traced }: KernelDefinition): string {
  return printModule({ kernels: [place(traced, targets.sm_80).kernel] });
}

const axpy = readText("test/golden/placed/axpy.sm_90a.ir");

rejectsBroken({ axpy, windows, copied, places }, [
  [
    "TW6209",
    [
      {
        what: "nothing asks whether there is such a barrier",
        of: "places",
        replace: /(barrier_wait .*), guard = \["index 0"\]/,
        by: "$1",
      },
      {
        what: "nothing asks whether there is such a barrier for a copy",
        of: "places",
        replace: /(copy_async .*), guard = \["index 0"\]/,
        by: "$1",
      },
      {
        what: "nothing asks whether there is such a counter",
        of: "places",
        replace: 'guard = ["index 1"]',
        by: 'guard = ["index 0"]',
      },
      {
        what: "nothing tests the end of an array",
        of: "axpy",
        replace: 'guard = ["0 below"]',
        by: "guard = []",
      },
      {
        what: "nothing tests what lies before an array",
        of: "windows",
        replace: '[66, 64], dropped = [], guard = ["0 from below"]',
        by: '[66, 64], dropped = [], guard = ["0 below"]',
      },
      {
        what: "nothing tests the array, of which a window of a window is cut",
        of: "windows",
        replace: '"0 from below of 1", ',
        by: "",
      },
      {
        what: "nothing tests the window that a window is cut from",
        of: "windows",
        replace: '"0 from below of 1", "0 from below"',
        by: '"0 from below of 1"',
      },
      {
        what: "nothing asks whether an index is inside",
        of: "windows",
        replace: 'dropped = [0], guard = ["0 from below"]',
        by: "dropped = [0], guard = []",
      },
      {
        what: "nothing asks whether a window of shared memory is inside",
        of: "windows",
        replace: '"0 from below"]} : ref<smem',
        by: "]} : ref<smem",
      },
      {
        what: "nothing tests the elements of an index tile",
        of: "windows",
        replace: 'guard = ["index 0"], ',
        by: "",
        says: "index 0",
      },
      {
        what: "a guard that names nothing",
        of: "axpy",
        replace: '"0 below"',
        by: '"everything"',
      },
      {
        what: "runs lie across the end of the array",
        of: "axpy",
        replace: "global 16 if whole",
        by: "global 16",
        says: "across a bound",
      },
      {
        what: "more is moved at once than is aligned",
        of: "copied",
        replace: 'by = "cp.async", unit = "global 4, shared 4"',
        by: 'by = "cp.async", unit = "global 8, shared 8"',
        says: "aligned together",
      },
      {
        what: "more is moved at once than lanes hold side by side",
        of: "windows",
        replace: 'load %16 {unit = "global 4"}',
        by: 'load %16 {unit = "global 8"}',
        says: "neighbours",
      },
      {
        what: "bytes of shared memory that do not lie side by side",
        of: "windows",
        replace: 'store %18, %17 {unit = "shared 4"}',
        by: 'store %18, %17 {unit = "shared 8"}',
        says: "side by side",
      },
      {
        what: "matrices of elements that have 32 bits",
        of: "copied",
        replace: 'load %3 {unit = "shared 16"}',
        by: 'load %3 {unit = "shared matrices"}',
        says: "rows of 16 bytes",
      },
      {
        what: "a unit of the other memory",
        of: "windows",
        replace: 'store %18, %17 {unit = "shared 4"}',
        by: 'store %18, %17 {unit = "global 4"}',
        says: "shared memory",
      },
      {
        what: "a unit that there is not",
        of: "windows",
        replace: 'store %18, %17 {unit = "shared 4"}',
        by: 'store %18, %17 {unit = "shared 3"}',
        says: "no unit",
      },
      {
        what: "a copy with a unit for one of its sides",
        of: "copied",
        replace: "global 16, shared 16",
        by: "global 16",
        says: "each of its accesses",
      },
      {
        what: "cp.async moves other elements from one side than to the other",
        of: "copied",
        replace: "global 16, shared 16",
        by: "global 16, shared 8",
        says: "different elements",
      },
      {
        what: "cp.async of elements that are worked out one by one",
        of: "copied",
        replace: "global 16, shared 16",
        by: "elements, shared 16",
        says: "different elements",
      },
    ],
  ],
]);

test("what may lie whole inside is asked whether it does, and what never does is moved by elements", () => {
  const loaded = (elements: number, start: number) =>
    placedText(
      kernel(
        {
          name: "loaded",
          grid: { i: 4 },
          inputs: { x: tensor(f32, [elements]) },
          outputs: { out: tensor(f32, [4, 512]) },
        },
        ({ i, x, out }) => {
          const from = start < 0 ? start : i.mul(start);
          out.at(i).store(x.at(slice(from, 512)).load());
        },
      ),
    );
  expect(loaded(1022, 256)).toMatch(/= load .*unit = "global 16 if whole"/);
  expect(loaded(66, -4)).toMatch(/= load .*unit = "global 4"/);
});
