/** Which functions of f32 are computed as exactly as a rounding behind them shows, and which are not. */
import { expect, test } from "vitest";
import { bf16, f16, f32, fromNumbers, kernel, tensor, toNumbers } from "../../../index.ts";
import type { Tile } from "../../../index.ts";
import { open } from "../../../runtime/open.ts";
import { walkOps } from "../../../ir/traverse.ts";
import { roundedFunctions } from "./rounded-functions.ts";

const size = 128;

/** Stores a tile in f32, or rounded. */
interface Stores {
  bf16(tile: Tile<"f32">): void;
  f16(tile: Tile<"f32">): void;
  f32(tile: Tile<"f32">): void;
}
type Compute = (stores: Stores, x: Tile<"f32">, y: Tile<"f32">) => void;

/** Functions of a kernel with the format as which each is computed. */
function found(compute: Compute): readonly string[] {
  const [narrow, half, wide] = [tensor(bf16, [size]), tensor(f16, [size]), tensor(f32, [size])];
  const { kernel: traced } = kernel(
    { name: "rounded", inputs: { x: wide, y: wide }, outputs: { narrow, half, wide } },
    ({ x, y, ...out }) => {
      const stores: Stores = {
        bf16: (tile) => {
          out.narrow.store(tile.cast(bf16));
        },
        f16: (tile) => {
          out.half.store(tile.cast(f16));
        },
        f32: (tile) => {
          out.wide.store(tile);
        },
      };
      compute(stores, x.load(), y.load());
    },
  );
  const formats = roundedFunctions(traced.body);
  const list: string[] = [];
  walkOps(traced.body, (op) => {
    if (op.kind === "unary") list.push(`${op.attributes.fn} ${formats.get(op) ?? "f32"}`);
  });
  return list;
}

test.each<readonly [name: string, compute: Compute, expected: readonly string[]]>([
  ["rounded at once", (to, x) => to.bf16(x.exp()), ["exp bf16"]],
  ["rounded to f16", (to, x) => to.f16(x.tanh()), ["tanh f16"]],
  ["silu", (to, x) => to.bf16(x.mul(x.logistic())), ["logistic bf16"]],
  [
    "a product of two",
    (to, x, y) => to.bf16(x.logistic().mul(y.logistic())),
    ["logistic f16", "logistic f16"],
  ],
  [
    "a product of two for f16",
    (to, x, y) => to.f16(x.logistic().mul(y.logistic())),
    ["logistic f32", "logistic f32"],
  ],
  [
    "a square",
    (to, x) => {
      const y = x.exp();
      to.bf16(y.mul(y));
    },
    ["exp f16"],
  ],
  [
    "softplus",
    (to, x) => to.bf16(x.maximum(0).add(x.abs().neg().exp().log1p())),
    ["abs f32", "neg f32", "exp f16", "log1p f16"],
  ],
  ["a sum of what has no sign", (to, x) => to.bf16(x.exp().add(1)), ["exp bf16"]],
  ["a sum that may cancel", (to, x) => to.bf16(x.tanh().add(1)), ["tanh f32"]],
  ["a difference", (to, x) => to.bf16(x.exp().sub(1)), ["exp f32"]],
  ["a function of it", (to, x) => to.bf16(x.exp().exp()), ["exp f32", "exp bf16"]],
  [
    "stored in f32, too",
    (to, x) => {
      const y = x.exp();
      to.f32(y);
      to.bf16(y);
    },
    ["exp f32"],
  ],
  [
    "summed",
    (to, x) => {
      const y = x.exp();
      to.bf16(y.div(y.sum()));
    },
    ["exp f32"],
  ],
  [
    "compared",
    (to, x) => {
      const y = x.tanh();
      to.bf16(y.gt(0.5).select(y, x));
    },
    ["tanh f32"],
  ],
  [
    "to f16 and to bf16",
    (to, x) => {
      const y = x.tanh();
      to.bf16(y);
      to.f16(y);
    },
    ["tanh f16"],
  ],
  ["of one that is near 1 to the rounding alone", (to, x) => to.bf16(x.erf()), ["erf f32"]],
  ["kept in f32", (to, x) => to.f32(x.exp()), ["exp f32"]],
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
