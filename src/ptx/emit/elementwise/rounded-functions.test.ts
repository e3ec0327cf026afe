/** Which functions of f32 are computed as exactly as a rounding behind them shows, and which are not. */
import { expect, test } from "vitest";
import { bf16, f16, f32, fromNumbers, kernel, tensor, toNumbers } from "../../../index.ts";
import type { Tile } from "../../../index.ts";
import { open } from "../../../runtime/open.ts";
import { walkOps } from "../../../ir/traverse.ts";
import { roundedFunctions } from "./rounded-functions.ts";

const size = 128;

/** Functions of a kernel with the format as which each is computed, where that is not f32. */
function found(
  compute: (x: Tile<"f32">, y: Tile<"f32">) => Tile<"bf16" | "f16" | "f32"> | readonly Tile[],
): readonly string[] {
  const { kernel: traced } = kernel(
    {
      name: "rounded",
      inputs: { x: tensor(f32, [size]), y: tensor(f32, [size]) },
      outputs: {
        narrow: tensor(bf16, [size]),
        half: tensor(f16, [size]),
        wide: tensor(f32, [size]),
      },
    },
    ({ x, y, narrow, half, wide }) => {
      for (const each of [compute(x.load(), y.load())].flat()) {
        const { name } = each.dtype;
        (name === "bf16" ? narrow : name === "f16" ? half : wide).store(each as never);
      }
    },
  );
  const formats = roundedFunctions(traced.body);
  const list: string[] = [];
  walkOps(traced.body, (op) => {
    if (op.kind === "unary") list.push(`${op.attributes.fn} ${formats.get(op) ?? "f32"}`);
  });
  return list;
}

test.each<
  readonly [name: string, compute: Parameters<typeof found>[0], expected: readonly string[]]
>([
  ["rounded at once", (x) => x.exp().cast(bf16), ["exp bf16"]],
  ["rounded to f16", (x) => x.tanh().cast(f16), ["tanh f16"]],
  ["silu", (x) => x.mul(x.logistic()).cast(bf16), ["logistic bf16"]],
  [
    "a product of two",
    (x, y) => x.logistic().mul(y.logistic()).cast(bf16),
    ["logistic f16", "logistic f16"],
  ],
  [
    "a product of two for f16",
    (x, y) => x.logistic().mul(y.logistic()).cast(f16),
    ["logistic f32", "logistic f32"],
  ],
  [
    "a square",
    (x) => {
      const y = x.exp();
      return y.mul(y).cast(bf16);
    },
    ["exp f16"],
  ],
  [
    "softplus",
    (x) => x.maximum(0).add(x.abs().neg().exp().log1p()).cast(bf16),
    ["abs f32", "neg f32", "exp f16", "log1p f16"],
  ],
  ["a sum of what has no sign", (x) => x.exp().add(1).cast(bf16), ["exp bf16"]],
  ["a sum that may cancel", (x) => x.tanh().add(1).cast(bf16), ["tanh f32"]],
  ["a difference", (x) => x.exp().sub(1).cast(bf16), ["exp f32"]],
  ["a function of it", (x) => x.exp().exp().cast(bf16), ["exp f32", "exp bf16"]],
  [
    "stored in f32, too",
    (x) => {
      const y = x.exp();
      return [y, y.cast(bf16)];
    },
    ["exp f32"],
  ],
  [
    "summed",
    (x) => {
      const y = x.exp();
      return y.div(y.sum()).cast(bf16);
    },
    ["exp f32"],
  ],
  [
    "compared",
    (x) => {
      const y = x.tanh();
      return y.gt(0.5).select(y, x).cast(bf16);
    },
    ["tanh f32"],
  ],
  [
    "to f16 and to bf16",
    (x) => {
      const y = x.tanh();
      return [y.cast(bf16), y.cast(f16)];
    },
    ["tanh f16"],
  ],
  ["of formats that are not near it", (x) => x.erf().cast(bf16), ["erf f32"]],
  ["kept in f32", (x) => x.exp(), ["exp f32"]],
])("%s", (_, compute, expected) => {
  expect(found(compute)).toEqual(expected);
});

test("results are within 0.63 units of the exact ones", async () => {
  const silu = kernel(
    { name: "silu", inputs: { x: tensor(f32, [size]) }, outputs: { y: tensor(bf16, [size]) } },
    ({ x, y }) => {
      const tile = x.load();
      y.store(tile.mul(tile.logistic()).cast(bf16));
    },
  );
  const values = Float32Array.from({ length: size }, (_, i) => (i - 80) / 3.7);
  const device = await open("emulator");
  const { y } = await device.run(silu, { x: fromNumbers(f32, [size], values) });
  device.dispose();
  for (const [i, got] of toNumbers(y).entries()) {
    const x = values[i] ?? NaN;
    const exact = x / (1 + Math.exp(-x));
    const unit = 2 ** (Math.floor(Math.log2(Math.abs(exact))) - 7);
    expect(Math.abs(got - exact), `${x}`).toBeLessThanOrEqual(0.63 * unit);
  }
});
