/** Which instruction a product or a copy becomes, and why. */
import { describe, expect, test } from "vitest";
import {
  all,
  tensor,
  barrier,
  bf16,
  blockSync,
  copyAsync,
  dim,
  dot,
  f16,
  f32,
  f64,
  f8e5m2,
  i8,
  kernel,
  slice,
  smem,
  tf32,
  warps,
} from "tilewright";
import type { KernelDefinition, Ref } from "tilewright";
import { checkPlacement } from "../../../test/support/placement-checker.ts";
import { defaultTarget } from "../../targets/target.ts";
import { placeKernel } from "../plan/place.ts";
import type { Placement } from "../plan/place.ts";

function place({ kernel: traced }: KernelDefinition): Placement {
  const placement = placeKernel(traced, defaultTarget);
  checkPlacement(placement);
  return placement;
}

interface Things {
  readonly a: Ref<"bf16">;
  readonly b: Ref<"bf16">;
  readonly fine: Ref<"f32">;
  readonly double: Ref<"f64">;
  readonly rounded: Ref<"tf32">;
  readonly bytes: Ref<"i8">;
  readonly halves: Ref<"f16">;
  readonly x: Ref<"bf16">;
}

const edge = 64;

function productOf(body: (things: Things) => void) {
  const definition = kernel(
    {
      name: "k",
      grid: { i: 1 },
      inputs: { x: tensor(bf16, [edge, edge]) },
      outputs: { out: tensor(f32, [edge, edge]) },
      scratch: {
        a: smem(bf16, [edge, edge]),
        b: smem(bf16, [edge, edge]),
        fine: smem(f32, [edge, edge]),
        double: smem(f64, [16, 16]),
        rounded: smem(tf32, [edge, edge]),
        bytes: smem(i8, [edge, edge]),
        halves: smem(f16, [edge, edge]),
      },
    },
    body,
  );
  const { products } = place(definition);
  const [product] = products.values();
  if (product === undefined) throw new Error("there is no product");
  return product;
}

