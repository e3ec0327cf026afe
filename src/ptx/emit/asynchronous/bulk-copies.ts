/**
 * Linear bulk copies (`layout/model/bulk-copies.ts`): one instruction for each run of bytes.
 *
 *   f64 [16, 32] of [n, 96], added     16 times cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f64 [%d4 + 768 i], [%r2 + 256 i], 256
 */
import { planBulk } from "../../../layout/model/bulk-copies.ts";
import type { Op } from "../../../ir/node.ts";
import { copyWindows } from "../../../layout/model/copy-methods.ts";
import { address, integer } from "../../operands.ts";
import type { EmitContext } from "../context.ts";
import { addProduct, wideAddress, wideRegister } from "../memory/address-arithmetic.ts";
import type { WideSum } from "../memory/address-arithmetic.ts";
import { constantPosition, zeroPosition } from "../memory/positions.ts";
import { sharedStart } from "../memory/shared.ts";
import type { GlobalValue, SharedValue } from "../values.ts";
import type { EngineCopy } from "./engine-copies.ts";

export function planBulkCopy(
  context: EmitContext,
  op: Op<"copy_async">,
  window: GlobalValue,
  shared: SharedValue,
): EngineCopy {
  const [view] = shared.window.views(shared.layout) ?? [];
  if (view === undefined) throw new Error("a bulk copy of a window that cannot be described");
  const plan = planBulk(copyWindows(op, context.windows).global, view);
  if (typeof plan === "string") throw new Error(`a bulk copy where ${plan}`);
  const start = sharedStart(context, shared);
  const first = firstByte(context, window);
  const size = [integer(plan.bytes)];
  return {
    form: "",
    bytes: plan.bytes * plan.runs.length,
    pieces: plan.runs.map((run) => ({
      global: wideAddress(context, runStart(context, window, first, run.start)),
      shared: address(start.base, start.offset + run.offset),
      size,
    })),
  };
}

/** Elements of 4 bits are counted one by one, and their number is halved. */
function scaleOf({ dtype }: GlobalValue): number {
  return dtype.bits === 4 ? 1 : dtype.bits / 8;
}

/** The address of the window's first element. */
function firstByte(context: EmitContext, window: GlobalValue): WideSum {
  const { array, origin, base, dtype } = window;
  const scale = scaleOf(window);
  const sum = array.reduce<WideSum>(
    (total, { stride }, root) =>
      addProduct(context, total, origin[root] ?? zeroPosition, stride, scale),
    { register: dtype.bits === 4 ? undefined : base, constant: 0 },
  );
  return dtype.bits === 4 ? halved(context, window, sum) : sum;
}

function runStart(
  context: EmitContext,
  window: GlobalValue,
  first: WideSum,
  start: readonly number[],
): WideSum {
  const { array, axes, dtype } = window;
  const scale = scaleOf(window);
  const from = dtype.bits === 4 ? { register: undefined, constant: 0 } : first;
  const sum = start.reduce<WideSum>((total, step, axis) => {
    const stride = array[axes[axis]?.root ?? 0]?.stride ?? 1;
    return addProduct(context, total, constantPosition(step), stride, scale);
  }, from);
  if (dtype.bits !== 4) return sum;
  return halved(context, { ...window, base: wideRegister(context, first) }, sum);
}

function halved(context: EmitContext, { base }: GlobalValue, sum: WideSum): WideSum {
  if (sum.register === undefined) return { register: base, constant: sum.constant / 2 };
  const { code } = context;
  const bytes = code.make("b64", "shr.s64", wideRegister(context, sum), integer(1));
  return { register: code.make("b64", "add.s64", base, bytes), constant: 0 };
}
