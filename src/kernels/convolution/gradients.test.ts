/**
 * Gradients of convolutions in f64 against finite differences of the convolution itself: with L = Σ out · dOut,
 *
 *   dx[i] = (L(x + h at i) − L(x − h at i)) / 2 h          dw[i] likewise
 *
 * L is linear in x and in w, so that only rounding parts the two.
 */
import { expect, test } from "vitest";
import { takesAll } from "../../../test/support/sample.ts";
import type { Device } from "../../device/device.ts";
import { f64 } from "../../formats/dtype.ts";
import { fromNumbers, toNumbers } from "../../formats/hostarray.ts";
import { tensor } from "../../lang/index.ts";
import { open } from "../../runtime/open.ts";
import { Random } from "../../support/random.ts";
import { convolution, convolutionBackwardW, convolutionBackwardX } from "./convolution.ts";

/** `CONVOLUTION_SEED=7` tries others. */
const seed = Number(process.env["CONVOLUTION_SEED"] ?? 1);
const sampled = takesAll ? 5 : 3;
const h = 0.25;

const cases = [
  { name: "3 × 3", x: [2, 5, 4, 3], w: [4, 3, 3, 3], padding: 1 },
  { name: "two apart", x: [2, 6, 5, 3], w: [4, 3, 3, 3], padding: 1, strides: 2 },
  { name: "1 × 1", x: [2, 3, 4, 5], w: [6, 1, 1, 5] },
  { name: "1 × 1, two apart", x: [2, 4, 5, 3], w: [2, 1, 1, 3], strides: 2 },
  {
    name: "dilated, uneven padding",
    x: [1, 6, 7, 2],
    w: [3, 3, 2, 2],
    dilation: 2,
    padding: [
      [2, 1],
      [0, 3],
    ],
  },
  { name: "groups", x: [2, 4, 4, 6], w: [4, 2, 3, 3], groups: 2, padding: 1 },
  { name: "depthwise", x: [2, 5, 4, 5], w: [5, 3, 3, 1], groups: 5, padding: 1 },
  {
    name: "depthwise, two apart",
    x: [2, 6, 7, 5],
    w: [5, 3, 3, 1],
    groups: 5,
    padding: 1,
    strides: 2,
  },
  {
    name: "depthwise, many taps, two apart",
    x: [1, 7, 8, 3],
    w: [3, 5, 5, 1],
    groups: 3,
    padding: 2,
    strides: 2,
  },
  { name: "channels first", x: [2, 3, 5, 4], w: [4, 3, 3, 2], channels: "first", padding: 1 },
  { name: "one axis", x: [2, 9, 3], w: [4, 4, 3], strides: 3, padding: 2 },
  { name: "three axes", x: [1, 3, 4, 3, 2], w: [3, 2, 3, 2, 2], padding: 1 },
] as const;

function count(shape: readonly number[]): number {
  return shape.reduce((all, extent) => all * extent, 1);
}

test.each(cases)(
  "$name, from seed " + seed,
  { timeout: 120_000 },
  async ({ name: _, ...given }) => {
    const random = new Random(seed);
    const numbers = (length: number) => Array.from({ length }, () => 2 * random.uniform() - 1);
    const spec = { ...given, x: tensor(f64, given.x), w: tensor(f64, given.w) };
    const forward = convolution(spec as never);
    const device = await open("simulator");
    const values = { x: numbers(count(given.x)), w: numbers(count(given.w)) };
    const outOf = async (x: readonly number[], w: readonly number[]) => {
      const inputs = { x: fromNumbers(f64, given.x, x), w: fromNumbers(f64, given.w, w) };
      return (await device.run(forward, inputs as never)).out;
    };
    const { shape } = await outOf(values.x, values.w);
    const slopes = numbers(count(shape));
    const loss = async (x: readonly number[], w: readonly number[]): Promise<number> =>
      toNumbers(await outOf(x, w)).reduce((sum, each, at) => sum + each * (slopes[at] ?? NaN), 0);
    const dOut = fromNumbers(f64, shape, slopes);
    const made = await gradients(device, spec as never, given, values, dOut as never);
    const unmoved = await loss(values.x, values.w);
    for (const name of ["x", "w"] as const)
      for (let sample = 0; sample < sampled; sample += 1) {
        const at = Math.floor(random.uniform() * values[name].length);
        const moved = { ...values, [name]: values[name].with(at, (values[name][at] ?? NaN) + h) };
        // A convolution is linear in either array, so that a difference to one side is exact.
        const difference = ((await loss(moved.x, moved.w)) - unmoved) / h;
        expect(made[name][at], `d${name}[${at}]`).toBeCloseTo(difference, 10);
      }
    device.dispose();
  },
);

/** What the library says the gradients are. */
async function gradients(
  device: Device,
  spec: Parameters<typeof convolutionBackwardX<"f64">>[0],
  shapes: { readonly x: readonly number[]; readonly w: readonly number[] },
  values: { readonly x: readonly number[]; readonly w: readonly number[] },
  dOut: never,
): Promise<{ readonly x: Float64Array; readonly w: Float64Array }> {
  const x = fromNumbers(f64, shapes.x, values.x);
  const w = fromNumbers(f64, shapes.w, values.w);
  const { dx } = await device.run(convolutionBackwardX(spec), { dOut, w } as never);
  const { dw } = await device.run(convolutionBackwardW(spec), { x, dOut } as never);
  return { x: toNumbers(dx), w: toNumbers(dw) };
}
