/**
 * From a module to a plan: passes, expansion, groups, kernels, buffers.
 *
 *   module ──inline, simplify, expand, merge──▶ ops ──groups──▶ launches, loops, branches ──arena──▶ plan
 *
 * The order of launches is that of the ops (`#region`), but elementwise ops are put off (`#defer`) until another op needs them (`#settle`), so
 * that those of a shape share a kernel. `binder.ts` binds the launches in this order, and `program.ts` issues them.
 */
import { fromElements } from "../../formats/hostarray.ts";
import type { HostArray } from "../../formats/hostarray.ts";
import { placedAt } from "../../support/diagnostics.ts";
import { captureLocation } from "../../support/location.ts";
import type { Location } from "../../support/location.ts";
import { requireTarget } from "../../targets/given.ts";
import { defaultTarget } from "../../targets/target.ts";
import type { Caches, Target } from "../../targets/target.ts";
import { coneOf, isSplat, keptOps, usesOf } from "../lower/groups.ts";
import { kernelOf, pointwiseInputs, updateOfGroup } from "../lower/kernel-of.ts";
import type { Group } from "../lower/kernel-of.ts";
import type { LibraryCall } from "../lower/library.ts";
import { viewedProducts } from "../lower/views/products.ts";
import type { ViewedProduct } from "../lower/views/products.ts";
import {
  collectiveCallOf,
  libraryCallOf,
  loweringOf,
  sharedOperand,
  tiledKernelOf,
} from "../lower/record.ts";
import { cannotRun, heldType, requireStorage, storageOf, tensorTypeOf } from "../lower/storage.ts";
import { expandElements } from "../ops/literal.ts";
import type { Literal } from "../ops/literal.ts";
import { processesOf } from "../ops/process-counts.ts";
import type { AnyGraphOp, GraphModule, GraphOp, GraphRegion, GraphValue } from "../ops/node.ts";
import { isTensor, sizeOf, typeText } from "../ops/types.ts";
import type { TensorType } from "../ops/types.ts";
import { opsWithin } from "../ops/traverse.ts";
import { tripCount } from "../ops/trip-count.ts";
import { inlinePass } from "../passes/inline.ts";
import { runPasses } from "../passes/pass-order.ts";
import type { ProcessCounts } from "../ranks/collective.ts";
import { placeBuffers } from "./buffer-assignment.ts";
import { devicePasses } from "./device-passes.ts";
import type { CompileOptions } from "./device-passes.ts";
import { isDeferrable, mostTogether, shapeText } from "./deferred.ts";
import type { Deferred, DeferredGroup } from "./deferred.ts";
import { donatedBy } from "./donation.ts";
import { functionOf, only, requireKnownTypes } from "./planned-function.ts";
import type { Buffer, LaunchStep, Place, Plan, Step } from "./plan.ts";
import { wantUnderViews } from "./wanted-buffers.ts";
import { shareStorage } from "./storage-sharing.ts";
import type { UnplacedPlan } from "./storage-sharing.ts";

/** The plan of a function; arguments at the places of `donated`, or those that its text says, may be overwritten. */
export function compilePlan(
  module: GraphModule,
  name: string,
  donated: readonly number[] | undefined = undefined,
  { matmulPrecision = "f32", target: wanted = defaultTarget }: CompileOptions = {},
): Plan {
  const target = requireTarget(wanted, captureLocation());
  const asked = functionOf(module, name);
  const { body: declared, location } = asked;
  const inlined = inlinePass.run(only(module, name));
  for (const { body, location: place } of inlined.functions.values())
    requireKnownTypes(body, place);
  return placing(location, () => {
    const { body } = functionOf(
      runPasses(inlined, devicePasses(name, matmulPrecision, target)),
      name,
    );
    const unplaced = new Compiler(target, processesOf(module)).compile(
      body,
      declared,
      name,
      location,
    );
    const given = donated && new Map(donated.map((index) => [index, undefined]));
    const { steps, aliases } = shareStorage(unplaced, given ?? donatedBy(asked));
    const { offsets, bytes } = placeBuffers(steps);
    return { ...unplaced, matmulPrecision, target, steps, aliases, offsets, arenaBytes: bytes };
  });
}

class Compiler {
  readonly #constants: HostArray[] = [];
  readonly #numbers = new Map<number, "replica" | "partition">();
  readonly #processes: ProcessCounts;
  readonly #buffers = new Map<GraphValue, Buffer>();
  readonly #definitions = new Map<GraphValue, AnyGraphOp>();
  readonly #products = new Map<AnyGraphOp, ViewedProduct>();
  readonly #literals = new Map<GraphValue, Literal>();
  readonly #caches: Caches | undefined;
  #nextBuffer = 0;

