/** Whether everything has been decided: a target, a layout for each tile, attributes of ops that need them. */
import type { AnyOp, Kernel, PlacedFor } from "../../ir/node.ts";
import { reject } from "../../ir/verify/report.ts";
import { walkOps } from "../../ir/traverse.ts";
import { isSpread } from "../../ir/types.ts";
import { definedBy } from "./walk.ts";

/** Attributes that an op must have once it is placed. */
function decided(op: AnyOp): readonly string[] {
  switch (op.kind) {
    case "dot":
      return op.attributes.instruction === "mma.sync" ? ["instruction", "warps"] : ["instruction"];
    case "copy_async":
      return ["by"];
    case "alloc":
      return op.attributes.space === "smem" ? ["layout", "at"] : [];
    case "union_member":
      return ["layout"];
    case "alloc_union":
    case "alloc_barrier":
      return ["at"];
    default:
      return [];
  }
}

/** What the kernel was placed for. */
export function verifyForm(kernel: Kernel): PlacedFor {
  const { placed } = kernel;
  if (placed === undefined) return reject(kernel, "TW6201", `${kernel.name} has not been placed`);
  walkOps(kernel.body, (op) => {
    const attributes = op.attributes as { readonly [name: string]: unknown };
    for (const name of decided(op))
      if (attributes[name] === undefined)
        reject(op, "TW6201", `${op.kind} has no ${name}`, { expected: `{${name} = …}` });
    for (const { id, type } of definedBy(op))
      if (isSpread(type) && type.layout === undefined)
        reject(op, "TW6201", `%${id} of ${op.kind} has no layout`);
  });
  return placed;
}
