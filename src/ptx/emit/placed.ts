/** Ops of placed kernels: conversions, memory that ops need for themselves, and the order of lanes. */
import type { placedOps } from "../../ir/ops/placed.ts";
import { layoutOf } from "../../layout/model/placed-types.ts";
import { integer } from "../operands.ts";
import { decided, waitForProducts } from "./asynchronous/products.ts";
import { threadBarrier } from "./barriers.ts";
import type { EmitRules } from "./context.ts";
import { clusterBarrier, publishBarriers } from "./synchronization.ts";
import { convertTile } from "./tiles/convert.ts";

export const placedRules: EmitRules<typeof placedOps> = {
  convert_layout(op, context) {
    const [result] = op.results;
    if (result === undefined) throw new Error("a conversion has a result");
    const tile = context.tile(op.operands.source);
    context.define(result, convertTile(context, tile, layoutOf(result), op));
  },
  alloc_scratch: () => {
    // Ops find their scratch by the bytes that it begins at.
  },
  lane_barrier(op, context) {
    threadBarrier(context, op.attributes.reason);
  },
  barriers_ready(_, context) {
    publishBarriers(context);
  },
  products_wait(op, context) {
    waitForProducts(context, decided(op));
  },
  cluster_barrier(op, context) {
    clusterBarrier(context, op.attributes.reason);
  },
  copies_read(_, { code }) {
    code.emit("cp.async.bulk.commit_group");
    code.emit("cp.async.bulk.wait_group.read", [integer(0)], "copies have read shared memory");
  },
};
