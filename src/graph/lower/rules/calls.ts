/** Calls of what lies outside a program, where its meaning is known, by the name that is called. */
import type { Tile } from "../../../lang/index.ts";
import type { GraphBuilder } from "../../infer/builder.ts";
import { kernelCallOf } from "../../ops/kernel-calls.ts";
import type { KernelCall } from "../../ops/kernel-calls.ts";
import type { GraphOp, GraphValue } from "../../ops/node.ts";
import { convert, typeOfValue } from "../../transform/arithmetic.ts";
import { expandZeros } from "../expand/library.ts";
import { kernelLibraryCall } from "../library.ts";
import { map, refuse } from "../lowering.ts";
import type { Lowering } from "../lowering.ts";
import { threefryTiles } from "./random.ts";

type Call = GraphOp<"stablehlo.custom_call">;
type CallLowering = Lowering<"stablehlo.custom_call">;

const identity: CallLowering = { form: "alias", operands: ({ operands }) => operands.inputs };
const zeros: CallLowering = { form: "expand", to: expandZeros };
const check: CallLowering = { form: "check" };

/** Functions that CHLO has too, under the names that exported programs call them by. */
const exported = [
  "acos",
  "acosh",
  "asin",
  "asinh",
  "atan",
  "atanh",
  "cosh",
  "erf",
  "sinh",
  "tan",
] as const;

function exportedFunction(name: (typeof exported)[number]): CallLowering {
  return {
    form: "expand",
    to: ({ operands }: Call, builder: GraphBuilder) => {
      const [operand] = operands.inputs;
      return operand === undefined ? [] : builder.add(`chlo.${name}`, { operand }, {});
    },
  };
}

/** Threefry on whole arrays: two of keys, two of counters, two of results. */
const threefry: CallLowering = map((op, points, context) => {
  const [a, b, x, y] = op.operands.inputs.map((value) => context.spread(value, points)) as [
    Tile,
    Tile,
    Tile,
    Tile,
  ];
  return threefryTiles([a, b], [x, y]);
});

const topK: CallLowering = {
  form: "expand",
  to: ({ operands, results }: Call, builder: GraphBuilder) => {
    const types = results.map(typeOfValue);
    const k = types[0]?.shape.at(-1) ?? 0;
    const found = builder.add("chlo.top_k", { operand: operands.inputs[0] as GraphValue }, { k });
    return found.map((value, i) => convert(builder, value, types[i]?.element ?? "i32"));
  },
};

const calls: { readonly [target: string]: CallLowering } = {
  Sharding: identity,
  SPMDFullToShardShape: identity,
  SPMDShardToFullShape: identity,
  annotate_device_placement: identity,
  LayoutConstraint: identity,
  AllocateBuffer: zeros,
  CreateBuffer: zeros,
  shape_assertion: check,
  cu_threefry2x32_ffi: threefry,
  ...Object.fromEntries(exported.map((name) => [`mhlo.${name}`, exportedFunction(name)])),
  "mhlo.topk": topK,
  "check.expect_eq": check,
  "check.expect_almost_eq": check,
  "check.expect_close": check,
};

/** A kernel of the user's own is launched as it is; nothing else shares it. */
function ownKernel({ operation }: KernelCall): CallLowering {
  return {
    form: "fold",
    rule: () => {
      throw new Error("a kernel is launched, not computed at points");
    },
    library: (op) => kernelLibraryCall(op, operation),
  };
}

export const callLowering: CallLowering = {
  form: "choose",
  by: ({ attributes }) => {
    const target = attributes.call_target_name;
    const own = kernelCallOf(target);
    if (own !== undefined) return ownKernel(own);
    const found = Object.hasOwn(calls, target) ? calls[target] : undefined;
    return found ?? refuse(`nothing is known of a call target ${target}`);
  },
};
