import { describe, expect, test } from "vitest";
import { axpy } from "../../../examples/axpy.ts";
import { clusterNormalize } from "../../../examples/cluster.ts";
import { columnSum } from "../../../examples/column-sum.ts";
import { handoff } from "../../../examples/handoff.ts";
import { gemm } from "../../../examples/gemm.ts";
import { matmul } from "../../../examples/matmul.ts";
import { softmax } from "../../../examples/softmax.ts";
import { transpose } from "../../../examples/transpose.ts";
import {
  flashAttention,
  matmulWithEpilogue,
  rowSoftmax,
  weightOnlyMatmul,
} from "../../../test/support/placed-kernels.ts";
import { checkPlacement } from "../../../test/support/placement-checker.ts";
import { randomKernel } from "../../../test/support/random-kernel.ts";
import { sampleOf } from "../../../test/support/sample.ts";
import { f32, tf32, u32 } from "../../formats/dtype.ts";
import type { Kernel, Value } from "../../ir/node.ts";
import { walkOps } from "../../ir/traverse.ts";
import {
  tensor,
  barrier,
  copyAsync,
  dot,
  iota,
  kernel,
  randomKey,
  smem,
  zeros,
} from "../../lang/index.ts";
import { TilewrightError } from "../../support/diagnostics.ts";
import { defaultTarget, targets } from "../../targets/target.ts";
import { replication } from "../algebra/register-layout.ts";
import { placeKernel } from "./place.ts";
import type { Placement } from "./place.ts";

const examples = {
  axpy,
  clusterNormalize,
  columnSum,
  handoff,
  matmul,
  softmax,
  transpose,
};
const withoutConversions = {
  "a product with epilogue": matmulWithEpilogue(),
  "softmax of rows": rowSoftmax(),
  "attention with P in registers": flashAttention(),
};

function place({ kernel }: { readonly kernel: Kernel }): Placement {
  return placeKernel(kernel, defaultTarget);
}

/** f32 that is rounded to tf32. */
const rounded = kernel(
  {
    name: "rounded",
    inputs: { x: tensor(f32, [16, 32]) },
    outputs: { out: tensor(tf32, [16, 32]) },
    scratch: { buffer: smem(tf32, [16, 32]), landed: barrier() },
  },
  ({ x, out, buffer, landed }) => {
    copyAsync(x, buffer, { barrier: landed });
    landed.wait();
    out.store(buffer.load());
  },
);

describe("examples", () => {
  test.each(Object.entries(examples))("%s is placed with no pins", (_, definition) => {
    checkPlacement(place(definition));
  });

  test("axpy moves 16 bytes a thread", () => {
    const layouts = [...place(axpy).layouts.values()].filter(({ kind }) => kind !== "splat");
    expect(new Set(layouts.map(({ text }) => text))).toEqual(
      new Set(["(R0 R1 L0 L1 L2 L3 L4 W0 W1)"]),
    );
  });

  test("transpose stores its tile so that neither rows nor columns collide", () => {
    const { shared, conversions } = place(transpose);
    expect([...shared.values()].map(({ swizzle }) => swizzle)).toEqual([128]);
    expect(conversions).toEqual([]);
  });

  test("the blocks of gemm are read by wgmma and written by tensor copies", () => {
    const { copies, shared } = place(gemm);
    expect([...shared.values()].map(({ text }) => text)).toEqual([
      "shared(swizzle 128)",
      "shared(swizzle 128)",
      "shared(tile 64 64, swizzle 128)",
    ]);
    expect(new Set([...copies.values()].map(({ method }) => method))).toEqual(new Set(["tensor"]));
  });
});

describe("kernels that need no conversion get none", () => {
  test.each(Object.entries(withoutConversions))("%s", (_, definition) => {
    const placement = place(definition);
    checkPlacement(placement);
    expect(placement.conversions).toEqual([]);
  });

  test("attention multiplies by wgmma twice, the second time from registers", () => {
    const products = [...place(flashAttention()).products.values()];
    expect(products.map(({ instruction, reads }) => [instruction, reads])).toEqual([
      ["wgmma", ["left", "right"]],
      ["wgmma", ["right"]],
    ]);
  });

  test("weights in 8 bits become an operand within lanes", () => {
    const placement = place(weightOnlyMatmul());
    checkPlacement(placement);
    const kinds = placement.conversions.map(({ plan }) => plan.kind);
    expect(kinds.filter((kind) => kind !== "registers")).toEqual([]);
    expect([...placement.products.values()].map(({ instruction }) => instruction)).toEqual([
      "wgmma",
    ]);
  });
});

