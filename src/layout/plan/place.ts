/**
 * Placing a kernel: a layout for every tile and every shared-memory buffer, an instruction for every product and copy, the conversions
 * that are left, and the scratch memory that ops need.
 *
 *   select -> statements of the rules -> candidates -> system -> least cost -> placement
 *      ^                                                     \-> conflict -> report with two lines and a remedy
 *      \------------- an instruction is refused ----------------/
 *
 * The retry is here (`placeWithRetry`): an instruction whose operands cannot be stored for it is refused, another one selected, and the
 * system solved again. Two more retries surround it: through shared memory (`lower/slice-through-shared.ts`), and without software pipelining
 * (`placePipelined` in `lower/stages.ts`).
 */
import type { AnyOp, Kernel, Op, Value } from "../../ir/node.ts";
import { kernelFor } from "../../ir/target-variants.ts";
import { walkOps } from "../../ir/traverse.ts";
import type { Target } from "../../targets/target.ts";
import type { RegisterLayout } from "../algebra/register-layout.ts";
import type { SharedLayout } from "../algebra/shared-layout.ts";
import { copyMethod, copyWindows } from "../model/copy-methods.ts";
import type { CopyMethod } from "../model/copy-methods.ts";
import { commonFunctions } from "../model/layout-functions.ts";
import { placedBuffers } from "../model/placed-types.ts";
import type { PlacedBuffer } from "../model/placed-types.ts";
import type { Product } from "../model/product-instructions.ts";
import { windowsOf } from "../model/windows.ts";
import type { Windows } from "../model/windows.ts";
import { relayoutCost } from "../relayout/cost.ts";
import { planRelayout } from "../relayout/relayout.ts";
import type { RelayoutPlan } from "../relayout/steps.ts";
import type { LayoutContext } from "../rules/context.ts";
import { stateKernel } from "../rules/index.ts";
import type { Need, RegisterVariable, LayoutVariable, Statement } from "../rules/statements.ts";
import { chosen, solve } from "../solver/solve.ts";
import type { Solution } from "../solver/solve.ts";
import type { Constraint } from "../solver/system.ts";
import { collectScratch } from "./agents.ts";
import type { ScratchArea } from "./agents.ts";
import { allocate } from "./allocate.ts";
import { propagateCandidates } from "./propagate-candidates.ts";
import { explainConflict } from "./explain-conflict.ts";
import type { Statements } from "./explain-conflict.ts";
import { placedKernel } from "./placed-kernel.ts";
import { repeatPinned } from "./repeat-pinned.ts";
import { requireRegisters } from "./register-limit.ts";
import { selectInstructions } from "./select.ts";
import type { Refusals, Selected } from "./select.ts";
import { buildSystem } from "./build-system.ts";
import { TilewrightError } from "../../support/diagnostics.ts";
import { isReadable, optionText } from "../../support/options.ts";
import { runToCompletion } from "../../support/coroutine.ts";
import type { Coroutine } from "../../support/coroutine.ts";

/** A value that an op needs elsewhere than it lies. */
export interface Conversion {
  /** The op that needs it. */
  readonly op: AnyOp;
  readonly value: Value;
  readonly source: RegisterLayout;
  readonly target: RegisterLayout;
  readonly plan: RelayoutPlan;
  /** Of one time, in the units of the cost model. */
  readonly cost: number;
  /** How often the op runs, as far as costs go. */
  readonly weight: number;
}

/** An operand and the layout in which its op reads it. */
export interface NeededOperand {
  readonly value: Value;
  readonly layout: RegisterLayout;
}

