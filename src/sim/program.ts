/**
 * Programs: a kernel's nested regions flattened into linear code with jumps, assembled once a launch.
 *
 *   loop %a, %b, %c, %x { (%i, %carry) … }          0  %i = %a; %carry = %x
 *                                                   1  if %i >= %b go to 9
 *                                                   2  …
 *                                                   8  %carry = …; %i += %c; go to 1
 *                                                   9  results = %carry
 *
 * A program thread is then a position in the code and an array of slots, and can be suspended between
 * any two steps. Values are numbered densely; everything that types and attributes decide (shapes,
 * number formats, sizes that depend on dimensions) is decided while assembling.
 */
import { packedBytes } from "../formats/dtype.ts";
import type { DType } from "../formats/dtype.ts";
import type { AnyOp, Kernel, Op, Region, Value } from "../ir/node.ts";
import { ruleOf } from "../ir/ops.ts";
import type { OpRules } from "../ir/ops.ts";
import { evaluateIndexSize, evaluateSize } from "../ir/size.ts";
import type { DimensionValues, Size } from "../ir/size.ts";
import { walkOps } from "../ir/traverse.ts";
import type { Agent, Program, Site, Step } from "./agent.ts";
import type { Allocation } from "./allocation.ts";
import { deadAfter } from "./liveness.ts";
import { ElementPools } from "./element-pool.ts";
import type { ElementPool } from "./element-pool.ts";
import { elementsAt } from "./values.ts";
import type { SlotValue } from "./values.ts";
import { unionExtent } from "./tensor-unions.ts";
import { product } from "./view.ts";

/** A place in the code to jump to. */
export interface Label {
  position: number;
}

/** Sees every value that a kernel computes, as a slot holds it. */
export type Observer = (value: Value, held: SlotValue) => void;

export type SimulationRules = OpRules<readonly [code: Assembler], void>;

/** Where code runs: on all threads of the block together, or on some thread or warp by itself. */
export type Company = "together" | "alone";

export class Assembler {
  readonly kernel: Kernel;
  readonly steps: Step[] = [];
  readonly sites: Site[] = [];
  readonly allocations: Allocation[] = [];
  readonly members: string[] = [];
  company: Company = "together";
  readonly #rules: SimulationRules;
  readonly #dimensions: DimensionValues;
  readonly #observe: Observer | undefined;
  readonly #pools = new ElementPools();
  readonly #slots = new Map<Value, number>();
  readonly #scopes: number[][] = [];
  #loops: readonly number[] = [];
  #slotCount = 0;

  constructor(
    kernel: Kernel,
    rules: SimulationRules,
    dimensions: DimensionValues,
    observe?: Observer,
  ) {
    this.kernel = kernel;
    this.#observe = observe;
    this.#rules = rules;
    this.#dimensions = dimensions;
  }

  slot(value: Value): number {
    let slot = this.#slots.get(value);
    if (slot === undefined) {
      slot = this.#slotCount++;
      this.#slots.set(value, slot);
    }
    return slot;
  }

  slotsOf(values: readonly Value[]): readonly number[] {
    return values.map((value) => this.slot(value));
  }

  /** A slot of no IR value. */
  spareSlot(): number {
    return this.#slotCount++;
  }

  /** The slot of the op's only result. */
  result(op: { readonly results: readonly Value[] }): number {
    const [value] = op.results;
    if (value === undefined) throw new Error("the op has no result");
    return this.slot(value);
  }

  /** A number for a member of a union, from 1. */
  newMember(name = "a member"): number {
    return this.members.push(name);
  }

