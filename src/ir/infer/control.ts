/**
 * Inference for ops with regions. Values enter a region by being visible there or as carries, and leave
 * it through its yield:
 *
 *   %r = loop %lower, %upper, %step, %initial { (%index, %carry) … yield %next }
 *        initial, carry, next and r have one type
 *        with `breaks`, the yield has a bool behind the carried values
 *   %r = if %condition { … yield %a } { … yield %b }
 *        a, b and r have one type
 *
 * Only tiles, scalars and in-flight accumulators are values that can be handed on so; refs, barriers and
 * semaphores name memory, and a name is used where it is visible.
 */
import { bool, i32, u32 } from "../../formats/dtype.ts";
import type { Region, Value } from "../node.ts";
import { opName } from "../op-names.ts";
import { parsePrintFormat } from "../../support/print-format.ts";
import type { controlOps } from "../ops/control.ts";
import { yieldedValues } from "../traverse.ts";
import { isData, sameType, scalarType, typeText } from "../types.ts";
import type { Type } from "../types.ts";
import {
  countText,
  dataOperand,
  fail,
  indexOperand,
  refOperand,
  requireBool,
  requireParameters,
  sameTypeLists,
  scalarOperand,
  tileOperand,
  typesText,
} from "./checks.ts";
import type { AnyDraft } from "./checks.ts";
import type { Draft, InferContext, InferRules } from "./inference-input.ts";

function yieldedTypes(region: Region): readonly Type[] {
  return yieldedValues(region).map(({ type }) => type);
}

/** Memory cannot be handed through a region's yield or a carry. */
function requireValues(draft: AnyDraft, types: readonly Type[]): void {
  for (const type of types)
    if (!isData(type) && type.kind !== "inflight")
      fail(draft, "TW2098", `${typeText(type)} cannot be a result of ${opName(draft)}`, {
        expected: "tiles and scalars",
        found: typeText(type),
      });
}

/** The body yields, for each carry, a value of the type it began with; and last, where it may break, whether it does. */
function requireCarries(
  draft: Draft<"loop"> | Draft<"while">,
  initial: readonly Type[],
  body: Region,
): void {
  const yielded = yieldedTypes(body);
  const breaks = draft.attributes.breaks === true;
  const next = breaks ? yielded.slice(0, -1) : yielded;
  const flag = breaks ? yielded.slice(-1) : [];
  if (breaks && !sameTypeLists(flag, [scalarType(bool)]))
    fail(draft, "TW2094", `the body of ${opName(draft)} must yield last whether the loop ends`, {
      expected: "(…, bool)",
      found: typesText(yielded),
    });
  if (next.length !== initial.length)
    fail(
      draft,
      "TW2093",
      `the body of ${opName(draft)} yields another number of values than it carries`,
      {
        expected: countText(initial.length, "value"),
        found: countText(next.length, "value"),
      },
    );
  for (const [position, type] of initial.entries()) {
    const found = next[position];
    if (found !== undefined && !sameType(type, found))
      fail(draft, "TW2092", `carry ${position} of ${opName(draft)} changes its type`, {
        expected: `${typeText(type)}, as it begins`,
        found: typeText(found),
      });
  }
}

function carriedTypes(draft: AnyDraft, initial: readonly Value[]): readonly Type[] {
  const types = initial.map(({ type }) => type);
  requireValues(draft, types);
  return types;
}

function loop(draft: Draft<"loop">): readonly Type[] {
  const { lower, upper, step, initial } = draft.operands;
  const index = scalarOperand(draft, "the start", lower);
  for (const [name, bound] of Object.entries({ start: lower, end: upper, step })) {
    const { dtype } = scalarOperand(draft, `the ${name}`, bound);
    if ((dtype.name !== "i32" && dtype.name !== "i64") || dtype !== index.dtype)
      fail(draft, "TW2090", `bounds of a loop must be scalars of one type, i32 or i64`, {
        expected: index.dtype.name === "i64" ? "i64" : "i32",
        found: `${name} of ${dtype.name}`,
      });
  }
  const carries = carriedTypes(draft, initial);
  requireParameters(draft, "body", draft.regions.body, [index, ...carries]);
  requireCarries(draft, carries, draft.regions.body);
  return carries;
}

function whileLoop(draft: Draft<"while">): readonly Type[] {
  const { condition, body } = draft.regions;
  const carries = carriedTypes(draft, draft.operands.initial);
  requireParameters(draft, "condition", condition, carries);
  requireParameters(draft, "body", body, carries);
  const found = yieldedTypes(condition);
  if (!sameTypeLists(found, [scalarType(bool)]))
    fail(draft, "TW2094", "the condition of while must yield one bool scalar", {
      expected: "(bool)",
      found: typesText(found),
    });
  requireCarries(draft, carries, body);
  return carries;
}

