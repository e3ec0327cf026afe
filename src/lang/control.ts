/**
 * Control flow that happens in the kernel. JavaScript's own `for` and `if` run while tracing: a `for`
 * unrolls, an `if` chooses what is traced. These record regions instead.
 *
 *   const total = loop({ to: n, carry: zero }, (k, sum) => sum.add(x.at(k).loadScalar()));
 *   const sign = when(total.lt(0), () => constant(f32, -1), () => constant(f32, 1));
 */
import { bool, i32 } from "../formats/dtype.ts";
import type { AnyOp, Region, Value } from "../ir/node.ts";
import { scalarType } from "../ir/types.ts";
import type { Type } from "../ir/types.ts";
import { TilewrightError } from "../support/diagnostics.ts";
import { captureLocation } from "../support/location.ts";
import type { Location } from "../support/location.ts";
import { isReadable, isRecord, requireKnownOptions } from "../support/options.ts";
import { allocate } from "./allocate.ts";
import type { ScratchObjects } from "./allocate.ts";
import { describeSpec, isSpec } from "./arguments.ts";
import type { ScopedSpec } from "./arguments.ts";
import { indexValue, isIndex } from "./indices.ts";
import type { Index } from "./indices.ts";
import { Scalar } from "./elementwise.ts";
import { EarlyExits } from "./early-exits.ts";
import { isPositiveInteger } from "./sizes.ts";
import { activeTrace, originOf, otherKernelText } from "./trace.ts";
import type { Trace } from "./trace.ts";
import { callBody, useValue, wrongKind } from "./traced.ts";
import { emptyTree, flattenTree, matchTree, rebuildTree, valuesOf } from "./tree.ts";
import type { FlatTree, Tree } from "./tree.ts";

/** The bounds of a `loop`. */
export interface LoopBounds {
  /** The first index; 0 unless given. */
  readonly from?: Index;
  /** The index before which the loop ends. */
  readonly to: Index;
  /** What is added to the index each time; 1 unless given. */
  readonly step?: Index;
  /** For how many steps there is room where the compiler copies blocks ahead; 1: it does not. As many as fit unless given. */
  readonly depth?: number;
}

/** A loop that carries values from one iteration to the next. */
export interface CarryingLoop<C> extends LoopBounds {
  /** The values that the first iteration starts with. */
  readonly carry: C;
}

/** Ends of a round before its last line, of a loop that carries nothing; to be called in the loop's body itself. */
export interface LoopControl {
  /** Ends the loop here where the condition is true. */
  readonly breakIf: (condition: Scalar<"bool">) => void;
  /** Goes on with the next round here where the condition is true. */
  readonly continueIf: (condition: Scalar<"bool">) => void;
}

/** Ends of a round before its last line, of a loop with a carry; to be called in the loop's body itself. */
export interface CarryingLoopControl<C> {
  /** Ends the loop here where the condition is true; the loop then gives `carry`. */
  readonly breakIf: (condition: Scalar<"bool">, carry: C) => void;
  /** Goes on with the next round here where the condition is true, which is given `carry`. */
  readonly continueIf: (condition: Scalar<"bool">, carry: C) => void;
}

/** Repeats `body` in the kernel, and gives what the last iteration hands on; `control` ends a round or the loop early. */
export function loop(
  options: Index | (LoopBounds & { readonly carry?: never }),
  body: (index: Scalar<"i32">, control: LoopControl) => void,
): void;
// The last one is what TypeScript explains where neither fits, and the body of a loop with a carry is where mistakes are.
export function loop<const C extends Tree>(
  options: CarryingLoop<C>,
  body: (index: Scalar<"i32">, carry: C, control: CarryingLoopControl<NoInfer<C>>) => NoInfer<C>,
): C;
export function loop(
  options: Index | (LoopBounds & { readonly carry?: unknown }),
  body: (...parameters: never[]) => unknown,
): unknown {
  const location = captureLocation();
  const trace = activeTrace("loop", location);
  const { from = 0, to, step = 1, depth, carry } = loopBounds(options, location);
  if (depth !== undefined && !isPositiveInteger(depth))
    wrongKind("the depth of a loop", "a positive whole number", depth, location);
  if (typeof step === "number" && !isPositiveInteger(step)) {
    throw new TilewrightError({
      code: "TW1014",
      message: `a loop cannot count by ${step}`,
      location,
      expected: "a positive whole number",
      found: String(step),
    });
  }
  const lower = indexValue("the start of a loop", from, location);
  const upper = indexValue("the end of a loop", to, location);
  const stride = indexValue("the step of a loop", step, location);
  const initial = flattenTree("carry", carry, location);
  const types = [scalarType(i32), ...valuesOf(initial).map(({ type }) => type)];
  const label = "the body of loop";
  const { region, breaks } = loopBody(
    trace,
    { label, types, initial, location },
    (values, control) => {
      const [index, ...carried] = values;
      if (index === undefined) throw new Error("a loop has no index");
      const counter = new Scalar<"i32">(originOf(index, location));
      // The overloads say what the body takes: a carry only where there is one.
      const run = body as (...parameters: readonly unknown[]) => unknown;
      if (carry !== undefined) {
        const tree = rebuildTree(initial.shape, carried, location);
        return callBody(label, location, run, counter, tree, control);
      }
      callBody(label, location, run, counter, control);
      return undefined;
    },
  );
  const operands = { lower, upper, step: stride, initial: valuesOf(initial) };
  const attributes = { depth, ...breaks };
  const results = trace.add("loop", operands, attributes, { body: region }, location);
  return carry === undefined ? undefined : rebuildTree(initial.shape, results, location);
}

