/**
 * What a rule can say. Rules are called in the order of the program, so that a value's slot exists before
 * its users ask for it; rules of ops with regions give the slots of the region's parameters and then have
 * the region walked.
 */
import type { Kernel, Op, Region, Value } from "../../ir/node.ts";
import type { AnyOp } from "../../ir/node.ts";
import { opName } from "../../ir/op-names.ts";
import { isSpread } from "../../ir/types.ts";
import type { SpreadType } from "../../ir/types.ts";
import type { Target } from "../../targets/target.ts";
import type { RegisterLayout } from "../algebra/register-layout.ts";
import type { SharedLayout } from "../algebra/shared-layout.ts";
import { conversionsOf } from "../model/conversions.ts";
import { costs, pressureCost } from "../model/cost.ts";
import type { Functions, TileFunction } from "../model/functions.ts";
import type { SharedWindow, Windows } from "../model/windows.ts";
import { wordsPerLane } from "../algebra/vectors.ts";
import type { Candidate } from "../solver/system.ts";
import type {
  LayoutOf,
  Need,
  Proposal,
  ProposalClass,
  Reason,
  RegisterSlot,
  SharedSlot,
  Slot,
  Statement,
} from "./statements.ts";

/** What the rules are told about the kernel. */
export interface Surroundings {
  readonly kernel: Kernel;
  readonly target: Target;
  readonly windows: Windows;
  readonly functions: Functions;
}

export class LayoutContext {
  readonly surroundings: Surroundings;
  readonly slots: Slot[] = [];
  readonly statements: Statement[] = [];
  readonly proposals: Proposal[] = [];
  readonly #walk: (op: AnyOp, context: LayoutContext) => void;
  readonly #values = new Map<Value, RegisterSlot>();
  readonly #shared = new Map<Value, SharedSlot>();
  readonly #remembered = new Map<string, unknown>();
  #weight = 1;
  #warps: number;

  constructor(surroundings: Surroundings, walk: (op: AnyOp, context: LayoutContext) => void) {
    this.surroundings = surroundings;
    this.#warps = surroundings.kernel.warps;
    this.#walk = walk;
  }

  /** How often the current op runs, as far as its cost goes. */
  get weight(): number {
    return this.#weight;
  }

  /** Warps that hold the tiles of the current op together. */
  get warps(): number {
    return this.#warps;
  }

  get values(): ReadonlyMap<Value, RegisterSlot> {
    return this.#values;
  }

  get allocations(): ReadonlyMap<Value, SharedSlot> {
    return this.#shared;
  }

