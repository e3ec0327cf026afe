import { afterAll, describe, expect, test } from "vitest";
import {
  tensor,
  bool,
  concatenate,
  constant,
  f16,
  f32,
  fromNumbers,
  i32,
  i8,
  inlinePtx,
  iota,
  kernel,
  open,
  smem,
  toNumbers,
  u32,
  warps,
  dot,
} from "tilewright";
import type { Scalar, Tile } from "tilewright";
import { testMistakes, trace } from "../../test/language.ts";
import type { Mistake } from "../../test/language.ts";

const devices = [await open("simulator"), await open("emulator")];
const [simulator, emulator] = devices;
afterAll(() => {
  for (const device of devices) device.dispose();
});

describe.each(devices.map((device) => [device.name, device] as const))("on the %s", (_, device) => {
  test("code for each element, of several operands and results, scalars among them", async () => {
    const both = kernel(
      {
        name: "both",
        inputs: { x: tensor(u32, [6, 10]), y: tensor(u32, [10]) },
        outputs: { sum: tensor(u32, [6, 10]), carry: tensor(bool, [6, 10]) },
      },
      ({ x, y, sum, carry }) => {
        const [low, over] = inlinePtx({
          operands: [x.load(), y.load()],
          results: [u32, bool],
          code: ([a, b], [total, overflow]) => `
            .reg .u64 wide, other;
            cvt.u64.u32 wide, ${a};
            cvt.u64.u32 other, ${b};
            add.u64 wide, wide, other;
            cvt.u32.u64 ${total}, wide;
            setp.gt.u64 ${overflow}, wide, 4294967295;`,
          meaning: (a, b) => [a.add(b), a.add(b).lt(a)],
        });
        sum.store(low);
        carry.store(over);
      },
    );
    const xs = Array.from({ length: 60 }, (_unused, index) => 2 ** 32 - 1 - index * 77_777_777);
    const ys = Array.from({ length: 10 }, (_unused, index) => index * 400_000_000);
    const results = await device.run(both, {
      x: fromNumbers(
        u32,
        [6, 10],
        xs.map((x) => ((x % 2 ** 32) + 2 ** 32) % 2 ** 32),
      ),
      y: fromNumbers(u32, [10], ys),
    });
    const exact = xs.map((x, at) => (((x % 2 ** 32) + 2 ** 32) % 2 ** 32) + (ys[at % 10] ?? NaN));
    expect([...toNumbers(results.sum)]).toEqual(exact.map((value) => value % 2 ** 32));
    expect([...toNumbers(results.carry)]).toEqual(exact.map((value) => Number(value >= 2 ** 32)));
  });

  test("what code gives outlives its meaning", async () => {
    const kept = kernel(
      { name: "kept", inputs: { x: tensor(u32, [8]) }, outputs: { out: tensor(u32, [8]) } },
      ({ x, out }) => {
        const [once] = inlinePtx({
          operands: [x.load()],
          results: [u32],
          code: ([from], [to]) => `add.u32 ${to}, ${from}, 1;`,
          meaning: (from) => [from.add(1)],
        });
        // Values that are made now must not take the place of `once`.
        const others = iota(u32, [8], { axis: 0 }).mul(7).add(x.load());
        out.store(once.mul(100).add(others.xor(once)).add(once));
      },
    );
    const x = Array.from({ length: 8 }, (_unused, index) => index * 3);
    const { out } = await device.run(kept, { x: fromNumbers(u32, [8], x) });
    expect([...toNumbers(out)]).toEqual(
      x.map((value, index) => 101 * (value + 1) + ((7 * index + value) ^ (value + 1))),
    );
  });

  test("code on scalars and on packed formats", async () => {
    const narrow = kernel(
      {
        name: "narrow",
        inputs: { x: tensor(i8, [37]), h: tensor(f16, [37]) },
        outputs: { out: tensor(i8, [37]), half: tensor(f16, [37]), one: tensor(i32, [1]) },
      },
      ({ x, h, out, half, one }) => {
        const [flipped] = inlinePtx({
          operands: [x.load()],
          results: [i8],
          code: ([a], [b]) => `not.b32 ${b}, ${a};`,
          meaning: (a) => [a.not()],
        });
        out.store(flipped);
        const [doubled] = inlinePtx({
          operands: [h.load()],
          results: [f16],
          code: ([a], [b]) => `add.rn.f16 ${b}, ${a}, ${a};`,
          meaning: (a) => [a.add(a)],
        });
        half.store(doubled);
        const [bits] = inlinePtx({
          operands: [x.at(3).loadScalar().cast(i32)],
          results: [i32],
          code: ([a], [b]) => `{ .reg .pred p; setp.lt.s32 p, ${a}, 0; selp.s32 ${b}, 7, 9, p; }`,
          meaning: (a) => [a.lt(0).select(constant(i32, 7), 9)],
        });
        const scalar: Scalar<"i32"> = bits;
        one.at(0).store(scalar);
      },
    );
    const numbers = Array.from({ length: 37 }, (_unused, index) => index * 6 - 100);
    const results = await device.run(narrow, {
      x: fromNumbers(i8, [37], numbers),
      h: fromNumbers(f16, [37], numbers),
    });
    expect([...toNumbers(results.out)]).toEqual(numbers.map((value) => ~value));
    expect([...toNumbers(results.half)]).toEqual(numbers.map((value) => 2 * value));
    expect([...toNumbers(results.one)]).toEqual([7]);
  });

  test("code for each lane of a warp: a shuffle between neighbours", async () => {
    const rows = "(L0 L1 L2 L3 L4)";
    const swap = kernel(
      {
        name: "swap",
        inputs: { x: tensor(f32, [4, 32]) },
        outputs: { out: tensor(f32, [4, 32]) },
        scratch: { buffer: smem(f32, [4, 32]) },
      },
      ({ x, out, buffer }) => {
        buffer.store(x.load());
        warps((warp) => {
          const own = buffer.at(warp).load();
          const [other] = inlinePtx({
            operands: [own],
            results: [{ dtype: f32, shape: [32] }],
            layouts: { operands: [rows], results: [rows] },
            code: ([[mine]], [[theirs]]) =>
              `shfl.sync.bfly.b32 ${theirs}, ${mine}, 1, 31, 0xffffffff;`,
            meaning: (tile) => {
              const pairs = tile.reshape([16, 2]);
              const halves = [1, 0].map((at) => pairs.slice([0, at], [16, 1]));
              return [concatenate(halves, { axis: 1 }).reshape([32])];
            },
          });
          out.at(warp).store(other);
        });
      },
    );
    const numbers = Array.from({ length: 128 }, (_unused, index) => index);
    const { out } = await device.run(swap, { x: fromNumbers(f32, [4, 32], numbers) });
    expect([...toNumbers(out)]).toEqual(numbers.map((index) => index ^ 1));
  });

  test("code for each lane: a product of tensor cores on its own fragments", async () => {
    // The fragments of mma.sync.m16n8k16, one warp.
    const [a, b, c] = [
      "(L2 L3 L4 R1 | R0 L0 L1 R2)",
      "(R0 L0 L1 R1 | L2 L3 L4)",
      "(L2 L3 L4 R1 | R0 L0 L1)",
    ];
    const product = kernel(
      {
        name: "product",
        warps: 1,
        inputs: { x: tensor(f16, [16, 16]), y: tensor(f16, [16, 8]) },
        outputs: { out: tensor(f32, [16, 8]) },
      },
      ({ x, y, out }) => {
        const [sums] = inlinePtx({
          operands: [x.load(), y.load()],
          results: [{ dtype: f32, shape: [16, 8] }],
          layouts: { operands: [a, b], results: [c] },
          code: ([left, right], [sum]) => {
            const pairs = (halves: readonly string[], name: string): string =>
              Array.from(
                { length: halves.length / 2 },
                (_unused, at) =>
                  `mov.b32 ${name}${at}, {${halves[2 * at]}, ${halves[2 * at + 1]}};`,
              ).join("\n");
            return `.reg .b32 a<4>, b<2>;
              ${pairs(left, "a")}
              ${pairs(right, "b")}
              mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {${sum.join(", ")}},
                {a0, a1, a2, a3}, {b0, b1}, {0f00000000, 0f00000000, 0f00000000, 0f00000000};`;
          },
          meaning: (left, right) => [dot(left, right)],
        });
        out.store(sums);
      },
    );
    const [left, right] = [16 * 16, 16 * 8].map((count) =>
      Array.from({ length: count }, (_unused, index) => ((index * 5) % 11) - 5),
    );
    const { out } = await device.run(product, {
      x: fromNumbers(f16, [16, 16], left ?? []),
      y: fromNumbers(f16, [16, 8], right ?? []),
    });
    const expected = Array.from({ length: 128 }, (_unused, at) => {
      let sum = 0;
      for (let k = 0; k < 16; k++)
        sum += (left?.[Math.floor(at / 8) * 16 + k] ?? NaN) * (right?.[k * 8 + (at % 8)] ?? NaN);
      return sum;
    });
    expect([...toNumbers(out)]).toEqual(expected);
  });
});

