/**
 * What the launches of a plan take: the least that what they compute needs, and what their kernels do.
 *
 *   launch reduce_columns    roofline 8.4 µs   12 MB, each element once
 *                            estimate 31.0 µs  24 blocks of 132 processors wait for memory
 *
 * The first follows from the ops of the program, whoever makes them, the second from the tile IR of the kernels that are launched, those of
 * the library alike. Neither follows from what anything is called, nor from what was measured of whole kernels.
 */
import { allDimensions } from "../../ir/dimension-values.ts";
import { launchEstimate, launchWork, ratesOf, reached } from "../../ir/cost/index.ts";
import type { ArrayTraffic, Bound, LaunchWork, ProductFormat, Rates } from "../../ir/cost/index.ts";
import type { Kernel, KernelInterface } from "../../ir/node.ts";
import type { DimensionValues } from "../../ir/size.ts";
import { kernelFor } from "../../ir/target-variants.ts";
import { runPasses } from "../../passes/pass-order.ts";
import { elementCost } from "../../ptx/instruction-costs.ts";
import { captureLocation, unknownLocation } from "../../support/location.ts";
import type { Location } from "../../support/location.ts";
import { requireTarget } from "../../targets/given.ts";
import type { Target, TargetName } from "../../targets/target.ts";
import { inputName, outputName } from "../lower/kernel-of.ts";
import { loweringOf } from "../lower/record.ts";
import { elementCount, productCount } from "../ops/arithmetic-counts.ts";
import { elements } from "../ops/elements.ts";
import type { AnyGraphOp } from "../ops/node.ts";
import { operandsOf } from "../ops/traverse.ts";
import { isTensor, sizeOf } from "../ops/types.ts";
import { sizesOf } from "./operation-sizes.ts";
import { productText } from "./precision.ts";
import type { Buffer, LaunchStep, NamedBuffer, OperationStep, Plan, Step } from "./plan.ts";

/** What a launch takes. Times are in microseconds, of one run of it. */
export interface StepCost {
  /** The kernel's name, or the operation's. */
  readonly kernel: string;
  /** The shape of its code: `"map"`, whatever is computed of each element, or the name of what else it is, such as `"reduce_rows"`. */
  readonly kind: string;
  /** What the program calls it, such as `jit(f)/layer3/softmax/reduce_max`. */
  readonly name: string;
  /** The program's line. */
  readonly location: Location;
  /** Launches that it is; more than 1 of some operations. */
  readonly launches: number;
  /** What launching takes of the estimate. */
  readonly launchTime: number;
  /** How often a run of the program runs it; 1 for loops whose turns are not known. */
  readonly runs: number;
  /** The least that its ops need, with the fixed cost of a launch. */
  readonly roofline: number;
  /** What its kernels do. */
  readonly estimate: number;
  /** What takes longest of the estimate. */
  readonly bound: Bound;
  /** Bytes of its operands and results, each once. */
  readonly bytes: number;
  /** Additions and multiplications of its ops. */
  readonly flops: number;
  /** How its products are made; "" where it has none. */
  readonly products: string;
  /** Blocks of its launches. */
  readonly blocks: readonly number[];
  /** Loops in its kernels of which nobody knows how often they run: the estimate has each once. */
  readonly unknownLoops: number;
}

const microseconds = 1e6;

/** What launches of a plan take, one after the other as the plan has them; no GPU is needed. */
export function planCosts(
  plan: Plan,
  target: Target | TargetName = plan.target,
): readonly StepCost[] {
  const machine = requireTarget(target, captureLocation());
  return [...launchesOf(plan.steps, 1)].map(({ step, runs }) => costOf(step, runs, machine));
}

interface Repeated {
  readonly step: LaunchStep | OperationStep;
  readonly runs: number;
}

/** The launches of steps, in the order of `profile()`, each with how often it runs. */
function* launchesOf(steps: readonly Step[], runs: number): Generator<Repeated> {
  for (const step of steps) {
    if (step.kind === "launch" || step.kind === "operation") yield { step, runs };
    if (step.kind === "while") {
      yield* launchesOf(step.condition, step.trips === undefined ? runs : 0);
      yield* launchesOf(step.body, runs * (step.trips ?? 1));
    }
    if (step.kind === "branch") for (const branch of step.branches) yield* launchesOf(branch, runs);
  }
}

const known = new WeakMap<Kernel, Map<string, LaunchWork>>();

/** The work of a launch, found once for each kernel and its sizes. */
function workOf(kernel: Kernel, sizes: DimensionValues, target: Target, rates: Rates): LaunchWork {
  const own = kernelFor(kernel, target);
  const works = known.get(own) ?? new Map<string, LaunchWork>();
  known.set(own, works);
  const key = `${target.name} ${JSON.stringify([...sizes])}`;
  const found = works.get(key) ?? launchWork(runPasses(own), sizes, elementCost, rates.l2);
  works.set(key, found);
  return found;
}

/** The work of each launch of a step. */
function worksOf(
  step: LaunchStep | OperationStep,
  target: Target,
  rates: Rates,
): readonly LaunchWork[] {
  if (step.kind === "launch") {
    const { kernel } = step.kernel;
    return [workOf(kernel, allDimensions(kernel, {}), target, rates)];
  }
  const plan = step.operation.plan(sizesOf(step, target), target);
  const sizes = plan.sizes();
  return plan.launches.map(({ kernel }, i) =>
    workOf(kernel.kernel, sizes[i] ?? new Map<string, number>(), target, rates),
  );
}

