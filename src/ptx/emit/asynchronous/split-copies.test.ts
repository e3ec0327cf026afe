/** Copies that are longer than a box of TMA along an axis, or have more axes, which consist of several. What overhangs its array is no run of bytes. */
import { afterAll, expect, test } from "vitest";
import { f16, f32, i32, i8 } from "../../../formats/dtype.ts";
import type { DType, DTypeName } from "../../../formats/dtype.ts";
import { fromNumbers, toNumbers } from "../../../formats/hostarray.ts";
import {
  barrier,
  commitGroup,
  copyAsync,
  kernel,
  slice,
  smem,
  tensor,
  waitGroup,
} from "../../../lang/index.ts";
import type { CopyOptions } from "../../../lang/index.ts";
import { lower } from "../../../lower/stages.ts";
import { open } from "../../../runtime/open.ts";
import { defaultTarget } from "../../../targets/target.ts";
import { assembleNow, hasPtxas } from "../../../../test/ptxas.ts";
import { printPtx } from "../../printer.ts";

const devices = [open("simulator"), open("emulator", { onNotes: () => undefined })];

afterAll(async () => {
  for (const device of devices) (await device).dispose();
});

interface Form {
  readonly array: readonly number[];
  readonly window: readonly number[];
  /** Where the window begins; 0 along all axes unless given. */
  readonly starts?: readonly number[];
  readonly reduction?: CopyOptions["reduction"];
}

/** A window comes in, is stored as it landed, and goes out to where it came from in another array. */
function carried<D extends DTypeName>(
  dtype: DType<D>,
  { array, window, starts = [], reduction }: Form,
) {
  return kernel(
    {
      name: "carried",
      inputs: { x: tensor(dtype, array) },
      inouts: { out: tensor(dtype, array) },
      outputs: { seen: tensor(dtype, window) },
      scratch: { buffer: smem(dtype, window), landed: barrier() },
    },
    ({ x, out, seen, buffer, landed }) => {
      const here = window.map((size, axis) => slice(starts[axis] ?? 0, size));
      copyAsync(x.at(...here), buffer, { barrier: landed });
      landed.wait();
      seen.store(buffer.load());
      copyAsync(buffer, out.at(...here), { ...(reduction && { reduction }) });
      commitGroup();
      waitGroup();
    },
  );
}

const count = (shape: readonly number[]): number =>
  shape.reduce((product, extent) => product * extent, 1);

function indicesOf(element: number, shape: readonly number[]): readonly number[] {
  return shape.map((extent, axis) => Math.floor(element / count(shape.slice(axis + 1))) % extent);
}

function elementAt(indices: readonly number[], shape: readonly number[]): number | undefined {
  return indices.every((index, axis) => index < (shape[axis] ?? 0))
    ? indices.reduce((sum, index, axis) => sum * (shape[axis] ?? 1) + index, 0)
    : undefined;
}

const forms: readonly (readonly [string, DType, Form, number])[] = [
  ["a row that ends in a shorter box", f32, { array: [996], window: [1000] }, 4],
  ["a row that overhangs in the middle of a box", f32, { array: [700], window: [1000] }, 4],
  ["swizzled rows", f16, { array: [511, 64], window: [512, 64] }, 2],
  ["swizzled rows that overhang", f16, { array: [280, 64], window: [300, 64] }, 2],
  ["a prime number of rows", i8, { array: [256, 16], window: [257, 16] }, 2],
  ["six axes", f32, { array: [2, 3, 2, 3, 2, 8], window: [2, 2, 2, 2, 2, 8] }, 4],
  [
    "six axes, of which two overhang",
    f32,
    { array: [3, 3, 2, 3, 2, 32], window: [2, 2, 2, 2, 2, 32], starts: [2, 2, 0, 0, 1, 0] },
    4,
  ],
  [
    "a sum over six axes, of which two overhang",
    i32,
    {
      array: [3, 3, 2, 3, 2, 32],
      window: [2, 2, 2, 2, 2, 32],
      starts: [2, 2, 0, 0, 1, 0],
      reduction: "add",
    },
    4,
  ],
  [
    "a sum of long rows that overhang",
    i32,
    { array: [1100], window: [1000], starts: [256], reduction: "add" },
    4,
  ],
  ["seven axes", f16, { array: [1, 2, 2, 2, 2, 2, 64], window: [2, 2, 2, 2, 2, 2, 64] }, 8],
];

test.each(forms)("%s", async (_, dtype, form, boxes) => {
  const { array, window, starts = [], reduction } = form;
  const definition = carried(dtype, form);
  const text = printPtx(lower(definition.kernel, defaultTarget).module);
  expect(text.match(/cp\.async\.bulk\.tensor\.\dd\.shared/g)?.length).toBe(boxes);
  expect(text.match(/cp\.(reduce\.)?async\.bulk\.tensor\.\dd\.global/g)?.length).toBe(boxes);
  if (hasPtxas) expect(assembleNow(text, "sm_90a")).not.toMatch(/error|fatal|warning/);

  const x = Array.from({ length: count(array) }, (_each, element) => (element % 120) + 1);
  const before = x.map((_each, element) => element % 7);
  const seen: number[] = [];
  const out = [...before];
  for (let element = 0; element < count(window); element += 1) {
    const indices = indicesOf(element, window).map((index, axis) => index + (starts[axis] ?? 0));
    const place = elementAt(indices, array);
    seen.push(place === undefined ? 0 : (x[place] ?? NaN));
    if (place !== undefined)
      out[place] = (x[place] ?? NaN) + (reduction === undefined ? 0 : (before[place] ?? NaN));
  }
  for (const opened of devices) {
    const device = await opened;
    const results = await device.run(definition, {
      x: fromNumbers(dtype, array, x),
      out: fromNumbers(dtype, array, before),
    });
    expect([...toNumbers(results.seen)]).toEqual(seen);
    expect([...toNumbers(results.out)]).toEqual(out);
  }
});