  emit(op: AnyOp, step: Step): void {
    this.steps.push(step);
    this.sites.push({ op, loops: this.#loops });
  }

  label(): Label {
    return { position: -1 };
  }

  place(label: Label): void {
    label.position = this.steps.length;
  }

  pool(dtype: DType, length: number): ElementPool {
    return this.#pools.of(dtype, length);
  }

  size(size: Size): number {
    return evaluateSize(size, this.#dimensions);
  }

  indexSize(size: Size): number {
    return evaluateIndexSize(size, this.#dimensions);
  }

  /** Assembles a region's ops and gives the slots of what it yields. */
  region(region: Region): readonly number[] {
    const dead = deadAfter(region);
    const [first] = region.ops;
    if (first !== undefined) this.#see(first, region.parameters);
    for (const [position, op] of region.ops.entries()) {
      if (op.kind === "yield") return this.slotsOf(op.operands.values);
      ruleOf(this.#rules, op)(op, this);
      this.#see(op, op.results);
      this.#release(op, dead[position] ?? []);
    }
    throw new Error("a region ends with yield");
  }

  #see(op: AnyOp, values: readonly Value[]): void {
    const observe = this.#observe;
    if (observe === undefined || values.length === 0) return;
    const slots = this.slotsOf(values);
    this.emit(op, (agent) => {
      for (const [position, value] of values.entries())
        observe(value, agent.slots[slots[position] ?? -1]);
      return "proceed";
    });
  }

  /** A region whose steps report the loop index in `slot`. */
  loopRegion(slot: number, region: Region): readonly number[] {
    const outside = this.#loops;
    this.#loops = [...outside, slot];
    const yielded = this.region(region);
    this.#loops = outside;
    return yielded;
  }

  /** A region that runs in the given company. */
  companyRegion(company: Company, region: Region): void {
    const outside = this.company;
    this.company = company;
    this.region(region);
    this.company = outside;
  }

  /** A region with allocations of its own: the slots it yields, and its allocations' numbers. */
  scopeRegion(region: Region): {
    readonly yielded: readonly number[];
    readonly sites: readonly number[];
  } {
    const sites: number[] = [];
    this.#scopes.push(sites);
    const yielded = this.region(region);
    this.#scopes.pop();
    return { yielded, sites };
  }

  /** Registers an allocation and gives its number. */
  allocate(op: Allocation["op"]): number {
    const isGlobal =
      op.kind === "alloc_semaphore" || (op.kind === "alloc" && op.attributes.space === "gmem");
    const scope = this.#scopes.at(-1);
    const sharing = isGlobal
      ? "grid"
      : scope !== undefined && this.company === "alone"
        ? "private"
        : "block";
    const site = this.allocations.push({ op, sharing, ...this.#extent(op) }) - 1;
    if (!isGlobal) scope?.push(site);
    return site;
  }

  #extent(op: Allocation["op"]): Pick<Allocation, "shape" | "bytes" | "granuleBytes"> {
    if (op.kind === "alloc_barrier")
      return { shape: [op.attributes.count], bytes: 0, granuleBytes: 1 };
    if (op.kind === "alloc_union") {
      const { bytes } = op.attributes;
      const granuleBytes = unionGranule(this.kernel, op);
      return {
        shape: [bytes],
        bytes: Math.ceil(bytes / granuleBytes) * granuleBytes,
        granuleBytes,
      };
    }
    const shape = op.attributes.shape.map((size) => this.size(size));
    const union = op.kind === "alloc_tmem" ? unionExtent(this.kernel, op) : undefined;
    if (union !== undefined) return { shape, ...union };
    if (op.kind === "alloc_semaphore") return { shape, bytes: 0, granuleBytes: 1 };
    const { dtype } = op.attributes;
    return {
      shape,
      bytes: packedBytes(dtype, product(shape)),
      granuleBytes: dtype.bits / 8,
    };
  }

  #release(op: AnyOp, dead: readonly Value[]): void {
    const released = dead.flatMap((value) =>
      value.type.kind === "tile"
        ? [{ slot: this.slot(value), pool: this.pool(value.type.dtype, product(value.type.shape)) }]
        : [],
    );
    if (released.length === 0) return;
    this.emit(op, (agent) => {
      for (const { slot, pool } of released) {
        pool.give(elementsAt(agent, slot));
        agent.slots[slot] = undefined;
      }
      return "proceed";
    });
  }

  finish(): Program {
    const { kernel, steps, sites, allocations, members } = this;
    const parameterSlots = this.slotsOf(kernel.parameters.map(({ value }) => value));
    return { kernel, steps, sites, slots: this.#slotCount, allocations, parameterSlots, members };
  }
}

/** Members start at multiples of their element, so the smallest element divides the union for all. */
function unionGranule(kernel: Kernel, union: Op<"alloc_union">): number {
  let smallest = 8;
  walkOps(kernel.body, (op) => {
    if (op.kind === "union_member" && op.operands.union === union.results[0])
      smallest = Math.min(smallest, op.attributes.dtype.bits / 8);
  });
  return smallest;
}

/** Code that moves `from` to `to` all at once, so that values may trade places. */
export function moveSlots(from: readonly number[], to: readonly number[]): (agent: Agent) => void {
  if (from.length === 1) {
    const [source = 0] = from;
    const [target = 0] = to;
    return (agent) => {
      agent.slots[target] = agent.slots[source];
    };
  }
  return ({ slots }) => {
    const values = from.map((slot) => slots[slot]);
    for (let i = 0; i < to.length; i++) slots[to[i] as number] = values[i];
  };
}
