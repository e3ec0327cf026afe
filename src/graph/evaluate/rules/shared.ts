/** What several families of rules share. */
import type { AnyGraphOp, GraphOp } from "../../ops/index.ts";
import type { Tensor } from "../value.ts";
import type { ScalarKind } from "../elementwise/index.ts";
import { unsupported } from "../frame.ts";
import type { Frame, RuleResult, Steps } from "../frame.ts";
import { evaluateElementwise } from "../map.ts";

export type Rule = (op: AnyGraphOp, frame: Frame) => RuleResult;

export const elementwise = (op: GraphOp<ScalarKind>, frame: Frame): RuleResult =>
  evaluateElementwise(op, frame);

const refusals = new WeakMap<object, string>();

/** The rule of an op that does not run. */
export function refuse(reason: string): Rule {
  const rule: Rule = (op) => {
    throw unsupported(op, reason);
  };
  refusals.set(rule, reason);
  return rule;
}

/** Why a rule refuses all ops of its kind; undefined where it runs them. */
export function refusalOf(rule: object): string | undefined {
  return refusals.get(rule);
}

export const dynamic = "its shape is known only when it runs";

export function numbers(value: Tensor): readonly number[] {
  return Array.from(value.data as ArrayLike<number | bigint>, Number);
}

/** The steps of an op with one result. */
export function* one(steps: Steps<Tensor>): Steps<readonly Tensor[]> {
  return [yield* steps];
}

/** A constant as it is kept. */
export function constant(literal: Tensor, frame: Frame): Tensor {
  return frame.session.arithmetic.kept(literal);
}
