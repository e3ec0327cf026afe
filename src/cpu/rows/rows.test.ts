/** Kernels on rows against those of `src/formats`: signed zeros, NaN, ties, lengths around vectors, and memory behind results. */
import { describe, expect, test } from "vitest";
import { runModule } from "../../../test/support/vector-function.ts";
import { argElements, sortElements } from "../../formats/arithmetic/order.ts";
import { convertElements } from "../../formats/convert.ts";
import { allocateElements, dtypes } from "../../formats/dtype.ts";
import type { DType, Elements } from "../../formats/dtype.ts";
import { Random } from "../../support/random.ts";
import { ModuleBuilder, vector } from "../loops/builder.ts";
import { emitModule } from "../loops/emit.ts";
import type { Callee } from "../loops/ir.ts";
import { defineArgExtreme } from "./extremes.ts";
import { defineGatherRows, defineScatterAddRows, defineTranspose } from "./movement.ts";
import { defineRadixSort, radixSortScratchBytes } from "./radix-sort.ts";
import { definePrefixSum } from "./scans.ts";
import { threefry2x32 } from "./threefry.ts";

const guard = 0xa5;

/** A module whose one function is exported as "run". */
function runnable(define: (module: ModuleBuilder) => Callee): WebAssembly.Module {
  const module = new ModuleBuilder({ memory: { minimum: 1, maximum: 65536, shared: false } });
  const callee = define(module);
  module.define(
    "run",
    callee.parameters,
    callee.results,
    (builder, ...operands) => builder.return(...builder.call(callee, ...operands)),
    { exported: true },
  );
  return new WebAssembly.Module(emitModule(module.finish()));
}

/** Arrays one after the other, each followed by guard bytes, and their addresses. */
function laidOut(arrays: readonly Elements[]): { bytes: Uint8Array; at: readonly number[] } {
  const at: number[] = [];
  let size = 0;
  for (const { byteLength } of arrays) {
    at.push(size);
    size = Math.ceil((size + byteLength + 16) / 64) * 64;
  }
  const bytes = new Uint8Array(size).fill(guard);
  arrays.forEach((array, index) =>
    bytes.set(new Uint8Array(array.buffer, array.byteOffset, array.byteLength), at[index]),
  );
  return { bytes, at };
}

function bytesOf({ buffer, byteOffset, byteLength }: Elements): readonly number[] {
  return [...new Uint8Array(buffer, byteOffset, byteLength)];
}

const corners = [
  0,
  -0,
  NaN,
  -NaN,
  Infinity,
  -Infinity,
  1,
  -1,
  1,
  2 ** -149,
  -(2 ** -149),
  2 ** 31,
  3,
];

/** Numbers with many ties, and every corner. */
function keysOf(dtype: DType, count: number, random: Random): Elements {
  const values = Float64Array.from({ length: count }, () =>
    random.below(3) === 0
      ? (corners[random.below(corners.length)] ?? 0)
      : Math.round(random.normal() * 100) / 4,
  );
  const keys = allocateElements(dtype, count);
  convertElements(dtypes.f64, dtype, values, keys);
  if (dtype.name === "f32") new Uint32Array(keys.buffer).fill(0xffc12345, 0, Math.min(2, count));
  return keys;
}

const lengths = [0, 1, 2, 3, 7, 8, 9, 255, 257];

describe("sorts by digits are stable, with -0 before +0 and one NaN last", () => {
  const names = [
    "f64",
    "f32",
    "tf32",
    "f16",
    "bf16",
    "i8",
    "i16",
    "i32",
    "i64",
    "u8",
    "u16",
    "u32",
    "u64",
  ] as const;
  test.each(names)("%s", (name) => {
    const random = new Random(21);
    const key = dtypes[name];
    for (const [descending, indices, digit] of [
      [false, true, 8],
      [true, true, 11],
      [true, false, 8],
      [false, false, 11],
    ] as const) {
      const sort = { key, descending, indices, digit };
      const code = runnable((module) => defineRadixSort(module, sort));
      for (const count of lengths) {
        const keys = keysOf(key, count, random);
        const places = new Int32Array(count);
        const scratch = new Uint8Array(radixSortScratchBytes(sort, count));
        const { bytes, at } = laidOut([keys, keys.slice(), places, scratch]);
        const [from = 0, to = 0, placesAt = 0, scratchAt = 0] = at;
        const after = runModule(code, bytes, 0, ({ run }) =>
          run?.(from, to, placesAt, count, scratchAt),
        );
        const expected = keys.slice();
        const order = Int32Array.from({ length: count }, (_, index) => index);
        sortElements(key, expected, [order], { outer: 1, length: count, inner: 1 }, descending);
        expect([...after.subarray(to, to + keys.byteLength)], `${count}`).toEqual(
          bytesOf(expected),
        );
        const found = [...after.subarray(placesAt, placesAt + places.byteLength)];
        if (indices) expect(found).toEqual(bytesOf(order));
        for (const [place, size] of [
          [to, keys.byteLength],
          [placesAt, places.byteLength],
          [scratchAt, scratch.byteLength],
        ] as const)
          expect(
            [...after.subarray(place + size, place + size + 16)].every((byte) => byte === guard),
          ).toBe(true);
      }
    }
  });
});

