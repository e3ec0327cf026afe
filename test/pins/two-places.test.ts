/** Two layouts stated of one value: it has two places, and is converted on the way. */
import { expect, test } from "vitest";
import { f32, i32, iota, kernel, loop, scoped, slice, smem, tensor, whileLoop } from "tilewright";
import type { KernelDefinition, Ref, Tile } from "tilewright";
import { place } from "../../src/lower/stages.ts";
import { defaultTarget } from "../../src/targets/target.ts";

const rows = "(W0 W1 | R0 R1 L0 L1 L2 L3 L4)";
const strided = "flat(L0 L1 L2 L3 L4 W0 W1)";

interface Things {
  readonly x: Ref<"f32">;
  readonly out: Ref<"f32">;
  readonly sums: Ref<"f32">;
  readonly list: Ref<"i32">;
  /** The contents of x, 64 by 128. */
  readonly tile: Tile<"f32">;
}

function program(body: (things: Things) => void): KernelDefinition {
  return kernel(
    {
      name: "program",
      inputs: { x: tensor(f32, [64, 128]) },
      outputs: {
        out: tensor(f32, [64, 128]),
        sums: tensor(f32, [64]),
        list: tensor(i32, [64, 128]),
      },
    },
    ({ x, out, sums, list }) => {
      body({ x, out, sums, list, tile: x.load() });
    },
  );
}

const cases: readonly (readonly [string, (things: Things) => void])[] = [
  [
    "two pins of one tile",
    ({ tile, out }) => {
      const doubled = tile.mul(2);
      const first = doubled.layoutCast(rows);
      const second = first.layoutCast(strided);
      out.store(second);
    },
  ],
  [
    "two pins of a load",
    ({ tile, out }) => {
      const first = tile.layoutCast(rows);
      const second = tile.layoutCast(strided);
      out.store(first.add(second));
    },
  ],
  [
    "carry pinned in and behind the loop",
    ({ tile, out }) => {
      const end = loop({ to: 4, carry: tile }, (_, carried) => {
        const here = carried.layoutCast(rows);
        return here.mul(2);
      });
      out.store(end.layoutCast(strided));
    },
  ],
  [
    "carry of a while loop",
    ({ tile, out }) => {
      const end = whileLoop(
        tile,
        (carried) => carried.sum().lt(100),
        (carried) => carried.layoutCast(rows).mul(2),
      );
      out.store(end.layoutCast(strided));
    },
  ],
  [
    "rows and their sums",
    ({ tile, sums }) => {
      const source = tile.mul(2).sum({ axis: 1 });
      const sum = source.layoutCast("(L0 L1 L2 L3 L4 W0)");
      const again = sum.layoutCast("(L2 L3 L4 R0 W0 W1)");
      sums.store(again);
    },
  ],
  [
    "keys and payloads",
    ({ tile, out, list }) => {
      const [keys, moved] = tile.sortWith([iota(i32, [64, 128], { axis: 1 })], { axis: 1 });
      out.store(keys.layoutCast(rows));
      list.store(moved.layoutCast(strided));
    },
  ],
  [
    "inside and outside a scope",
    ({ tile, out }) => {
      const result = scoped({ spare: smem(f32, [4]) }, () => tile.mul(3).layoutCast(rows));
      out.store(result.layoutCast(strided));
    },
  ],
  [
    "transposed and not",
    ({ x, out }) => {
      const tile = x.at(slice(0, 64), slice(0, 64)).load().mul(2);
      const turned = tile.transpose();
      const first = turned.layoutCast("(R0 R1 L0 L1 L2 L3 | L4 W0 W1)");
      const second = first.layoutCast(strided);
      out.at(slice(0, 64), slice(0, 64)).store(second);
    },
  ],
];

test.each(cases)("%s", (_, body) => {
  const { kernel: traced } = program(body);
  const { placement } = place(traced, defaultTarget);
  expect(placement.conversions.length).toBeGreaterThan(0);
});
