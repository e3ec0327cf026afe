/**
 * Tensor memory: loads and stores have the layout that their instruction fills, and what products read of shared memory is stored as their
 * descriptors say. Tiles of tensor memory lie in it in one way alone.
 */
import type { Op } from "../../ir/node.ts";
import type { tensorMemoryOps } from "../../ir/ops/tensor-memory.ts";
import { refOf } from "../../ir/traverse.ts";
import { TilewrightError } from "../../support/diagnostics.ts";
import { requireFeatures } from "../model/required-features.ts";
import { tmemLayoutOf, tmemRoot, tmemShapeOf, tmemStorage } from "../model/tensor-memory.ts";
import type { LayoutContext } from "./context.ts";
import { fixOperand, fixResult, requireOperand } from "./tiles.ts";
import type { Rules } from "./values.ts";

/** Narrow elements of a left factor share columns, and those of sums do not. */
function requirePacking(op: Op<"tcgen05_mma">, side: "sums" | "a", context: LayoutContext): void {
  const { [side]: window } = op.operands;
  const { space, dtype } = refOf(window);
  if (space !== "tmem" || dtype.bits === 32) return;
  const root = tmemRoot(window, context.surroundings.windows.definitions);
  const isPacked = tmemStorage(root).packing > 1;
  if (isPacked === (side === "a")) return;
  const { name = "the buffer" } = root.attributes;
  throw new TilewrightError({
    code: "TW6107",
    message: `${side} of tcgen05Mma lies in ${name}, whose elements ${isPacked ? "share columns" : "have a column each"}`,
    location: op.location,
    expected: side === "a" ? `tmem(${dtype.name}, …, { packed: true })` : `tmem(${dtype.name}, …)`,
    found: isPacked ? "packed elements" : "a column for each element",
    notes: [{ message: `${name} is declared here`, location: root.location }],
  });
}

export const tensorMemoryRules: Rules<typeof tensorMemoryOps> = {
  alloc_tmem(op, context) {
    requireFeatures(op, context.surroundings.target);
  },

  tmem_load(op, context) {
    const variable = context.define(op, op.results[0]);
    if (variable === undefined) return;
    fixResult(op, variable, tmemLayoutOf(op), `${tmemShapeOf(op)} loads`, context);
  },

  tmem_store(op, context) {
    fixOperand(op, op.operands.value, tmemLayoutOf(op), `${tmemShapeOf(op)} stores`, context);
  },

  tcgen05_mma(op, context) {
    const { a, b, sums } = op.operands;
    const rows = Number(refOf(sums).shape[0]);
    requirePacking(op, "sums", context);
    requirePacking(op, "a", context);
    requireOperand(op, b, "right", context, rows);
    if (refOf(a).space === "smem") requireOperand(op, a, "left", context, rows);
  },

  tcgen05_commit: () => undefined,
};