  /** Walks a region whose parameters have slots. */
  body(region: Region, { times = 1, warps = this.#warps, end }: BodyOptions = {}): void {
    const before = { weight: this.#weight, warps: this.#warps };
    this.#weight = Math.min(costs.mostTrips, this.#weight * times);
    this.#warps = warps;
    for (const op of region.ops) this.#walk(op, this);
    end?.();
    this.#weight = before.weight;
    this.#warps = before.warps;
  }

  /** The slot of a value in registers; undefined for scalars and memory. */
  find(value: Value): RegisterSlot | undefined {
    return this.#values.get(value);
  }

  /** The slot of a value that is surely spread over lanes. */
  slot(value: Value): RegisterSlot {
    const slot = this.#values.get(value);
    if (slot === undefined) throw new Error(`%${value.id} has no layout`);
    return slot;
  }

  /** A slot for a result or parameter; undefined where it is a scalar or no value at all. */
  define(op: AnyOp, value: Value | undefined, options: SlotOptions = {}): RegisterSlot | undefined {
    if (value === undefined || !isSpreadValue(value)) return undefined;
    const slot = this.registers(op, value.type, opName(op), options);
    this.#values.set(value, slot);
    this.price([slot], `pressure ${typeKey(slot)}`, op, `registers of ${opName(op)}`, () => {
      const { shape, dtype } = slot;
      return (layout: RegisterLayout) => pressureCost(wordsPerLane(layout, shape, dtype.bits));
    });
    return slot;
  }

  /** Says that a value lies where another does. */
  share(value: Value | undefined, slot: RegisterSlot): void {
    if (value !== undefined) this.#values.set(value, slot);
  }

  registers(op: AnyOp, type: SpreadType, label: string, options: SlotOptions = {}): RegisterSlot {
    const slot: RegisterSlot = {
      kind: "register",
      index: this.slots.length,
      label,
      location: op.location,
      shape: type.shape,
      dtype: type.dtype,
      warps: options.warps ?? this.#warps,
      splat: options.splat ?? "never",
    };
    this.slots.push(slot);
    return slot;
  }

  /** The slot of an allocation in shared memory. */
  allocation(window: SharedWindow): SharedSlot {
    const slot = this.#shared.get(window.root);
    if (slot === undefined) throw new Error(`%${window.root.id} is not allocated`);
    return slot;
  }

  allocate(op: AnyOp, root: Value, label: string): SharedSlot {
    if (root.type.kind !== "ref") throw new Error(`%${root.id} is no window`);
    const { dtype, shape } = root.type;
    const slot: SharedSlot = {
      kind: "shared",
      index: this.slots.length,
      label,
      location: op.location,
      shape: shape.map(Number),
      dtype,
      root,
    };
    this.slots.push(slot);
    this.#shared.set(root, slot);
    return slot;
  }

  /** A new slot in which the op reads a value, which is converted to it where it lies elsewhere. */
  operand(op: AnyOp, value: Value, options: SlotOptions = {}): RegisterSlot | undefined {
    if (!isSpreadValue(value) || this.find(value) === undefined) return undefined;
    const slot = this.registers(op, value.type, `what ${opName(op)} reads`, options);
    this.read(op, value, { kind: "slot", slot });
    return slot;
  }

  /** The op needs the value in a certain place. */
  read(op: AnyOp, value: Value, need: Need, message = `${opName(op)} reads this`): void {
    const source = this.find(value);
    if (source === undefined || !isSpreadValue(value)) return;
    const reason = { op, message };
    this.statements.push({ kind: "convert", source, need, weight: this.#weight, value, reason });
  }

  image(op: AnyOp, source: RegisterSlot, layoutFunction: TileFunction, result: RegisterSlot): void {
    const message = `${opName(op)} leaves every element in its lane`;
    const reason = { op, message };
    this.statements.push({ kind: "image", source, function: layoutFunction, result, reason });
  }

  pin<S extends Slot>(slot: S, layout: LayoutOf<S>, reason: Reason): void {
    this.statements.push({ kind: "pin", slot, layout, reason });
  }

  require<const S extends readonly Slot[]>(
    slots: S,
    key: string | undefined,
    reason: Reason,
    make: () => (...layouts: { [P in keyof S]: LayoutOf<S[P]> }) => true | string,
  ): void {
    // The slots' own kinds of layouts are the only ones it will be asked about.
    const answer = this.remember(key, make) as Answer<true | string>;
    this.statements.push({ kind: "require", slots, answer, reason });
  }

  /** States a cost, which is multiplied by how often the op runs. Equal keys mean equal costs. */
  price<const S extends readonly Slot[]>(
    slots: S,
    key: string | undefined,
    op: AnyOp,
    message: string,
    make: () => (...layouts: { [P in keyof S]: LayoutOf<S[P]> }) => number,
  ): void {
    const weight = this.#weight;
    const answer = this.remember(key && `${key} times ${weight}`, () => {
      const cost = make();
      return (...layouts: { [P in keyof S]: LayoutOf<S[P]> }) => weight * cost(...layouts);
    }) as Answer<number>;
    this.statements.push({ kind: "cost", slots, answer, reason: { op, message } });
  }

  propose(
    slot: Slot,
    proposalClass: ProposalClass,
    layouts: readonly (RegisterLayout | SharedLayout)[],
  ): void {
    for (const layout of layouts) this.proposals.push({ slot, layout, class: proposalClass });
  }

  /** One object for each key, since the solver knows functions by identity; a new one without a key. */
  remember<T>(key: string | undefined, make: () => T): T {
    if (key === undefined) return make();
    if (!this.#remembered.has(key)) this.#remembered.set(key, make());
    return this.#remembered.get(key) as T;
  }

  /** What a conversion of tiles of this type costs, `weight` times. */
  conversion(
    { shape, dtype }: SpreadType,
    weight: number,
  ): (source: RegisterLayout, target: RegisterLayout) => number | undefined {
    return this.remember(`convert ${shape.join()} ${dtype.bits} times ${weight}`, () => {
      const conversions = conversionsOf(shape, dtype.bits);
      return (source: RegisterLayout, target: RegisterLayout) => {
        const cost = conversions.cost(source, target);
        return cost === undefined ? undefined : weight * cost;
      };
    });
  }
}

type Answer<Result> = (...layouts: readonly Candidate[]) => Result;

export interface BodyOptions {
  /** How often the region runs each time the op does. */
  readonly times?: number;
  /** Warps that run the region together. */
  readonly warps?: number;
  /** What is stated at the region's end, as often as the region runs. */
  readonly end?: () => void;
}

export interface SlotOptions {
  readonly splat?: RegisterSlot["splat"];
  /** Warps that hold it together, where not all do that run the op. */
  readonly warps?: number;
}

function isSpreadValue(value: Value): value is Value<SpreadType> {
  return isSpread(value.type);
}

/** What costs of a slot depend on. */
export function typeKey({ shape, dtype }: Slot): string {
  return `${shape.join()} ${dtype.bits}`;
}

export type Rule<K extends AnyOp["kind"]> = (op: Op<K>, context: LayoutContext) => void;
