/**
 * What a rule can say. Rules are called in the order of the program, so that a value's variable exists before
 * its users ask for it; rules of ops with regions give the variables of the region's parameters and then have
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
import { conversionsOf } from "../model/conversion-cost.ts";
import { costs, pressureCost } from "../model/cost.ts";
import type { Functions, TileFunction } from "../model/layout-functions.ts";
import type { SharedWindow, Windows } from "../model/windows.ts";
import { wordsPerLane } from "../algebra/vectors.ts";
import type { Candidate } from "../solver/system.ts";
import type {
  LayoutOf,
  Need,
  Proposal,
  ProposalClass,
  Reason,
  RegisterVariable,
  SharedVariable,
  LayoutVariable,
  Statement,
} from "./statements.ts";

/** What the rules are told about the kernel. */
export interface Surroundings {
  readonly kernel: Kernel;
  readonly target: Target;
  readonly windows: Windows;
  readonly functions: Functions;
  /** Results of layoutCast that are copies, converted to what is stated: their operands cannot lie there. */
  readonly converted?: ReadonlySet<Value>;
}

export class LayoutContext {
  readonly surroundings: Surroundings;
  readonly variables: LayoutVariable[] = [];
  readonly statements: Statement[] = [];
  readonly proposals: Proposal[] = [];
  readonly #walk: (op: AnyOp, context: LayoutContext) => void;
  readonly #values = new Map<Value, RegisterVariable>();
  readonly #shared = new Map<Value, SharedVariable>();
  readonly #pinnedByUser = new Map<LayoutVariable, RegisterLayout | SharedLayout>();
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

  get values(): ReadonlyMap<Value, RegisterVariable> {
    return this.#values;
  }

  get allocations(): ReadonlyMap<Value, SharedVariable> {
    return this.#shared;
  }

