/** Products of every pair of formats and sizes, of small whole numbers: sums of them are exact in any order. */
import { dtypes, f32, i32 } from "../../../src/formats/dtype.ts";
import type { DType } from "../../../src/formats/dtype.ts";
import { dot } from "../../../src/index.ts";
import { isFloat } from "./draft.ts";
import type { Draft } from "./draft.ts";
import { held, itemAt, transposed } from "./held.ts";
import { cast } from "./numbers.ts";
import { tileOf } from "./steps.ts";
import type { Slot } from "./steps.ts";

interface ProductForm {
  readonly left: DType;
  readonly right: DType;
  readonly sum: DType;
  readonly precision?: string;
}

const formOf = (left: string, right: string, sum: string, precision?: string): ProductForm => ({
  left: dtypes[left as "f32"],
  right: dtypes[right as "f32"],
  sum: dtypes[sum as "f32"],
  ...(precision !== undefined && { precision }),
});

const narrow = ["i8", "u8"].flatMap((left) =>
  ["i8", "u8"].map((right) => formOf(left, right, "i32")),
);
const narrowest = ["i4", "u4"].flatMap((left) =>
  ["i4", "u4"].map((right) => formOf(left, right, "i32")),
);
const productForms: readonly ProductForm[] = [
  formOf("f16", "f16", "f32"),
  formOf("f16", "f16", "f16"),
  formOf("bf16", "bf16", "f32"),
  formOf("tf32", "tf32", "f32"),
  formOf("f64", "f64", "f64"),
  ...["ieee", "tf32", "tf32x3", "bf16x3", "bf16x6"].map((way) => formOf("f32", "f32", "f32", way)),
  ...["f8e4m3fn", "f8e5m2"].flatMap((left) =>
    ["f8e4m3fn", "f8e5m2"].map((right) => formOf(left, right, "f32")),
  ),
  formOf("f8e4m3fn", "f8e5m2", "f16"),
  formOf("f4e2m1fn", "f4e2m1fn", "f32"),
  ...narrow,
  ...narrowest,
];

/** Small whole numbers, which every format holds, of a shape and format: by a pattern, turned by a number of the program. */
function factor(draft: Draft, dtype: DType, shape: readonly number[]): Slot {
  const isUnsigned = dtype.kind === "unsigned";
  const down = isUnsigned ? 0 : -3;
  const axis = draft.random.below(shape.length);
  const steps = 1 + draft.random.below(5);
  const turned = draft.chance(0.4);
  const laid = turned ? shape.toReversed() : shape;
  const pattern = draft.count(laid, axis, i32);
  const scalar = draft.exactly(i32, []);
  return draft.give(
    "factor",
    [pattern, scalar],
    dtype,
    shape,
    (at, plus) => {
      const small = at.mul(steps).add(plus.and(3)).rem(4).abs();
      const signed = isUnsigned ? small : small.add(down);
      const tile = signed.cast(f32).cast(dtype);
      return turned ? tile.transpose() : tile;
    },
    (at, plus) => {
      const add = plus.items[0] as bigint;
      const made = held(dtype, laid, (_, position) => {
        const count = at.items[position] as bigint;
        const rest = (count * BigInt(steps) + (add & 3n)) % 4n;
        return cast(i32, dtype, rest + BigInt(down));
      });
      return turned ? transposed(made, [1, 0]) : made;
    },
  );
}

export function dotStep(draft: Draft): void {
  const { random } = draft;
  const { left, right, sum, precision } = random.pick(productForms);
  const sizes = [1, 2, 3, 5, 8, 16, 16, 17, 24, 32, 48, 64];
  const [m, k, n] = [random.pick(sizes), random.pick(sizes), random.pick(sizes)];
  const a = factor(draft, left, [m, k]);
  const b = factor(draft, right, [k, n]);
  const adds = draft.chance(0.4);
  const first = adds ? draft.constantOf(sum, [m, n], isFloat(sum) ? 5 : 5n) : undefined;
  draft.give(
    `dot ${left.name} ${right.name} ${sum.name} ${precision ?? ""}`,
    [a, b, ...(first === undefined ? [] : [first])],
    sum,
    [m, n],
    (x, y, start) =>
      dot(tileOf(x), tileOf(y), {
        dtype: sum,
        ...(precision !== undefined && { precision: precision as "ieee" }),
        ...(start !== undefined && { accumulator: tileOf(start) }),
      }),
    (x, y, start) =>
      held(sum, [m, n], ([row = 0, column = 0]) => {
        let total = start === undefined ? 0 : Number(itemAt(start, [row, column]));
        for (let at = 0; at < k; at++)
          total += Number(itemAt(x, [row, at])) * Number(itemAt(y, [at, column]));
        return isFloat(sum) ? total : BigInt(total);
      }),
  );
}
