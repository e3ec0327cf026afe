/** What ops need that not every target has: said in the same words where a kernel is placed and where it is simulated. */
import type { AnyOp, Op } from "../../ir/node.ts";
import { opName } from "../../ir/op-names.ts";
import { operandValues, refOf } from "../../ir/traverse.ts";
import { TilewrightError } from "../../support/diagnostics.ts";
import { targets } from "../../targets/target.ts";
import type { Target } from "../../targets/target.ts";
import { needsEngine } from "./copy-methods.ts";
import {
  hasSumsInFlight,
  multipliesOn,
  productInstructions,
} from "../../targets/product-instructions.ts";

const { wgmma } = productInstructions;

/** Throws where the target lacks what the op needs. */
export function requireFeatures(op: AnyOp, target: Target): void {
  const { features, name } = target;
  if (op.kind === "copy_async" && !features.includes("tma")) {
    const needed = needsEngine(op);
    if (needed === undefined) return;
    throw targetError(
      op,
      target,
      "tma",
      `${needed} needs tensor copies, which ${name} does not have`,
      `compile for a target that has them, or ${withoutTensor(op)}`,
    );
  }
  if (op.kind === "take_block" && !features.includes("clusterlaunchcontrol"))
    throw targetError(
      op,
      target,
      "clusterlaunchcontrol",
      `taking the work of a block that has not begun needs cluster launch control, which ${name} does not have`,
    );
  const tensor = productInstructions.tcgen05;
  if (op.kind === "alloc_tmem" && !features.includes(tensor.feature))
    throw targetError(
      op,
      target,
      tensor.feature,
      `${opName(op)} needs tensor memory, which ${name} does not have`,
    );
  if (op.kind === "tcgen05_mma") {
    const { dtype } = refOf(op.operands.a);
    if (
      tensor.factors.some((each) => each === dtype.name) &&
      !multipliesOn(target, tensor, dtype.name)
    )
      throw targetError(
        op,
        target,
        tensor.integerFeature,
        `${opName(op)} of ${dtype.name} is an instruction that ${name} does not have`,
        "multiply FP8 or 16-bit formats, or compile for a target that has it",
      );
  }
  const isProduct = [...operandValues(op), ...op.results].some(
    ({ type }) => type.kind === "inflight",
  );
  if (isProduct && !hasSumsInFlight(target))
    throw targetError(
      op,
      target,
      wgmma.feature,
      `${opName(op)} needs ${wgmma.name}, which ${name} does not have`,
    );
}

/** What can be done instead of what only tensor copies do. */
function withoutTensor(op: Op<"copy_async">): string {
  return op.attributes.multicast.length > 0
    ? "let each block copy for itself"
    : op.attributes.pair === true
      ? "copy without pair"
      : "combine by atomics";
}

function targetError(
  { location }: AnyOp,
  { name }: Target,
  feature: Target["features"][number],
  message: string,
  remedy?: string,
): TilewrightError {
  const having = Object.values(targets).filter(({ features }) => features.includes(feature));
  const expected = having.map((target) => target.name).join(", ");
  return new TilewrightError({
    ...{ code: "TW6105", message, location, remedy },
    ...{ expected, found: name },
  });
}
