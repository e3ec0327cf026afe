/** Which products are loops of several groups, and what waits make of them. */
import { expect, test } from "vitest";
import { dtypes } from "../formats/dtype.ts";
import { walkOps } from "../ir/traverse.ts";
import {
  accumulator,
  tensor,
  commitShared,
  dot,
  kernel,
  smem,
  wgmma,
  zeros,
} from "../lang/index.ts";
import type { Accumulator, Ref } from "../lang/index.ts";
import { targets } from "../targets/target.ts";
import { place } from "./stages.ts";

const { bf16, f32 } = dtypes;

interface Parts {
  readonly a: Ref<"bf16">;
  readonly b: Ref<"bf16">;
}

interface Shape {
  readonly height?: number;
  readonly depth?: number;
}

/** The groups of each product and wait, in their order. */
function groupsOf(
  body: (parts: Parts, sums: () => Accumulator<"f32">) => Accumulator<"f32">,
  { height = 64, depth = 64 }: Shape = {},
): readonly string[] {
  const { kernel: traced } = kernel(
    {
      name: "groups",
      outputs: { out: tensor(f32, [height, 16]) },
      scratch: { a: smem(bf16, [height, depth]), b: smem(bf16, [depth, 16]) },
    },
    ({ out, a, b }) => {
      a.store(zeros(bf16, [height, depth]));
      b.store(zeros(bf16, [depth, 16]));
      commitShared();
      out.store(body({ a, b }, () => accumulator(f32, [height, 16])).wait());
    },
  );
  const found: string[] = [];
  walkOps(place(traced, targets.sm_90a).kernel.body, (op) => {
    if (op.kind === "wgmma" || op.kind === "wgmma_wait" || op.kind === "products_wait")
      found.push(`${op.kind} ${op.attributes.groups}`);
  });
  return found;
}

const rolled = { rolled: true };

test("a product that may be a loop is as many groups as instructions, which waits count", () => {
  const found = groupsOf(({ a, b }, sums) => {
    const first = wgmma(sums(), a, b, rolled);
    return wgmma(first.waitPending(1), a, b, rolled);
  });
  expect(found).toEqual(["wgmma 4", "wgmma_wait 4", "wgmma 4", "wgmma_wait 0"]);
});

test("all other products are one", () => {
  const one = ["wgmma 1", "wgmma_wait 0"];
  expect(groupsOf(({ a, b }, sums) => wgmma(sums(), a, b))).toEqual(one);
  const product = ({ a, b }: Parts, sums: () => Accumulator<"f32">) => wgmma(sums(), a, b, rolled);
  expect(groupsOf(product, { height: 128 })).toEqual(one);
  // Rows of 192 bytes lie in runs of 64, and steps take 32.
  expect(groupsOf(product, { depth: 96 })).toEqual(one);
  expect(groupsOf(product, { depth: 32 })).toEqual(["wgmma 2", "wgmma_wait 0"]);
});

test("products are loops where all are alike, and waits can count so far", () => {
  const unlike = groupsOf(({ a, b }, sums) =>
    wgmma(wgmma(sums(), a, b, rolled).waitPending(1), a, b),
  );
  expect(unlike).toEqual(["wgmma 1", "wgmma_wait 1", "wgmma 1", "wgmma_wait 0"]);
  // A dot by wgmma is one group, too.
  const beside = groupsOf(({ a, b }) =>
    wgmma(accumulator(f32, [64, 16], dot(a.load(), b.load())), a, b, rolled),
  );
  expect(beside).toEqual(["wgmma 1", "wgmma_wait 0"]);
  const far = groupsOf(({ a, b }, sums) => {
    const started = wgmma(sums(), a, b, rolled);
    return wgmma(started.waitPending(2), a, b, rolled);
  });
  expect(far).toEqual(["wgmma 1", "wgmma_wait 2", "wgmma 1", "wgmma_wait 0"]);
});
