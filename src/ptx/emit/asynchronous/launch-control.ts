/**
 * Cluster launch control: the work of a block that has not begun, asked for by one lane and read by all.
 *
 *   mbarrier.arrive.expect_tx [barrier], 16
 *   clusterlaunchcontrol.try_cancel.async [response], [barrier]
 *   …                                                            a wait for the barrier
 *   ld.shared.b128  q, [response]
 *   clusterlaunchcontrol.query_cancel.is_canceled  p, q
 *   @p clusterlaunchcontrol.query_cancel.get_first_ctaid::x  block, q
 */
import type { Op } from "../../../ir/node.ts";
import { address, integer } from "../../operands.ts";
import type { EmitContext } from "../context.ts";
import { scalarOf } from "../grid.ts";
import { insideIndices } from "../memory/bounds-traps.ts";
import { sharedStart } from "../memory/shared.ts";
import { barrierAddress } from "../synchronization.ts";
import { electLane, expectBytes } from "./engine-copies.ts";
import { sharedRef } from "./products.ts";

const responseBytes = 16;
const control = "clusterlaunchcontrol";

export function takeBlock(op: Op<"take_block">, context: EmitContext): void {
  const { code, numbers, scope } = context;
  const barrier = context.barrier(op.operands.barrier);
  const place = barrierAddress(context, barrier, insideIndices(context, op)[0]);
  const response = sharedStart(context, sharedRef(context, op.operands.response));
  const one = scope.warps === 1 ? electLane(context) : numbers.elected;
  code.guarded(one, () => {
    expectBytes(context, place, barrier.scale, responseBytes);
    code.emit(`${control}.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128`, [
      address(response.base, response.offset),
      address(place.base, place.offset),
    ]);
  });
}

export function takenBlock(op: Op<"taken_block">, context: EmitContext): void {
  const { code } = context;
  const [result] = op.results;
  if (result === undefined) throw new Error("taken_block has a result");
  const response = sharedStart(context, sharedRef(context, op.operands.response));
  const answer = code.make("b128", "ld.shared.b128", address(response.base, response.offset));
  const isTaken = code.make("pred", `${control}.query_cancel.is_canceled.pred.b128`, answer);
  const block = code.make("b32", "mov.b32", integer(-1));
  code.guarded(isTaken, () => {
    code.emit(`${control}.query_cancel.get_first_ctaid::x.b32.b128`, [block, answer]);
  });
  context.define(result, scalarOf(block));
}
