/**
 * Functions of users that look at how large a piece is. Nothing of that is recorded, only the number that came of it:
 *
 *   column.lt(row.shape[0])      columns below 64, 128 or 192, by how many rows the plan gives a tile
 *
 * So a function is tried on pieces of two sizes, once, and has to record the same ops with the same numbers; shapes alone may differ.
 */
import type { DType } from "../../formats/dtype.ts";
import type { AnyOp } from "../../ir/node.ts";
import { opName } from "../../ir/op-names.ts";
import { regionList } from "../../ir/traverse.ts";
import { array, kernel, scalar } from "../../lang/index.ts";
import type { InputSpecs, Ref, Scalar } from "../../lang/index.ts";
import { Tile } from "../../lang/tile.ts";
import { activeTrace } from "../../lang/trace.ts";
import { TilewrightError } from "../../support/diagnostics.ts";
import { atLocation, atOwnLines } from "../../support/location.ts";
import type { Location } from "../../support/location.ts";

/** What a function is given, by name. */
export interface Pieces {
  readonly [name: string]: Tile | Scalar;
}

type Piecewise = (given: never) => unknown;

/** Extents of axes that are not 1: of the last one, and of those before it. */
const triedSizes = [
  { last: 32, others: 16 },
  { last: 64, others: 128 },
] as const;

/** Those that are known to be the same for all sizes. */
const tried = new WeakSet<Piecewise>();

/** Refuses a function whose numbers follow from the size of a piece. */
export function requireAnySize(
  what: string,
  asked: Piecewise,
  given: Pieces,
  location: Location,
): void {
  if (tried.has(asked)) return;
  const [small, large] = triedSizes;
  // Nobody asks for the lines of these ops, and looking for them takes longer than all else.
  const [one, other] = atLocation(location, () => [
    recordedOps(asked, given, small),
    recordedOps(asked, given, large),
  ]);
  // What cannot be tried on other pieces, such as a hint for layouts of these, is left as it is.
  if (one === undefined || other === undefined) return;
  const length = Math.max(one.length, other.length);
  let at = 0;
  while (at < length && textOf(one[at]) === textOf(other[at])) at += 1;
  if (at === length) {
    tried.add(asked);
    return;
  }
  const place = atOwnLines(() => recordedOps(asked, given, small))?.[at]?.location;
  throw new TilewrightError({
    code: "TW9905",
    message: `${what} depends on how large a piece is, which the plan decides`,
    expected: "the same numbers for pieces of every size",
    found: `${textOf(one[at])}, and for another size ${textOf(other[at])}`,
    location: place?.position === undefined ? location : place,
    remedy:
      "take sizes of the arrays where the function is written, and positions from what is given",
  });
}

/** The ops that the function records for pieces of these extents; undefined where it throws. */
function recordedOps(
  asked: Piecewise,
  given: Pieces,
  { last, others }: (typeof triedSizes)[number],
): readonly AnyOp[] | undefined {
  const sized = ({ shape }: Tile): readonly number[] =>
    shape.map((extent, axis) => (extent === 1 ? 1 : axis === shape.length - 1 ? last : others));
  const names = Object.entries(given).map(([name, piece], index) => ({
    ...{ name, piece, own: `given${index}` },
  }));
  const inputs = names.map(({ piece, own }) => [
    own,
    piece instanceof Tile ? array(piece.dtype as DType, sized(piece)) : scalar(piece.dtype),
  ]);
  let found: readonly AnyOp[] | undefined;
  const body = (argument: object): never => {
    const own = argument as { readonly [name: string]: Ref | Scalar };
    const pieces = names.map(({ name, piece, own: key }) => {
      const value = own[key];
      return [name, piece instanceof Tile ? (value as Ref).load() : value];
    });
    const trace = activeTrace("a function");
    const from = trace.position;
    (asked as (given: object) => unknown)(Object.fromEntries(pieces) as object);
    found = withRegions(trace.opsSince(from));
    // Nothing more is wanted of the kernel, in which what was computed is not used.
    throw new Tried();
  };
  try {
    kernel({ name: "tried", inputs: Object.fromEntries(inputs) as InputSpecs }, body);
  } catch {
    return found;
  }
  return found;
}

class Tried extends Error {}

function withRegions(ops: readonly AnyOp[]): readonly AnyOp[] {
  return ops.flatMap((op) => [op, ...regionList(op).flatMap((region) => withRegions(region.ops))]);
}

/** An op with its numbers, but for extents. */
function textOf(op: AnyOp | undefined): string {
  if (op === undefined) return "nothing";
  const attributes = Object.entries(op.attributes as { readonly [name: string]: unknown })
    .filter(([, value]) => ["number", "bigint", "boolean", "string"].includes(typeof value))
    .map(([name, value]) => ` ${name} ${String(value)}`);
  return `${opName(op)}${attributes.join(",")}`;
}