function loopBounds(
  options: Index | (LoopBounds & { readonly carry?: unknown }),
  location: Location,
): LoopBounds & { readonly carry?: unknown } {
  if (isIndex(options)) return { to: options };
  if (typeof options === "object" && options !== null) {
    requireKnownOptions(
      "loop",
      options,
      ["from", "to", "step", "depth", "carry"],
      "TW1033",
      location,
    );
    return options;
  }
  return wrongKind(
    "what a loop counts to",
    "a count or { from, to, step, depth, carry }",
    options,
    location,
  );
}

/** The body of a loop as a region, and whether the loop may break in it. */
function loopBody(
  trace: Trace,
  {
    label,
    types,
    initial,
    location,
  }: {
    readonly label: string;
    readonly types: readonly Type[];
    readonly initial: FlatTree;
    readonly location: Location;
  },
  run: (values: readonly Value[], control: CarryingLoopControl<unknown>) => unknown,
): { readonly region: Region; readonly breaks: { readonly breaks?: true } } {
  const ends = { breaks: false };
  const region = trace.region(label, types, location, (values) => {
    const exits = new EarlyExits(trace, label);
    const next = run(values, loopControl(exits, initial));
    const last = nextCarry(initial, next, location);
    ends.breaks = exits.breaks;
    return exits.finish(last);
  });
  return { region, breaks: ends.breaks ? { breaks: true } : {} };
}

/** What a body is given to end a round or its loop early. */
function loopControl(exits: EarlyExits, initial: FlatTree): CarryingLoopControl<unknown> {
  const exit =
    (name: "breakIf" | "continueIf", breaks: boolean) =>
    (condition: unknown, carry: unknown): void => {
      const location = captureLocation();
      exits.requireOwn(
        name,
        "call it in the body of the loop, with a condition that says all: a.and(b); of a loop around another, hand on a bool",
        location,
      );
      const value = conditionValue(`the condition of ${name}`, condition, location);
      exits.add(name, value, { breaks, location }, () => nextCarry(initial, carry, location));
    };
  return { breakIf: exit("breakIf", true), continueIf: exit("continueIf", false) };
}

/** What the body hands on has the form of what it was given. */
function nextCarry(initial: FlatTree, next: unknown, location: Location): readonly Value[] {
  const change = (path: string, before: string, after: string): string =>
    `${path}: ${before} became ${after}`;
  return matchTree(initial, flattenTree("carry", next, location), change, location);
}

/** Repeats `body` while `condition` of the carried values is true; gives the last ones. `control` ends a round or the loop early. */
export function whileLoop<const C extends Tree>(
  carry: C,
  condition: (carry: C) => Scalar<"bool">,
  body: (carry: C, control: CarryingLoopControl<NoInfer<C>>) => NoInfer<C>,
): C;
export function whileLoop(
  carry: unknown,
  condition: (carry: unknown) => Scalar<"bool">,
  body: (carry: unknown, control: CarryingLoopControl<unknown>) => unknown,
): unknown {
  const location = captureLocation();
  const trace = activeTrace("whileLoop", location);
  const initial = flattenTree("carry", carry, location);
  const types = valuesOf(initial).map(({ type }) => type);
  const test = trace.region("the condition of whileLoop", types, location, (values) => {
    const carried = rebuildTree(initial.shape, values, location);
    const result = callBody("the condition of whileLoop", location, condition, carried);
    return [conditionValue("the condition of whileLoop", result, location)];
  });
  const label = "the body of whileLoop";
  const { region, breaks } = loopBody(
    trace,
    { label, types, initial, location },
    (values, control) => {
      const carried = rebuildTree(initial.shape, values, location);
      return callBody(label, location, body, carried, control);
    },
  );
  const operands = { initial: valuesOf(initial) };
  const regions = { condition: test, body: region };
  const results = trace.add("while", operands, breaks, regions, location);
  return rebuildTree(initial.shape, results, location);
}

