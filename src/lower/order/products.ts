/**
 * Registers that products in flight still read or write, and somebody else is about to. A left factor in registers is copied into registers of the
 * product's own, so that the tile stays free for others; the next round of a loop writes the same copies, and
 * must know that the product of the round before is over:
 *
 *   loop
 *     %2 = wgmma %1, tile, …        a group              copies of the tile
 *     %4 = wgmma %3, …              a group
 *     wgmma_wait %4, pending 1      %2 is over           nothing to wait for in the next round
 *
 * Without that wait one group is closed after %2 until it comes again: `wgmma.wait_group 1` before the copies. An
 * accumulator stays in its registers from round to round; where a round yields another one, its sums move, and its
 * products must be over before the yield.
 */
import { followFlights, over } from "../../ir/flight.ts";
import type { AnyOp, Region } from "../../ir/node.ts";
import { traitsOf } from "../../ir/traits.ts";
import { regionList, walkOps } from "../../ir/traverse.ts";

/** Groups closed since the product; undefined where it is over. */
type Groups = number | undefined;

/** Of several ways, the one that leaves most to wait for. */
function least(ways: readonly Groups[]): Groups {
  const open = ways.filter((each) => each !== undefined);
  return open.length === 0 ? undefined : Math.min(...open);
}

function afterOps(ops: readonly AnyOp[], groups: Groups): Groups {
  return ops.reduce((since, op) => afterOp(op, since), groups);
}

function afterOp(op: AnyOp, groups: Groups): Groups {
  if (groups === undefined) return undefined;
  if (op.kind === "wgmma") return groups + 1;
  if (op.kind === "wgmma_wait" || op.kind === "products_wait")
    return groups >= op.attributes.pending ? undefined : groups;
  if (op.kind === "dot") return op.attributes.instruction === "wgmma" ? undefined : groups;
  const ways = regionList(op).map((region) => afterOps(region.ops, groups));
  const { regions } = traitsOf(op);
  if (regions === "one of" || regions === "once") return least(ways);
  // Loops may have no round, and other threads do not run for this one.
  return groups;
}

/** The ops around one, outermost first, each with the region that holds the next. */
function pathTo(op: AnyOp, region: Region): readonly (readonly [AnyOp, Region])[] | undefined {
  for (const each of region.ops) {
    if (each === op) return [[each, region]];
    for (const inner of regionList(each)) {
      const rest = pathTo(op, inner);
      if (rest !== undefined) return [[each, region], ...rest];
    }
  }
  return undefined;
}

/** How many groups may be open when a product comes again; undefined where it is over by then, or never does. */
function groupsUntilAgain(product: AnyOp, body: Region): Groups {
  const path = pathTo(product, body) ?? [];
  const loop = path.findLastIndex(([each]) => traitsOf(each).regions === "repeat");
  if (loop < 0) return undefined;
  const inside = path.slice(loop + 1);
  const ends = inside.map(([op, { ops }]) => ops.slice(ops.indexOf(op) + 1)).toReversed();
  const starts = inside.map(([op, { ops }]) => ops.slice(0, ops.indexOf(op)));
  const [repeated] = path[loop] ?? [];
  const condition = repeated?.kind === "while" ? [repeated.regions.condition.ops] : [];
  return afterOps([...ends, ...condition, ...starts].flat(), 0);
}

/** Ops that touch registers of products which may still run, and how many of those may be left running. */
export function productsInFlight(body: Region): ReadonlyMap<AnyOp, number> {
  const found = new Map<AnyOp, number>();
  followFlights(body, {
    moves(yielding, count) {
      if (count < over) found.set(yielding, Math.min(count, found.get(yielding) ?? over));
    },
  });
  walkOps(body, (op) => {
    if (op.kind !== "wgmma" || op.operands.a.type.kind === "ref") return;
    const groups = groupsUntilAgain(op, body);
    if (groups !== undefined) found.set(op, groups);
  });
  return found;
}