/** All branches yield the same types. */
function branchResults(draft: AnyDraft, branches: readonly Region[]): readonly Type[] {
  const [first, ...others] = branches.map(yieldedTypes);
  if (first === undefined)
    return fail(draft, "TW2097", `${opName(draft)} has no cases`, {
      expected: "one case at least",
      found: "none",
    });
  for (const branch of branches) requireParameters(draft, "branch", branch, []);
  for (const [position, types] of others.entries())
    if (!sameTypeLists(first, types))
      fail(draft, "TW2095", `branches of ${opName(draft)} yield different types`, {
        expected: `${typesText(first)}, as the first branch`,
        found: `${typesText(types)} from branch ${position + 1}`,
      });
  requireValues(draft, first);
  return first;
}

function onThreads(draft: Draft<"on_threads">, context: InferContext): readonly Type[] {
  const { threads } = draft.attributes;
  const count = context.threads.length;
  const outside = threads.find(
    (thread) => !Number.isInteger(thread) || thread < 0 || thread >= count,
  );
  if (outside !== undefined || threads.length === 0 || new Set(threads).size !== threads.length)
    fail(draft, "TW2099", `on_threads names program threads [${threads.join(", ")}] of ${count}`, {
      expected: `different numbers from 0 to ${count - 1}, at least one`,
      found: `[${threads.join(", ")}]`,
    });
  requireParameters(draft, "body", draft.regions.body, []);
  requireNoResults(draft, draft.regions.body);
  return [];
}

/** What runs on some lanes only has no value that all lanes could hold. */
function requireNoResults(draft: AnyDraft, body: Region): void {
  const types = yieldedTypes(body);
  if (types.length > 0)
    fail(draft, "TW2100", `the body of ${opName(draft)} cannot yield values`, {
      expected: "()",
      found: typesText(types),
    });
}

export const controlRules: InferRules<keyof typeof controlOps> = {
  loop,
  while: whileLoop,

  if(draft) {
    const condition = scalarOperand(draft, "the condition", draft.operands.condition);
    requireBool(draft, "the condition", condition.dtype);
    return branchResults(draft, [draft.regions.then, draft.regions.otherwise]);
  },

  switch(draft) {
    indexOperand(draft, "the index", draft.operands.index);
    return branchResults(draft, draft.regions.cases);
  },

  scoped(draft) {
    requireParameters(draft, "body", draft.regions.body, []);
    const types = yieldedTypes(draft.regions.body);
    requireValues(draft, types);
    return types;
  },

  on_threads: onThreads,

  warps(draft) {
    requireParameters(draft, "body", draft.regions.body, [scalarType(i32)]);
    requireNoResults(draft, draft.regions.body);
    return [];
  },

  yield: () => [],

  debug_print(draft) {
    const { values } = draft.operands;
    for (const value of values) dataOperand(draft, "a value", value);
    const places = parsePrintFormat(draft.attributes.format).whole.length;
    if (places !== values.length)
      fail(draft, "TW2101", "the format takes another number of values than it is given", {
        expected: `${countText(places, "value")} for "${draft.attributes.format}"`,
        found: countText(values.length, "value"),
      });
    return [];
  },

  print_layout(draft) {
    tileOperand(draft, "the operand", draft.operands.source);
    return [];
  },

  assert(draft) {
    const condition = dataOperand(draft, "the condition", draft.operands.condition);
    requireBool(draft, "the condition", condition.dtype);
    return [];
  },

  profile_mark(draft) {
    const { ring } = draft.operands;
    const { edge, site } = draft.attributes;
    if (ring === undefined) return [];
    const type = refOperand(draft, "the ring", ring);
    if (type.space !== "gmem" || type.dtype !== u32 || type.shape.length !== 3)
      fail(draft, "TW2103", "a profile's rings are an array of their own form", {
        expected: "ref<gmem, u32, [rings, slots, 4]>",
        found: typeText(type),
      });
    if ((edge === "begin" || edge === "end") !== (site !== undefined))
      fail(draft, "TW2103", "marks of scopes in a ring have a number, and no others", {
        expected: edge === "begin" || edge === "end" ? "a site" : "no site",
        found: site === undefined ? "none" : String(site),
      });
    return [];
  },

  debug_break(draft) {
    const { values } = draft.operands;
    for (const value of values) dataOperand(draft, "a value", value);
    const { names } = draft.attributes;
    if (names.length !== values.length)
      fail(draft, "TW2102", "debug_break needs one name for each value", {
        expected: `${values.length} names`,
        found: `${names.length} names`,
      });
    return [];
  },
};
