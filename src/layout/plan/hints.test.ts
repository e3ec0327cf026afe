import { expect, test } from "vitest";
import { bf16, f32 } from "../../formats/dtype.ts";
import { accumulator, tensor, barrier, copyAsync, kernel, smem, wgmma } from "../../lang/index.ts";
import type { Tile } from "../../lang/index.ts";
import { defaultTarget } from "../../targets/target.ts";
import { parseLayout } from "../algebra/parse-layout.ts";
import { placeKernel } from "./place.ts";
import type { Placement } from "./place.ts";

type Change = (tile: Tile<"f32">) => Tile<"f32">;

/** A kernel that doubles 1024 numbers, placed with a word about the layout of its tile. */
function placeDouble(state: Change): Placement {
  const { kernel: traced } = kernel(
    { name: "double", inputs: { x: tensor(f32, [1024]) }, outputs: { out: tensor(f32, [1024]) } },
    ({ x, out }) => {
      out.store(state(x.load().mul(2)));
    },
  );
  return placeKernel(traced, defaultTarget);
}

/** The layout in which the last tile of the kernel lies. */
function lastLayout({ layouts }: Placement): string | undefined {
  return [...layouts.values()].at(-1)?.text;
}

const wide = parseLayout("(R0 R1 L0 L1 L2 L3 L4 W0 W1)").text;
const narrow = parseLayout("(R0 L0 L1 L2 L3 L4 W0 W1)").text;

test("a hint decides between layouts of nearly the same cost", () => {
  const free = lastLayout(placeDouble((tile) => tile));
  const other = free === wide ? narrow : wide;
  expect(lastLayout(placeDouble((tile) => tile.layoutHint(other)))).toBe(other);
  expect(lastLayout(placeDouble((tile) => tile.layoutHint(wide)))).toBe(wide);
});

test("a hint gives way to what instructions demand, where a pin makes the kernel impossible", () => {
  const place = (state: Change): Placement => {
    const { kernel: traced } = kernel(
      {
        name: "product",
        inputs: { a: tensor(bf16, [64, 64]), b: tensor(bf16, [64, 64]) },
        outputs: { c: tensor(f32, [64, 64]) },
        scratch: {
          left: smem(bf16, [64, 64]),
          right: smem(bf16, [64, 64]),
          landed: barrier({ arrivals: 2 }),
        },
      },
      ({ a, b, c, left, right, landed }) => {
        copyAsync(a, left, { barrier: landed });
        copyAsync(b, right, { barrier: landed });
        landed.wait();
        c.store(state(wgmma(accumulator(f32, [64, 64]), left, right).wait()));
      },
    );
    return placeKernel(traced, defaultTarget);
  };
  const strided = "flat(L0 L1 L2 L3 L4 W0 W1)";
  expect(() => place((tile) => tile.layoutCast(strided))).toThrow("TW6101");
  expect(place((tile) => tile.layoutHint(strided)).conversions).toEqual([]);
});
