/** Gated layers and rotary embeddings against float64. */
import { describe, expect, test } from "vitest";
import { codeOf, expectClose, randomNumbers } from "../../../test/support/library-checks.ts";
import { bf16, f32, i32 } from "../../formats/dtype.ts";
import { toNumbers } from "../../formats/hostarray.ts";
import { tensor, dim } from "../../lang/index.ts";
import { compileAhead } from "../../lower/compile-ahead.ts";
import { open } from "../../runtime/open.ts";
import { targets } from "../../targets/target.ts";
import { gated, rotary } from "./gated-rotary.ts";

const [s, h, d, n] = [dim("s"), dim("h"), dim("d", { multipleOf: 2 }), dim("n")];

describe.each(["simulator", "emulator"] as const)("on the %s", (kind) => {
  test("the first half, activated, times the second", async () => {
    const device = await open(kind);
    for (const [rows, half] of [
      [5, 7],
      [3, 160],
    ] as const) {
      const x = randomNumbers(bf16, [rows, 2 * half], 1, 3);
      const { out } = await device.run(gated({ x: bf16, activation: "silu" }), { x: x.array });
      const expected = Array.from({ length: rows * half }, (_, index) => {
        const [row, column] = [Math.floor(index / half), index % half];
        const gate = x.values[row * 2 * half + column] ?? NaN;
        return (gate / (1 + Math.exp(-gate))) * (x.values[row * 2 * half + half + column] ?? NaN);
      });
      expectClose(out, expected, { relative: 2 });
      const { out: kept } = await device.run(
        gated({ x: bf16, activation: (gate) => gate.mul(0).add(1) }),
        {
          x: x.array,
        },
      );
      expect(toNumbers(kept)[0]).toBe(x.values[half]);
    }
    device.dispose();
  });

  test("pairs are turned by the angle of their position", async () => {
    const device = await open(kind);
    const [positions, heads, width] = [5, 3, 12];
    const x = randomNumbers(f32, [2, positions, heads, width], 1, 2);
    const angles = randomNumbers(f32, [positions, width / 2], 2, 3);
    const table = (of: (angle: number) => number, seed: number) => {
      const made = randomNumbers(f32, [positions, width / 2], seed, 1);
      made.values.forEach((_, index) => {
        made.array.data[index] = of(angles.values[index] ?? NaN);
      });
      return { array: made.array, values: toNumbers(made.array) };
    };
    const [cos, sin] = [table(Math.cos, 3), table(Math.sin, 4)];
    const op = rotary({ x: tensor(f32, [dim("b"), s, h, d]), cos: f32, sin: f32 });
    const { out } = await device.run(op, { x: x.array, cos: cos.array, sin: sin.array });
    const expected = x.values.map((_, index) => {
      const column = index % width;
      const pair = column % (width / 2);
      const position = Math.floor(index / (width * heads)) % positions;
      const first = x.values[index - column + pair] ?? NaN;
      const second = x.values[index - column + pair + width / 2] ?? NaN;
      const [c, z] = [cos, sin].map(({ values }) => values[position * (width / 2) + pair] ?? NaN);
      return column < width / 2
        ? first * (c ?? NaN) - second * (z ?? NaN)
        : second * (c ?? NaN) + first * (z ?? NaN);
    });
    expectClose(out, expected, { relative: 4, absolute: 1e-6 });
    device.dispose();
  });
});

test.each(["simulator", "emulator"] as const)(
  "heads of 16 bits are turned within a larger array, on the %s",
  async (kind) => {
    const device = await open(kind);
    const [positions, heads, width] = [3, 18, 64];
    const x = randomNumbers(bf16, [positions, 2, heads, width], 1, 2);
    const cos = randomNumbers(f32, [positions, width / 2], 2, 1);
    const sin = randomNumbers(f32, [positions, width / 2], 3, 1);
    const all = await device.upload(x.array);
    const strides = [2 * heads * width, heads * width, width, 1];
    const lies = tensor(bf16, [s, 1, heads, width], { strides });
    for (const part of [0, 1]) {
      const given = all.slice(part, part + 1, { axis: 1 });
      const op = rotary({ x: lies, cos: f32, sin: f32, axis: 0 });
      const { out } = await device.run(op, { x: given, cos: cos.array, sin: sin.array });
      const expected = Array.from({ length: positions * heads * width }, (_, index) => {
        const [position, column] = [Math.floor(index / (heads * width)), index % width];
        const start = index + (position + part) * heads * width - column;
        const pair = column % (width / 2);
        const at = (place: number): number => x.values[start + place] ?? NaN;
        const [c = NaN, z = NaN] = [cos, sin].map(
          ({ values }) => values[position * (width / 2) + pair],
        );
        const other = pair + width / 2;
        return column === pair ? at(pair) * c - at(other) * z : at(other) * c + at(pair) * z;
      });
      expectClose(out, expected, { relative: 2, absolute: 1e-5 });
    }
    all.dispose();
    device.dispose();
  },
);

