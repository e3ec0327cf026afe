/** What is stated about layouts is accepted or refused alike, whatever is simplified before tiles are placed. */
import { describe, expect, test } from "vitest";
import {
  accumulator,
  barrier,
  bf16,
  copyAsync,
  f32,
  iota,
  kernel,
  loop,
  smem,
  tensor,
  TilewrightError,
  wgmma,
} from "tilewright";
import type { KernelDefinition, Ref, Tile } from "tilewright";
import { place } from "../../src/lower/stages.ts";
import { passNames } from "../../src/passes/pass-order.ts";
import type { PassName } from "../../src/passes/pass-order.ts";
import { defaultTarget } from "../../src/targets/target.ts";

const A = "wgmma";
const B = "wgmmaTransposed";
const strided = "flat(L0 L1 L2 L3 L4 W0 W1)";

const choices: readonly (readonly PassName[])[] = [
  [],
  passNames,
  ...passNames.map((name) => [name]),
  ...passNames.map((name) => passNames.filter((other) => other !== name)),
];

function codeWithout({ kernel: traced }: KernelDefinition, without: readonly PassName[]): string {
  try {
    place(traced, defaultTarget, { without });
    return "accepted";
  } catch (error) {
    if (!(error instanceof TilewrightError)) throw error;
    return error.code;
  }
}

/** What becomes of the kernel with each simplification on and off. */
function codesOf(definition: KernelDefinition): ReadonlySet<string> {
  return new Set(choices.map((without) => codeWithout(definition, without)));
}

type Step = (tile: Tile<"f32">) => Tile<"f32">;

function between(step: Step): KernelDefinition {
  return kernel(
    { name: "k", inputs: { x: tensor(f32, [64, 64]) }, outputs: { o: tensor(f32, [64, 64]) } },
    ({ x, o }) => {
      o.store(step(x.load().layoutCast(A)).layoutCast(B));
    },
  );
}

type Window = Ref<"bf16">;

function product(
  state: (tile: Tile<"f32">, left: Window, right: Window) => Tile<"f32">,
): KernelDefinition {
  return kernel(
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
      c.store(state(wgmma(accumulator(f32, [64, 64]), left, right).wait(), left, right));
    },
  );
}

const nothing: readonly (readonly [string, Step])[] = [
  ["no step", (t) => t],
  ["mul(1)", (t) => t.mul(1)],
  ["div(1)", (t) => t.div(1)],
  ["sub(0)", (t) => t.sub(0)],
  ["neg().neg()", (t) => t.neg().neg()],
  ["two transposes", (t) => t.transpose().transpose()],
  ["two reshapes", (t) => t.reshape([128, 32]).reshape([64, 64])],
  ["a whole slice", (t) => t.slice([0, 0], [64, 64])],
  ["max with itself", (t) => t.maximum(t)],
  ["a loop of no steps", (t) => loop({ to: 0, carry: t }, (_, carried) => carried.add(1))],
];

describe("between two layoutCasts", () => {
  test.each(nothing)("%s", (_, step) => {
    expect([...codesOf(between(step))]).toEqual(["accepted"]);
  });
});

test("positions are made once for each place, and not moved", () => {
  const definition = kernel(
    { name: "k", outputs: { o: tensor(f32, [64, 64]), p: tensor(f32, [64, 64]) } },
    ({ o, p }) => {
      const columns = iota(f32, [64, 64], { axis: 1 }).mul(2);
      o.store(columns.layoutCast(A));
      p.store(columns.layoutCast(B));
    },
  );
  const { conversions } = place(definition.kernel, defaultTarget).placement;
  expect(conversions.filter(({ op }) => op.kind === "layout_cast")).toEqual([]);
});

describe("between an instruction and a layoutCast that it contradicts", () => {
  test.each(nothing.slice(1))("%s may convert", (_, step) => {
    expect([...codesOf(product((t) => step(t).layoutCast(strided)))]).toEqual(["accepted"]);
  });

  test("nothing is refused", () => {
    expect([...codesOf(product((t) => t.layoutCast(strided)))]).toEqual(["TW6101"]);
  });

  test("convertLayout is accepted", () => {
    expect([...codesOf(product((t) => t.convertLayout(strided)))]).toEqual(["accepted"]);
  });

  test("nothing is refused in a loop of no steps", () => {
    const idle = product((t, left, right) =>
      loop({ to: 0, carry: t }, (_, carried) => {
        const landed = wgmma(accumulator(f32, [64, 64]), left, right).wait();
        return carried.add(landed.layoutCast(strided));
      }),
    );
    expect([...codesOf(idle)]).toEqual(["TW6101"]);
  });

  test("nothing is accepted where the result is not used", () => {
    const unused = product((t) => {
      t.layoutCast(strided);
      return t;
    });
    const used = choices.filter((without) => !without.includes("deadCode"));
    expect([...new Set(used.map((without) => codeWithout(unused, without)))]).toEqual(["accepted"]);
  });
});