describe("products", () => {
  test("of two windows of shared memory: wgmma", () => {
    const product = productOf(({ a, b }) => {
      dot(a.load(), b.load());
    });
    expect(product).toMatchObject({ instruction: "wgmma", reads: ["left", "right"] });
  });

  test("of registers and a window: wgmma with its left operand in registers", () => {
    const product = productOf(({ a, b }) => {
      dot(a.load().mul(2), b.load());
    });
    expect(product).toMatchObject({ instruction: "wgmma", reads: ["right"] });
  });

  test("of tf32, whose right operand is turned on its way into shared memory", () => {
    const product = productOf(({ rounded }) => {
      dot(rounded.load(), rounded.transpose().load());
    });
    expect(product.instruction).toBe("wgmma");
  });

  test("of bytes", () => {
    const product = productOf(({ bytes }) => {
      dot(bytes.load(), bytes.transpose().load());
    });
    expect(product.instruction).toBe("wgmma");
  });

  test.each([
    [
      "the right operand is computed",
      ({ a, b }: Things) => dot(a.load(), b.load().mul(2)),
      "mma.sync",
      "no wgmma: its right operand is computed in registers",
    ],
    [
      "the right operand comes from global memory",
      ({ a, x }: Things) => dot(a.load(), x.load()),
      "mma.sync",
      "no wgmma: its right operand is not loaded from shared memory",
    ],
    [
      "the right operand is used twice",
      ({ a, b }: Things) => {
        const right = b.load();
        a.store(right);
        return dot(a.load(), right);
      },
      "mma.sync",
      "no wgmma: its right operand may have been overwritten since it was loaded",
    ],
    [
      "the right operand is needed elsewhere",
      ({ a, b }: Things) => {
        const right = b.load();
        return dot(a.load().add(right), right);
      },
      "mma.sync",
      "no wgmma: its right operand is used elsewhere too",
    ],
    [
      "somebody may write between load and product",
      ({ a, b }: Things) => {
        const right = b.load();
        blockSync();
        return dot(a.load(), right);
      },
      "mma.sync",
      "no wgmma: its right operand may have been overwritten since it was loaded",
    ],
    [
      "too few rows",
      ({ a, b }: Things) => dot(a.at(slice(0, 32)).load(), b.load()),
      "mma.sync",
      "no wgmma: 32 rows are no multiple of 64",
    ],
    [
      "f32 rounded to tf32",
      ({ fine }: Things) => dot(fine.load(), fine.load(), { precision: "tf32" }),
      "mma.sync",
      "no wgmma: it does not round f32 (precision tf32)",
    ],
    [
      "exact f32",
      ({ fine }: Things) => dot(fine.load(), fine.load(), { precision: "ieee" }),
      "fma",
      "no wgmma: it does not round f32 (precision ieee); no mma.sync: it does not multiply f32 by f32 exactly",
    ],
    [
      "f64",
      ({ double }: Things) => dot(double.load(), double.load()),
      "mma.sync",
      "no wgmma: it does not multiply f64 by f64 into f64",
    ],
    [
      "f64 below a fragment",
      ({ double }: Things) => dot(double.load(), double.load().slice([0, 0], [16, 4])),
      "fma",
      "no wgmma: it does not multiply f64 by f64 into f64; no mma.sync: [16, 16] by [16, 4] does not consist of fragments 16 × 8 × 4",
    ],
    [
      "tiles below a fragment",
      ({ a, b }: Things) => dot(a.at(slice(0, 8)).load(), b.load()),
      "fma",
      "no wgmma: 8 rows are no multiple of 64; no mma.sync: [8, 64] by [64, 64] does not consist of fragments 16 × 8 × 16",
    ],
  ] as const)("%s", (_, body, instruction, reason) => {
    const product = productOf((things) => {
      body(things);
    });
    expect(product).toMatchObject({ instruction, reason });
  });

  test("a warp alone multiplies with its own lanes", () => {
    const product = productOf(({ a, b }) => {
      warps(() => {
        dot(a.load(), b.load());
      });
    });
    expect(product).toMatchObject({
      instruction: "mma.sync",
      warps: { rows: 1, columns: 1 },
      reason: "no wgmma: a warp works alone",
    });
  });

  test("warps lie side by side where there are few rows", () => {
    const product = productOf(({ x, a }) => {
      dot(x.at(slice(0, 16)).load(), a.load().add(1));
    });
    expect(product).toMatchObject({ instruction: "mma.sync", warps: { rows: 1, columns: 4 } });
  });

  test("two products that want one buffer stored in two ways: the second does without wgmma", () => {
    const definition = kernel(
      {
        name: "k",
        grid: { i: 1 },
        inputs: { x: tensor(i8, [edge, edge]) },
        outputs: { out: tensor(f32, [edge, edge]) },
        scratch: { bytes: smem(i8, [edge, edge]) },
      },
      ({ x, bytes }) => {
        bytes.store(x.load());
        dot(bytes.load(), bytes.load());
      },
    );
    const [product] = place(definition).products.values();
    expect(product?.instruction).toBe("mma.sync");
    expect(product?.reason).toContain("its operands cannot be stored for it");
  });
});

/** A copy of a window of `x` into shared memory of the same shape. */
function copyOf(
  columns: number | ReturnType<typeof dim>,
  shape: readonly number[],
  window: (x: Ref<"f32">) => Ref<"f32">,
  options: { readonly layout?: string; readonly fill?: "nan" } = {},
) {
  const { layout, fill } = options;
  const definition = kernel(
    {
      name: "k",
      grid: { i: 4 },
      inputs: { x: tensor(f32, [dim("m"), columns]) },
      outputs: { out: tensor(f32, shape) },
      scratch: {
        tile: smem(f32, shape, layout === undefined ? {} : { layout }),
        landed: barrier(),
      },
    },
    ({ x, tile, landed }) => {
      copyAsync(window(x), tile, { barrier: landed, ...(fill && { fill }) });
      landed.wait();
    },
  );
  const [copy] = place(definition).copies.values();
  if (copy === undefined) throw new Error("there is no copy");
  return copy;
}