  /** Walks a region whose parameters have variables. */
  body(region: Region, { times = 1, warps = this.#warps, end }: BodyOptions = {}): void {
    const before = { weight: this.#weight, warps: this.#warps };
    this.#weight = Math.min(costs.mostTrips, this.#weight * times);
    this.#warps = warps;
    for (const op of region.ops) this.#walk(op, this);
    end?.();
    this.#weight = before.weight;
    this.#warps = before.warps;
  }

  /** The variable of a value in registers; undefined for scalars and memory. */
  find(value: Value): RegisterVariable | undefined {
    return this.#values.get(value);
  }

  /** The variable of a value that is surely spread over lanes. */
  variable(value: Value): RegisterVariable {
    const variable = this.#values.get(value);
    if (variable === undefined) throw new Error(`%${value.id} has no layout`);
    return variable;
  }

  /** A variable for a result or parameter; undefined where it is a scalar or no value at all. */
  define(
    op: AnyOp,
    value: Value | undefined,
    options: VariableOptions = {},
  ): RegisterVariable | undefined {
    if (value === undefined || !isSpreadValue(value)) return undefined;
    const variable = this.registers(op, value.type, opName(op), options);
    this.#values.set(value, variable);
    this.price(
      [variable],
      `pressure ${typeKey(variable)}`,
      op,
      `registers of ${opName(op)}`,
      () => {
        const { shape, dtype } = variable;
        return (layout: RegisterLayout) => pressureCost(wordsPerLane(layout, shape, dtype.bits));
      },
    );
    return variable;
  }

  /** Says that a value lies where another does. */
  share(value: Value | undefined, variable: RegisterVariable): void {
    if (value !== undefined) this.#values.set(value, variable);
  }

  registers(
    op: AnyOp,
    type: SpreadType,
    label: string,
    options: VariableOptions = {},
  ): RegisterVariable {
    const variable: RegisterVariable = {
      kind: "register",
      index: this.variables.length,
      label,
      location: op.location,
      shape: type.shape,
      dtype: type.dtype,
      warps: options.warps ?? this.#warps,
      splat: options.splat ?? "never",
    };
    this.variables.push(variable);
    return variable;
  }

  /** The variable of an allocation in shared memory. */
  allocation(window: SharedWindow): SharedVariable {
    const variable = this.#shared.get(window.root);
    if (variable === undefined) throw new Error(`%${window.root.id} is not allocated`);
    return variable;
  }

  allocate(op: AnyOp, root: Value, label: string): SharedVariable {
    if (root.type.kind !== "ref") throw new Error(`%${root.id} is no window`);
    const { dtype, shape } = root.type;
    const variable: SharedVariable = {
      kind: "shared",
      index: this.variables.length,
      label,
      location: op.location,
      shape: shape.map(Number),
      dtype,
      root,
    };
    this.variables.push(variable);
    this.#shared.set(root, variable);
    return variable;
  }

  /** A new variable in which the op reads a value, which is converted to it where it lies elsewhere. */
  operand(op: AnyOp, value: Value, options: VariableOptions = {}): RegisterVariable | undefined {
    if (!isSpreadValue(value) || this.find(value) === undefined) return undefined;
    const variable = this.registers(op, value.type, `what ${opName(op)} reads`, options);
    this.read(op, value, { kind: "variable", variable });
    return variable;
  }

  /** The op needs the value in a certain place. */
  read(op: AnyOp, value: Value, need: Need, message = `${opName(op)} reads this`): void {
    const source = this.find(value);
    if (source === undefined || !isSpreadValue(value)) return;
    const reason = { op, message };
    this.statements.push({ kind: "convert", source, need, weight: this.#weight, value, reason });
  }

  image(
    op: AnyOp,
    source: RegisterVariable,
    layoutFunction: TileFunction,
    result: RegisterVariable,
  ): void {
    const message = `${opName(op)} leaves every element in its thread`;
    const reason = { op, message };
    this.statements.push({ kind: "image", source, function: layoutFunction, result, reason });
  }

  pin<S extends LayoutVariable>(variable: S, layout: LayoutOf<S>, reason: Reason): void {
    this.statements.push({ kind: "pin", variable, layout, reason });
    if (reason.pinned === true && !this.#pinnedByUser.has(variable))
      this.#pinnedByUser.set(variable, layout);
  }

  /** Where the user said that the variable lies. */
  pinnedByUser(variable: LayoutVariable): RegisterLayout | SharedLayout | undefined {
    return this.#pinnedByUser.get(variable);
  }

  require<const S extends readonly LayoutVariable[]>(
    variables: S,
    key: string | undefined,
    reason: Reason,
    make: () => (...layouts: { [P in keyof S]: LayoutOf<S[P]> }) => true | string,
  ): void {
    // The variables' own kinds of layouts are the only ones it will be asked about.
    const answer = this.remember(key, make) as Answer<true | string>;
    this.statements.push({ kind: "require", variables, answer, reason });
  }

  /** States a cost, which is multiplied by how often the op runs. Equal keys mean equal costs. */
  price<const S extends readonly LayoutVariable[]>(
    variables: S,
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
    this.statements.push({ kind: "cost", variables, answer, reason: { op, message } });
  }

  propose(
    variable: LayoutVariable,
    proposalClass: ProposalClass,
    layouts: readonly (RegisterLayout | SharedLayout)[],
  ): void {
    for (const layout of layouts) this.proposals.push({ variable, layout, class: proposalClass });
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

export interface VariableOptions {
  readonly splat?: RegisterVariable["splat"];
  /** Warps that hold it together, where not all do that run the op. */
  readonly warps?: number;
}

function isSpreadValue(value: Value): value is Value<SpreadType> {
  return isSpread(value.type);
}

/** What costs of a variable depend on. */
export function typeKey({ shape, dtype }: LayoutVariable): string {
  return `${shape.join()} ${dtype.bits}`;
}

export type Rule<K extends AnyOp["kind"]> = (op: Op<K>, context: LayoutContext) => void;
