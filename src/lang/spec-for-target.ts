/** A kernel's specification as it is for one target: what differs by target is chosen. */
import type { Location } from "../support/location.ts";
import { requireKnownOptions } from "../support/options.ts";
import type { Target } from "../targets/target.ts";
import { ByTarget } from "./by-target.ts";
import { fieldNames, requireGroup } from "./spec.ts";
import type { KernelSpec, SpecForTarget } from "./spec.ts";

/** The specification for a target, and whether another target may have another. */
export function specForTarget(
  given: KernelSpec,
  target: Target,
  location: Location,
): { readonly spec: SpecForTarget; readonly varies: boolean } {
  requireKnownOptions("kernel", given, fieldNames, "TW1033", location);
  const {
    grid = {},
    cluster = {},
    scratch = {},
    warps,
    minBlocksPerMultiprocessor,
    ...rest
  } = given;
  let varies = false;
  const chosen = <T>(item: T | ByTarget<T>): T => {
    if (!(item instanceof ByTarget)) return item;
    varies = true;
    const own: T = item.for(target);
    return own;
  };
  const eachChosen = <T>(
    group: string,
    entries: { readonly [name: string]: T | ByTarget<T> },
  ): { readonly [name: string]: T } => {
    requireGroup(group, entries, location);
    const own = Object.entries(entries).map(([name, item]) => [name, chosen<T>(item)] as const);
    return Object.fromEntries(own);
  };
  const spec = {
    ...rest,
    grid: eachChosen("grid", grid),
    cluster: eachChosen("cluster", cluster),
    scratch: eachChosen("scratch", scratch),
    ...(warps !== undefined && { warps: chosen(warps) }),
    ...(minBlocksPerMultiprocessor !== undefined && {
      minBlocksPerMultiprocessor: chosen(minBlocksPerMultiprocessor),
    }),
  };
  return { spec, varies };
}
