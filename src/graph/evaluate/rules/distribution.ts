/** Rules of ops between processes, with the host, and of tokens. */
import type { GraphOp, GraphRules } from "../../ops/index.ts";
import * as collectives from "../collectives.ts";
import { tensor, tokenDatum } from "../value.ts";
import type { Datum } from "../value.ts";
import { unsupported } from "../frame.ts";
import type { Frame, RuleResult, Steps } from "../frame.ts";
import { exchangeMode, reductionMode } from "../processes.ts";
import { refuse } from "./shared.ts";

function* receive(op: GraphOp<"stablehlo.recv">): Steps<readonly Datum[]> {
  const channel = String(op.attributes.channel_handle.handle);
  const [value = []] = yield { op, kind: "receive", channel };
  return [...value, tokenDatum];
}

function* send(op: GraphOp<"stablehlo.send">, frame: Frame): Steps<readonly Datum[]> {
  const channel = String(op.attributes.channel_handle.handle);
  yield { op, kind: "send", channel, value: frame.data(op.operands.inputs) };
  return [tokenDatum];
}

function* infeed(op: GraphOp<"stablehlo.infeed">): Steps<readonly Datum[]> {
  const [value = []] = yield { op, kind: "infeed" };
  return [...value, tokenDatum];
}

function* outfeed(op: GraphOp<"stablehlo.outfeed">, frame: Frame): Steps<readonly Datum[]> {
  yield { op, kind: "outfeed", value: frame.data(op.operands.inputs) };
  return [tokenDatum];
}

function* startAsynchronous(
  op: GraphOp<"stablehlo.async_start">,
  frame: Frame,
): Steps<readonly Datum[]> {
  const inputs = frame.data(op.operands.operands);
  const members = yield* frame.session.runRegion(op.regions.body, inputs, frame);
  return [{ kind: "future", members }];
}

function placeNumber(value: number): readonly Datum[] {
  return [tensor("ui32", [], Uint32Array.of(value))];
}

export const distributionRules = {
  "stablehlo.replica_id": (_, frame) => placeNumber(frame.session.place.replica),
  "stablehlo.partition_id": (_, frame) => placeNumber(frame.session.place.partition),
  "stablehlo.all_gather": (op, frame) =>
    collectives.allGather(
      op,
      frame,
      frame.tensors(op.operands.operands),
      op.attributes.all_gather_dim,
      {
        rows: op.attributes.replica_groups,
        mode: reductionMode(op.attributes.channel_handle, op.attributes.use_global_device_ids),
      },
    ),
  "stablehlo.all_reduce": (op, frame) =>
    collectives.allReduce(op, frame, frame.tensors(op.operands.operands), op.regions.computation, {
      rows: op.attributes.replica_groups,
      mode: reductionMode(op.attributes.channel_handle, op.attributes.use_global_device_ids),
    }),
  "stablehlo.all_to_all": (op, frame) =>
    collectives.allToAll(
      op,
      frame,
      frame.tensors(op.operands.operands),
      {
        split: op.attributes.split_dimension,
        concat: op.attributes.concat_dimension,
        count: op.attributes.split_count,
      },
      { rows: op.attributes.replica_groups, mode: exchangeMode(op.attributes.channel_handle) },
    ),
  "stablehlo.reduce_scatter": (op, frame) =>
    collectives.reduceScatter(
      op,
      frame,
      frame.tensor(op.operands.operand),
      op.attributes.scatter_dimension,
      op.regions.computation,
      {
        rows: op.attributes.replica_groups,
        mode: reductionMode(op.attributes.channel_handle, op.attributes.use_global_device_ids),
      },
    ),
  "stablehlo.collective_broadcast": (op, frame) =>
    collectives.collectiveBroadcast(
      op,
      frame,
      frame.tensors(op.operands.operands),
      op.attributes.has_dynamic_root,
      { rows: op.attributes.replica_groups, mode: exchangeMode(op.attributes.channel_handle) },
    ),
  "stablehlo.collective_reduce": (op, frame) =>
    collectives.collectiveReduce(
      op,
      frame,
      frame.tensor(op.operands.operand),
      op.regions.computation,
      { rows: op.attributes.replica_groups, mode: exchangeMode(op.attributes.channel_handle) },
    ),
  "stablehlo.collective_permute": (op, frame) =>
    collectives.collectivePermute(
      op,
      frame,
      frame.tensor(op.operands.operand),
      op.attributes.source_target_pairs,
      op.attributes.channel_handle,
    ),
  "stablehlo.cross-replica-sum": refuse("all_reduce has replaced it"),
  "stablehlo.send": send,
  "stablehlo.recv": receive,
  "stablehlo.infeed": infeed,
  "stablehlo.outfeed": outfeed,
  "stablehlo.async_start": startAsynchronous,
  "stablehlo.async_done": (op, frame) => {
    const future = frame.datum(op.operands.future);
    if (future.kind !== "future") throw unsupported(op, "its operand is no future");
    return future.members;
  },
  "stablehlo.after_all": () => [tokenDatum],
  "stablehlo.create_token": () => [tokenDatum],
} satisfies Partial<GraphRules<[Frame], RuleResult>>;