test.each(["simulator", "emulator"] as const)(
  "a half that ends within a window is not stored into the other, on the %s",
  async (kind) => {
    const device = await open(kind);
    const width = 2560;
    const x = randomNumbers(f32, [1, 2, width], 1, 2);
    const cos = randomNumbers(f32, [1, width / 2], 2, 1);
    const sin = randomNumbers(f32, [1, width / 2], 3, 1);
    const op = rotary({ x: tensor(f32, [s, h, d]), cos: f32, sin: f32 });
    const { out } = await device.run(op, { x: x.array, cos: cos.array, sin: sin.array });
    const expected = x.values.map((own, index) => {
      const pair = index % (width / 2);
      const isFirst = index % width === pair;
      const other = x.values[isFirst ? index + width / 2 : index - width / 2] ?? NaN;
      const turn = (isFirst ? -1 : 1) * (sin.values[pair] ?? NaN);
      return own * (cos.values[pair] ?? NaN) + other * turn;
    });
    expectClose(out, expected, { relative: 4, absolute: 1e-6 });
    device.dispose();
  },
);

test("halves of heads are stored without a meeting, widely, and found without a division", () => {
  const op = rotary({ x: tensor(bf16, [s, h, d]), cos: f32, sin: f32 });
  const ptxFor = (heads: number, positions: number): string => {
    const [launch] = op.plan({ s: positions, h: heads, d: 128 }, targets.sm_90a).launches;
    if (launch === undefined) throw new Error("there is a launch");
    return compileAhead(launch.kernel, targets.sm_90a).ptx;
  };
  const ptx = ptxFor(64, 4096);
  expect(ptx.match(/(ld|st)\.global\S*/g)).toEqual([
    ...Array.from({ length: 6 }, () => "ld.global.v4.b32"),
    ...["st.global.v4.b32", "st.global.v4.b32"],
  ]);
  expect(ptx).not.toMatch(/bar\.sync|div\.u32|trap/);
  expect(ptxFor(64, 512)).toBe(ptx);
  expect(ptxFor(40, 4096)).not.toBe(ptx);
});

test("mistakes are reported", () => {
  const refused: readonly (readonly [string, () => unknown])[] = [
    ["TW9901", () => gated({ x: i32 as never, activation: "silu" })],
    ["TW9902", () => gated({ x: tensor(f32, [n]), activation: "silu" })],
    ["TW9904", () => gated({ x: f32, activation: "swish" as never })],
    ["TW9905", () => gated({ x: f32, activation: (gate) => gate.cumsum({ axis: 0 }) })],
    ["TW9902", () => rotary({ x: tensor(f32, [s, h, n]), cos: f32, sin: f32 })],
    ["TW9902", () => rotary({ x: tensor(f32, [s, h, d]), cos: tensor(f32, [h, n]), sin: f32 })],
    ["TW9902", () => rotary({ x: tensor(f32, [d]), cos: f32, sin: f32 })],
    ["TW9902", () => rotary({ x: tensor(f32, [s, h, d]), cos: f32, sin: f32, axis: -1 })],
    ["TW1033", () => rotary({ x: tensor(f32, [s, h, d]), angles: f32 } as never)],
  ];
  for (const [code, make] of refused) expect(codeOf(make), String(make)).toBe(code);
});

test("a last axis that has no halves is told with both shapes", async () => {
  const device = await open("simulator");
  const x = randomNumbers(f32, [4, 7], 1, 1).array;
  const run = device.run(gated({ x: f32, activation: "relu" }), { x });
  await expect(run).rejects.toMatchObject({
    code: "TW4004",
    expected: "[m, 2*n]",
    found: "[4, 7]",
  });
  device.dispose();
});
