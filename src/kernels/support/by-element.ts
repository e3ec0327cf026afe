/**
 * User functions on tiles of an array, such as epilogues and score functions. The plan decides the shape of the tiles, so the result for an element
 * may depend on that element and on the other arguments at its position alone:
 *
 *   sums.sub(sums.max({ axis: 1, keepDims: true }))      the greatest of 64, 128 or 256 columns, and other numbers for every configuration
 *   flip(sums, { axis: 1 })                              elements of 64, 128 or 256 columns, turned around
 *   sums.add(iota(f32, [1, columns], { axis: 1 }))       the column in the piece, not in the array
 *   sums.mul(1 / sums.shape[1])                          64, 128 or 256 (`size-independence.ts`)
 *   bias.reshape([columns, 1])                           the bias of a column for a row, where pieces are square
 *
 * The op table says which ops mix elements.
 */
import { opName } from "../../ir/op-names.ts";
import { mixingOp } from "../../ir/traits.ts";
import { activeTrace } from "../../lang/trace.ts";
import { TilewrightError } from "../../support/diagnostics.ts";
import { atOwnLines } from "../../support/location.ts";
import type { Location } from "../../support/location.ts";
import { requireAnySize } from "./size-independence.ts";
import type { Pieces } from "./size-independence.ts";

/** What a function makes of a piece; refuses one whose results depend on how the array is cut. */
export function byElement<G extends Pieces, T>(
  what: string,
  asked: (given: G) => T,
  given: G,
  location: Location,
): T {
  const trace = activeTrace(what, location);
  const from = trace.position;
  const made = atOwnLines(() => asked(given));
  const mixing = mixingOp(trace.opsSince(from));
  if (mixing === undefined) {
    requireAnySize(what, asked, given, location);
    return made;
  }
  throw new TilewrightError({
    code: "TW9905",
    message: `${what} looks beyond an element of a piece, whose size the plan decides`,
    expected: "a function of each element and of what is given beside it",
    found: opName(mixing),
    location: mixing.location,
    remedy:
      "move or combine elements by another operation, and take positions from what is given; matmul has outputs with combine",
  });
}
