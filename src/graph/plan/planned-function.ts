/**
 * The function of a module that a plan is made of: it alone, and of types that are known.
 *
 *   module @main, @helper ──only("main")──▶ @main public, @helper private: gone once it is inlined
 */
import { TilewrightError } from "../../support/diagnostics.ts";
import type { Location } from "../../support/location.ts";
import { requireKnownType } from "../lower/storage.ts";
import type { GraphFunction, GraphModule, GraphRegion } from "../ops/node.ts";
import { regionsOf } from "../ops/traverse.ts";

/** The module with this function alone for others to call, so that what only others need is dropped. */
export function only(module: GraphModule, name: string): GraphModule {
  const functions = new Map(
    Array.from(module.functions, ([key, each]) => [
      key,
      { ...each, visibility: key === name ? "public" : "private" } as const,
    ]),
  );
  return { ...module, functions };
}

export function functionOf(module: GraphModule, name: string): GraphFunction {
  const found = module.functions.get(name);
  if (found !== undefined) return found;
  throw new TilewrightError({
    code: "TW9504",
    message: `the module has no function @${name}`,
    expected: [...module.functions.keys()].map((each) => `@${each}`).join(", "),
    found: `@${name}`,
  });
}

/** Refuses values whose shape or elements are carried as text: no pass can compute with them. */
export function requireKnownTypes(region: GraphRegion, location: Location): void {
  for (const { type } of region.parameters) requireKnownType(type, location);
  for (const op of region.ops) {
    for (const { type } of op.results) requireKnownType(type, op.location);
    for (const inner of regionsOf(op)) requireKnownTypes(inner, op.location);
  }
}
