/** Kernels that the tests are made of are placed too, with no pins, and every op as it must be. */
import { describe, expect, test } from "vitest";
import {
  all,
  tensor,
  bf16,
  clusterSync,
  f32,
  i32,
  iota,
  kernel,
  slice,
  smem,
  switchCase,
  union,
  warps,
  when,
} from "tilewright";
import { parseModule } from "../src/ir/parser/parser.ts";
import { printKernel } from "../src/ir/printer.ts";
import { placeKernel } from "../src/layout/plan/place.ts";
import type { Placement } from "../src/layout/plan/place.ts";
import type { Kernel } from "../src/ir/node.ts";
import { defaultTarget, targets } from "../src/targets/target.ts";
import type { Target } from "../src/targets/target.ts";
import { counting, gather, sum, turnTaking } from "./broken/blocks.ts";
import { mailbox, multicast, peers } from "./broken/cluster.ts";
import { exchange, meeting } from "./broken/exchange.ts";
import { handoff } from "./broken/handoff.ts";
import { rows, scopes, sharedScope, unions, windows } from "./broken/memory.ts";
import { parities, phases } from "./broken/phases.ts";
import { pipeline } from "./broken/pipeline.ts";
import { staging } from "./broken/staging.ts";
import { product } from "./broken/wgmma.ts";
import { everyOp } from "./support/every-op.ts";
import { checkPlacement } from "./support/placement-checker.ts";

const families = [
  ...[handoff, pipeline, product, staging, exchange, meeting, phases, parities],
  ...[peers, mailbox, multicast, sum, gather, turnTaking, counting],
  ...[windows, unions, scopes, sharedScope, rows],
];

function place(traced: Kernel, target: Target = defaultTarget): Placement {
  const placement = placeKernel(traced, target);
  checkPlacement(placement);
  return placement;
}

test.each(families)("$name", ({ make }) => {
  place(make().kernel);
});

const tracedKernels = parseModule(everyOp).kernels.filter(({ placed }) => placed === undefined);

test.each(tracedKernels.map((each) => [each.name, each] as const))(
  "every op in %s",
  (_, traced) => {
    place(traced, printKernel(traced).includes("alloc_tmem") ? targets.sm_100a : defaultTarget);
  },
);

describe("ops that few kernels have", () => {
  const inputs = { x: tensor(f32, [64, 128]) };
  const outputs = { out: tensor(f32, [64, 128]), list: tensor(i32, [64, 128]) };

  test("sorting along an axis with few lanes on it", () => {
    const { layouts, conversions } = place(
      kernel({ name: "k", grid: { i: 1 }, inputs, outputs }, ({ x, out, list }) => {
        const [keys, moved] = x.load().sortWith([iota(i32, [64, 128], { axis: 1 })], { axis: 1 });
        out.store(keys.cummax({ axis: 0 }));
        list.store(moved);
      }).kernel,
    );
    expect(layouts.size).toBeGreaterThan(0);
    expect(conversions.every(({ plan }) => plan.kind !== "none")).toBe(true);
  });

  test("branches that yield tiles, one of them a constant", () => {
    const { conversions } = place(
      kernel({ name: "k", grid: { i: 4 }, inputs, outputs }, ({ i, x, out }) => {
        const tile = x.load();
        const chosen = when(
          i.lt(2),
          () => tile.mul(2),
          () => tile.mul(0).add(1),
        );
        const other = switchCase(i, [() => chosen, () => tile, () => tile.exp()]);
        out.store(other);
      }).kernel,
    );
    expect(conversions).toEqual([]);
  });

  test("a warp's tiles stay in the warp", () => {
    const { layouts } = place(
      kernel({ name: "k", grid: { i: 1 }, inputs, outputs }, ({ x, out }) => {
        warps((warp) => {
          const mine = x.at(slice(warp.mul(16), 16), all).load();
          out
            .at(slice(warp.mul(16), 16), all)
            .store(mine.sub(mine.max({ axis: 1, keepDims: true })));
        });
      }).kernel,
    );
    for (const { text } of layouts.values()) expect(text).not.toMatch(/W/);
  });

  test("atomics, peers and unions", () => {
    const scratch = { both: union({ a: smem(f32, [64, 128]) }, { b: smem(bf16, [64, 128]) }) };
    const spec = { name: "k", grid: { i: 2 }, cluster: { i: 2 }, inputs, outputs, scratch };
    const { shared } = place(
      kernel(spec, ({ i, x, out, list, both }) => {
        both.a.store(x.load());
        clusterSync();
        const other = both.a.peer(i.xor(1)).load();
        clusterSync();
        out.atomicAdd(other);
        list.compareExchange(iota(i32, [64, 128], { axis: 0 }), iota(i32, [64, 128], { axis: 1 }));
        both.b.store(other.cast(bf16));
      }).kernel,
    );
    expect(shared.size).toBe(2);
  });

  test("slices, joins and reshapes that cut through lanes are converted to where they work", () => {
    place(
      kernel({ name: "k", grid: { i: 1 }, inputs, outputs }, ({ x, out }) => {
        const tile = x.load();
        const odd = tile.slice([3, 5], [48, 100]);
        const flat = odd.reshape([100, 48]).transpose().reshape([4800]);
        out.at(slice(0, 48), slice(0, 100)).store(flat.reshape([48, 100]));
      }).kernel,
    );
  });
});
