/**
 * Asynchronous copies and products. The shared side of a copy should be stored so that TMA
 * can write it; where it is not, the copy is made otherwise and costs more. Multicast and reductions
 * exist for TMA alone. Accumulators and operands of wgmma have the instruction's layouts.
 */
import type { Op, Value } from "../../ir/node.ts";
import type { asynchronousOps } from "../../ir/ops/asynchronous.ts";
import { wgmmaAccumulator, wgmmaLeft, wgmmaMetadata } from "../algebra/named-layouts.ts";
import { rowMajor } from "../algebra/shared-layout.ts";
import type { SharedLayout } from "../algebra/shared-layout.ts";
import {
  isRounded,
  copyCost,
  copyMethod,
  copyWindows,
  engineCopy,
  needsEngine,
  reductionProblem,
  storeProblem,
} from "../model/copy-methods.ts";
import { bulkProblem } from "../model/bulk-copies.ts";
import type { CopyWindows } from "../model/copy-methods.ts";
import { TilewrightError } from "../../support/diagnostics.ts";
import { requireFeatures } from "../model/required-features.ts";
import { matrixOf, tileOf } from "../model/product-instructions.ts";
import { globalKey } from "../model/windows.ts";
import type { LayoutContext } from "./context.ts";
import { fixOperand, fixResult, requireOperand } from "./tiles.ts";
import type { Rules } from "./values.ts";

const nothing = (): void => undefined;

function copyAsync(op: Op<"copy_async">, context: LayoutContext): void {
  const { target, windows } = context.surroundings;
  const sides = copyWindows(op, windows);
  const variable = context.allocation(sides.shared);
  const needed = needsEngine(op);
  requireFeatures(op, target);
  const side = sides.intoShared ? "into" : "from";
  requireReducible(op, sides);
  if (needed !== undefined) {
    const message = `${needed} copies ${side} ${variable.label} by TMA`;
    const relax =
      op.attributes.multicast.length > 0
        ? "copy without multicast"
        : op.attributes.pair === true
          ? "copy without pair"
          : "copy without reduction, and combine by atomics";
    context.require([variable], undefined, { op, message, relax }, () => {
      return (layout: SharedLayout) => {
        const made = engineCopy(op, sides, layout, target);
        return typeof made === "string" ? made : true;
      };
    });
  }
  const key = `copy ${side} ${sides.shared.text} ${globalKey(sides.global)} ${op.attributes.fill} ${isRounded(op)}`;
  context.price([variable], key, op, `copy ${side} ${variable.label}`, () => {
    return (layout: SharedLayout) => copyCost(copyMethod(op, sides, layout, target), sides);
  });
}

/** Only TMA reduces, and there are windows that it would not keep to. */
function requireReducible(op: Op<"copy_async">, { global, intoShared }: CopyWindows): void {
  const { reduction } = op.attributes;
  if (reduction === "none" || intoShared) return;
  const problem = storeProblem(global) ?? reductionProblem(op, global);
  const inRuns = bulkProblem(global);
  if (problem === undefined || inRuns === undefined) return;
  throw new TilewrightError({
    code: "TW7002",
    message: `TMA cannot ${reduction} into this window: ${problem}`,
    location: op.location,
    expected: "a window that TMA stores whole, or one that is known to lie inside the array",
    found: `${problem}; ${inRuns}`,
  });
}

/** The accumulator in flight; its registers are the instruction's. */
function inFlight(
  op: Op<"accumulator"> | Op<"wgmma"> | Op<"wgmma_wait">,
  context: LayoutContext,
): void {
  const { target } = context.surroundings;
  requireFeatures(op, target);
  const [result] = op.results;
  if (op.kind === "accumulator") {
    const variable = context.define(op, result);
    if (variable === undefined) return;
    fixResult(op, variable, wgmmaAccumulator(context.warps), "wgmma accumulates", context);
    const { initial } = op.operands;
    if (initial !== undefined) context.read(op, initial, { kind: "variable", variable });
    return;
  }
  context.share(result, context.variable(op.operands.accumulator));
}

/** A response is 16 bytes that lie as they are written. */
function requireRows(op: Op<"take_block"> | Op<"taken_block">, ref: Value, context: LayoutContext) {
  const window = context.surroundings.windows.of(ref);
  if (window.space === "gmem") throw new Error("responses are in shared memory");
  const variable = context.allocation(window);
  const reason = { op, message: `${variable.label} is a response` };
  context.require(
    [variable],
    `response ${window.text}`,
    reason,
    () => (layout: SharedLayout) =>
      layout.text === rowMajor.text ? true : "a response lies by rows",
  );
}

export const asynchronousRules: Rules<typeof asynchronousOps> = {
  copy_async: copyAsync,
  take_block(op, context) {
    requireFeatures(op, context.surroundings.target);
    requireRows(op, op.operands.response, context);
  },
  taken_block(op, context) {
    requireRows(op, op.operands.response, context);
  },
  prefetch: nothing,
  prefetch_maps: nothing,
  commit_group: nothing,
  wait_group: nothing,
  proxy_fence: nothing,
  accumulator: inFlight,
  wgmma_wait: inFlight,

  wgmma(op, context) {
    inFlight(op, context);
    const { a, b, metadata } = op.operands;
    requireOperand(op, b, "right", context);
    if (metadata !== undefined) {
      const { bits } = matrixOf(a).dtype;
      fixOperand(op, metadata, wgmmaMetadata(bits, context.warps), "wgmma reads metadata", context);
    }
    if (a.type.kind === "ref") {
      requireOperand(op, a, "left", context);
      return;
    }
    const fragment = wgmmaLeft(tileOf(a).dtype.bits, context.warps);
    fixOperand(op, a, fragment, "wgmma reads its left operand", context);
  },
};
