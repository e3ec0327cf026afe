/**
 * The trait `elements`, held against the simulator: what is made element by element does not care where elements lie, so tiles turned around
 * give results turned around.
 */
import { expect, test } from "vitest";
import {
  tensor,
  assumeBetween,
  bool,
  f32,
  fromNumbers,
  full,
  i32,
  inlinePtx,
  kernel,
  optimizationBarrier,
  toNumbers,
  u32,
} from "tilewright";
import type { Tile } from "tilewright";
import { opKinds, opTable } from "../../src/ir/ops.ts";
import type { OpKind } from "../../src/ir/ops.ts";
import { runKernel } from "../simulation.ts";

type Made = (x: Tile<"f32">, y: Tile<"f32">) => Tile;

const made: { readonly [K in OpKind]?: Made } = {
  constant: (x) => full(f32, x.shape, 3),
  unary: (x) => x.sqrt(),
  classify: (x) => x.log().isFinite(),
  binary: (x, y) => x.sub(y),
  compare: (x, y) => x.lt(y),
  assume: (x) => assumeBetween(x.cast(i32), -(2n ** 31n), 2n ** 31n),
  fma: (x, y) => x.fma(y, x),
  select: (x, y) => x.lt(y).select(x, y),
  cast: (x) => x.cast(bool),
  bitcast: (x) => x.bitcast(u32),
  broadcast: (x) => x.add(full(f32, [1, 8], 1)),
  layout_cast: (x) => x.layoutHint("(L0 | L1 L2 L3)"),
  optimization_barrier: (x) => optimizationBarrier(x),
  inline_ptx: (x) =>
    inlinePtx({
      operands: [x],
      results: [f32],
      code: ([own], [twice]) => `add.f32 ${twice}, ${own}, ${own};`,
      meaning: (own) => [own.add(own)],
    })[0],
};

/** Ops that give no tile of a traced kernel. */
const without: readonly OpKind[] = [
  ...(["size", "yield", "convert_layout"] as const),
  ...(["debug_print", "print_layout", "assert", "profile_mark", "debug_break"] as const),
];

test("all ops that claim it are here", () => {
  const claiming = opKinds.filter((kind) => {
    const { elements } = opTable[kind].traits;
    return elements === "each" || typeof elements === "object";
  });
  const has = (kind: OpKind): boolean => made[kind] !== undefined || without.includes(kind);
  const missing = claiming.filter((kind) => !has(kind));
  const where = "`made`, or to `without`, in test/traits/elements.test.ts";
  expect(missing, `add a tile made by each to ${where}`).toEqual([]);
  const stale = opKinds.filter((kind) => has(kind) && !claiming.includes(kind));
  expect(stale, "these do not claim the trait `elements`").toEqual([]);
});

test.each(Object.entries(made))("%s is by element", async (_, make) => {
  const numbers = Array.from({ length: 16 }, (__, index) => (index * 7) % 16);
  const others = numbers.map((value) => (value * 5 + 3) % 16);
  const run = async (turn: (list: readonly number[]) => readonly number[]) => {
    const spec = tensor(f32, [2, 8]);
    const definition = kernel(
      { name: "made", inputs: { x: spec, y: spec }, outputs: { out: spec } },
      ({ x, y, out }) => {
        out.store(make(x.load(), y.load()).cast(f32));
      },
    );
    const inputs = {
      x: fromNumbers(f32, [2, 8], turn(numbers)),
      y: fromNumbers(f32, [2, 8], turn(others)),
    };
    const { results } = await runKernel(definition, inputs);
    return turn([...toNumbers(results["out"] ?? inputs.x)]);
  };
  const plain = await run((list) => list);
  expect(await run((list) => list.toReversed())).toEqual(plain);
});