function conditionValue(role: string, condition: unknown, location: Location): Value {
  if (condition instanceof Scalar && condition.dtype === bool) return useValue(condition, location);
  const remedy =
    typeof condition === "boolean"
      ? "decide it while tracing, with JavaScript's own if"
      : "compare with eq, lt, … and reduce a tile with all() or any()";
  return wrongKind(role, "a bool scalar", condition, location, remedy);
}

/** A branch as a region, and the tree it gives, which is that of the first branch if there is one. */
function branch(
  trace: Trace,
  label: string,
  body: () => unknown,
  first: FlatTree | undefined,
  location: Location,
  choice?: object,
): { readonly region: Region; readonly result: FlatTree } {
  let result = emptyTree;
  const difference = (path: string, before: string, after: string): string =>
    `${path} differs between the branches: ${before} and, in ${label}, ${after}`;
  const region = trace.region(
    label,
    [],
    location,
    () => {
      result = flattenTree("result", callBody(label, location, body), location);
      return matchTree(first ?? result, result, difference, location);
    },
    { choice },
  );
  return { region, result };
}

/**
 * Runs one of two functions in the kernel, and gives what it returns. One branch alone gives nothing: its type is not
 * `void`, which takes functions that return anything.
 */
export function when(condition: Scalar<"bool">, then: () => undefined | void): void;
export function when<const R extends Tree | void>(
  condition: Scalar<"bool">,
  then: () => R,
  otherwise: () => NoInfer<R> | (R extends undefined ? void : never),
): R;
export function when(
  condition: Scalar<"bool">,
  then: () => unknown,
  otherwise?: () => unknown,
): unknown {
  const location = captureLocation();
  const trace = activeTrace("when", location);
  const operands = { condition: conditionValue("the condition of when", condition, location) };
  const choice = {};
  const first = trace.ofWarp(operands.condition, () =>
    branch(trace, "the first branch of when", then, undefined, location, choice),
  );
  if (otherwise === undefined && first.result.leaves.length > 0) {
    throw new TilewrightError({
      code: "TW1013",
      message: "when gives a result and has only one branch",
      location,
      expected: "a second branch that gives the same",
      found: "none",
    });
  }
  const other = otherwise ?? ((): undefined => undefined);
  const label = "the second branch of when";
  const second = branch(trace, label, other, first.result, location, choice);
  const regions = { then: first.region, otherwise: second.region };
  const results = trace.add("if", operands, {}, regions, location);
  return results.length === 0 ? undefined : rebuildTree(first.result.shape, results, location);
}

/** Runs the function that `index` picks, the last one if there are fewer; gives what it returns. */
export function switchCase<const R extends Tree>(index: Index, cases: readonly (() => R)[]): R;
export function switchCase(index: Index, cases: readonly (() => void)[]): void;
export function switchCase(index: Index, cases: readonly (() => unknown)[]): unknown {
  const location = captureLocation();
  const trace = activeTrace("switchCase", location);
  const operands = { index: indexValue("the index of switchCase", index, location) };
  if (!Array.isArray(cases) || cases.length === 0)
    wrongKind("the cases of switchCase", "a list of at least one function", cases, location);
  let first: FlatTree | undefined;
  const choice = {};
  const branches = cases.map((body: () => unknown, position) => {
    const label = `case ${position} of switchCase`;
    const own = (): ReturnType<typeof branch> =>
      branch(trace, label, body, first, location, choice);
    const { warps: code } = trace;
    // The last case is that of all indices behind it, too.
    const known = cases.length < trace.context.warps ? cases.length - 1 : cases.length;
    const isOfOne = code !== undefined && operands.index === code.index.value && position < known;
    const { region, result } = isOfOne ? trace.ofOneWarp(code, own) : own();
    first ??= result;
    return region;
  });
  const results = trace.add("switch", operands, {}, { cases: branches }, location);
  const { shape } = first ?? emptyTree;
  return results.length === 0 ? undefined : rebuildTree(shape, results, location);
}

/**
 * Allocates shared memory and barriers for as long as `body` runs; gives what it returns. Semaphores are shared by the grid: 0 at launch, and
 * when the scope is entered again what they were when it was left.
 */
