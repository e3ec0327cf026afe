/** Completeness: whether everything has been decided: a target, a layout for each tile, attributes of ops that need them. */
import { nothing } from "../../ir/make-op.ts";
import type { AnyOp, Kernel, Op, PlacedFor } from "../../ir/node.ts";
import type { OpKind } from "../../ir/ops.ts";
import { reject } from "../../ir/verify/report.ts";
import { walkOps } from "../../ir/traverse.ts";
import { isSpread } from "../../ir/types.ts";
import { accessesByThreads } from "../../layout/access/memory-accesses.ts";
import { definedBy } from "./walk.ts";
import { visitEach } from "../../support/visit-each.ts";

/** Attributes that ops must have once they are placed; most kinds have none. */
const decided: { readonly [K in OpKind]?: (op: Op<K>) => readonly string[] } = {
  scaled_dot: () => ["warps"],
  dot: ({ attributes }) =>
    attributes.instruction === "mma.sync" ? ["instruction", "warps"] : ["instruction"],
  copy_async: ({ attributes }) => (attributes.by === "tensor" ? ["by", "map"] : ["by"]),
  prefetch_maps: () => ["maps"],
  wgmma: () => ["groups"],
  wgmma_wait: () => ["groups"],
  products_wait: () => ["groups"],
  slice_ref: () => ["guard"],
  alloc: ({ attributes }) => (attributes.space === "smem" ? ["layout", "at"] : []),
  union_member: () => ["layout"],
  alloc_union: () => ["at"],
  alloc_barrier: () => ["at"],
  alloc_tmem: () => ["at"],
  alloc_scratch: () => ["at"],
};

function decidedOf(op: AnyOp): readonly string[] {
  // TypeScript cannot see that the rule and the op share their kind.
  const rule = decided[op.kind] as ((op: AnyOp) => readonly string[]) | undefined;
  const named = rule === undefined ? nothing : rule(op);
  return accessesByThreads(op) ? [...named, "unit"] : named;
}

/** What the kernel was placed for. */
export function verifyForm(kernel: Kernel): PlacedFor {
  const { placed } = kernel;
  if (placed === undefined)
    return reject(kernel, "TW6201", `${kernel.name} has not been placed`, {
      expected: "a target that it was placed for",
      found: "none",
    });
  walkOps(kernel.body, (op) => {
    const attributes = op.attributes as { readonly [name: string]: unknown };
    visitEach(decidedOf(op), (name) => {
      if (attributes[name] === undefined)
        reject(op, "TW6201", `${op.kind} has no ${name}`, {
          expected: `{${name} = …}`,
          found: "none",
        });
    });
    visitEach(definedBy(op), ({ id, type }) => {
      if (isSpread(type) && type.layout === undefined)
        reject(op, "TW6201", `%${id} of ${op.kind} has no layout`, {
          expected: "a layout in its type",
          found: "none",
        });
    });
  });
  return placed;
}
