/**
 * What an access orders, as instructions spell it. One thread of the program thread acquires or releases for all of them: they meet before it
 * releases, so that it has seen what they did, and after it has acquired.
 *
 *   bar.sync 0;  st.release.gpu.global.b32 [flag], 1          a release
 *   ld.acquire.gpu.global.b32 %r, [flag];  bar.sync 0         an acquire
 */
import type { AnyOp } from "../../../ir/node.ts";
import type { MemoryScope } from "../../../ir/schema.ts";
import { acquires, releases, statedOrder } from "../../../ir/traits.ts";
import { threadBarrier } from "../barriers.ts";
import type { EmitContext } from "../context.ts";

/** How instructions spell an order and a scope. */
export interface EmittedOrder {
  /** `.acq_rel.gpu`; empty where that is what updates do without a word. */
  readonly opcode: string;
  /** Undefined where nothing was said. */
  readonly scope: string | undefined;
  readonly acquires: boolean;
  readonly releases: boolean;
}

const scopes: { readonly [S in MemoryScope]: string } = {
  block: "cta",
  cluster: "cluster",
  device: "gpu",
  system: "sys",
};

export function orderOf(op: AnyOp): EmittedOrder {
  const stated = statedOrder(op);
  const own = { acquires: acquires(stated), releases: releases(stated) };
  const scope = scopes[stated.scope];
  if (stated.order === "relaxed" && stated.scope === "device")
    return { opcode: "", scope: undefined, ...own };
  return { opcode: `.${stated.order}.${scope}`, scope, ...own };
}

/** The same of a load or a store, which without a word would be weak. */
export function strongOrderOf(op: AnyOp): EmittedOrder {
  const { order, scope } = statedOrder(op);
  return { ...orderOf(op), opcode: `.${order}.${scopes[scope]}` };
}

export function meetBefore(context: EmitContext, order: EmittedOrder): void {
  if (order.releases) threadBarrier(context, "all lanes are done before the release");
}

export function meetAfter(context: EmitContext, order: EmittedOrder): void {
  if (order.acquires) threadBarrier(context, "all lanes go on behind the acquire");
}
