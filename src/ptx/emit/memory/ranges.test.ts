import { describe, expect, test } from "vitest";
import type { Kernel, Value } from "../../../ir/node.ts";
import { ceilDivSize, dimension, sizeText } from "../../../ir/size.ts";
import type { Size } from "../../../ir/size.ts";
import { walkOps } from "../../../ir/traverse.ts";
import { f32 } from "../../../formats/dtype.ts";
import { array, cdiv, dim, gridSize, kernel, loop, slice } from "../../../lang/index.ts";
import type { Scalar } from "../../../lang/index.ts";
import { Windows } from "../../../layout/model/windows.ts";
import { endsWithin, greatest, Ranges } from "./ranges.ts";
import type { Range } from "./ranges.ts";

const n = dim("n", { multipleOf: 64 });
const m = dim("m");

/** What is known of the offset of the kernel's only window. */
function rangeOf(index: (i: Scalar<"i32">, j: Scalar<"i32">) => Scalar<"i32">): Range {
  const { kernel: body } = kernel(
    {
      name: "indices",
      grid: { i: cdiv(n, 64), j: m },
      inputs: { x: array(f32, [1 << 20]) },
      outputs: { out: array(f32, [8]) },
    },
    ({ i, j, x, out }) => {
      out.store(x.at(slice(index(i, j), 8)).load());
    },
  );
  return rangesOf(body).of(offsetOf(body));
}

function rangesOf(body: Kernel): Ranges {
  const { definitions, divisors } = new Windows(body);
  return new Ranges(body, definitions, divisors);
}

function offsetOf(body: Kernel): Value {
  const offsets: Value[] = [];
  walkOps(body.body, (op) => {
    if (op.kind === "slice_ref") offsets.push(...op.operands.offsets);
  });
  const [offset] = offsets;
  if (offset === undefined) throw new Error("no window");
  return offset;
}

function text({ least, below }: Range): string {
  return `${least} to ${below.map(sizeText).join(", ")}`;
}

describe("ranges of indices", () => {
  test.each([
    ["an axis", (i: Scalar<"i32">) => i, "0 to ceildiv(n, 64)"],
    ["its multiple", (i: Scalar<"i32">) => i.mul(64), "0 to 64*ceildiv(n, 64), n"],
    ["what comes before", (i: Scalar<"i32">) => i.mul(64).sub(3), "-3 to 64*ceildiv(n, 64), n"],
    [
      "a small step on",
      (i: Scalar<"i32">) => i.mul(64).add(i.rem(8).mul(8)),
      "0 to 64*ceildiv(n, 64), n",
    ],
    ["a remainder", (i: Scalar<"i32">) => i.rem(8), "0 to 8, ceildiv(n, 64)"],
    ["a quotient", (i: Scalar<"i32">) => i.mul(64).div(64), "0 to ceildiv(n, 64), ceildiv(n, 64)"],
    ["the lesser", (i: Scalar<"i32">) => i.minimum(5), "0 to ceildiv(n, 64), 6"],
    ["the greater", (i: Scalar<"i32">) => i.maximum(5), "5 to "],
  ])("%s", (_, index, expected) => {
    expect(text(rangeOf(index))).toBe(expected);
  });

  test("tiles that blocks take one after the other", () => {
    const tile = (i: Scalar<"i32">, j: Scalar<"i32">) => i.mul(gridSize("j")).add(j);
    expect(rangeOf((i, j) => tile(i, j).rem(gridSize("j"))).below.map(sizeText)).toContain("m");
  });

  test("a loop's counter is below its end", () => {
    const { kernel: body } = kernel(
      {
        name: "counted",
        grid: { i: 1 },
        inputs: { x: array(f32, [n]) },
        outputs: { out: array(f32, [n]) },
      },
      ({ x, out }) => {
        loop({ from: 64, to: n, step: 64 }, (step) => {
          out.at(slice(step, 64)).store(x.at(slice(step, 64)).load());
        });
      },
    );
    expect(text(rangesOf(body).of(offsetOf(body)))).toBe("64 to n");
  });
});

describe("what ends within", () => {
  const whole = dimension("n", 64);
  const cases: readonly (readonly [number, number, readonly Size[], Size, Size, boolean])[] = [
    // divisor, least, below, size, end, expected
    [64, 0, [whole], 64, whole, true],
    [64, 0, [whole], 65, whole, false],
    [32, 0, [dimension("k")], 32, dimension("k"), false],
    [1, 0, [whole], 1, whole, true],
    [8, 0, [100], 4, 100, true],
    [8, 0, [100], 5, 100, false],
    [8, 0, [ceilDivSize(whole, 8)], 8, whole, false],
    [0, 0, [1], whole, whole, true],
  ];
  test.each(cases)("divisor %i, from %i", (divisor, least, below, size, end, expected) => {
    expect(endsWithin({ divisor, least, below }, size, end)).toBe(expected);
  });

  test("the greatest is known from numbers alone", () => {
    expect(greatest({ least: 0, below: [whole, 12, 7] })).toBe(6);
    expect(greatest({ least: 0, below: [whole] })).toBe(Infinity);
  });
});
