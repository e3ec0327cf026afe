/**
 * Division by known numbers against division: every dividend and divisor of 8 bits for many ranges of the
 * dividend, and edges and random numbers of all widths as the emulator runs the instructions.
 */
import { afterAll, describe, expect, test } from "vitest";
import { compileAhead, open } from "tilewright";
import type { HostArray } from "tilewright";
import { allocateElements, dtypes, i32 } from "../../../formats/dtype.ts";
import type { DTypeName } from "../../../formats/dtype.ts";
import { writeElement } from "../../../formats/values.ts";
import { tensor, constant, kernel, scalar } from "../../../lang/index.ts";
import type { Scalar } from "../../../lang/index.ts";
import { Random } from "../../../support/random.ts";
import { quotientBy, remainderBy } from "./division.ts";
import type { WordArithmetic } from "./division.ts";

/** Registers of 8 bits, which hold what they hold without a sign. */
const bytes: WordArithmetic<number> = {
  bits: 8,
  constant: (value) => Number(BigInt.asUintN(8, value)),
  negate: (value) => -value & 255,
  make(operation, left, right) {
    const other = typeof right === "bigint" ? Number(BigInt.asUintN(8, right)) : right;
    const signed = (value: number): number => (value << 24) >> 24;
    const results = {
      add: left + other,
      sub: left - other,
      "mul.lo": left * other,
      "mul.hi.s": (signed(left) * signed(other)) >> 8,
      "mul.hi.u": (left * other) >> 8,
      "shr.s": signed(left) >> other,
      "shr.u": left >> other,
      and: left & other,
    };
    return results[operation] & 255;
  },
};

function quotient(dividend: number, by: number): number {
  return (by === 0 ? -1 : Math.trunc(dividend / by)) & 255;
}

function remainder(dividend: number, by: number): number {
  return (by === 0 ? dividend : dividend % by) & 255;
}

describe("every number of 8 bits", () => {
  const signed = [
    [-128, 127],
    [-128, -1],
    [-5, 100],
    [-9, 3],
    [0, 127],
    [0, 63],
    [3, 20],
  ] as const;
  const unsigned = [
    [0, 255],
    [0, 200],
    [128, 255],
  ] as const;
  test.each([
    ["signed", signed, -128, 127],
    ["unsigned", unsigned, 0, 255],
  ] as const)("%s", (_, ranges, first, last) => {
    for (const [least, greatest] of ranges)
      for (let by = first; by <= last; by += 1) {
        const division = { by: BigInt(by), least: BigInt(least), greatest: BigInt(greatest) };
        for (let value = least; value <= greatest; value += 1) {
          const found = quotientBy(bytes, value & 255, division);
          const rest = remainderBy(bytes, value & 255, division);
          if (found !== quotient(value, by) || rest !== remainder(value, by))
            throw new Error(`${value} / ${by} in [${least}, ${greatest}]: ${found}, ${rest}`);
        }
      }
  });
});

test("a remainder by a negative number takes the instructions of that by its magnitude", () => {
  const operationsOf = (by: bigint): readonly string[] => {
    const made: string[] = [];
    const counting: WordArithmetic<number> = {
      ...bytes,
      negate(value) {
        made.push("negate");
        return bytes.negate(value);
      },
      make(operation, left, right) {
        made.push(operation);
        return bytes.make(operation, left, right);
      },
    };
    remainderBy(counting, 100, { by, least: -128n, greatest: 127n });
    return made;
  };
  for (const by of [1n, 8n, 7n, 100n]) expect(operationsOf(-by)).toEqual(operationsOf(by));
  expect(operationsOf(-8n)).not.toContain("mul.lo");
});

const formats = ["i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64"] as const;

function limits(name: DTypeName): readonly [bigint, bigint] {
  const { bits, kind } = dtypes[name];
  const count = 1n << BigInt(bits);
  return kind === "signed" ? [-count / 2n, count / 2n - 1n] : [0n, count - 1n];
}

