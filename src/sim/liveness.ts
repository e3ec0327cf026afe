/**
 * Which tiles are dead after which op, so that their elements can be used again.
 *
 *   %2 = load …          made here
 *   %3 = unary %2        last use: %2's elements are free from here on
 *   store %3             last use of %3
 *   yield                what is yielded, carried or renamed lives on under another name: never freed
 *
 * A use inside an op's regions counts as a use by that op, which ends after all its iterations.
 */
import type { AnyOp, Region, Value } from "../ir/node.ts";
import { accessesOf, reusedBy, sharesRegisters } from "../ir/traits.ts";
import { operandValues, regionList } from "../ir/traverse.ts";

interface Use {
  last: number;
  kept: boolean;
}

/** What is known of regions: it is asked for at every launch, and regions do not change. */
const known = new WeakMap<Region, readonly (readonly Value[])[]>();

/** For each op of the region, by position, the tiles that are dead once it is done. */
export function deadAfter(region: Region): readonly (readonly Value[])[] {
  let dead = known.get(region);
  if (dead === undefined) known.set(region, (dead = findDead(region)));
  return dead;
}

function findDead(region: Region): readonly (readonly Value[])[] {
  const uses = new Map<Value, Use>();
  for (const [position, op] of region.ops.entries()) {
    recordUses(op, position, uses);
    if (sharesRegisters(op)) continue;
    for (const value of op.results)
      if (value.type.kind === "tile") uses.set(value, { last: position, kept: false });
  }
  const dead: Value[][] = region.ops.map(() => []);
  for (const [value, { last, kept }] of uses) if (!kept) dead[last]?.push(value);
  return dead;
}

function recordUses(op: AnyOp, position: number, uses: Map<Value, Use>): void {
  for (const value of operandValues(op)) {
    const use = uses.get(value);
    if (use === undefined) continue;
    use.last = position;
  }
  for (const value of outliving(op)) {
    const use = uses.get(value);
    if (use !== undefined) use.kept = true;
  }
  for (const region of regionList(op))
    for (const inner of region.ops) recordUses(inner, position, uses);
}

/** Operands whose elements the op's results, or what it has started, keep using. */
function outliving(op: AnyOp): readonly Value[] {
  const started = accessesOf(op).filter(({ done }) => done !== "at once");
  return [...reusedBy(op), ...started.map(({ value }) => value)];
}