/** Some of the products of f32 are dropped at random: nothing of their shape, [16, 32], is read or written. */
const dropped = kernel(
  {
    name: "dropped",
    inputs: {
      ...{
        left: tensor(f32, [16, 16]),
        right: tensor(f32, [32, 16]),
        values: tensor(f32, [32, 128]),
      },
      key: tensor(u32, [2]),
    },
    outputs: { out: tensor(f32, [16, 128]) },
  },
  ({ left, right, values, key, out }) => {
    const exact = { precision: "ieee" } as const;
    const products = dot(left.load(), right.load().transpose(), exact);
    const numbers = iota(u32, [16, 32], { axis: 0 })
      .mul(32)
      .add(iota(u32, [16, 32], { axis: 1 }));
    const kept = randomKey(key).bernoulli(0.5, numbers);
    const weights = kept.select(products, zeros(f32, [16, 32]));
    out.store(dot(weights, values.load(), exact));
  },
);

test("random bits that all lanes have a part of are drawn once each", () => {
  const placement = place(dropped);
  checkPlacement(placement);
  const copies = [...placement.layouts].flatMap(([{ type }, layout]) => {
    const isDrawn = type.kind === "tile" && type.dtype === u32 && type.shape.join() === "16,32";
    return isDrawn && layout.kind !== "splat" ? [replication(layout, 4)] : [];
  });
  expect(copies.length).toBeGreaterThan(100);
  expect(copies.filter((count) => count > 1)).toEqual([]);
});

describe("other targets", () => {
  test("without wgmma and tensor copies the same kernel uses what there is", () => {
    const placement = placeKernel(flashAttention().kernel, targets.sm_80);
    checkPlacement(placement);
    const instructions = [...placement.products.values()].map(({ instruction }) => instruction);
    expect(instructions).toEqual(["mma.sync", "mma.sync"]);
    expect([...placement.copies.values()].map(({ method }) => method)).toEqual([
      "cp.async",
      "cp.async",
      "cp.async",
    ]);
    expect([...placement.products.values()][0]?.reason).toBe("no wgmma: sm_80 does not have it");
  });

  test("f32 is rounded to tf32 by the lanes that copy it", () => {
    const { copies } = placeKernel(rounded.kernel, targets.sm_80);
    expect([...copies.values()].map(({ method }) => method)).toEqual(["plain"]);
  });

  test.each([
    ["wgmma", gemm, "needs wgmma, which sm_80 does not have"],
    ["multicast", clusterNormalize, "a multicast needs tensor copies, which sm_80 does not have"],
  ] as const)("%s by name is refused where it does not exist", (_, { kernel }, message) => {
    let report: unknown;
    try {
      placeKernel(kernel, targets.sm_80);
    } catch (error) {
      report = error;
    }
    expect(report).toBeInstanceOf(TilewrightError);
    expect(report).toMatchObject({ code: "TW6105" });
    expect(String(report)).toContain(message);
  });
});

describe("random kernels", () => {
  const seeds = Array.from({ length: 60 }, (_, seed) => seed);
  test.each(sampleOf(seeds, 3))("seed %i", (seed) => {
    const kernel = randomKernel(seed);
    let pinned = false;
    walkOps(kernel.body, (op) => {
      pinned ||= op.kind === "layout_cast";
    });
    try {
      checkPlacement(placeKernel(kernel, defaultTarget));
    } catch (error) {
      if (!(pinned && error instanceof TilewrightError && error.code === "TW6101")) throw error;
    }
  });
});

test("the same kernel is placed in the same way", () => {
  const texts = (): readonly string[] => {
    const { layouts } = place(flashAttention());
    return [...layouts].map(([value, { text }]: readonly [Value, { text: string }]) =>
      [value.id, text].join(" "),
    );
  };
  expect(texts()).toEqual(texts());
});
