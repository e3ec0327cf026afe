/**
 * Calls of what lies outside a program, where its meaning is known: the ones that JAX prints on one device,
 * and those of StableHLO's tests, and kernels of the user's own, of which their meaning is run. All others are refused by
 * name.
 */
import { TilewrightError } from "../../support/diagnostics.ts";
import { GraphBuilder } from "../infer/builder.ts";
import type { GraphOp, GraphRegion } from "../ops/index.ts";
import { graphRegion, graphValue, isTensor } from "../ops/index.ts";
import { kernelCallOf } from "../ops/kernel-calls.ts";
import { didYouMean } from "../../support/options.ts";
import { callMeaningOf, callTargets } from "../transform/expand/calls.ts";
import { expectAlmostEqual, expectClose, expectEqual } from "./checks.ts";
import { countOf, emptyTensor, tensor } from "./value.ts";
import type { Datum, Tensor } from "./value.ts";
import type { Frame, Steps } from "./frame.ts";
import { unsupported } from "./frame.ts";
import { threefry } from "./random.ts";
import { domainOf, scalarNumber } from "./scalars.ts";

type Call = GraphOp<"stablehlo.custom_call">;
type CallRule = (op: Call, frame: Frame) => readonly Datum[];

const identity: CallRule = ({ operands }, frame) => frame.data(operands.inputs);

const zeros: CallRule = (op, frame) =>
  op.results.map((value, i) =>
    isTensor(value.type) ? emptyTensor(frame.result(op, i)) : tokenOf(),
  );

function tokenOf(): Datum {
  return { kind: "token" };
}

function pair(op: Call, frame: Frame): readonly [Tensor, Tensor] {
  const [left, right] = frame.tensors(op.operands.inputs);
  if (left === undefined || right === undefined) throw unsupported(op, "it needs two operands");
  return [left, right];
}

/** Fails where its first operand is false. */
const shapeAssertion: CallRule = (op, frame) => {
  const [holds] = frame.tensors(op.operands.inputs);
  if (holds !== undefined && scalarNumber(holds) !== 0) return [];
  throw new TilewrightError({
    code: "TW9502",
    message: "an assertion on shapes does not hold",
    location: op.location,
    expected: "true",
    found: "false",
  });
};

/** Threefry on whole arrays: two of keys, two of counters, two of results. */
const threefryArrays: CallRule = (op, frame) => {
  const [key0, key1, x0, x1] = frame.tensors(op.operands.inputs);
  if (key0 === undefined || key1 === undefined || x0 === undefined || x1 === undefined)
    throw unsupported(op, "it needs two keys and two counters");
  const results = [new Uint32Array(countOf(x0)), new Uint32Array(countOf(x0))] as const;
  const at = ({ data }: Tensor, i: number) => data[data.length === 1 ? 0 : i] as number;
  for (let i = 0; i < results[0].length; i++) {
    const words = threefry([at(key0, i), at(key1, i)], [at(x0, i), at(x1, i)]);
    results[0][i] = words[0];
    results[1][i] = words[1];
  }
  return results.map((data) => tensor("ui32", x0.shape, data));
};

/** An i1 of whether two tensors are equal, or near where they are no integers. */
const isEqual: CallRule = (op, frame) => {
  const [left, right] = pair(op, frame);
  const exact = domainOf(left.element) === "integer" || domainOf(left.element) === "wide";
  try {
    if (exact) expectEqual(op, left, right);
    else expectAlmostEqual(op, left, right, 1e-4);
    return [tensor("i1", [], Uint8Array.of(1))];
  } catch (error) {
    if (!(error instanceof TilewrightError)) throw error;
    return [tensor("i1", [], Uint8Array.of(0))];
  }
};

const calls: { readonly [target: string]: CallRule } = {
  Sharding: identity,
  SPMDFullToShardShape: identity,
  SPMDShardToFullShape: identity,
  annotate_device_placement: identity,
  LayoutConstraint: identity,
  AllocateBuffer: zeros,
  CreateBuffer: zeros,
  shape_assertion: shapeAssertion,
  cu_threefry2x32_ffi: threefryArrays,
  "check.eq": isEqual,
  "check.expect_eq": (op, frame) => {
    expectEqual(op, ...pair(op, frame));
    return [];
  },
  "check.expect_almost_eq": (op, frame) => {
    expectAlmostEqual(op, ...pair(op, frame), 1e-3);
    return [];
  },
  "check.expect_close": (op, frame) => {
    expectClose(op, ...pair(op, frame), 0, 3);
    return [];
  },
};

const knownMeanings = new WeakMap<Call, GraphRegion>();

/** The ops that a call means, as a region over its operands; undefined where it means none. */
function meaningOf(op: Call, { module }: Frame["session"]): GraphRegion | undefined {
  const meaning = callMeaningOf(op.attributes.call_target_name);
  if (meaning === undefined) return undefined;
  const known = knownMeanings.get(op);
  if (known !== undefined) return known;
  const { inputs } = op.operands;
  const builder = new GraphBuilder(op);
  const parameters = inputs.map(({ type }) => graphValue(type));
  const results = meaning({ ...op, operands: { inputs: parameters } }, builder, module);
  if (results === undefined) throw unsupported(op, "its settings are not known");
  const region = graphRegion(parameters, builder.ops, results);
  knownMeanings.set(op, region);
  return region;
}

export function evaluateCustomCall(
  op: Call,
  frame: Frame,
): readonly Datum[] | Steps<readonly Datum[]> {
  const target = op.attributes.call_target_name;
  const meaning = kernelCallOf(target)?.meaning ?? meaningOf(op, frame.session);
  if (meaning !== undefined)
    return frame.session.runRegion(meaning, frame.data(op.operands.inputs), frame);
  const call = Object.hasOwn(calls, target) ? calls[target] : undefined;
  if (call === undefined) {
    const near = didYouMean(target, [...Object.keys(calls), ...callTargets]);
    throw unsupported(op, `nothing is known of a call target ${target}${near}`);
  }
  return call(op, frame);
}
