/**
 * Tensor memory: loads and stores have the layout that their instruction fills, and what products read of shared memory is stored as their
 * descriptors say. Tiles of tensor memory lie in it in one way alone.
 */
import type { AnyOp, Op, Value } from "../../ir/node.ts";
import { opName } from "../../ir/op-names.ts";
import type { tensorMemoryOps } from "../../ir/ops/tensor-memory.ts";
import { tmemPart } from "../../ir/infer/tensor-memory.ts";
import { shapeText } from "../../ir/size.ts";
import { operandValues, refOf } from "../../ir/traverse.ts";
import { TilewrightError } from "../../support/diagnostics.ts";
import { requireFeatures } from "../model/required-features.ts";
import {
  blocksTogether,
  halvedColumns,
  tmemLayoutOf,
  tmemRoot,
  tmemShapeOf,
  tmemStorage,
  packingOf,
} from "../model/tensor-memory.ts";
import type { TmemBuffer } from "../model/tensor-memory.ts";
import type { LayoutContext } from "./context.ts";
import { fixOperand, fixResult, requireOperand } from "./tiles.ts";
import type { Rules } from "./values.ts";
import { rowMajor } from "../algebra/shared-layout.ts";
import type { SharedLayout } from "../algebra/shared-layout.ts";

/** Narrow elements of a left factor share columns, and those of sums do not. */
function requirePacking(op: Op<"tcgen05_mma">, side: "sums" | "a", context: LayoutContext): void {
  const { [side]: window } = op.operands;
  const { space, dtype } = refOf(window);
  if (space !== "tmem" || dtype.bits === 32) return;
  const root = tmemRoot(window, context.surroundings.windows.definitions);
  const storage = tmemStorage(root);
  const isPacked = packingOf(storage) > 1;
  if (storage.kind !== "scales" && isPacked === (side === "a")) return;
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

/** Sums whose columns lie in either half of the lanes are made whole. */
function requireAllColumns(op: Op<"tcgen05_mma">, context: LayoutContext): void {
  const { sums } = op.operands;
  const root = tmemRoot(sums, context.surroundings.windows.definitions);
  if (
    tmemStorage(root).kind === "pair" &&
    refOf(sums).shape.at(-1) !== root.attributes.shape.at(-1)
  )
    refuseStorage(op, root, "all columns of a tile, of which each half of the lanes has half");
}

/** What is read and written as scales is declared as scales, and nothing else is. */
function requireScales(
  op: Op<"tcgen05_mma"> | Op<"tcgen05_copy">,
  window: Value,
  isHalved: boolean,
  context: LayoutContext,
): void {
  const root = tmemRoot(window, context.surroundings.windows.definitions);
  const { shape } = root.attributes;
  const isWhole = shapeText(refOf(window).shape) === shapeText(shape.slice(-2));
  const storage = tmemStorage(root);
  if (storage.kind !== "scales" || storage.isHalved !== isHalved || !isWhole)
    refuseStorage(op, root, `tmem(…, { scales: ${isHalved ? '"halves"' : "true"} })`);
}

/** Loads and stores move matrices whose narrow elements have words to themselves, or fill them. */
function requireMatrix(op: Op<"tmem_load"> | Op<"tmem_store">, context: LayoutContext): void {
  const root = tmemRoot(op.operands.ref, context.surroundings.windows.definitions);
  const storage = tmemStorage(root);
  const { bits } = root.attributes.dtype;
  const columns = Number(refOf(op.operands.ref).shape.at(-1));
  const halved = halvedColumns(op.operands.ref, context.surroundings.windows.definitions);
  if (storage.kind === "scales") refuseStorage(op, root, "a matrix, not scales");
  else if (halved !== undefined) requireHalves(op, root, halved);
  else if (storage.kind === "pair" && columns !== root.attributes.shape.at(-1))
    refuseStorage(op, root, `all columns of a tile, or ${ofHalves} of which there are parts`);
  else if (storage.kind === "pair" && tmemPart(columns) !== columns)
    refuseStorage(op, root, `a power of two of columns, or ${ofHalves}`);
  else if (bits === 8 && storage.packing === 1)
    refuseStorage(op, root, "{ packed: true } of 8 bits");
}

const ofHalves = "reshape([64, 2, n / 2]), of each half of the lanes its columns,";

/** Only sums of a pair with 64 rows in each block have columns in either half of the lanes. */
function requireHalves(op: AnyOp, root: TmemBuffer, columns: number): void {
  if (tmemStorage(root).kind !== "pair" || columns !== root.attributes.shape.at(-1))
    refuseStorage(op, root, "halves of all columns of tmem(…, [64, n], { pair: true })");
}

function refuseStorage(op: AnyOp, root: TmemBuffer, expected: string): never {
  const { name = "the buffer" } = root.attributes;
  throw new TilewrightError({
    code: "TW6107",
    message: `${opName(op)} cannot use ${name} as it lies in tensor memory`,
    location: op.location,
    expected,
    found: tmemStorage(root).text,
    notes: [{ message: `${name} is declared here`, location: root.location }],
  });
}

/** The layout that a load or store has in registers. */
function movedLayout(op: Op<"tmem_load"> | Op<"tmem_store">, context: LayoutContext) {
  const { definitions } = context.surroundings.windows;
  return tmemLayoutOf(op, context.warps, tmemStorage(tmemRoot(op.operands.ref, definitions)));
}

/** What a pair of blocks does is done in tensor memory of both, and what one does in its own. */
function requireTogether(op: Op<"tcgen05_mma"> | Op<"tcgen05_copy">, context: LayoutContext): void {
  const together = blocksTogether(op);
  for (const window of operandValues(op)) {
    if (window.type.kind !== "ref" || window.type.space !== "tmem") continue;
    const root = tmemRoot(window, context.surroundings.windows.definitions);
    if (blocksTogether(root) === together) continue;
    const { name = "the buffer" } = root.attributes;
    const [own, other] = together === 2 ? ["a pair of blocks", "one"] : ["one block", "a pair"];
    throw new TilewrightError({
      code: "TW6109",
      message: `${opName(op)} of ${own} uses ${name}, which is of ${other}`,
      location: op.location,
      expected: "{ pair: true } of both, or of neither",
      found: `{ pair: ${together === 2} } here, { pair: ${together !== 2} } there`,
      notes: [{ message: `${name} is declared here`, location: root.location }],
    });
  }
}

export const tensorMemoryRules: Rules<typeof tensorMemoryOps> = {
  alloc_tmem(op, context) {
    requireFeatures(op, context.surroundings.target);
  },

  tmem_member: () => undefined,

  tmem_load(op, context) {
    requireMatrix(op, context);
    const variable = context.define(op, op.results[0]);
    if (variable === undefined) return;
    fixResult(op, variable, movedLayout(op, context), `${tmemShapeOf(op)} loads`, context);
  },

  tmem_store(op, context) {
    requireMatrix(op, context);
    const moved = movedLayout(op, context);
    fixOperand(op, op.operands.value, moved, `${tmemShapeOf(op)} stores`, context);
  },

  tcgen05_mma(op, context) {
    const { a, b, sums } = op.operands;
    const rows = Number(refOf(sums).shape[0]);
    requireFeatures(op, context.surroundings.target);
    requireTogether(op, context);
    requirePacking(op, "sums", context);
    requirePacking(op, "a", context);
    requireAllColumns(op, context);
    requireOperand(op, b, "right", context, rows);
    if (refOf(a).space === "smem") requireOperand(op, a, "left", context, rows);
    const { aScales, bScales } = op.operands;
    if (aScales !== undefined) requireScales(op, aScales, false, context);
    if (bScales !== undefined) requireScales(op, bScales, rows === 64, context);
  },

  /** Atoms lie one behind the other, without a swizzle. */
  tcgen05_copy(op, context) {
    requireTogether(op, context);
    const isHalved = refOf(op.operands.source).shape[2] === 64;
    requireScales(op, op.operands.destination, isHalved, context);
    const window = context.surroundings.windows.of(op.operands.source);
    if (window.space === "gmem") throw new Error("tensor cores copy from shared memory");
    const variable = context.allocation(window);
    const reason = { op, message: `tcgen05Copy reads ${variable.label}` };
    context.require([variable], `tcgen05Copy ${window.text}`, reason, () => {
      return (layout: SharedLayout) =>
        layout.text === rowMajor.text ? true : "atoms of scales lie by rows";
    });
  },

  tcgen05_commit: () => undefined,
};