test.each([
  ["f32", "argmax"],
  ["f32", "argmin"],
  ["i32", "argmax"],
  ["u32", "argmin"],
] as const)("%s %s: the first of equal ones, the first NaN before all", (key, fn) => {
  const random = new Random(22);
  const code = runnable((module) => defineArgExtreme(module, { key, fn }));
  for (let turn = 0; turn < 200; turn++) {
    const count = 1 + random.below(40);
    const values = keysOf(dtypes[key], count, random);
    if (key === "f32" && turn % 2 === 0)
      for (let index = 0; index < count; index++)
        if (Number.isNaN(values[index])) values[index] = index % 3 === 0 ? -0 : 0;
    const expected = new Int32Array(1);
    argElements(fn, dtypes[key], values, { outer: 1, length: count, inner: 1 }, expected);
    let found = -1;
    runModule(code, laidOut([values]).bytes, 0, ({ run }) => (found = run?.(0, count) ?? -1));
    expect(found, `${values.join()}; seed 22, turn ${turn}`).toBe(expected[0]);
  }
});

test.each(["f32", "i32"] as const)("prefix sums of %s", (numbers) => {
  const code = runnable((module) => definePrefixSum(module, numbers));
  const random = new Random(23);
  for (const count of lengths) {
    const values =
      numbers === "f32"
        ? Float32Array.from({ length: count }, () => random.below(1000))
        : Int32Array.from({ length: count }, () => random.bits());
    const { bytes, at } = laidOut([values, values.slice().fill(0)]);
    const [from = 0, to = 0] = at;
    const after = runModule(code, bytes, 0, ({ run }) => run?.(from, to, count));
    let sum = 0;
    const expected = values.map(
      (value) => (sum = numbers === "f32" ? sum + value : (sum + value) | 0),
    );
    expect([...after.subarray(to, to + 4 * count)]).toEqual(bytesOf(expected));
    expect(after[to + 4 * count]).toBe(guard);
  }
});

test("transposes of any size, with strides longer than rows", () => {
  const code = runnable(defineTranspose);
  for (const [rows, columns] of [
    [1, 1],
    [4, 16],
    [5, 17],
    [3, 40],
    [33, 31],
    [16, 3],
  ] as const) {
    const [sourceRow, targetRow] = [columns + 3, rows + 2];
    const source = Int32Array.from({ length: rows * sourceRow }, (_, index) => index);
    const target = new Int32Array(columns * targetRow).fill(-1);
    const { bytes, at } = laidOut([source, target]);
    const [from = 0, to = 0] = at;
    const after = runModule(code, bytes, 0, ({ run }) =>
      run?.(from, to, rows, columns, 4 * sourceRow, 4 * targetRow),
    );
    for (let row = 0; row < rows; row++)
      for (let column = 0; column < columns; column++)
        target[column * targetRow + row] = source[row * sourceRow + column] ?? 0;
    expect([...after.subarray(to, to + target.byteLength)]).toEqual(bytesOf(target));
  }
});

test("rows by index, and sums of rows by index, of which each caller makes its own", () => {
  const [rows, elements, count] = [7, 10, 25];
  const random = new Random(24);
  const table = Float32Array.from({ length: rows * elements }, () => random.below(100));
  const indices = Int32Array.from({ length: count }, () => random.below(rows));
  const updates = Float32Array.from({ length: count * elements }, () => random.below(100));
  const { bytes, at } = laidOut([table, indices, updates]);
  const [tableAt = 0, indicesAt = 0, updatesAt = 0] = at;
  const gather = runnable(defineGatherRows);
  const gathered = runModule(gather, bytes, 0, ({ run }) =>
    run?.(tableAt, indicesAt, updatesAt, count, 4 * elements),
  );
  const expectedRows = updates.map(
    (_, index) =>
      table[(indices[Math.floor(index / elements)] ?? 0) * elements + (index % elements)] ?? 0,
  );
  expect([...gathered.subarray(updatesAt, updatesAt + updates.byteLength)]).toEqual(
    bytesOf(expectedRows),
  );
  const expected = table.slice();
  updates.forEach((value, index) => {
    const row = indices[Math.floor(index / elements)] ?? 0;
    if (row >= 2 && row < 5)
      expected[row * elements + (index % elements)] =
        (expected[row * elements + (index % elements)] ?? 0) + value;
  });
  const scattered = runModule(runnable(defineScatterAddRows), bytes, 0, ({ run }) =>
    run?.(tableAt, indicesAt, updatesAt, count, elements, 2, 5),
  );
  expect([...scattered.subarray(tableAt, tableAt + table.byteLength)]).toEqual(bytesOf(expected));
});

test("Threefry gives the words of its authors' test vectors", () => {
  const code = runnable((module) =>
    module.define("threefry", ["i32"], [], (builder, target) => {
      if (!target) return;
      // Counters and keys of all zeros, of all ones, and the digits of π.
      const words = [
        [0, 0, 0, 0],
        [-1, -1, -1, -1],
        [0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344],
      ];
      const lanes = (index: number) =>
        vector("i32x4", [...words.map((each) => each[index] ?? 0), 0]);
      const [left, right] = threefry2x32(builder, [lanes(2), lanes(3)], [lanes(0), lanes(1)]);
      builder.store("v128.store", target, left);
      builder.store("v128.store", target, right, 16);
    }),
  );
  const after = runModule(code, new Uint8Array(64), 0, ({ run }) => run?.(0));
  const words = new Uint32Array(after.buffer, 0, 8);
  expect([...words.subarray(0, 3)]).toEqual([0x6b200159, 0x1cb996fc, 0xc4923a9c]);
  expect([...words.subarray(4, 7)]).toEqual([0x99ba4efe, 0xbb002be7, 0x483df7a0]);
});
