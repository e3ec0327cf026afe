/**
 * From a placed kernel to PTX and its launch plan: one entry, whose body is the kernel's ops in order.
 *
 *   prologue        parameters, thread and lane numbers            as they are asked for
 *   ops             as they are there, those that order lanes, begin and end included
 */
import type { Kernel, KernelParameter, Region } from "../../ir/node.ts";
import { ruleOf } from "../../ir/ops.ts";
import { multiplySizes } from "../../ir/size.ts";
import { placedBuffers } from "../../layout/model/placed-types.ts";
import type { PlacedBuffer } from "../../layout/model/placed-types.ts";
import { lanesPerWarp } from "../../targets/target.ts";
import type { BufferPlan, Executable } from "../executable.ts";
import type { FunctionDirective, PtxFunction, Variable } from "../module.ts";
import { coalesceRegisters } from "../register-coalescing/index.ts";
import { arithmeticSigns } from "../fold-neg-abs.ts";
import { wideProducts } from "../mul-wide.ts";
import { renewFactors } from "../wgmma-register-operands/renew.ts";
import { ptxVersion } from "../version.ts";
import { EmitContext } from "./context.ts";
import type { EmissionOptions } from "./context.ts";
import { clusterSize } from "./grid.ts";
import { globalParameter } from "./memory/global.ts";
import { requireInside } from "./memory/bounds-traps.ts";
import { checkInBounds } from "./memory/promised-bounds.ts";
import { AskedBounds } from "./memory/checked-bounds.ts";
import { minBlocksPerMultiprocessor } from "./occupancy.ts";
import { emitRules } from "./rules.ts";
import { scalarParameter } from "./scalar-parameters.ts";
import { closeTensorMemory, openTensorMemory } from "./asynchronous/tensor-memory.ts";

/** Emits a placed kernel. */
export function emitKernel(kernel: Kernel, options: EmissionOptions = {}): Executable {
  const context = new EmitContext(kernel, emitRegion, options);
  for (const parameter of kernel.parameters) defineParameter(context, parameter);
  openTensorMemory(context);
  context.region(kernel.body);
  closeTensorMemory(context);
  context.code.emit("ret");
  const entry = entryName(kernel.name);
  const cluster = clusterSize(kernel.grid);
  const lanes = kernel.threads.length * kernel.warps * lanesPerWarp;
  const body = renewFactors(
    coalesceRegisters(wideProducts(arithmeticSigns(context.code.statements))),
    () => context.code.register("b32"),
  );
  const { target } = context;
  const sharedBytes = kernel.placed?.sharedBytes;
  if (sharedBytes === undefined) throw new Error(`the memory of ${kernel.name} is not allocated`);
  const minBlocks = minBlocksPerMultiprocessor(kernel, target, sharedBytes);
  const declarations = [
    ...(sharedBytes > 0 ? [sharedMemory] : []),
    entryOf(context, entry, { directives: directives(lanes, cluster, minBlocks), body }),
  ];
  return {
    name: kernel.name,
    entry,
    target,
    threadsPerBlock: lanes,
    cluster,
    blocks: multiplySizes(...kernel.grid.map(({ extent }) => extent)),
    sharedBytes,
    buffers: placedBuffers(kernel).map(bufferPlan),
    parameters: context.parameters,
    messages: context.messages,
    grid: kernel.grid,
    threads: kernel.threads,
    dependentLaunch: context.dependentLaunch,
    module: {
      version: ptxVersion(target.name, body, context.parameterVariables),
      target: target.name,
      files: context.files.paths,
      declarations,
    },
  };
}

function bufferPlan({ name, offset, bytes, op }: PlacedBuffer): BufferPlan {
  if (op.kind === "alloc_barrier") return { name, offset, bytes, holds: "barriers" };
  if (op.kind !== "alloc" || op.attributes.layout === undefined) return { name, offset, bytes };
  const { dtype, shape, layout } = op.attributes;
  return { name, offset, bytes, holds: { dtype, shape: shape.map(Number), layout } };
}

const sharedMemory: Variable = {
  kind: "variable",
  space: "shared",
  name: "shared_memory",
  type: "b8",
  count: 0,
  alignment: 1024,
  linkage: "extern",
};

/** Names that mean something else: a constant of the assembler, the block's shared memory. */
const takenNames: ReadonlySet<string> = new Set(["WARP_SZ", sharedMemory.name]);

/** Kernel names may hold what PTX names may not. */
function entryName(name: string): string {
  const plain = name.replace(/[^A-Za-z0-9_$]/g, "_");
  return /^[A-Za-z]/.test(plain) && !takenNames.has(plain) ? plain : `kernel_${plain}`;
}

function directives(
  lanes: number,
  cluster: number,
  minBlocks: number,
): readonly FunctionDirective[] {
  return [
    { name: "reqntid", values: [lanes, 1, 1] },
    { name: "minnctapersm", values: [minBlocks] },
    ...(cluster > 1 ? [{ name: "reqnctapercluster", values: [cluster, 1, 1] }] : []),
  ];
}

function entryOf(
  context: EmitContext,
  name: string,
  { directives: ofEntry, body }: Pick<PtxFunction, "directives" | "body">,
): PtxFunction {
  return {
    kind: "function",
    entry: true,
    name,
    linkage: "visible",
    results: [],
    parameters: context.parameterVariables,
    directives: ofEntry,
    body,
  };
}

function defineParameter(context: EmitContext, parameter: KernelParameter): void {
  const { type } = parameter.value;
  context.define(
    parameter.value,
    type.kind === "scalar"
      ? scalarParameter(context, parameter.name, type.dtype)
      : globalParameter(context, parameter),
  );
}

function emitRegion(region: Region, context: EmitContext): void {
  const outer = context.asked;
  context.asked = new AskedBounds(outer);
  for (const op of region.ops) {
    context.code.at(op.location);
    checkInBounds(context, op);
    requireInside(context, op);
    ruleOf(emitRules, op)(op, context);
  }
  context.asked = outer;
}