export interface Placement {
  /** With an instruction for each product; loads that wgmma makes by itself are gone. */
  readonly kernel: Kernel;
  /** What the kernel is placed for. */
  readonly target: Target;
  /** Where each tile and accumulator lies. */
  readonly layouts: ReadonlyMap<Value, RegisterLayout>;
  /** Where ops need their operands, for those that have a say; operands in the order of the op's rule. */
  readonly needs: ReadonlyMap<AnyOp, readonly NeededOperand[]>;
  /** How each allocation of shared memory and member of a union is stored. */
  readonly shared: ReadonlyMap<Value, SharedLayout>;
  /** The instruction of each matrix product. */
  readonly products: ReadonlyMap<Op<"dot">, Product>;
  /** How each asynchronous copy is made. */
  readonly copies: ReadonlyMap<Op<"copy_async">, CopyMethod>;
  /** Where tiles change their layout. */
  readonly conversions: readonly Conversion[];
  /** Scratch in shared memory that ops need. */
  readonly areas: readonly ScratchArea[];
  /** The sum that was minimised. */
  readonly cost: number;
}

/** Refuses what is no kernel, such as what `kernel(…)` gives, which holds one. */
function requirePlaceable(kernel: unknown, target: unknown): void {
  const parts = ["name", "body", "parameters"];
  const isKernel =
    typeof kernel === "object" &&
    kernel !== null &&
    isReadable(kernel, parts) &&
    parts.every((part) => part in kernel);
  const isTarget =
    typeof target === "object" && target !== null && "sharedMemoryPerBlock" in target;
  if (isKernel && isTarget) return;
  throw new TilewrightError({
    code: "TW4023",
    message: isKernel
      ? "placeKernel takes a target second"
      : "placeKernel takes a kernel's IR first",
    expected: isKernel ? "a description of a target" : "the kernel of a definition",
    found: optionText(isKernel ? target : kernel),
    remedy: isKernel
      ? "give one of targets"
      : "write placeKernel(definition.kernel, targets.sm_90a)",
  });
}

/** Options of `placeKernel`. */
export interface PlaceOptions {
  /** Takes any placement that is possible instead of the cheapest, a different one for each seed. */
  readonly seed?: number | undefined;
}

export interface PinOptions extends PlaceOptions {
  /**
   * What the user stated holds for the kernel as it was traced (`pins.ts`). A layoutCast that does not hold once the kernel is
   * simplified converts, and a product does without an instruction that cannot read its operands.
   */
  readonly pinsHold?: boolean | undefined;
}

/** A placement whose buffers have their bytes. */
export interface AllocatedPlacement extends Placement {
  /** In the order of the program, scratch last. */
  readonly memory: { readonly buffers: readonly PlacedBuffer[]; readonly bytes: number };
}

/** Places a kernel, and allocates its shared memory; reports why where one of them is impossible. */
export function placeKernel(
  kernel: Kernel,
  target: Target,
  options: PlaceOptions = {},
): AllocatedPlacement {
  requirePlaceable(kernel, target);
  return withMemory(runToCompletion(placeWithRetry(kernelFor(kernel, target), target, options)));
}

/** The placement with the bytes of its shared memory; refuses one that takes more than there is. */
export function withMemory(
  placement: Placement,
  allocated: Kernel = allocate(placedKernel(placement)),
): AllocatedPlacement {
  const bytes = allocated.placed?.sharedBytes ?? 0;
  return { ...placement, memory: { buffers: placedBuffers(allocated), bytes } };
}