/** Numbers where something may go wrong, and random ones of every magnitude. */
function numbers(name: DTypeName, count: number, seed: number): readonly bigint[] {
  const random = new Random(seed);
  const [least, greatest] = limits(name);
  const edges = [least, least + 1n, greatest, greatest - 1n, 0n, 1n, 2n, greatest / 2n, -1n, -2n];
  const others = Array.from({ length: count }, () => {
    const wide = (BigInt(random.bits()) << 32n) | BigInt(random.bits());
    return least + ((wide >> BigInt(random.below(63))) % (greatest - least + 1n));
  });
  return [...edges, ...others].filter((value) => value >= least && value <= greatest);
}

function hostArray(name: DTypeName, values: readonly bigint[]): HostArray {
  const dtype = dtypes[name];
  const data = allocateElements(dtype, values.length);
  values.forEach((value, index) => {
    writeElement(dtype, data, index, dtype.bits === 64 ? value : Number(value));
  });
  return { dtype, shape: [values.length], data };
}

describe("as instructions", async () => {
  const device = await open("emulator");
  afterAll(() => {
    device.dispose();
  });

  test.each(formats)("%s", async (name) => {
    const dtype = dtypes[name];
    const [least, greatest] = limits(name);
    const constants = [3n, 7n, 10n, 64n, 100n, 127n, 641n, 1000003n, greatest, greatest / 2n + 1n];
    const negatives = [-1n, -2n, -3n, -7n, -100n, least];
    const divisors = [0n, 1n, 2n, ...constants, ...negatives, ...numbers(name, 12, 1)].filter(
      (by, index, all) => by >= least && by <= greatest && all.indexOf(by) === index,
    );
    const dividends = numbers(name, 116, 2);
    const count = dividends.length;
    const divided = kernel(
      {
        name: "divided",
        inputs: { x: tensor(dtype, [count]) },
        outputs: {
          quotients: tensor(dtype, [divisors.length, count]),
          remainders: tensor(dtype, [divisors.length, count]),
        },
      },
      ({ x, quotients, remainders }) => {
        const tile = x.load();
        divisors.forEach((by, row) => {
          const divisor = constant(dtype, (dtype.bits === 64 ? by : Number(by)) as never);
          quotients.at(row).store(tile.div(divisor));
          remainders.at(row).store(tile.rem(divisor));
        });
      },
    );
    expect(compileAhead(divided).ptx).not.toMatch(/\b(div|rem)\.[su]/);
    const results = (await device.run(divided, { x: hostArray(name, dividends) } as never)) as {
      readonly [name: string]: HostArray;
    };
    const wrap = (value: bigint): bigint =>
      dtype.kind === "signed"
        ? BigInt.asIntN(dtype.bits, value)
        : BigInt.asUintN(dtype.bits, value);
    divisors.forEach((by, row) => {
      dividends.forEach((value, column) => {
        const read = (output: string): bigint =>
          BigInt(results[output]?.data[row * count + column] ?? 0);
        const [found, rest] = [read("quotients"), read("remainders")];
        const right = wrap(by === 0n ? -1n : value / by);
        if (found !== right || rest !== (by === 0n ? value : value % by))
          expect.fail(`${value} / ${by} is ${right}: ${found}, ${rest}`);
      });
    });
  });

  test("a divisor that is not known is tested only for what it may be", () => {
    const ptx = (by: (n: Scalar<"i32">) => Scalar<"i32">): string =>
      compileAhead(
        kernel(
          {
            name: "unknown",
            grid: { i: 64 },
            inputs: { n: scalar(i32) },
            outputs: { out: tensor(i32, [64]) },
          },
          ({ i, n, out }) => {
            out.at(i).store(i.div(by(n)));
          },
        ),
      ).ptx;
    expect(ptx((n) => n.maximum(1))).toMatch(/div\.u32/);
    expect(ptx((n) => n.maximum(1))).not.toMatch(/selp/);
    expect(ptx((n) => n.maximum(0))).toMatch(/selp/);
    expect(ptx((n) => n)).toMatch(/div\.s32/);
  });
});
