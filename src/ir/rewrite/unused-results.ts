/**
 * Results that an op makes for their own sake alone: where nothing uses one, the op is the same without it.
 *
 *   %k, %p = sort %x {…, positions = true}    nothing uses %p    %k = sort %x {…}
 */
import { changedOp } from "../make-op.ts";
import type { AnyOp, Op, Value } from "../node.ts";

type Rules = {
  readonly [K in AnyOp["kind"]]?: (op: Op<K>, isUsed: (value: Value) => boolean) => Op<K>;
};

const rules: Rules = {
  sort(op, isUsed) {
    const { keys, payloads } = op.operands;
    const [first, ...others] = op.results;
    const kept = others.filter(isUsed);
    if (kept.length === others.length) return op;
    const moved = payloads.filter((_, index) => kept.includes(others[index] as Value));
    const { positions, ...attributes } = op.attributes;
    const hasPositions = positions === true && kept.length > moved.length;
    return changedOp(op, {
      operands: Object.freeze({ ...op.operands, keys, payloads: Object.freeze(moved) }),
      attributes: Object.freeze({ ...attributes, ...(hasPositions && { positions }) }),
      results: Object.freeze(first === undefined ? kept : [first, ...kept]),
    });
  },
};

/** The op without results that are there for nothing. */
export function withoutUnused(op: AnyOp, isUsed: (value: Value) => boolean): AnyOp {
  // TypeScript cannot see that the rule and the op share their kind.
  const rule = rules[op.kind] as
    | ((op: AnyOp, isUsed: (value: Value) => boolean) => AnyOp)
    | undefined;
  return rule === undefined ? op : rule(op, isUsed);
}