/** Solves for a placement, and retries with another instruction where one was refused; reports why where none is possible. */
export function* placeWithRetry(
  traced: Kernel,
  target: Target,
  options: PinOptions = {},
): Coroutine<Placement> {
  const kernel = repeatPinned(traced);
  const windows = windowsOf(kernel);
  let refused: Refusals = new Map();
  let converted: ReadonlySet<Value> = new Set();
  for (;;) {
    const selected = selectInstructions(kernel, { windows, target, refused });
    yield;
    const statements = yield* state(selected, { windows, target, options, converted });
    yield;
    const solution = solve(statements.stated.system);
    yield;
    if (solution.status === "solved") {
      const found = { statements, solution };
      const best = solution.optimal
        ? found
        : cheaper(found, withoutPropagation(statements, options));
      return finish(selected, target, best.statements, best.solution);
    }
    if (solution.status === "undecided")
      throw new Error(`the layouts of ${kernel.name} are too entangled to be solved`);
    const conflict = solution.conflict.constraints;
    const pinned = options.pinsHold === true ? pinnedValues(statements, conflict) : [];
    if (pinned.length > 0) {
      converted = new Set([...converted, ...pinned]);
      continue;
    }
    const culprit = refusableDot(statements, conflict, refused, options);
    if (culprit === undefined) throw explainConflict(statements, solution.conflict);
    refused = new Map([...refused, culprit]);
  }
}

/** Whether what is stated of tiles and buffers can hold at all, whatever it costs. */
export function* pinsCanHold(kernel: Kernel, target: Target): Coroutine<boolean> {
  const windows = windowsOf(kernel);
  const selected = selectInstructions(kernel, { windows, target, refused: new Map() });
  yield;
  const functions = commonFunctions();
  const context = stateKernel({ kernel: selected.kernel, target, windows, functions });
  yield;
  const candidates = propagateCandidates(context, { propagate: false });
  yield;
  // Any tile can be converted, but to one number: conversions matter where that is stated.
  const toNumber = context.statements.some(
    (statement) =>
      statement.kind === "pin" && "kind" in statement.layout && statement.layout.kind === "splat",
  );
  const idle = (statement: Statement): boolean =>
    statement.kind === "cost" || (statement.kind === "convert" && !toNumber);
  const without = new Set(context.statements.filter(idle));
  const { system } = buildSystem(context, candidates, { without });
  return solve(system).status !== "unsatisfiable";
}

type Solved = Solution & { readonly status: "solved" };

interface Found {
  readonly statements: Statements;
  readonly solution: Solved;
}

/** The placement among fewer candidates: for a kernel too entangled for all of them to be weighed, it may be the better. */
function withoutPropagation({ context }: Statements, options: PlaceOptions): Found | undefined {
  const candidates = propagateCandidates(context, { propagate: false });
  const stated = buildSystem(context, candidates, { seed: options.seed });
  const solution = solve(stated.system);
  return solution.status === "solved"
    ? { statements: { context, candidates, stated }, solution }
    : undefined;
}

function cheaper(one: Found, other: Found | undefined): Found {
  return other !== undefined && other.solution.cost < one.solution.cost ? other : one;
}

function* state(
  { kernel }: Selected,
  surroundings: {
    readonly windows: Windows;
    readonly target: Target;
    readonly options: PlaceOptions;
    readonly converted: ReadonlySet<Value>;
  },
): Coroutine<Statements> {
  const { windows, target, options, converted } = surroundings;
  const functions = commonFunctions();
  const context = stateKernel({ kernel, target, windows, functions, converted });
  yield;
  const candidates = propagateCandidates(context);
  yield;
  return { context, candidates, stated: buildSystem(context, candidates, { seed: options.seed }) };
}

/** What the layoutCasts of a conflict give, those that speak of copies aside. */
function pinnedValues(
  { stated, context }: Statements,
  conflict: readonly Constraint[],
): readonly Value[] {
  return conflict.flatMap((constraint) => {
    const { op, pinned } = stated.statements.get(constraint)?.reason ?? {};
    if (op?.kind !== "layout_cast" || pinned !== true) return [];
    const [result] = op.results;
    if (result === undefined) return [];
    return context.find(result) === context.find(op.operands.source) ? [result] : [];
  });
}

/**
 * A product that need not be wgmma does without where its operands cannot be stored as it wants; what
 * the user said is never overruled in that way.
 */