  constructor({ caches }: Target, processes: ProcessCounts) {
    this.#caches = caches;
    this.#processes = processes;
  }

  /** The plan of a body, whose values may be those of the declared one in another form. */
  compile(
    body: GraphRegion,
    declared: GraphRegion,
    name: string,
    location: Location,
  ): UnplacedPlan {
    for (const { type } of declared.parameters) heldType(type, location);
    for (const op of opsWithin(body)) requireStorage(op);
    for (const [index, value] of body.parameters.entries())
      if (isTensor(value.type)) this.#bind(value, { kind: "argument", index });
    const results = body.results.filter(({ type }) => isTensor(type));
    const outputs = results.map((value, index) =>
      this.#buffer(tensorTypeOf(value), { kind: "result", index }),
    );
    return {
      name,
      parameters: declared.parameters.map(({ type }) => heldType(type)),
      results: declared.results
        .filter(({ type }) => isTensor(type))
        .map(({ type }) => heldType(type)),
      constants: this.#constants,
      numbers: this.#numbers,
      processes: this.#processes,
      steps: this.#region(body, results, outputs),
    };
  }

  #buffer(type: TensorType, place: Place): Buffer {
    const dtype = storageOf(type.element);
    if (dtype === undefined) throw new Error(`devices have no ${typeText(type)}`);
    const count = sizeOf(type.shape);
    const bytes = Math.ceil((count * dtype.bits) / 8);
    return { id: this.#nextBuffer++, type, dtype, count, bytes, place };
  }