test("devices run the code and not its meaning", async () => {
  const differ = kernel({ name: "differ", outputs: { out: tensor(f32, [4]) } }, ({ out }) => {
    const [y] = inlinePtx({
      operands: [iota(f32, [4], { axis: 0 })],
      results: [f32],
      code: ([x], [sum]) => `add.f32 ${sum}, ${x}, 0f3F800000;`,
      meaning: (x) => [x.add(2)],
    });
    out.store(y);
  });
  const found = await Promise.all(devices.map((device) => device.run(differ, {})));
  expect(found.map(({ out }) => [...toNumbers(out)])).toEqual([
    [2, 3, 4, 5],
    [1, 2, 3, 4],
  ]);
});

const refusals: readonly (readonly [string, string, string])[] = [
  ["%out0 = %in0", "cannot be read", "add.f32"],
  ["ld.global.f32 %out0, [0];", "takes no memory", "ld.global"],
  ["bar.sync 0; mov.b32 %out0, %in0;", "takes no bar", "bar.sync"],
  ["add.f32 %in0, %in0, %in0; mov.b32 %out0, %in0;", "changes an operand", "%in0"],
  ["mov.b32 t, 0;", "cannot be read", "t"],
  ["{ .reg .b32 t; mov.b32 t, %in0; }", "leaves no result in %out0", ""],
  ["again: mov.b32 %out0, %in0;", "takes no label", "label"],
  [".reg .b128 t; mov.b32 %out0, %in0; mov.b128 t, t;", "at most 64 bits", "b128"],
];

