/** Which instruction computes a product and which makes a copy, and what must be known for it. */
import { describe, expect, test } from "vitest";
import {
  tensor,
  barrier,
  bf16,
  concatenate,
  copyAsync,
  dot,
  f32,
  i32,
  iota,
  kernel,
  loop,
  slice,
  smem,
  warps,
} from "tilewright";
import type { KernelDefinition, Ref } from "tilewright";
import { checkPlacement } from "../../../test/support/placement-checker.ts";
import type { AnyOp, Op } from "../../ir/node.ts";
import { walkOps } from "../../ir/traverse.ts";
import { targets } from "../../targets/target.ts";
import { replicatedLayout } from "../algebra/register-layout.ts";
import { globalAccess } from "../model/access-cost.ts";
import { windowsOf } from "../model/windows.ts";
import { placeKernel } from "./place.ts";
import type { Placement } from "./place.ts";

function place({ kernel: traced }: KernelDefinition): Placement {
  const placement = placeKernel(traced, targets.sm_90a);
  checkPlacement(placement);
  return placement;
}

describe("products", () => {
  type Tiles = { readonly left: Ref<"bf16">; readonly right: Ref<"bf16"> };
  const product = (
    multiply: (tiles: Tiles & { readonly out: Ref<"f32"> }) => void,
    [m, n, k]: readonly [number, number, number] = [64, 64, 64],
  ): readonly (readonly [string, string])[] => {
    const { products } = place(
      kernel(
        {
          name: "k",
          grid: { i: 1 },
          inputs: { a: tensor(bf16, [m, k]), b: tensor(bf16, [k, n]) },
          outputs: { out: tensor(f32, [m, n]) },
          scratch: { left: smem(bf16, [m, k]), right: smem(bf16, [k, n]) },
        },
        ({ a, b, out, left, right }) => {
          left.store(a.load());
          right.store(b.load());
          multiply({ left, right, out });
        },
      ),
    );
    return [...products.values()].map(({ instruction, reason }) => [instruction, reason] as const);
  };

  test("windows of shared memory that are loaded for the product alone", () => {
    expect(
      product(({ left, right, out }) => {
        out.store(dot(left.load(), right.load()));
      }),
    ).toEqual([["wgmma", "both operands are windows of shared memory"]]);
  });

  test("a window that is overwritten before the product keeps what was loaded", () => {
    expect(
      product(({ left, right, out }) => {
        const loaded = right.load();
        right.store(loaded.add(1));
        out.store(dot(left.load(), loaded));
      })[0]?.[0],
    ).toBe("mma.sync");
    expect(
      product(({ left, right, out }) => {
        const loaded = right.load();
        left.store(left.load().add(1));
        out.store(dot(left.load(), loaded));
      }),
    ).toEqual([
      ["mma.sync", "no wgmma: its right operand may have been overwritten since it was loaded"],
    ]);
  });

  test("a window of which a mask or index tiles pick elements is loaded", () => {
    expect(
      product(({ left, right, out }) => {
        out.store(dot(left.load(), right.load({ where: left.load().gt(0) })));
      })[0]?.[0],
    ).toBe("mma.sync");
    expect(
      product(({ left, right, out }) => {
        out.store(dot(left.load(), right.at(iota(i32, [64], { axis: 0 })).load()));
      })[0]?.[0],
    ).toBe("mma.sync");
  });

  test("a tile that others read too is loaded", () => {
    expect(
      product(({ left, right, out }) => {
        const loaded = right.load();
        out.store(dot(left.load(), loaded).add(loaded.cast(f32)));
      }),
    ).toEqual([["mma.sync", "no wgmma: its right operand is used elsewhere too"]]);
  });

  test("a warp that works alone", () => {
    expect(
      product(({ left, right, out }) => {
        warps(() => {
          out.store(dot(left.load(), right.load()));
        });
      }),
    ).toEqual([["mma.sync", "no wgmma: a warp works alone"]]);
  });

  test("a depth that is no whole number of fragments", () => {
    const [[instruction, reason] = []] = product(
      ({ left, right, out }) => {
        out.store(dot(left.load(), right.load()));
      },
      [64, 64, 8],
    );
    expect(instruction).toBe("fma");
    expect(reason).toContain("[64, 8] by [8, 64] does not consist of fragments 16 × 8 × 16");
  });
});

describe("copies", () => {
  const copy = (
    columns: number,
    window: (x: Ref<"f32">) => Ref<"f32">,
    layout?: string,
  ): readonly string[] => {
    const { copies } = place(
      kernel(
        {
          name: "k",
          grid: { i: 1 },
          inputs: { x: tensor(f32, [64, columns]) },
          outputs: { out: tensor(f32, [32, 32]) },
          scratch: {
            tile: smem(f32, [32, 32], { ...(layout !== undefined && { layout }) }),
            landed: barrier(),
          },
        },
        ({ x, out, tile, landed }) => {
          copyAsync(window(x), tile, { barrier: landed });
          landed.wait();
          out.store(tile.load());
        },
      ),
    );
    return [...copies.values()].map(({ method, reason }) => `${method}: ${reason}`);
  };
  const corner = (x: Ref<"f32">): Ref<"f32"> => x.at(slice(0, 32), slice(0, 32));

  test("boxes of an array whose rows are a multiple of 16 bytes apart", () => {
    expect(copy(36, corner)).toEqual(["tensor: the windows are boxes of a tensor map"]);
    expect(copy(34, corner)).toEqual([
      "cp.async: no tensor copy: a stride of the array is not known to be a multiple of 16 bytes",
    ]);
  });

  test("a window that must end where a view does, inside the array", () => {
    const inner = (x: Ref<"f32">): Ref<"f32"> => x.at(slice(0, 48)).at(slice(32, 32), slice(0, 32));
    expect(copy(64, inner)).toEqual([
      "cp.async: no tensor copy: the window ends with a view that is smaller than the array",
    ]);
  });

  test("rows that run along the other axis", () => {
    expect(copy(64, corner, "shared(order 1 0)")).toEqual([
      "cp.async: no tensor copy: the copy would transpose",
    ]);
  });
});

