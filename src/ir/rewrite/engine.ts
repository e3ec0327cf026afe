/**
 * The driver of rewriting rules. A sweep walks the kernel once, in order, the regions of an op before
 * the op; sweeps repeat until no rule fires.
 *
 *   %2 = binary %0, %1 {fn = add}      a rule gives %0 for %2:  the op is dropped,
 *   %3 = unary %2 {fn = neg}           and what follows reads %0
 *
 * Ops that a rule creates are looked at in the next sweep. An op for which no rule had anything is settled: rules see nothing but the op,
 * what defines its operands, and the kernel's grid and threads, so that it is passed over until one of those that define it is another.
 * Rules that undo each other would go on for ever; after a limit the driver stops and names them.
 */
import type { Location } from "../../support/location.ts";
import { inferResults } from "../infer/index.ts";
import { noSlots, opOf } from "../make-op.ts";
import type { AnyOp, Kernel, Op, Region, Value } from "../node.ts";
import type { OpAttributes, OpKind, OpOperands, OpRegions } from "../ops.ts";
import type { Literal } from "../schema.ts";
import { operandValues, yieldedValues } from "../traverse.ts";
import { dataShape, sameType, typeText } from "../types.ts";
import type { DataType } from "../types.ts";
import { definingOps, nextValueId } from "./analysis.ts";
import type { NamedRule, RewriteContext } from "./rules.ts";
import { changeBody, changeOps, changeRegions, substituteOperands } from "./substitute.ts";
import { visitEach } from "../../support/visit-each.ts";

/** Real kernels settle after a handful. */
const sweepLimit = 100;

/** Ops for which the rules of one list had nothing when they were last looked at; of kernels with the same grid and threads. */
export type Settled = Set<AnyOp>;

/** Applies the rules to a fixed point; the kernel itself where none fires. */
export function rewriteKernel(
  kernel: Kernel,
  rules: readonly NamedRule[],
  settled: Settled = new Set(),
): Kernel {
  const byKind = rulesByKind(rules);
  let current = kernel;
  let fired: ReadonlySet<string> = new Set();
  for (let count = 0; count < sweepLimit; count++) {
    const sweep = new Sweep(current, byKind, settled);
    current = sweep.run();
    fired = sweep.fired;
    if (fired.size === 0) return current;
  }
  throw new Error(
    `rewriting of ${kernel.name} does not end; these rules keep firing: ${[...fired].join(", ")}`,
  );
}

type RulesByKind = ReadonlyMap<OpKind, readonly NamedRule[]>;

/** Lists of rules live as long as the modules that define them. */
const sorted = new WeakMap<readonly NamedRule[], RulesByKind>();

function rulesByKind(rules: readonly NamedRule[]): RulesByKind {
  const known = sorted.get(rules);
  if (known !== undefined) return known;
  const byKind = new Map<OpKind, NamedRule[]>();
  for (const rule of rules) byKind.set(rule.kind, [...(byKind.get(rule.kind) ?? []), rule]);
  sorted.set(rules, byKind);
  return byKind;
}

class Sweep implements RewriteContext {
  readonly kernel: Kernel;
  readonly fired = new Set<string>();
  readonly #rules: RulesByKind;
  readonly #settled: Settled;
  /** What ops that were not passed over define, where some may be passed over: whatever uses it is looked at. */
  readonly #fresh: Set<Value> | undefined;
  /** Known once a rule asks, which few do where most ops are settled. */
  #definitions: ReadonlyMap<Value, AnyOp> | undefined;
  /** Of the ops so far that are not those of the kernel: whatever an op uses is defined before it. */
  readonly #redefined = new Map<Value, AnyOp>();
  readonly #substitution = new Map<Value, Value>();
  /** The ops so far of the region being rebuilt. */
  #emitted: AnyOp[] = [];
  #location: Location;
  /** Known once an op is created, which few sweeps do. */
  #nextId: number | undefined;

  constructor(kernel: Kernel, rules: RulesByKind, settled: Settled) {
    this.kernel = kernel;
    this.#rules = rules;
    this.#settled = settled;
    this.#fresh = settled.size === 0 ? undefined : new Set();
    this.#location = kernel.location;
  }