  #bind(value: GraphValue, place: Place = { kind: "arena" }): Buffer {
    const buffer = this.#buffer(tensorTypeOf(value), place);
    this.#buffers.set(value, buffer);
    return buffer;
  }

  #bufferOf(value: GraphValue): Buffer {
    const found = this.#buffers.get(value);
    if (found === undefined) throw new Error(`value ${value.id} has no memory`);
    return found;
  }

  /** The steps of a region, which leave its results in the given buffers. */
  #region(
    region: GraphRegion,
    results: readonly GraphValue[],
    targets: readonly Buffer[],
  ): readonly Step[] {
    const kept = keptOps(region);
    const products = viewedProducts(region);
    for (const [op, viewed] of products) this.#products.set(op, viewed);
    const steps: Step[] = [];
    const wanted = new Map<GraphValue, Buffer>();
    const deferred: Deferred = new Map();
    for (const [i, value] of results.entries()) {
      const target = targets[i];
      // One value can be several results; the others are copies.
      if (target !== undefined && !wanted.has(value)) wanted.set(value, target);
    }
    wantUnderViews(region, kept, products, wanted);
    for (const op of region.ops) {
      for (const value of op.results) this.#definitions.set(value, op);
      if (op.kind === "stablehlo.constant" && !("kind" in op.attributes.value))
        for (const value of op.results) this.#literals.set(value, op.attributes.value);
      if (!kept.has(op)) continue;
      if (op.results.some((value) => wanted.has(value)) && this.#sharesBytes(op, wanted)) continue;
      if (isDeferrable(op, wanted)) {
        this.#defer(op, deferred, wanted, steps);
        continue;
      }
      this.#settle(op, deferred, wanted, steps);
      this.#op(op, wanted, steps);
    }
    for (const group of new Set(deferred.values())) this.#together(group, deferred, wanted, steps);
    for (const [i, value] of results.entries()) {
      const target = targets[i];
      if (target !== undefined) this.#into(value, target, steps);
    }
    return steps;
  }

  /** Puts a map off, together with those of its shape that it is computed from. */
  #defer(
    op: AnyGraphOp,
    deferred: Deferred,
    wanted: ReadonlyMap<GraphValue, Buffer>,
    steps: Step[],
  ): void {
    const shape = shapeText(op);
    const own: AnyGraphOp[] = [];
    for (const group of this.#groupsWithin(op, deferred)) {
      const isFull = own.length + group.length >= mostTogether;
      if (isFull || group.some((each) => shapeText(each) !== shape)) {
        this.#together(group, deferred, wanted, steps);
        continue;
      }
      own.push(...group);
    }
    own.push(op);
    for (const each of own) deferred.set(each, own);
  }

  /** Makes what an op needs of what was put off. */
  #settle(
    op: AnyGraphOp,
    deferred: Deferred,
    wanted: ReadonlyMap<GraphValue, Buffer>,
    steps: Step[],
  ): void {
    for (const group of this.#groupsWithin(op, deferred))
      this.#together(group, deferred, wanted, steps);
  }

  /** The groups of deferred ops among what an op is computed from. */
  #groupsWithin(op: AnyGraphOp, deferred: Deferred): ReadonlySet<DeferredGroup> {
    const found = new Set<DeferredGroup>();
    if (deferred.size === 0) return found;
    const seen = new Set<AnyGraphOp>([op]);
    const pending = [...usesOf(op)];
    for (let value = pending.pop(); value !== undefined; value = pending.pop()) {
      const definition = this.#buffers.has(value) ? undefined : this.#definitions.get(value);
      if (definition === undefined || seen.has(definition)) continue;
      seen.add(definition);
      const group = deferred.get(definition);
      if (group === undefined) pending.push(...usesOf(definition));
      else found.add(group);
    }
    return found;
  }

  /** One kernel for ops that were put off together. */
  #together(
    group: DeferredGroup,
    deferred: Deferred,
    wanted: ReadonlyMap<GraphValue, Buffer>,
    steps: Step[],
  ): void {
    for (const op of group) deferred.delete(op);
    const results = group.flatMap((op) => op.results);
    const isStored = (value: GraphValue): boolean => this.#buffers.has(value);
    const { ops, inputs } = coneOf(results, isStored, this.#definitions);
    const outputs = results.map((value) => this.#output(value, wanted));
    const last = group.at(-1) as AnyGraphOp;
    const title = kindName(last);
    placing(last.location, () => {
      this.#launch({ title, ops, inputs, results, key: "" }, outputs, last, steps);
    });
  }

  /** Errors of a kernel are reported with the line of its op. */
  #op(op: AnyGraphOp, wanted: ReadonlyMap<GraphValue, Buffer>, steps: Step[]): void {
    placing(op.location, () => this.#lower(op, wanted, steps));
  }

  #lower(op: AnyGraphOp, wanted: ReadonlyMap<GraphValue, Buffer>, steps: Step[]): void {
    const lowering = loweringOf(op);
    switch (lowering.form) {
      case "map":
      case "fold":
        this.#mapOrFold(op, wanted, steps);
        return;
      case "steps": {
        for (const step of lowering.steps(op as never)) {
          const outputs = step.results.map((value) => this.#output(value, wanted));
          const { title, inputs, key, rule, tiled, results, uses = usesOf(op) } = step;
          const extra = coneOf(
            uses.filter((value) => !inputs.includes(value)),
            (value) => this.#buffers.has(value),
            this.#definitions,
          );
          this.#launch(
            {
              title: `${kindName(op)}_${title}`,
              ops: extra.ops,
              inputs: [...new Set([...inputs, ...extra.inputs])],
              results,
              rule,
              tiled,
              source: op,
              key,
            },
            outputs,
            op,
            steps,
          );
        }
        return;
      }
      case "library":
        this.#call(op, lowering.call(op as never), op.results, wanted, steps);
        return;
      case "alias": {
        const operands = lowering.operands(op as never);
        for (const [i, value] of op.results.entries()) {
          const operand = operands[i];
          if (operand !== undefined && isTensor(value.type))
            this.#buffers.set(value, this.#bufferOf(operand));
        }
        return;
      }
      case "control":
        this.#control(op, wanted, steps);
        return;
      case "check": {
        const operands = usesOf(op).filter(({ type }) => isTensor(type));
        steps.push({
          kind: "check",
          op,
          operands: operands.map((value) => this.#bufferOf(value)),
        });
        return;
      }
      case "collective":
        this.#collective(op, wanted, steps);
        return;
      case "number":
        this.#number(op, lowering.of);
        return;
      case "none":
        return;
      case "refuse":
        throw cannotRun(op, lowering.reason);
      case "expand":
      case "pairs":
      case "choose":
        throw new Error(`${op.kind} was not expanded`);
    }
  }

  #collective(op: AnyGraphOp, wanted: ReadonlyMap<GraphValue, Buffer>, steps: Step[]): void {
    const call = collectiveCallOf(op, this.#processes);
    const inputs = usesOf(op).map((value) => this.#bufferOf(value));
    const outputs = op.results.map((value) => this.#output(value, wanted));
    steps.push({ kind: "collective", call, inputs, outputs, name: op.name });
  }

  /** A constant that holds another number on each rank. */
  #number({ results }: AnyGraphOp, of: "replica" | "partition"): void {
    const index = this.#constants.length;
    const dtypes = results.map((value) => this.#bind(value, { kind: "constant", index }).dtype);
    this.#numbers.set(index, of);
    this.#constants.push(...dtypes.map((dtype) => fromElements(dtype, [1], new Uint32Array(1))));
  }

  #output(value: GraphValue, wanted: ReadonlyMap<GraphValue, Buffer>): Buffer {
    const target = wanted.get(value);
    if (target === undefined) return this.#bind(value);
    this.#buffers.set(value, target);
    return target;
  }

  #mapOrFold(op: AnyGraphOp, wanted: ReadonlyMap<GraphValue, Buffer>, steps: Step[]): void {
    if (op.kind === "stablehlo.constant" && !isSplat(op)) {
      this.#constant(op);
      return;
    }
    if (this.#sharesBytes(op, wanted)) return;
    const viewed = this.#products.get(op);
    if (viewed !== undefined) {
      this.#call(op, viewed.call, [viewed.result], wanted, steps);
      return;
    }
    const call = libraryCallOf(op);
    if (call?.inputs.every(({ value }) => this.#buffers.has(value)) === true) {
      this.#call(op, call, op.results, wanted, steps);
      return;
    }
    const tiled = tiledKernelOf(op, this.#caches);
    const cone = coneOf(op.results, (value) => this.#buffers.has(value), this.#definitions);
    const outputs = op.results.map((value) => this.#output(value, wanted));
    const group = {
      title: kindName(op),
      ops: cone.ops,
      inputs: cone.inputs,
      results: op.results,
      tiled,
      key: tiled?.title ?? "",
    };
    this.#launch(group, outputs, op, steps);
  }

  /** Gives a result the memory of the operand that has its bytes, where that has some. */
  #sharesBytes(op: AnyGraphOp, wanted: ReadonlyMap<GraphValue, Buffer>): boolean {
    const [result] = op.results;
    const operand = sharedOperand(op);
    const buffer = operand === undefined ? undefined : this.#buffers.get(operand);
    if (result === undefined || buffer === undefined) return false;
    if (wanted.has(result) && wanted.get(result) !== buffer) return false;
    this.#buffers.set(result, buffer);
    return true;
  }

  #call(
    op: AnyGraphOp,
    { operation, inputs, outputs: results, isNoted = false }: LibraryCall,
    values: readonly GraphValue[],
    wanted: ReadonlyMap<GraphValue, Buffer>,
    steps: Step[],
  ): void {
    const outputs = results.map((result, i) => ({
      ...result,
      buffer: this.#output(values[i] as GraphValue, wanted),
    }));
    steps.push({
      kind: "operation",
      operation,
      inputs: inputs.map(({ name, value, shape, view }) => ({
        name,
        shape,
        view,
        buffer: this.#bufferOf(value),
      })),
      outputs,
      ...{ isNoted, name: op.name },
      origin: { op, ops: [op] },
    });
  }

  #constant(op: GraphOp<"stablehlo.constant">): void {
    const { value } = op.attributes;
    const [result] = op.results;
    if ("kind" in value || result === undefined)
      throw cannotRun(op, "its value is carried as text");
    const buffer = this.#bind(result, {
      kind: "constant",
      index: this.#constants.length,
    });
    this.#constants.push(fromElements(buffer.dtype, [buffer.count], expandElements(value)));
  }

  #launch(
    group: Group,
    outputs: readonly Buffer[],
    op: AnyGraphOp | undefined,
    steps: Step[],
  ): void {
    // What has no elements is neither written nor read.
    if (outputs.every(({ count }) => count === 0)) return;
    const inputs = group.inputs.filter((value) => this.#bufferOf(value).count > 0);
    const kernel = kernelOf({ ...group, inputs }, this.#caches);
    steps.push({
      kind: "launch",
      kernel,
      inputs: inputs.map((value) => this.#bufferOf(value)),
      outputs,
      overwritten: new Map(),
      ...this.#inPlace({ ...group, inputs }),
      name: op?.name ?? group.title,
      origin: { op, ops: group.source === undefined ? group.ops : [...group.ops, group.source] },
    });
  }

  /** The inputs of a group that results may be written over, and the kernel that does. */
  #inPlace(group: Group): Pick<LaunchStep, "form" | "overwritable" | "inPlace"> {
    const update = updateOfGroup(group)?.operand;
    const free = update === undefined ? pointwiseInputs(group) : [update];
    const buffers = free.map((value) => this.#bufferOf(value));
    return {
      form: update === undefined ? "other" : "update",
      overwritable: new Map(group.results.map((_, place) => [place, buffers])),
      inPlace: (overwritten) => {
        const taken = new Set([...overwritten.values()].flat());
        const values = group.inputs.filter((value) => taken.has(this.#bufferOf(value)));
        const inPlace = new Map(
          Array.from(overwritten, ([place, over]) => [
            place,
            values.filter((value) => over.includes(this.#bufferOf(value))),
          ]),
        );
        const inputs = group.inputs.filter((value) => !values.includes(value));
        return kernelOf({ ...group, inputs, inPlace }, this.#caches);
      },
    };
  }

  /** Leaves a value in a buffer. */
  #into(value: GraphValue, target: Buffer, steps: Step[]): void {
    const source = this.#buffers.get(value);
    if (source === target) return;
    if (source !== undefined) {
      this.#copy(value, source, target, steps);
      return;
    }
    const { ops, inputs } = coneOf([value], (each) => this.#buffers.has(each), this.#definitions);
    this.#launch(
      { title: "fill", ops, inputs, results: [value], key: "" },
      [target],
      undefined,
      steps,
    );
  }

  #copy(value: GraphValue, source: Buffer, target: Buffer, steps: Step[]): void {
    if (source.count === 0) return;
    const kernel = kernelOf(
      { title: "copy", ops: [], inputs: [value], results: [value], key: "copy" },
      this.#caches,
    );
    steps.push({
      kind: "launch",
      kernel,
      inputs: [source],
      outputs: [target],
      overwritten: new Map(),
      overwritable: new Map(),
      inPlace: () => kernel,
      form: "copy",
      name: "copy",
      origin: { op: undefined, ops: [] },
    });
  }

  #control(op: AnyGraphOp, wanted: ReadonlyMap<GraphValue, Buffer>, steps: Step[]): void {
    if (op.kind === "stablehlo.while") {
      this.#while(op, wanted, steps);
      return;
    }
    if (op.kind !== "stablehlo.if" && op.kind !== "stablehlo.case")
      throw new Error(`${op.kind} is no control flow`);
    const results = op.results.map((value) => this.#output(value, wanted));
    const regions =
      op.kind === "stablehlo.if"
        ? [op.regions.true_branch, op.regions.false_branch]
        : op.regions.branches;
    const index = this.#bufferOf(op.kind === "stablehlo.if" ? op.operands.pred : op.operands.index);
    const branches = regions.map((region) => this.#region(region, region.results, results));
    steps.push({ kind: "branch", index, branches, name: op.name });
  }

  /** Carries have buffers of their own, which every turn reads and then writes. */
  #while(
    op: GraphOp<"stablehlo.while">,
    wanted: ReadonlyMap<GraphValue, Buffer>,
    steps: Step[],
  ): void {
    const { cond, body } = op.regions;
    const carries = op.results.map((value) => this.#output(value, wanted));
    for (const [i, value] of op.operands.operand.entries()) {
      const carry = carries[i];
      if (carry !== undefined) this.#into(value, carry, steps);
    }
    for (const region of [cond, body])
      for (const [i, parameter] of region.parameters.entries()) {
        const carry = carries[i];
        if (carry !== undefined) this.#buffers.set(parameter, carry);
      }
    const [condition] = cond.results;
    if (condition === undefined) throw new Error("a condition has a result");
    const predicate = this.#buffer(tensorTypeOf(condition), { kind: "arena" });
    const trips = tripCount(op, this.#literals);
    const asking = this.#region(cond, [condition], [predicate]);
    steps.push({
      kind: "while",
      // Nobody asks where the number of turns is known.
      condition: trips === undefined ? asking : [],
      predicate,
      body: this.#turn(body, carries),
      trips,
      name: op.name,
    });
  }

  /** The body of a loop: new values beside the carries, then into them. */
  #turn(body: GraphRegion, carries: readonly Buffer[]): readonly Step[] {
    const fresh = body.results.map((value, i) =>
      value === body.parameters[i]
        ? carries[i]
        : this.#buffer(tensorTypeOf(value), { kind: "arena" }),
    ) as readonly Buffer[];
    const steps = [...this.#region(body, body.results, fresh)];
    for (const [i, value] of body.results.entries()) {
      const [from, to] = [fresh[i], carries[i]];
      if (from !== undefined && to !== undefined && from !== to) this.#copy(value, from, to, steps);
    }
    return steps;
  }
}

/** Runs `body`; errors without a location are reported with this one. */
function placing<T>(location: Location, body: () => T): T {
  try {
    return body();
  } catch (error) {
    throw placedAt(location, error);
  }
}

function kindName(op: AnyGraphOp): string {
  return op.kind.replace(/^\w+\./, "").replaceAll("-", "_");
}
