/** Calls of what lies outside a program, where its meaning is known, by the name that is called. */
import type { Tile } from "../../../lang/index.ts";
import type { Operation } from "../../../device/operation.ts";
import { f32 } from "../../../formats/dtype.ts";
import { attention } from "../../../kernels/attention/attention.ts";
import { attentionBackward } from "../../../kernels/attention/backward.ts";
import { scaledMatmul } from "../../../kernels/matmul/scaled-matmul.ts";
import { kernelCallOf } from "../../ops/kernel-calls.ts";
import type { KernelCall, LibraryOperation, LibrarySpecs } from "../../ops/kernel-calls.ts";
import { didYouMean } from "../../../support/options.ts";
import { callMeaningOf, callTargets } from "../../transform/expand/calls.ts";
import type { CallMeaning } from "../../transform/expand/call-meaning.ts";
import { expandZeros } from "../expand/library.ts";
import { kernelLibraryCall } from "../library.ts";
import { map, refuse } from "../lowering.ts";
import type { Expansion, Lowering } from "../lowering.ts";
import { scaledLibraryCall } from "../scaled-products/call.ts";
import { cannotRun } from "../storage.ts";
import { threefryTiles } from "./random.ts";

type CallLowering = Lowering<"stablehlo.custom_call">;

const identity: CallLowering = { form: "alias", operands: ({ operands }) => operands.inputs };
const zeros: CallLowering = { form: "expand", to: expandZeros };
const check: CallLowering = { form: "check" };

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
  "check.expect_eq": check,
  "check.expect_almost_eq": check,
  "check.expect_close": check,
};

/** A call that means other ops. */
function meant(meaning: CallMeaning): CallLowering {
  const expandCall: Expansion<"stablehlo.custom_call"> = (op, builder, module) => {
    const results = meaning(op, builder, module);
    if (results === undefined) throw cannotRun(op, "its settings are not known");
    return results;
  };
  return { form: "expand", to: expandCall };
}

/** The library's operations that functions of arrays call by name. */
const libraryOperations: { readonly [N in keyof LibrarySpecs]: (spec: LibrarySpecs[N]) => object } =
  {
    attention,
    attention_backward: attentionBackward,
    scaled_matmul: (spec) => scaledMatmul({ ...spec, out: f32 }),
  };

const madeOperations = new WeakMap<LibraryOperation, Operation>();

/** Made once for each declaration, so that layers share their kernels. */
function libraryOperation<N extends keyof LibrarySpecs>(
  call: LibraryOperation & { readonly library: N; readonly spec: LibrarySpecs[N] },
): Operation {
  const made =
    madeOperations.get(call) ?? (libraryOperations[call.library](call.spec) as Operation);
  madeOperations.set(call, made);
  return made;
}

/** A kernel of the user's own is launched as it is; nothing else shares it. */
function ownKernel({ operation: declared, library }: KernelCall): CallLowering {
  const operation = library === undefined ? declared : libraryOperation(library);
  return {
    form: "fold",
    rule: () => {
      throw new Error("a kernel is launched, not computed at points");
    },
    library: (op) => kernelLibraryCall(op, operation),
  };
}

/** A product of operands with scales. */
const scaledProduct: CallLowering = {
  form: "fold",
  rule: () => {
    throw new Error("a product with scales is the library's, not computed at points");
  },
  library: scaledLibraryCall,
};

export const callLowering: CallLowering = {
  form: "choose",
  by: (op) => {
    const { attributes } = op;
    const target = attributes.call_target_name;
    const own = kernelCallOf(target);
    if (own !== undefined) return ownKernel(own);
    const meaning = callMeaningOf(target);
    if (scaledLibraryCall(op) !== undefined) return scaledProduct;
    if (meaning !== undefined) return meant(meaning);
    const found = Object.hasOwn(calls, target) ? calls[target] : undefined;
    if (found !== undefined) return found;
    const near = didYouMean(target, [...Object.keys(calls), ...callTargets]);
    return refuse(`nothing is known of a call target ${target}${near}`);
  },
};