function refusableDot(
  { stated }: Statements,
  conflict: readonly Constraint[],
  refused: Refusals,
  { pinsHold }: PinOptions,
): readonly [Value, string] | undefined {
  if (pinsHold !== true && conflict.some(({ origin }) => origin.pinned)) return undefined;
  for (const constraint of conflict) {
    const { op } = stated.statements.get(constraint)?.reason ?? {};
    const [result] = op?.kind === "dot" ? op.results : [];
    if (result !== undefined && constraint.kind === "require" && !refused.has(result)) {
      const others = conflict.filter((other) => other !== constraint);
      const against = others.map(({ origin }) => origin.message).join(", and ");
      return [result, `its operands cannot be stored for it where ${against}`];
    }
  }
  return undefined;
}

function finish(
  { kernel, products }: Selected,
  target: Target,
  { context, stated }: Statements,
  solution: Solved,
): Placement {
  const layoutOf = (variable: LayoutVariable): RegisterLayout | SharedLayout => {
    const solverVariable = stated.solverVariables[variable.index];
    if (solverVariable === undefined) throw new Error(`variable ${variable.index} is unknown`);
    return chosen(solution.assignment, solverVariable) as RegisterLayout | SharedLayout;
  };
  const registers = (variable: RegisterVariable): RegisterLayout =>
    layoutOf(variable) as RegisterLayout;
  for (const variable of context.values.values()) requireRegisters(variable, registers(variable));
  const layouts = new Map(
    [...context.values].map(([value, variable]) => [value, registers(variable)]),
  );
  const shared = new Map(
    [...context.allocations].map(([root, variable]) => [root, layoutOf(variable) as SharedLayout]),
  );
  const needs = new Map<AnyOp, NeededOperand[]>();
  const conversions: Conversion[] = [];
  for (const statement of context.statements) {
    if (statement.kind !== "convert") continue;
    const conversion = convert(statement, registers);
    const { op } = statement.reason;
    const needed = { value: statement.value, layout: conversion.target };
    needs.set(op, [...(needs.get(op) ?? []), needed]);
    if (conversion.plan.kind !== "none") conversions.push(conversion);
  }
  const copies = chooseCopies(kernel, target, context, shared);
  const areas = collectScratch({ kernel, conversions, needs });
  const { cost } = solution;
  const found = { layouts, needs, shared, products, copies, conversions, areas };
  return { kernel, target, ...found, cost };
}

function convert(
  { source: variable, need, value, weight, reason }: Statement & { readonly kind: "convert" },
  registers: (variable: RegisterVariable) => RegisterLayout,
): Conversion {
  const source = registers(variable);
  const target = neededLayout(need, registers);
  const plan = planRelayout(source, target, value.type.shape, value.type.dtype, variable.warps);
  if (plan === undefined) throw new Error(`no way from ${source.text} to ${target.text}`);
  return { op: reason.op, value, source, target, plan, cost: relayoutCost(plan), weight };
}

function neededLayout(
  need: Need,
  registers: (variable: RegisterVariable) => RegisterLayout,
): RegisterLayout {
  if (need.kind === "fixed") return need.layout;
  const layout = registers(need.variable);
  const needed = need.kind === "variable" ? layout : need.function.apply(layout);
  if (needed === undefined) throw new Error(`nothing is needed of ${layout.text}`);
  return needed;
}

function chooseCopies(
  kernel: Kernel,
  target: Target,
  { surroundings: { windows } }: LayoutContext,
  shared: ReadonlyMap<Value, SharedLayout>,
): ReadonlyMap<Op<"copy_async">, CopyMethod> {
  const copies = new Map<Op<"copy_async">, CopyMethod>();
  walkOps(kernel.body, (op) => {
    if (op.kind !== "copy_async") return;
    const sides = copyWindows(op, windows);
    const layout = shared.get(sides.shared.root);
    if (layout === undefined) throw new Error(`%${sides.shared.root.id} has no layout`);
    copies.set(op, copyMethod(op, sides, layout, target));
  });
  return copies;
}