describe("copies", () => {
  const block = (x: Ref<"f32">) => x.at(slice(0, 32), slice(0, 32));

  test("a box of the array: one tensor copy", () => {
    expect(copyOf(128, [32, 32], block)).toMatchObject({ method: "tensor", pieces: 1 });
  });

  test("tiles: one box for each", () => {
    const wide = (x: Ref<"f32">) => x.at(slice(0, 32), slice(0, 64));
    const tiles = { layout: "shared(tile 32 32, swizzle 128)" };
    expect(copyOf(128, [32, 64], wide, tiles)).toMatchObject({ method: "tensor", pieces: 2 });
  });

  test.each([
    [
      "rows that may start between 16 bytes",
      () => copyOf(dim("n"), [32, 32], block),
      "cp.async",
      "a stride of the array is not known to be a multiple of 16 bytes",
    ],
    [
      "the same with rows that start at multiples of 8 bytes",
      () => copyOf(dim("n", { multipleOf: 2 }), [32, 32], block),
      "cp.async",
      "a stride of the array is not known to be a multiple of 16 bytes",
    ],
    [
      "an array of one column, whose rows lie side by side",
      () => copyOf(1, [32, 32], block),
      "cp.async",
      "a stride of the array is not known to be a multiple of 16 bytes",
    ],
    [
      "a view that ends inside the array",
      () => copyOf(128, [32, 32], (x) => x.at(all, slice(0, 48)).at(slice(0, 32), slice(32, 32))),
      "cp.async",
      "the window ends with a view that is smaller than the array",
    ],
    [
      "columns",
      () => copyOf(128, [32, 32], block, { layout: "shared(order 1 0)" }),
      "cp.async",
      "the copy would transpose",
    ],
    [
      "a transposed window",
      () => copyOf(128, [32, 32], (x) => block(x).transpose(), { layout: "shared()" }),
      "cp.async",
      "the copy would transpose",
    ],
    [
      "tiles that are narrower than 16 bytes",
      () => copyOf(128, [32, 32], block, { layout: "shared(tile 8 2)" }),
      "cp.async",
      "a box starts 64 bytes past a multiple of 128 in shared memory",
    ],
    [
      "a fill that cp.async does not have",
      () => copyOf(dim("n", { multipleOf: 2 }), [32, 32], block, { fill: "nan" }),
      "plain",
      "a stride of the array is not known to be a multiple of 16 bytes",
    ],
  ] as const)("%s", (_, make, method, reason) => {
    const copy = make();
    expect(copy.reason).toBe(`no tensor copy: ${reason}`);
    expect(copy.method).toBe(method);
  });

  test("a NaN of 8 bits, which TMA does not have", () => {
    const definition = kernel(
      {
        name: "k",
        inputs: { x: tensor(f8e5m2, [5, 16]) },
        outputs: { out: tensor(f8e5m2, [8, 16]) },
        scratch: { tile: smem(f8e5m2, [8, 16]), landed: barrier() },
      },
      ({ x, out, tile, landed }) => {
        copyAsync(x.at(slice(0, 8), slice(0, 16)), tile, { barrier: landed, fill: "nan" });
        landed.wait();
        out.store(tile.load());
      },
    );
    const [copy] = place(definition).copies.values();
    expect(copy?.reason).toBe("no tensor copy: TMA has no NaN of f8e5m2");
    expect(copy?.method).toBe("plain");
  });

  test("a view inside the array is no matter where the window surely lies in it", () => {
    const inside = (x: Ref<"f32">) =>
      x.at(slice(0, 64), slice(0, 64)).at(slice(0, 32), slice(32, 32));
    expect(copyOf(128, [32, 32], inside).method).toBe("tensor");
  });
});