  run(): Kernel {
    return changeBody(this.kernel, this.#region(this.kernel.body));
  }

  readonly #region = (region: Region): Region => {
    const outside = this.#emitted;
    this.#emitted = [];
    visitEach(region.ops, (op) => this.#visit(op));
    const ops = this.#emitted;
    this.#emitted = outside;
    return changeOps(region, ops);
  };

  #visit(op: AnyOp): void {
    const given = this.#substitution.size === 0 ? op : substituteOperands(op, this.#substitution);
    const current = given.regions === noSlots ? given : changeRegions(given, this.#region);
    if (!this.#isSettled(current)) {
      this.#location = op.location;
      if (this.#fresh !== undefined) this.#see(this.#fresh, current);
      if (this.#apply(current)) return;
      this.#settled.add(current);
    }
    this.#emitted.push(current);
    if (current !== op) this.#redefine(current);
  }

  #see(fresh: Set<Value>, { results }: AnyOp): void {
    visitEach(results, (result) => fresh.add(result));
  }

  /** Whether nothing has changed that rules could see of the op. */
  #isSettled(op: AnyOp): boolean {
    const fresh = this.#fresh;
    if (fresh === undefined || op.regions !== noSlots || !this.#settled.has(op)) return false;
    return fresh.size === 0 || !hasAny(fresh, operandValues(op));
  }

  #apply(op: AnyOp): boolean {
    const rules = this.#rules.get(op.kind);
    if (rules === undefined) return false;
    for (let place = 0; place < rules.length; place += 1) {
      const rule = rules[place] as NamedRule;
      const replacement = rule.rewrite(op, this);
      if (replacement === undefined) continue;
      this.#replace(rule, op, Array.isArray(replacement) ? replacement : [replacement]);
      return true;
    }
    return false;
  }

  #replace(rule: NamedRule, op: AnyOp, values: readonly Value[]): void {
    if (values.length !== op.results.length)
      throw new Error(`rule ${rule.name} gives ${values.length} values for ${op.results.length}`);
    for (const [position, result] of op.results.entries()) {
      const value = values[position];
      if (value === undefined || !sameType(value.type, result.type))
        throw new Error(`rule ${rule.name} changes the type ${typeText(result.type)} of a result`);
      this.#substitution.set(result, value);
    }
    this.fired.add(rule.name);
  }

  #redefine(op: AnyOp): void {
    op.results.forEach((result) => this.#redefined.set(result, op));
  }

  readonly definition = (value: Value): AnyOp | undefined => {
    this.#definitions ??= definingOps(this.kernel.body);
    return this.#redefined.get(value) ?? this.#definitions.get(value);
  };

  readonly literal = (value: Value): Literal | undefined => {
    const op = this.definition(value);
    return op?.kind === "constant" ? op.attributes.value : undefined;
  };

  readonly create = <K extends OpKind>(
    kind: K,
    operands: OpOperands<K>,
    attributes: OpAttributes<K>,
    regions: OpRegions<K>,
  ): readonly Value[] => {
    const draft = { kind, operands, attributes, regions, location: this.#location };
    freezePart(operands);
    freezePart(attributes);
    freezePart(regions);
    const types = inferResults(draft, this.kernel);
    const first = this.#nextId ?? nextValueId(this.kernel);
    this.#nextId = first + types.length;
    const results = types.map((type, index) => Object.freeze({ id: first + index, type }));
    const op: Op<K> = opOf(draft, Object.freeze(results));
    // An Op<K> is one of the union's members, which TypeScript cannot see for a generic K.
    const created = op as unknown as AnyOp;
    if (this.#fresh !== undefined) this.#see(this.#fresh, created);
    this.#emitted.push(created);
    this.#redefine(created);
    return op.results;
  };

  readonly createOne = <K extends OpKind>(
    kind: K,
    operands: OpOperands<K>,
    attributes: OpAttributes<K>,
  ): Value => {
    const [result, ...others] = this.create(kind, operands, attributes, noSlots as OpRegions<K>);
    if (result === undefined || others.length > 0) throw new Error(`${kind} has not one result`);
    return result;
  };

  readonly createConstant = (literal: Literal, type: DataType): Value => {
    const attributes = { value: literal, dtype: type.dtype, shape: dataShape(type) };
    return this.createOne("constant", noSlots, attributes);
  };

  readonly inline = (region: Region, parameters: readonly Value[]): readonly Value[] => {
    const location = this.#location;
    for (const [position, parameter] of region.parameters.entries()) {
      const value = parameters[position];
      if (value === undefined) throw new Error("inline needs a value for each parameter");
      this.#substitution.set(parameter, value);
    }
    for (const op of region.ops.slice(0, -1)) this.#visit(op);
    this.#location = location;
    return yieldedValues(region).map((value) => this.#substitution.get(value) ?? value);
  };
}

function hasAny(set: ReadonlySet<Value>, values: readonly Value[]): boolean {
  return values.some((value) => set.has(value));
}

/** Freezes the operands, attributes or regions of a new op and the lists among them. */
function freezePart(part: object): void {
  if (part === noSlots) return;
  const items = part as { readonly [name: string]: unknown };
  for (const name in items) if (Array.isArray(items[name])) Object.freeze(items[name]);
  Object.freeze(part);
}
