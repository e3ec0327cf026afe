/** Rings of messages as kernels leave them, built word by word. */
import { describe, expect, test } from "vitest";
import { bf16, bool, f32, f64, i4, i64, i8 } from "../formats/dtype.ts";
import { cdiv, dim } from "../lang/index.ts";
import type { MessageSite } from "./executable.ts";
import { readMessages, ringHeader, ringHeaderWords } from "./print-ring.ts";
import type { Speakers } from "./print-ring.ts";

const position = { file: "user.ts", line: 7, column: 3 };

function print(text: string, ...values: MessageSite["values"]): MessageSite {
  return { kind: "print", text, values, position };
}

function speakers(messages: readonly MessageSite[], grid: Speakers["grid"] = []): Speakers {
  return { name: "talk", messages, grid, threads: ["load", "compute"] };
}

function bitsOf(value: number): number {
  return new Uint32Array(Float32Array.of(value).buffer)[0] ?? 0;
}

/** A ring of `size` words with records of site, block, thread and values. */
function ring(size: number, ...records: readonly (readonly number[])[]): Uint32Array {
  const words = new Uint32Array(size);
  words.set(ringHeader(size));
  let start = ringHeaderWords;
  for (const [site = 0, block = 0, thread = 0, ...values] of records) {
    const record = [site + 1, block, thread, values.length, ...values];
    if (start + record.length <= size) words.set(record, start);
    start += record.length;
  }
  words[0] = start - ringHeaderWords;
  return words;
}

const none = new Map<string, number>();

describe("prints", () => {
  test("of scalars of every width", () => {
    const site = print(
      "{} {} {} {} {} {}",
      ...[f32, f64, i64, i8, bf16, i4].map((dtype) => ({ dtype, shape: [] })),
    );
    const wide = new Uint32Array(Float64Array.of(-0.1).buffer);
    const long = new Uint32Array(BigInt64Array.of(-5_000_000_000n).buffer);
    // Above the element's bits may stand anything.
    const values = [bitsOf(1.5), ...wide, ...long, 0xaaaaaa_fe, 0xbbbb_4040, 0xffffff_79];
    expect(readMessages(ring(64, [0, 0, 1, ...values]), speakers([site]), none)).toEqual({
      lines: ["[thread compute] 1.5 -0.1 -5000000000 -2 3 -7"],
      failure: undefined,
    });
  });

  test("of a tile, in row-major order", () => {
    const site = print("tile {}.", { dtype: f32, shape: [2, 2] });
    const read = readMessages(
      ring(64, [0, 0, 0, ...[1, 2, 3, 4].map(bitsOf)]),
      speakers([site]),
      none,
    );
    expect(read.lines).toEqual(["[thread load] tile f32[2, 2]\n[[1, 2],\n [3, 4]]."]);
  });

  test("name the block by its axes, through clusters", () => {
    const n = dim("n");
    const grid = [
      { name: "i", extent: cdiv(n, 4), cluster: 1 },
      { name: "j", extent: 6, cluster: 2 },
    ];
    // Grid 3 by 6 with pairs along j: number 9 is cluster 4 = (1, 1), rank 1, so block (1, 3).
    const read = readMessages(
      ring(64, [0, 9, 0]),
      speakers([print("here")], grid),
      new Map([["n", 12]]),
    );
    expect(read.lines).toEqual(["[thread load of block (i = 1, j = 3)] here"]);
  });

  test("are all there or dropped with a word about it", () => {
    const site = print("{}", { dtype: f32, shape: [] });
    const records = Array.from({ length: 4 }, (_, index) => [0, 0, 0, bitsOf(index)]);
    expect(readMessages(ring(24, ...records), speakers([site]), none).lines).toHaveLength(4);
    expect(readMessages(ring(23, ...records), speakers([site]), none).lines).toEqual([
      "[thread load] 0",
      "[thread load] 1",
      "[thread load] 2",
      "[kernel talk] further messages found no room: 20 bytes of them were dropped",
    ]);
  });

  test("of an empty ring are none", () => {
    expect(readMessages(ring(8), speakers([]), none)).toEqual({ lines: [], failure: undefined });
  });
});

describe("assertions", () => {
  const scalarSite: MessageSite = {
    kind: "assert",
    text: "x is positive",
    values: [{ dtype: bool, shape: [] }],
    position,
  };

  test("fail with the user's line", () => {
    const { failure } = readMessages(ring(32, [0, 0, 1, 0]), speakers([scalarSite]), none);
    expect(failure).toMatchObject({
      code: "TW3012",
      summary: "assertion failed: x is positive",
      position,
      found: "false in thread compute",
    });
  });

  test("over tiles name the elements, and the first failure counts", () => {
    const tile = { ...scalarSite, values: [{ dtype: bool, shape: [2, 2] }] };
    const records = [
      [0, 0, 0, 1, 0, 1, 1],
      [1, 0, 0, 0],
    ];
    const { failure } = readMessages(ring(64, ...records), speakers([tile, scalarSite]), none);
    expect(failure?.found).toBe("false for 1 of 4 elements, at [0, 1] in thread load");
  });

  test("without room for their record fail all the same", () => {
    const words = ring(6, [0, 0, 0, 0]);
    words[2] = 1;
    const { failure } = readMessages(words, speakers([scalarSite]), none);
    expect(failure).toMatchObject({ code: "TW3012" });
    expect(failure?.summary).toContain("talk");
  });
});
