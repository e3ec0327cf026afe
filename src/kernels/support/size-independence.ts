/**
 * Rejects user functions whose results depend on the shape of the tiles they are traced with. A trace records such a number as a constant:
 *
 *   column.lt(row.shape[0])      columns below 64, 128 or 192, by how many rows the plan gives a tile
 *
 * A function is therefore traced on tiles of two sizes, once. Both traces must have the same ops, operands and constants; only shapes may differ.
 */
import type { DType } from "../../formats/dtype.ts";
import type { AnyOp, Value } from "../../ir/node.ts";
import { opName } from "../../ir/op-names.ts";
import { operandValues, regionList } from "../../ir/traverse.ts";
import { tensor, kernel, scalar } from "../../lang/index.ts";
import type { InputSpecs, Ref, Scalar } from "../../lang/index.ts";
import { Tile } from "../../lang/tile.ts";
import { activeTrace } from "../../lang/trace.ts";
import { useValue } from "../../lang/traced.ts";
import { TilewrightError } from "../../support/diagnostics.ts";
import { atLocation, atOwnLines, unknownLocation } from "../../support/location.ts";
import type { Location } from "../../support/location.ts";
import { isRecord } from "../../support/options.ts";

/** What a function is given, by name. */
export interface Pieces {
  readonly [name: string]: Tile | Scalar;
}

type Piecewise = (given: never) => unknown;

/** Extents of axes that are not 1: of the last one, and of those before it. Plans have pieces of sizes between these. */
const triedSizes = [
  { last: 16, others: 8 },
  { last: 512, others: 256 },
] as const;

/** One thing that a function did: an op, or at last its results. */
interface Step {
  /** With its numbers, but without extents. */
  readonly text: string;
  /** Which values it took, by the order in which they were made. */
  readonly of: string;
  readonly location: Location;
}

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
    recordedSteps(asked, given, small),
    recordedSteps(asked, given, large),
  ]);
  // What cannot be tried on other pieces, such as a hint for layouts of these, is left as it is.
  if (one === undefined || other === undefined) return;
  const at = firstDifference(one, other);
  if (at === undefined) {
    tried.add(asked);
    return;
  }
  const again = atOwnLines(() => recordedSteps(asked, given, small)) ?? [];
  const place = again[at]?.location;
  const isSteady = firstDifference(one, again) === undefined;
  throw new TilewrightError({
    code: "TW9905",
    message: isSteady
      ? `${what} depends on how large a piece is, which the plan decides`
      : `${what} does something else every time that it is called`,
    expected: isSteady ? "the same numbers for pieces of every size" : "the same for every call",
    found: differenceText(one[at], other[at], isSteady ? "another size" : "another call"),
    location: place?.position === undefined ? location : place,
    remedy: isSteady
      ? "take sizes of the arrays where the function is written, and positions from what is given"
      : "make numbers that change before the operation is made, not in the function",
  });
}

function firstDifference(one: readonly Step[], other: readonly Step[]): number | undefined {
  for (let at = 0; at < Math.max(one.length, other.length); at += 1)
    if (one[at]?.text !== other[at]?.text || one[at]?.of !== other[at]?.of) return at;
  return undefined;
}

function differenceText(one: Step | undefined, other: Step | undefined, where: string): string {
  const [first, second] = [one?.text ?? "nothing", other?.text ?? "nothing"];
  return first === second
    ? `${first}, and for ${where} of other tiles`
    : `${first}, and for ${where} ${second}`;
}

/** What the function does with pieces of these extents; undefined where it throws. */
function recordedSteps(
  asked: Piecewise,
  given: Pieces,
  { last, others }: (typeof triedSizes)[number],
): readonly Step[] | undefined {
  const sized = ({ shape }: Tile): readonly number[] =>
    shape.map((extent, axis) => (extent === 1 ? 1 : axis === shape.length - 1 ? last : others));
  const names = Object.entries(given).map(([name, piece], index) => ({
    ...{ name, piece, own: `given${index}` },
  }));
  const inputs = names.map(({ piece, own }) => [
    own,
    piece instanceof Tile ? tensor(piece.dtype as DType, sized(piece)) : scalar(piece.dtype),
  ]);
  let found: readonly Step[] | undefined;
  const body = (argument: object): never => {
    const own = argument as { readonly [name: string]: Ref | Scalar };
    const pieces = names.map(({ name, piece, own: key }) => {
      const value = own[key];
      return [name, piece instanceof Tile ? (value as Ref).load() : value];
    });
    const made = (asked as (given: object) => unknown)(Object.fromEntries(pieces) as object);
    const results = (isRecord(made) ? Object.values(made) : [made]).flatMap((each) =>
      each instanceof Tile ? [useValue(each, unknownLocation)] : [],
    );
    found = stepsOf(activeTrace("a function").opsSince(0), results);
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

/** All ops, those of regions among them, and the results at last. */
function stepsOf(ops: readonly AnyOp[], results: readonly Value[]): readonly Step[] {
  const numbers = new Map<Value, number>();
  const numberOf = (value: Value): number => {
    const known = numbers.get(value) ?? numbers.size;
    numbers.set(value, known);
    return known;
  };
  const steps: Step[] = [];
  const visit = (op: AnyOp): void => {
    const of = operandValues(op).map(numberOf).join();
    steps.push({ text: textOf(op), of, location: op.location });
    op.results.forEach(numberOf);
    for (const region of regionList(op)) {
      region.parameters.forEach(numberOf);
      region.ops.forEach(visit);
    }
  };
  ops.forEach(visit);
  steps.push({ text: "results", of: results.map(numberOf).join(), location: unknownLocation });
  return steps;
}

/** An op with its numbers, but for extents. */
function textOf(op: AnyOp): string {
  const attributes = Object.entries(op.attributes)
    .filter(([, value]) => ["number", "bigint", "boolean", "string"].includes(typeof value))
    .map(([name, value]) => ` ${name} ${String(value)}`);
  return `${opName(op)}${attributes.join(",")}`;
}
