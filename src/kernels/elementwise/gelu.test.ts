/** GELU against float64, by its distance from relu and by itself. */
import { expect, test } from "vitest";
import { bf16, f16, f32, f64 } from "../../formats/dtype.ts";
import type { DType } from "../../formats/dtype.ts";
import { fromNumbers, toNumbers } from "../../formats/hostarray.ts";
import { complementaryErrorFunction } from "../../formats/arithmetic/special.ts";
import type { Accuracy, Tile } from "../../lang/index.ts";
import { lower } from "../../lower/stages.ts";
import { printPtx } from "../../ptx/printer.ts";
import { open } from "../../runtime/open.ts";
import { targets } from "../../targets/target.ts";
import { activations } from "./activations.ts";
import { map } from "./map.ts";

const exact = (x: number): number => (x * complementaryErrorFunction(-x * Math.SQRT1_2)) / 2;

async function computed(
  kind: "simulator" | "emulator",
  dtype: DType<"f32"> | DType<"f64">,
  numbers: readonly number[],
  accuracy: Accuracy = {},
): Promise<{ readonly x: readonly number[]; readonly y: readonly number[] }> {
  const device = await open(kind);
  const op = map({ x: dtype }, ({ x }) => ({
    out: activations.gelu(x as Tile<"f32">, accuracy),
  }));
  const x = fromNumbers(dtype, [numbers.length], numbers);
  const { out } = await device.run(op, { x });
  device.dispose();
  if (out === undefined) throw new Error("map has no result");
  return { x: [...toNumbers(x)], y: [...toNumbers(out)] };
}

const [least, greatest, count] = [-9, 9, 6001];
const even = Array.from(
  { length: count },
  (_, index) => least + ((greatest - least) * index) / (count - 1),
);
const small = Array.from({ length: 80 }, (_, index) => (index % 2 === 0 ? 1 : -1) * 1.7 ** -index);

test.each(["simulator", "emulator"] as const)(
  "f32 is as exact as is said, on the %s",
  async (kind) => {
    const { x, y } = await computed(kind, f32, [...even, ...small]);
    const off = x.flatMap((at, index) => {
      const error = Math.abs((y[index] ?? NaN) - exact(at));
      const relative = at >= 0 ? 2 ** -21 : at > -5.8 ? 2 ** -15.5 : Infinity;
      const allowed = Math.min(2 ** -22 * Math.abs(at), relative * Math.abs(exact(at)));
      return error <= allowed + 2 ** -149 ? [] : [`${at}: ${y[index]}, not ${exact(at)}`];
    });
    expect(off).toEqual([]);
  },
);

test.each(["simulator", "emulator"] as const)(
  "approximated, it is exact beyond 16 bits, on the %s",
  async (kind) => {
    const { x, y } = await computed(kind, f32, [...even, ...small], { approximate: true });
    const off = x.flatMap((at, index) => {
      const error = Math.abs((y[index] ?? NaN) - exact(at));
      const allowed = at > -5 ? 2 ** -12.5 * Math.abs(exact(at)) : 2 ** -26;
      return error <= allowed + 2 ** -149 ? [] : [`${at}: ${y[index]}, not ${exact(at)}`];
    });
    expect(off).toEqual([]);
    expect(y).not.toEqual((await computed(kind, f32, [...even, ...small])).y);
  },
);

test.each([
  ["simulator", {}],
  ["emulator", {}],
  ["emulator", { approximate: true }],
] as const)("what has no Φ, on the %s, %j", async (kind, accuracy) => {
  const special = [Infinity, -Infinity, NaN, 0, -0, 3e38, -3e38, -40];
  const { y } = await computed(kind, f32, special, accuracy);
  expect(y.map((value) => value + 0)).toEqual([Infinity, 0, NaN, 0, 0, Math.fround(3e38), 0, 0]);
});

test("f64 is by the error function", async () => {
  const { x, y } = await computed("simulator", f64, even);
  x.forEach((at, index) => {
    expect(Math.abs((y[index] ?? NaN) - exact(at))).toBeLessThanOrEqual(2 ** -50 * Math.abs(at));
  });
  expect((await computed("simulator", f64, [1.7e308])).y).toEqual([1.7e308]);
});

test.each([bf16, f16])("of $name it is rounded once", async (dtype) => {
  const { x, y } = await computed("simulator", dtype as never, [...even, 3e38]);
  x.forEach((at, index) => {
    const wanted = at > 10 ? at : exact(at);
    const unit = dtype === bf16 ? 2 ** -8 : 2 ** -11;
    const off = Math.abs((y[index] ?? NaN) - wanted);
    if (Number.isFinite(at))
      expect(off).toBeLessThanOrEqual(1.01 * unit * Math.abs(wanted) + 2 ** -25);
  });
});

test.each(["simulator", "emulator"] as const)(
  "by tanh, great numbers stay what they are, on the %s",
  async (kind) => {
    const device = await open(kind);
    const op = map({ x: f32 }, ({ x }) => ({ out: activations.geluTanh(x) }));
    const x = fromNumbers(f32, [4], [3e38, 1e20, -3e38, 1]);
    const [great, large, negative, one = NaN] = toNumbers((await device.run(op, { x })).out);
    device.dispose();
    expect([great, large, negative]).toEqual([Math.fround(3e38), Math.fround(1e20), -0]);
    const inner = Math.sqrt(2 / Math.PI) * 1.044715;
    expect(Math.abs(one - 0.5 * (1 + Math.tanh(inner)))).toBeLessThan(2 ** -22);
  },
);

test("relu of 16 bits rounds nothing, and compares two elements at once", () => {
  const op = map({ x: bf16 }, ({ x }) => ({ out: activations.relu(x as unknown as Tile<"f32">) }));
  const [text = ""] = op
    .kernels({ n: 1 << 20 })
    .map(({ kernel }) => printPtx(lower(kernel, targets.sm_90a).module));
  expect(text).toMatch(/max\S*\.bf16x2/);
  expect(text).not.toContain("cvt.rn.bf16");
});