/** Ends the kernel here, for the block, where the condition is true; to be called in the kernel's body itself. */
export function returnIf(condition: Scalar<"bool">): void {
  const location = captureLocation();
  const trace = activeTrace("returnIf", location);
  const exits = EarlyExits.inKernel(trace);
  exits.requireOwn(
    "returnIf",
    "call it in the kernel's body, or put the code behind it in when; a loop ends by breakIf",
    location,
  );
  const value = conditionValue("the condition of returnIf", condition, location);
  if (trace.dependsOnThread(value))
    throw new TilewrightError({
      code: "TW1042",
      message: "returnIf asks which program thread it is",
      location,
      expected: "a condition that is the same for all program threads of a block",
      found: "one computed from threadIndex()",
    });
  exits.add("returnIf", value, { breaks: false, location }, () => []);
}

/** Allocates shared memory and barriers for as long as `body` runs; gives what it returns. */
export function scoped<
  const S extends { readonly [name: string]: ScopedSpec },
  const R extends Tree,
>(specs: S, body: (objects: ScratchObjects<S>) => R): R;
export function scoped<const S extends { readonly [name: string]: ScopedSpec }>(
  specs: S,
  body: (objects: ScratchObjects<S>) => void,
): void;
export function scoped(
  specs: { readonly [name: string]: ScopedSpec },
  body: (objects: ScratchObjects<{ readonly [name: string]: ScopedSpec }>) => unknown,
): unknown {
  const location = captureLocation();
  const trace = activeTrace("scoped", location);
  if (!isRecord(specs) || !isReadable(specs, []))
    wrongKind("what scoped takes first", "an object with a name for each", specs, location);
  for (const [name, spec] of Object.entries(specs)) requireScoped(name, spec, location);
  const run = (): unknown => {
    const objects = Object.entries(specs).map(([name, spec]) => [name, allocate(name, spec)]);
    const argument = Object.fromEntries(objects) as Parameters<typeof body>[0];
    return callBody("the body of scoped", location, body, argument);
  };
  const { region, result } = branch(trace, "the body of scoped", run, undefined, location);
  const results = trace.add("scoped", {}, {}, { body: region }, location);
  return results.length === 0 ? undefined : rebuildTree(result.shape, results, location);
}

function requireScoped(name: string, spec: unknown, location: Location): void {
  const isLocal = isSpec(spec, ["barrier", "cluster barrier", "semaphore", "union"]);
  if (isLocal || (isSpec(spec, ["memory"]) && spec.space !== "gmem")) return;
  throw new TilewrightError({
    code: "TW1031",
    message: `${name} cannot be allocated by scoped`,
    location,
    expected: "smem(…), tmem(…), barrier(…), clusterBarrier(…), semaphore(…) or union(…)",
    found: describeSpec(spec),
  });
}

/** Each of the program thread's four warps runs `body` on its own. */
export function warps(body: (warp: Scalar<"i32">) => void): void {
  const location = captureLocation();
  const trace = activeTrace("warps", location);
  const label = "the body of warps";
  const around: AnyOp[] = [];
  const own = ([value]: readonly Value[]): readonly Value[] => {
    if (value === undefined) throw new Error("warps have no index");
    const outer = trace.warps;
    const index = originOf(value, location);
    trace.warps = { location, index, around, alone: false };
    try {
      callBody(label, location, body, new Scalar<"i32">(index));
    } finally {
      trace.warps = outer;
    }
    return [];
  };
  const region = trace.region(label, [scalarType(i32)], location, own, { apart: true });
  const addWarps = (): readonly Value[] => trace.add("warps", {}, {}, { body: region }, location);
  if (around.length === 0) {
    addWarps();
    return;
  }
  const scope = trace.region("the scope of warps", [], location, () => {
    trace.append(around);
    return addWarps();
  });
  trace.add("scoped", {}, {}, { body: scope }, location);
}

/** Code that only some program threads run; `name` is what messages call them. */
export function onThreads(
  trace: Trace,
  name: string,
  threads: readonly number[],
  body: () => void,
  location: Location,
): void {
  const active = activeTrace(name, location);
  if (active !== trace) {
    throw new TilewrightError({
      code: "TW1003",
      message: otherKernelText(`thread ${name}`, trace, active),
      location,
      expected: `a thread of kernel ${active.kernelName}`,
      found: `one of kernel ${trace.kernelName}`,
    });
  }
  const { thread: outer, runners } = trace;
  if (outer !== undefined) {
    throw new TilewrightError({
      code: "TW1026",
      message: `code of thread ${name} stands within code of thread ${outer}`,
      location,
      expected: "code that all threads reach",
      found: `the code of thread ${outer}`,
    });
  }
  trace.thread = name;
  trace.runners = threads.length;
  try {
    const label = `the code of thread ${name}`;
    const region = trace.region(label, [], location, () => {
      callBody(label, location, body);
      return [];
    });
    trace.add("on_threads", {}, { threads }, { body: region }, location);
  } finally {
    trace.thread = outer;
    trace.runners = runners;
  }
}
