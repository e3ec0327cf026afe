/**
 * Rewriting rules as data. A rule looks at one op, and at what defines its operands, and gives values
 * that stand for the op's results:
 *
 *   defineRules("arithmetic", {
 *     "double negation": rule("unary", (op, { definition }) => {
 *       const inner = definition(op.operands.source);
 *       return isUnary(op, "neg") && isUnary(inner, "neg") ? inner.operands.source : undefined;
 *     }),
 *   })
 *
 * The driver in `engine.ts` applies them until none fires.
 */
import type { AnyOp, Kernel, Op, Region, Value } from "../node.ts";
import type { OpAttributes, OpKind, OpOperands, OpRegions } from "../ops.ts";
import type { Literal } from "../schema.ts";
import type { DataType } from "../types.ts";

/** What a rule may ask and do besides reading its op. */
export interface RewriteContext {
  readonly kernel: Kernel;
  /** The op that defines the value; undefined for a region's parameter. */
  readonly definition: (value: Value) => AnyOp | undefined;
  /** The value's number where a constant op defines it, for a tile the number of all elements. */
  readonly literal: (value: Value) => Literal | undefined;
  /** Adds an op in front of the one being rewritten, with its location. */
  readonly create: <K extends OpKind>(
    kind: K,
    operands: OpOperands<K>,
    attributes: OpAttributes<K>,
    regions: OpRegions<K>,
  ) => readonly Value[];
  /** Adds an op without regions and with one result. */
  readonly createOne: <K extends OpKind>(
    kind: K,
    operands: OpOperands<K>,
    attributes: OpAttributes<K>,
  ) => Value;
  readonly createConstant: (literal: Literal, type: DataType) => Value;
  /** Moves the region's ops in front of the op being rewritten; gives what the region yields. */
  readonly inline: (region: Region, parameters: readonly Value[]) => readonly Value[];
}

/** Values for the op's results, of the same types; undefined where the rule does not apply. */
export type Replacement = Value | readonly Value[] | undefined;

export interface Rule<K extends OpKind = OpKind> {
  readonly kind: K;
  readonly rewrite: (op: Op<K>, context: RewriteContext) => Replacement;
}

type AnyRule = { readonly [K in OpKind]: Rule<K> }[OpKind];

export interface NamedRule {
  readonly name: string;
  readonly kind: OpKind;
  readonly rewrite: (op: AnyOp, context: RewriteContext) => Replacement;
}

export function rule<K extends OpKind>(
  kind: K,
  rewrite: (op: Op<K>, context: RewriteContext) => Replacement,
): Rule<K> {
  return { kind, rewrite };
}

/** A group of rules; the group's name precedes theirs. */
export function defineRules(
  group: string,
  rules: { readonly [name: string]: AnyRule },
): readonly NamedRule[] {
  return Object.entries(rules).map(([name, { kind, rewrite }]) => ({
    name: `${group}: ${name}`,
    kind,
    // The driver hands a rule ops of its own kind only, which TypeScript cannot see.
    rewrite: rewrite as NamedRule["rewrite"],
  }));
}
