/**
 * Waits for wgmma in flight whose registers another instruction is about to touch. A left factor in registers is copied into registers of the
 * product's own, so that the tile stays free for others, and sparsity metadata are in registers, too. Assemblers keep such registers for a
 * product until its wait, but take a copy and its source for one, and lose track of the product where a register is written on several paths:
 * copies of an iteration were seen above the wait that the iteration before still lacked, and one arm of a branch was seen to compute its
 * result in the registers of the factor, which the other arm yields as it is. So a product that reads registers is over before a loop behind
 * it begins, before its own iteration ends, and before a branch that may yield the factor:
 *
 *   %2 = wgmma %1, tile, …          a group
 *   products_wait pending 0         before the loop
 *   loop
 *     %4 = wgmma %3, tile, …        a group
 *     %6 = wgmma %5, …              another, of shared memory alone, which may stay in flight
 *     products_wait pending 1       %4 is over, before the iteration ends
 *
 * Whether a tile may be the factor, or a part of it under another name, is decided by the width of its elements.
 *
 * An accumulator keeps its registers across iterations; where an iteration yields another one, its sums are moved, and its products must be
 * over before the yield.
 */
import { followInFlightProducts, over } from "../../ir/in-flight-products.ts";
import type { AnyOp, Region, Value } from "../../ir/node.ts";
import { repeats, traitsOf } from "../../ir/traits.ts";
import { regionList, walkOps } from "../../ir/traverse.ts";
import { isInFlight } from "../../targets/product-instructions.ts";

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
  if (op.kind === "dot") return isInFlight(op.attributes.instruction) ? undefined : groups;
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

/** The widths of the elements of tiles. */
type Widths = ReadonlySet<number>;

/** Where a product that reads tiles must be over: before the first loop or join of such tiles behind it, or the end of its round. */
function endOf(
  product: AnyOp,
  body: Region,
  tiles: readonly Value[],
): readonly [AnyOp, number] | undefined {
  let groups: Groups = 0;
  const widths = new Set(tiles.flatMap(widthOf));
  const path = pathTo(product, body) ?? [];
  for (const [index, [op, { ops }]] of [...path.entries()].toReversed()) {
    const behind = ops.slice(ops.indexOf(op) + 1);
    for (const each of behind) {
      if (groups === undefined) return undefined;
      if (rewrites(each, widths)) return [each, groups];
      groups = afterOp(each, groups);
    }
    const [around] = path[index - 1] ?? [];
    const last = ops.at(-1);
    if (groups === undefined || around === undefined || last === undefined) return undefined;
    if (repeats(around)) return [last, groups];
  }
  return undefined;
}

/** Whether an op is a loop or joins ways to a tile of such elements, or holds an op of this thread's that does. */
function rewrites(op: AnyOp, widths: Widths): boolean {
  if (repeats(op)) return true;
  const joins = traitsOf(op).regions === "one of";
  if (joins && op.results.flatMap(widthOf).some((width) => widths.has(width))) return true;
  return regionList(op).some(({ ops }) => ops.some((each) => rewrites(each, widths)));
}

function widthOf({ type }: Value): readonly number[] {
  return type.kind === "tile" ? [type.dtype.bits] : [];
}

/** Ops that touch registers of products which may still run, and how many of those may be left running. */
export function productsInFlight(body: Region): ReadonlyMap<AnyOp, number> {
  const found = new Map<AnyOp, number>();
  const keep = (op: AnyOp, count: number): void => {
    found.set(op, Math.min(count, found.get(op) ?? over));
  };
  followInFlightProducts(body, {
    moves(yielding, count) {
      if (count < over) keep(yielding, count);
    },
  });
  walkOps(body, (op) => {
    if (op.kind !== "wgmma") return;
    const { a, metadata } = op.operands;
    const tiles = [a, ...(metadata === undefined ? [] : [metadata])].filter(
      ({ type }) => type.kind === "tile",
    );
    const end = tiles.length === 0 ? undefined : endOf(op, body, tiles);
    if (end !== undefined) keep(...end);
  });
  return found;
}
