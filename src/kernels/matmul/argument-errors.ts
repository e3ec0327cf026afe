/** What an operation on matrices says of sizes and names that it does not take. */
import { sizeText } from "../../ir/size.ts";
import type { Size } from "../../ir/size.ts";
import { TilewrightError } from "../../support/diagnostics.ts";
import type { Location } from "../../support/location.ts";

export function equalSizes(left: Size, right: Size): boolean {
  return sizeText(left) === sizeText(right);
}

export function refused(
  code: "TW9901" | "TW9902" | "TW9903" | "TW9904" | "TW9905",
  message: string,
  expected: string,
  found: string,
  location: Location,
): TilewrightError {
  return new TilewrightError({ code, message, expected, found, location });
}

/** Two things of an operation that functions of users would know by one name. */
export function nameTaken(name: string, by: string, location: Location): TilewrightError {
  return new TilewrightError({
    ...{ code: "TW9905", message: `${name} is the name of ${by} already`, location },
    ...{ expected: "a name for each thing", found: `${name} twice`, remedy: "rename yours" },
  });
}
