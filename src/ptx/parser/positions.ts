/** Where instructions come from: `.loc 1 12 5, function_name $name, inlined_at 1 40 3`. */
import type { SourcePosition } from "../module.ts";
import { readOffset } from "./constants.ts";
import type { Scanner } from "./scanner.ts";

/** What follows `.loc`. */
export function readPosition(scanner: Scanner): SourcePosition {
  const place = readPlace(scanner);
  if (!scanner.accept(",")) return place;
  if (!scanner.acceptWord("function_name")) scanner.unexpected("function_name");
  const name = scanner.name("the label of a function's name");
  const offset = readOffset(scanner);
  scanner.take(",");
  if (!scanner.acceptWord("inlined_at")) scanner.unexpected("inlined_at");
  return { ...place, inlined: { name, offset, at: readPlace(scanner) } };
}

function readPlace(scanner: Scanner): SourcePosition {
  const file = readNumber(scanner);
  const line = readNumber(scanner);
  return { file, line, column: readNumber(scanner) };
}

/** A whole number; no operator follows it, as the next one stands right behind. */
export function readNumber(scanner: Scanner): number {
  const start = scanner.offset;
  const numeral = scanner.numeral();
  if (/^\d{1,9}$/.test(numeral)) return Number(numeral);
  scanner.fail("TW7103", `${numeral.slice(0, 40)} is not a whole number`, start, "a whole number");
}