function opsOf<K extends AnyOp["kind"]>(definition: KernelDefinition, kind: K): readonly Op<K>[] {
  const found: Op<K>[] = [];
  walkOps(definition.kernel.body, (op) => {
    if (op.kind === kind) found.push(op as Op<K>);
  });
  return found;
}

describe("what is known of a window's start", () => {
  const starts = kernel(
    {
      name: "k",
      grid: { i: 8 },
      inputs: { x: tensor(f32, [4096]) },
      outputs: { out: tensor(f32, [16]) },
    },
    ({ i, x, out }) => {
      out.store(x.at(slice(i.mul(64).add(16), 16)).load());
      out.store(x.at(slice(i.mul(64).add(2), 16)).load());
      loop({ from: 4, to: 256, step: 32 }, (step) => {
        out.store(x.at(slice(step, 16)).load());
      });
    },
  );

  test("sums are divisible by what both sides are, and counters by start and step", () => {
    const windows = windowsOf(starts.kernel);
    const divisors = opsOf(starts, "load").map(({ operands: { ref } }) => {
      const window = windows.of(ref);
      return window.space === "gmem" ? window.start : undefined;
    });
    expect(divisors).toEqual([16, 2, 4]);
  });

  test("a lane moves no more at once than is aligned", () => {
    const windows = windowsOf(starts.kernel);
    const vectors = opsOf(starts, "load").map(({ operands: { ref } }) => {
      const window = windows.of(ref);
      if (window.space !== "gmem") throw new Error("not in global memory");
      return globalAccess(replicatedLayout, window, [16]).vector;
    });
    expect(vectors).toEqual([4, 2, 4]);
  });
});

test("conversions in a loop count as often as it runs", () => {
  const definition = kernel(
    {
      name: "k",
      grid: { i: 1 },
      inputs: { x: tensor(f32, [64, 64]), y: tensor(f32, [64, 64]) },
      outputs: { out: tensor(f32, [64, 64]) },
    },
    ({ x, y, out }) => {
      loop(16, () => {
        const pinned = x.load().layoutCast("(L0 L1 L2 L3 L4 W0 W1 |)");
        const other = y.load().layoutCast("(L0 L1 L2 L3 L4 W0 W1)");
        out.store(pinned.add(other));
      });
    },
  );
  const weights = place(definition).conversions.map(({ weight }) => weight);
  expect(weights.length).toBeGreaterThan(0);
  expect(new Set(weights)).toEqual(new Set([16]));
});

test("warps that work alone do not take over a tile that all of them share out", () => {
  const definition = kernel(
    {
      name: "k",
      grid: { i: 1 },
      inputs: { x: tensor(f32, [64, 64]) },
      outputs: { out: tensor(f32, [64, 64]) },
    },
    ({ x, out }) => {
      const shared = x.load();
      warps(() => {
        out.store(shared.add(1));
      });
    },
  );
  const [addition] = opsOf(definition, "binary");
  const [result] = addition?.results ?? [];
  const layout = result && place(definition).layouts.get(result);
  expect(layout?.text).not.toContain("W");
});

test("every part of a joined tile is where it is needed", () => {
  const joined = (layout: string): KernelDefinition =>
    kernel(
      {
        name: "k",
        grid: { i: 1 },
        inputs: { x: tensor(f32, [8, 16]), y: tensor(f32, [8, 16]) },
        outputs: { out: tensor(f32, [16, 16]) },
      },
      ({ x, y, out }) => {
        out.store(concatenate([x.load(), y.load()], { axis: 0 }).layoutCast(layout));
      },
    );
  expect(place(joined("(W0 W1 L4 | L0 L1 L2 L3)")).conversions).toEqual([]);
  // Only half of the lanes would hold the second part.
  expect(() => place(joined("(W0 W1 L4 L3 | L0 L1 L2)"))).toThrow("concatenate reads this");
});

test("a comparison in memory needs both of its tiles in one place", () => {
  const definition = kernel(
    {
      name: "k",
      grid: { i: 1 },
      inputs: { x: tensor(i32, [8, 16]) },
      outputs: { out: tensor(i32, [8, 16]) },
    },
    ({ x, out }) => {
      out.compareExchange(x.load().layoutCast("(L0 L1 L2 |)"), x.load());
    },
  );
  const [op] = opsOf(definition, "atomic_compare_exchange");
  if (op === undefined) throw new Error("no comparison");
  const needs = place(definition).needs.get(op) ?? [];
  const { expected, value } = op.operands;
  expect(new Set(needs.map((each) => each.value))).toEqual(new Set([expected, value]));
  expect(new Set(needs.map((each) => each.layout.text)).size).toBe(1);
});
