/** Lowering of asynchronous copies and products: they are done at once, before anyone can wait for them. */
import type { DType } from "../../formats/dtype.ts";
import type { asynchronousOps } from "../../ir/ops/asynchronous.ts";
import type { placedOps } from "../../ir/ops/placed.ts";
import type { AnyOp, Op, Value } from "../../ir/node.ts";
import { elementsPerWord } from "../../formats/arithmetic/sparse-dot.ts";
import { op as operation } from "../loops/builder.ts";
import { windowLanes } from "./access.ts";
import { windowAccess } from "./window-access.ts";
import { binaryRule, castRule } from "./arithmetic.ts";
import { emitProduct, factorTile, productDtype } from "./dot.ts";
import { elementOf } from "./elements.ts";
import type { HeldTile } from "./held.ts";
import { joinsInWindow, axisGroups, overElements } from "./loops-of-tiles.ts";
import { tileAddress } from "./lowering.ts";
import type { Lowering } from "./lowering.ts";
import { requireUsable } from "./memory-faults.ts";
import type { LoweringRules, RegionLowering } from "./regions.ts";
import { storeAccess } from "./store.ts";
import { arrive } from "./sync-rules.ts";
import { factorOf, sumsOf, zeroTile } from "./tile-rules.ts";
import { pass } from "./value-rules.ts";

function fillOf(dtype: DType, fill: "zero" | "nan"): number | bigint | undefined {
  return fill === "zero" ? undefined : elementOf(dtype, Number.NaN);
}

function copyAsync(op: Op<"copy_async">, lowering: Lowering): void {
  const { source, destination, barrier, index } = op.operands;
  const { fill, multicast, reduction } = op.attributes;
  if (multicast.some((name) => clusterOf(lowering, name) > 1))
    lowering.refuse(op, "a cluster of blocks");
  requireUsable(lowering, op, source);
  requireUsable(lowering, op, destination);
  const [from, to] = [lowering.ref(source), lowering.ref(destination)];
  const cast = castRule(from.dtype, to.dtype);
  const combine =
    reduction === "none" || reduction === "inc" || reduction === "dec"
      ? undefined
      : binaryRule(reduction, to.dtype);
  if (cast === undefined) lowering.refuse(op, `a copy of ${from.dtype.name} as ${to.dtype.name}`);
  if (reduction !== "none" && combine === undefined)
    lowering.refuse(op, `a copy that combines by ${reduction} of ${to.dtype.name}`);
  if (reduction !== "none") lowering.order = "in order";
  // Outside of a cluster's shared memory one side has numbers for sizes.
  const shape = (from.sizes.every((size) => typeof size === "number") ? from : to).sizes.map(
    Number,
  );
  const groups = axisGroups(
    shape,
    (outer, inner) => joinsInWindow(from, outer, inner) && joinsInWindow(to, outer, inner),
  );
  const count = shape.reduce((product, extent) => product * extent, 1);
  lowering.root("copy", count, (b) =>
    overElements(lowering, b, shape, groups, (elements, position) => {
      const builder = elements.builderAt(position);
      const code = { builder, relaxed: false };
      const read = windowLanes(elements, from, position, fillOf(from.dtype, fill));
      let lanes = cast?.(code, read) ?? read;
      if (combine !== undefined) lanes = combine(code, windowLanes(elements, to, position), lanes);
      storeAccess(elements, to, windowAccess(elements, to, position, undefined), position, lanes);
    }),
  );
  if (barrier !== undefined) arrive(lowering, op, barrier, index);
}

function clusterOf({ kernel }: Lowering, name: string): number {
  return kernel.grid.find((axis) => axis.name === name)?.cluster ?? 1;
}

/** Sums lie in memory, where products add to them. */
function accumulator(op: Op<"accumulator">, lowering: Lowering, region: RegionLowering): void {
  const { initial } = op.operands;
  const { dtype } = op.attributes;
  const [result] = op.results;
  if (result === undefined) throw new Error("an accumulator is a result");
  sumsOf(lowering, region, result, initial, dtype);
}

function sumsAt(lowering: Lowering, value: Value): HeldTile {
  const held = lowering.held(value);
  if (held.kind !== "tile") throw new Error("an accumulator that lies nowhere");
  return held;
}

function wgmma(op: Op<"wgmma">, lowering: Lowering): void {
  const { a, b, metadata, adds } = op.operands;
  const sums = sumsAt(lowering, op.operands.accumulator);
  const [left, right] = [factorOf(a), factorOf(b)];
  if (adds !== undefined)
    lowering.b.if(operation("i32.eqz", lowering.scalar(adds)), () => zeroTile(lowering, sums));
  const native =
    metadata === undefined ? productDtype(left.dtype, right.dtype, sums.dtype) : undefined;
  if (native === sums.dtype) emitProduct(lowering, left, right, sums);
  else {
    const [m = 1] = left.shape;
    const [k = 1, n = 1] = right.shape;
    const tiles = [factorTile(lowering, left), factorTile(lowering, right), sums];
    const words = metadata === undefined ? [] : [factorTile(lowering, factorOf(metadata))];
    lowering.callHost(
      {
        op: "dot",
        metadata: metadata === undefined ? 0 : (m * k) / elementsPerWord(left.dtype),
        shape: {
          m,
          n,
          k,
          operand: left.dtype.name,
          operandB: right.dtype.name,
          accumulator: sums.dtype.name,
        },
      },
      [...tiles, ...words].map((tile) => tileAddress(lowering.b, tile)),
    );
  }
  pass(lowering, op.operands.accumulator, op.results[0]);
}

function nothing(): void {
  // Copies and products are done where they are started.
}

/** Blocks of a CPU are not launched one by one. */
function noLaunchControl(op: AnyOp, lowering: Lowering): never {
  return lowering.refuse(op, "cluster launch control");
}

export const asynchronousRules: Pick<LoweringRules, keyof typeof asynchronousOps> = {
  copy_async: copyAsync,
  take_block: noLaunchControl,
  taken_block: noLaunchControl,
  prefetch: nothing,
  prefetch_maps: nothing,
  commit_group: nothing,
  wait_group: nothing,
  proxy_fence: nothing,
  accumulator,
  wgmma,
  wgmma_wait(op, lowering) {
    pass(lowering, op.operands.accumulator, op.results[0]);
  },
};

/** Placed kernels are the GPU's; what their ops change is where things are. */
export const placedRules: Pick<LoweringRules, keyof typeof placedOps> = {
  convert_layout(op, lowering) {
    pass(lowering, op.operands.source, op.results[0]);
  },
  alloc_scratch: nothing,
  lane_barrier: nothing,
  barriers_ready: nothing,
  products_wait: nothing,
  cluster_barrier: nothing,
  copies_read: nothing,
};