test.each(refusals)("code that is refused: %s", async (code, message) => {
  const wrong = kernel({ name: "wrong", outputs: { out: tensor(f32, [4]) } }, ({ out }) => {
    const [y] = inlinePtx({
      operands: [iota(f32, [4], { axis: 0 })],
      results: [f32],
      code: () => code,
      meaning: (x) => [x],
    });
    out.store(y);
  });
  await simulator?.run(wrong, {});
  await expect(emulator?.run(wrong, {})).rejects.toThrow(
    expect.objectContaining({
      code: "TW7003",
      message: expect.stringContaining(message) as string,
    }),
  );
});

const tile = (): Tile<"f32"> => iota(f32, [4], { axis: 0 });
const plain = { code: () => "", meaning: (x: Tile<"f32">) => [x] as const };
const mistakes: readonly Mistake[] = [
  {
    name: "a meaning that loads",
    code: "TW1040",
    make: () =>
      kernel({ name: "k", inputs: { x: tensor(f32, [4]) } }, ({ x }) => {
        inlinePtx({
          operands: [tile()],
          results: [f32],
          code: () => "",
          meaning: () => [x.load()], // <- here
        });
      }),
    message: "the meaning of inlinePtx has load in it",
  },
  {
    name: "a meaning that gives another format",
    code: "TW2016",
    make: () =>
      trace(() => {
        const meaning = (x: Tile<"f32">) => [x.cast(i32)] as never;
        inlinePtx({ ...plain, operands: [tile()], results: [f32], meaning }); // <- here
      }),
    expected: "(tile<f32, [4]>)",
    found: "(tile<i32, [4]>)",
  },
  {
    name: "no operand",
    code: "TW2016",
    make: () =>
      trace(() => {
        inlinePtx({ operands: [], results: [f32], code: () => "", meaning: () => [] } as never); // <- here
      }),
  },
  {
    name: "a layout that the tile has not the axes for",
    code: "TW6102",
    make: () =>
      trace(() => {
        const layouts = { operands: ["(L0 L1 | L2)"], results: ["(L0 L1)"] } as const;
        const results = [{ dtype: f32, shape: [4] }] as const;
        inlinePtx({ ...plain, operands: [tile()], results, layouts }); // <- here
      }),
  },
  {
    name: "code that is no text",
    code: "TW1008",
    make: () =>
      trace(() => {
        inlinePtx({ ...plain, operands: [tile()], results: [f32], code: () => 3 as never }); // <- here
      }),
  },
];
testMistakes("mistakes of inlinePtx", mistakes);
