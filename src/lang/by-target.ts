/**
 * Choices by target: one definition, a kernel for each target.
 *
 *   kernel({ name, warps: byTarget({ sm_90a: 8, default: 4 }), … }, ({ x }) => {
 *     const stages = byTarget({ sm_90a: 4, default: 2 }).value();
 *
 * A kernel that asks is traced again for every target that it is compiled for.
 */
import type { Target, TargetName } from "../targets/target.ts";
import { targetNames } from "../targets/target.ts";
import { TilewrightError } from "../support/diagnostics.ts";
import { captureLocation } from "../support/location.ts";
import type { Location } from "../support/location.ts";
import { isReadable, isRecord, requireKnownOptions } from "../support/options.ts";
import { activeTrace } from "./trace.ts";
import { wrongKind } from "./traced.ts";

/** What each target gets, and with `default` all that are not named. */
export type TargetChoices<T> = { readonly [N in TargetName | "default"]?: T };

/** A value that differs from target to target. */
export class ByTarget<T = unknown> {
  readonly #choices: { readonly [name: string]: T | undefined };
  readonly #location: Location;

  /** @internal */
  constructor(choices: { readonly [name: string]: T | undefined }, location: Location) {
    this.#choices = choices;
    this.#location = location;
  }

  /** @internal The value of one target. */
  for({ name }: Pick<Target, "name">): T {
    const choices = this.#choices;
    const own = choices[name] ?? choices["default"];
    if (own !== undefined) return own;
    throw new TilewrightError({
      code: "TW1043",
      message: `byTarget has no choice for ${name}`,
      location: this.#location,
      expected: `${name} or default`,
      found: Object.keys(choices).join(", ") || "nothing",
    });
  }

  /** The value of the target that the kernel is being traced for, in a kernel's body. */
  value(): T {
    return this.for(askTarget("byTarget(…).value"));
  }
}

/** A value that differs from target to target: the choice of the target's name, or else `default`. */
export function byTarget<T>(choices: TargetChoices<T>): ByTarget<T> {
  const location = captureLocation();
  if (!isRecord(choices) || !isReadable(choices, []))
    return wrongKind(
      "what byTarget takes",
      "an object with a value for each target",
      choices,
      location,
    );
  requireKnownOptions("byTarget", choices, [...targetNames, "default"], "TW1033", location);
  return new ByTarget(Object.freeze({ ...choices }), location);
}

/** The target that the kernel is being traced for, in a kernel's body: for choices of any kind, by its name, its features or its limits. */
export function tracedTarget(): Target {
  return askTarget("tracedTarget");
}

/** The target of the active trace; its kernel is another for each target from then on. */
function askTarget(name: string): Target {
  const trace = activeTrace(name, captureLocation());
  trace.asksTarget = true;
  return trace.spec.target;
}
