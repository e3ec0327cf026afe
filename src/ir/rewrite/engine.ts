/**
 * The driver of rewriting rules. A sweep walks the kernel once, in order, the regions of an op before
 * the op; sweeps repeat until no rule fires.
 *
 *   %2 = binary %0, %1 {fn = add}      a rule gives %0 for %2:  the op is dropped,
 *   %3 = unary %2 {fn = neg}           and what follows reads %0
 *
 * Ops that a rule creates are looked at in the next sweep. Rules that undo each other would go on for
 * ever; after a limit the driver stops and names them.
 */
import type { Location } from "../../support/location.ts";
import { inferResults } from "../infer/index.ts";
import { opOf } from "../make-op.ts";
import type { AnyOp, Kernel, Op, Region, Value } from "../node.ts";
import type { OpAttributes, OpKind, OpOperands, OpRegions } from "../ops.ts";
import type { Literal } from "../schema.ts";
import { yieldedValues } from "../traverse.ts";
import { dataShape, sameType, typeText } from "../types.ts";
import type { DataType } from "../types.ts";
import { nextValueId } from "./analysis.ts";
import type { NamedRule, RewriteContext } from "./rules.ts";
import { changeBody, changeOps, changeRegions, substituteOperands } from "./substitute.ts";

/** Real kernels settle after a handful. */
const sweepLimit = 100;

/** Applies the rules to a fixed point; the kernel itself where none fires. */
export function rewriteKernel(kernel: Kernel, rules: readonly NamedRule[]): Kernel {
  const byKind = rulesByKind(rules);
  let current = kernel;
  let fired: ReadonlySet<string> = new Set();
  for (let count = 0; count < sweepLimit; count++) {
    const sweep = new Sweep(current, byKind);
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
  /** Of the ops so far: whatever an op uses is defined before it. */
  readonly #definitions = new Map<Value, AnyOp>();
  readonly #substitution = new Map<Value, Value>();
  /** The ops so far of the region being rebuilt. */
  #emitted: AnyOp[] = [];
  #location: Location;
  /** Known once an op is created, which few sweeps do. */
  #nextId: number | undefined;

  constructor(kernel: Kernel, rules: RulesByKind) {
    this.kernel = kernel;
    this.#rules = rules;
    this.#location = kernel.location;
  }

  run(): Kernel {
    return changeBody(this.kernel, this.#region(this.kernel.body));
  }

  #region(region: Region): Region {
    const outside = this.#emitted;
    this.#emitted = [];
    for (const op of region.ops) this.#visit(op);
    const ops = this.#emitted;
    this.#emitted = outside;
    return changeOps(region, ops);
  }

  #visit(op: AnyOp): void {
    const substituted = substituteOperands(op, this.#substitution);
    const current = changeRegions(substituted, (region) => this.#region(region));
    this.#location = op.location;
    if (!this.#apply(current)) this.#emit(current);
  }

  #apply(op: AnyOp): boolean {
    for (const rule of this.#rules.get(op.kind) ?? []) {
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

  #emit(op: AnyOp): void {
    this.#emitted.push(op);
    for (const result of op.results) this.#definitions.set(result, op);
  }

  readonly definition = (value: Value): AnyOp | undefined => this.#definitions.get(value);

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
    for (const part of [operands, attributes, regions]) freezePart(part);
    const types = inferResults(draft, this.kernel);
    const first = this.#nextId ?? nextValueId(this.kernel);
    this.#nextId = first + types.length;
    const results = types.map((type, index) => Object.freeze({ id: first + index, type }));
    const op: Op<K> = opOf({ ...draft, results: Object.freeze(results) });
    // An Op<K> is one of the union's members, which TypeScript cannot see for a generic K.
    this.#emit(op as unknown as AnyOp);
    return op.results;
  };

  readonly createOne = <K extends OpKind>(
    kind: K,
    operands: OpOperands<K>,
    attributes: OpAttributes<K>,
  ): Value => {
    const [result, ...others] = this.create(kind, operands, attributes, {} as OpRegions<K>);
    if (result === undefined || others.length > 0) throw new Error(`${kind} has not one result`);
    return result;
  };

  readonly createConstant = (literal: Literal, type: DataType): Value => {
    const attributes = { value: literal, dtype: type.dtype, shape: dataShape(type) };
    return this.createOne("constant", {}, attributes);
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

/** Freezes the operands, attributes or regions of a new op and the lists among them. */
function freezePart(part: object): void {
  const items = part as { readonly [name: string]: unknown };
  for (const name in items) if (Array.isArray(items[name])) Object.freeze(items[name]);
  Object.freeze(part);
}