function costOf(step: LaunchStep | OperationStep, runs: number, target: Target): StepCost {
  const rates = ratesOf(target);
  const works = worksOf(step, target, rates);
  const estimates = works.map((work) => launchEstimate(work, target, rates));
  const [dearest] = estimates.toSorted((left, right) => right.seconds - left.seconds);
  const bytes = neededBytes(step, works, target);
  const { ops, op } = step.origin;
  const flops = ops.reduce((sum, each) => sum + productCount(each), 0);
  return {
    kernel: step.kind === "launch" ? step.kernel.kernel.name : step.operation.name,
    kind: kindOf(step),
    name: step.name,
    location: op?.location ?? unknownLocation,
    launches: works.length,
    launchTime: microseconds * reached.launch * works.length,
    runs,
    roofline: microseconds * leastSeconds(step, bytes, target, rates),
    estimate: microseconds * estimates.reduce((sum, { seconds }) => sum + seconds, 0),
    bound: dearest?.bound ?? "launch",
    bytes,
    flops: flops + elementFunctions(step),
    products: ops.map(productText).find((text) => text !== "") ?? "",
    blocks: works.map(({ blocks }) => blocks),
    unknownLoops: works.reduce((sum, { unknownLoops }) => sum + unknownLoops, 0),
  };
}

function kindOf(step: LaunchStep | OperationStep): string {
  if (step.kind === "operation") return step.operation.name;
  const { op } = step.origin;
  return op !== undefined && loweringOf(op).form === "map" ? "map" : step.kernel.kernel.name;
}

/** Functions of elements, each of as many as the launch has. */
function elementFunctions(step: LaunchStep | OperationStep): number {
  const buffers = [...step.inputs, ...step.outputs].map((each) =>
    "buffer" in each ? each.buffer : each,
  );
  const most = Math.max(0, ...buffers.map(({ count }) => count));
  return step.origin.ops.reduce((sum, op) => sum + Math.min(most, elementCount(op)), 0);
}

/**
 * Operands and results, each once. Of an operand of which the kernel reads less, as of a table whose rows are picked, that much: the ops need no
 * more.
 */
function neededBytes(
  step: LaunchStep | OperationStep,
  works: readonly LaunchWork[],
  target: Target,
): number {
  if (step.kind === "operation") return argumentBytes([...step.inputs, ...step.outputs]);
  const [work] = works;
  const kernel = kernelFor(step.kernel.kernel, target);
  const trafficOf = (name: string): ArrayTraffic | undefined => traffic(kernel, name, work);
  const read = new Map<Buffer, number>();
  for (const [i, buffer] of step.inputs.entries())
    read.set(
      buffer,
      Math.max(read.get(buffer) ?? 0, trafficOf(inputName(i))?.used ?? buffer.bytes),
    );
  let bytes = 0;
  for (const [buffer, used] of read) bytes += Math.min(buffer.bytes, used);
  for (const [i, buffer] of step.outputs.entries()) {
    const found = trafficOf(outputName(i));
    bytes += Math.min(buffer.bytes, found?.written ?? buffer.bytes);
    if (step.overwritten.has(i)) bytes += Math.min(buffer.bytes, found?.used ?? buffer.bytes);
  }
  return bytes;
}

/** What arguments of operations hold: of each buffer all of it, or the parts that they are. */
function argumentBytes(given: readonly NamedBuffer[]): number {
  const parts = new Map<Buffer, Map<number, number>>();
  for (const { buffer, view } of given) {
    const bytes = view === undefined ? buffer.bytes : (sizeOf(view.shape) * buffer.dtype.bits) / 8;
    const known = parts.get(buffer) ?? new Map<number, number>();
    const from = view?.offset ?? 0;
    parts.set(buffer, known.set(from, Math.max(bytes, known.get(from) ?? 0)));
  }
  let sum = 0;
  for (const [buffer, sizes] of parts)
    sum += Math.min(
      buffer.bytes,
      [...sizes.values()].reduce((all, bytes) => all + bytes, 0),
    );
  return sum;
}

function traffic(
  { parameters }: KernelInterface,
  name: string,
  work: LaunchWork | undefined,
): ArrayTraffic | undefined {
  const value = parameters.find((parameter) => parameter.name === name)?.value;
  return value === undefined ? undefined : work?.arrays.get(value);
}

/** The rate at which an op's products can be made at best, and how many products of parts each is. */
function productRate(op: AnyGraphOp): readonly [format: ProductFormat, products: number] {
  if (op.kind === "stablehlo.dot_general" && op.attributes.algorithm !== undefined) {
    const { lhs_precision_type: format, num_primitive_operations: products } =
      op.attributes.algorithm;
    if (format === "bf16" || format === "f16") return ["half", products];
    if (format === "tf32") return ["tf32", products];
    if (format.startsWith("f8")) return ["byte", products];
  }
  const [lhs] = operandsOf(op);
  const element = lhs !== undefined && isTensor(lhs.type) ? elements[lhs.type.element] : undefined;
  const bits = element?.bits ?? 32;
  if (bits === 64) return ["f64", 1];
  if (bits === 16) return ["half", 1];
  // What is no further off than sums of f32 may be: three products of tf32 parts.
  return bits < 16 ? ["byte", 1] : ["tf32", 3];
}

/** Seconds that a launch takes at least, whoever makes it. */
function leastSeconds(
  step: LaunchStep | OperationStep,
  bytes: number,
  { processors }: Target,
  rates: Rates,
): number {
  const products = step.origin.ops.reduce((sum, op) => {
    const count = productCount(op);
    if (count === 0) return sum;
    const [format, parts] = productRate(op);
    return sum + (parts * count) / (rates.products[format] * reached.products[format]);
  }, 0);
  const functions = elementFunctions(step) / (processors * reached.laneInstructions * rates.clock);
  const moving = bytes / (rates.gmemBytes * reached.gmemBytes);
  return reached.launch + Math.max(moving, products, functions);
}
