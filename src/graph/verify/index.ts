/**
 * Verification: every op has the types that inference gives, every value is defined before its use, calls
 * fit the functions that they name, and no function calls itself.
 *
 *   %1 = stablehlo.add %0, %2 : tensor<4xf32>      refused where %2 comes later, or is a tensor<5xf32>
 */
import { TilewrightError } from "../../support/diagnostics.ts";
import type { Location } from "../../support/location.ts";
import { didYouMean } from "../../support/options.ts";
import { expectedTypes } from "../infer/index.ts";
import type {
  AnyGraphOp,
  GraphFunction,
  GraphModule,
  GraphRegion,
  GraphValue,
} from "../ops/node.ts";
import { operandsOf, opsWithin, regionsOf } from "../ops/traverse.ts";
import { sameType, typeText } from "../ops/types.ts";
import type { GraphType } from "../ops/types.ts";

function typesText(types: readonly GraphType[]): string {
  return types.length === 0 ? "nothing" : types.map(typeText).join(", ");
}

function sameTypes(left: readonly GraphType[], right: readonly GraphType[]): boolean {
  return left.length === right.length && left.every((type, i) => sameType(type, right[i] ?? type));
}

/** Throws the first mistake of a program. */
export function verifyGraph(module: GraphModule): void {
  for (const each of module.functions.values()) verifyRegion(each.body, new Set(), module);
  const depths = new Map<string, number>();
  for (const each of module.functions.values()) callDepth(module, each, [], depths);
}

/** A value that nothing defines is a mistake of whoever built the graph, not of a user: text cannot say it. */
function requireDefined(values: readonly GraphValue[], defined: ReadonlySet<GraphValue>): void {
  if (!values.every((value) => defined.has(value)))
    throw new Error("a graph uses a value before its definition");
}

function verifyRegion(
  region: GraphRegion,
  outer: ReadonlySet<GraphValue>,
  module: GraphModule,
): void {
  const defined = new Set([...outer, ...region.parameters]);
  for (const op of region.ops) {
    requireDefined(operandsOf(op), defined);
    for (const inner of regionsOf(op)) verifyRegion(inner, defined, module);
    verifyTypes(op);
    verifyCall(op, module);
    for (const value of op.results) defined.add(value);
  }
  requireDefined(region.results, defined);
}

function verifyTypes(op: AnyGraphOp): void {
  const expected = expectedTypes(op);
  const found = op.results.map(({ type }) => type);
  if (expected === undefined || sameTypes(expected, found)) return;
  throw new TilewrightError({
    code: "TW9106",
    message: `${op.kind}: its results have other types`,
    location: op.location,
    expected: typesText(expected),
    found: typesText(found),
  });
}

/** The function that an op calls; undefined for ops that call none. */
export function calleeOf(op: AnyGraphOp): string | undefined {
  if (op.kind === "func.call") return op.attributes.callee;
  return op.kind === "stablehlo.composite" ? op.attributes.decomposition : undefined;
}

function failCall(location: Location, message: string, expected: string, found: string): never {
  throw new TilewrightError({ code: "TW9107", message, location, expected, found });
}

function verifyCall(op: AnyGraphOp, module: GraphModule): void {
  const name = calleeOf(op);
  if (name === undefined) return;
  const callee = module.functions.get(name);
  if (callee === undefined) {
    const known = [...module.functions.keys()].map((each) => `@${each}`);
    const message = `${op.kind}: there is no function @${name}${didYouMean(`@${name}`, known)}`;
    return failCall(op.location, message, known.join(", "), `@${name}`);
  }
  const signature = (inputs: readonly GraphValue[], results: readonly GraphValue[]): string =>
    `(${typesText(inputs.map(({ type }) => type))}) -> ${typesText(results.map(({ type }) => type))}`;
  const expected = signature(callee.body.parameters, callee.body.results);
  const found = signature(operandsOf(op), op.results);
  if (expected !== found)
    failCall(op.location, `${op.kind}: @${name} takes and returns others`, expected, found);
}

/** Calls within each other: whoever runs or inlines them takes stack for each. */
const deepestCalls = 256;

/** How many calls within each other a function makes; fails where they come to no end, or to a late one. */
function callDepth(
  module: GraphModule,
  called: GraphFunction,
  path: readonly string[],
  depths: Map<string, number>,
): number {
  const known = depths.get(called.name);
  if (known !== undefined) return known;
  let depth = 0;
  for (const op of opsWithin(called.body)) {
    const name = calleeOf(op);
    const next = name === undefined ? undefined : module.functions.get(name);
    if (name === undefined || next === undefined) continue;
    const trail = [...path, called.name];
    if (trail.includes(name))
      throw new TilewrightError({
        code: "TW9108",
        message: `@${name} calls itself`,
        location: op.location,
        expected: "functions that call others only",
        found: [...trail, name].map((each) => `@${each}`).join(" -> "),
      });
    const below = trail.length > deepestCalls ? 0 : callDepth(module, next, trail, depths);
    depth = Math.max(depth, 1 + below);
    if (depth > deepestCalls || trail.length > deepestCalls)
      throw new TilewrightError({
        code: "TW9109",
        message: `@${called.name} leads to calls that are nested too deeply`,
        location: op.location,
        expected: `at most ${deepestCalls} calls within each other`,
        found: "more",
      });
  }
  depths.set(called.name, depth);
  return depth;
}
