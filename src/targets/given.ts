/** A target as users give it: by name or as a description. */
import { TilewrightError } from "../support/diagnostics.ts";
import type { Location } from "../support/location.ts";
import { optionText } from "../support/options.ts";
import { targetNamed, targetNames } from "./target.ts";
import type { Target } from "./target.ts";

/** The description that is meant. */
export function requireTarget(target: unknown, location: Location): Target {
  const found = targetNamed(target);
  if (found !== undefined) return found;
  throw new TilewrightError({
    code: "TW4016",
    message:
      typeof target === "string"
        ? `there is no target ${target}`
        : `target cannot be ${optionText(target)}`,
    location,
    expected: `${targetNames.join(", ")}, or a description of a target`,
    found: optionText(target),
  });
}
