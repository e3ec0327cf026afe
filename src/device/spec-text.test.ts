/** The text of what an operation was given: one text, one specification. */
import { expect, test } from "vitest";
import { bf16, f16, f32 } from "../formats/dtype.ts";
import { tensor, dim } from "../lang/index.ts";
import { specText } from "./spec-text.ts";

const [k, n] = [dim("k"), dim("n")];

test("tells apart whatever differs", () => {
  const values: readonly unknown[] = [
    ...[undefined, null, true, false, 0, -0, 1, NaN, Infinity, -Infinity, 1n, 0.1],
    ...["", "0", "null", "dtype bf16", "1n", "[]", "a,b", 'a"'],
    ...[[], [[]], [1, 2], [12], ["1", 2], [undefined], ["a", "b"], ["a,b"]],
    ...[{}, { a: 1 }, { a: "1" }, { a: { a: 1 } }, { a: undefined }, { b: 1 }],
    ...[{ a: 1, b: 2 }, { b: 2, a: 1 }, { 'a":1,"b': 2 }],
    ...[bf16, f16, f32, { a: bf16 }, { a: f16 }, { a: "bf16" }],
    ...[tensor(bf16, [k, n]), tensor(bf16, [n, k]), tensor(f16, [k, n])],
    ...[tensor(bf16, [k, n], { strides: [1, k] }), tensor(bf16, [128, n])],
    ...[dim("n", { multipleOf: 8 }), n],
  ];
  const texts = values.map((value) => specText(value));
  expect(texts).not.toContain(undefined);
  expect(new Set(texts).size).toBe(values.length);
});

test("is the same for what is made again", () => {
  const made = (): unknown => ({
    a: tensor(bf16, [dim("m"), dim("k")]),
    configuration: { kernel: "plain", rows: 64 },
  });
  expect(specText(made())).toBe(specText(made()));
});

test("does not exist where a text would not say everything", () => {
  const own: { self?: unknown } = {};
  own.self = own;
  class Options {
    readonly a = 1;
  }
  const values: readonly unknown[] = [
    ...[() => 1, Symbol("x"), { a: () => 1 }, [[() => 1]], { [Symbol("x")]: 1 }],
    ...[new Options(), new Map(), new Float32Array(2), new Date(0), own],
    {
      get a() {
        return 1;
      },
    },
  ];
  for (const value of values) expect(specText(value)).toBeUndefined();
});
