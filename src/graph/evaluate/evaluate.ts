/**
 * The evaluator: runs a function of a module on host data, op after op. It says what a program means;
 * passes, transforms and devices are held against it.
 *
 *   evaluate(module, "main", [tensorOfArray(x)])      -> the function's results
 *   evaluate(module, "main", inputs, { widened: true })  -> the same with all floats as f64
 *
 * The widened evaluator gives the reference for float results: nothing is rounded to the narrower types of
 * the program, except where an op asks for the bits of a number.
 */
import { TilewrightError } from "../../support/diagnostics.ts";
import { Random } from "../../support/random.ts";
import { LimitedProgram, requireRunLimits } from "../../support/run-limits.ts";
import type { RunLimits } from "../../support/run-limits.ts";
import { captureLocation } from "../../support/location.ts";
import {
  applyGraphRule,
  graphRegion,
  isOpaque,
  isTensor,
  elementBytes,
  moduleOf,
  operandsOf,
  regionsOf,
  sameType,
  sizeOf,
  slotsOf,
  textNameOf,
  typeText,
} from "../ops/index.ts";
import type { AnyGraphOp, GraphModule, GraphRegion, GraphValue, TensorType } from "../ops/index.ts";
import { datumText, typeOf } from "./value.ts";
import type { Datum, Tensor } from "./value.ts";
import { roundedArithmetic, widenedArithmetic } from "./arithmetic.ts";
import { atOnce, Frame, pause, unsupported } from "./frame.ts";
import type { Arithmetic, RuleResult, Session, Steps } from "./frame.ts";
import { runProcesses } from "./processes.ts";
import { evaluationRules } from "./rules/index.ts";

/** Limits hold between ops: a step is one of them, and a signal is seen where something aborts it meanwhile, such as `print`. */
export interface EvaluationOptions extends RunLimits {
  /** Whether floats are computed and kept as f64. */
  readonly widened?: boolean | undefined;
  /** Where the random numbers of `rng` begin. */
  readonly seed?: number | undefined;
  /** Where `interpreter.print` writes; nowhere by default. */
  readonly print?: ((text: string) => void) | undefined;
}

function sessionOf(
  module: GraphModule,
  options: EvaluationOptions,
  arithmetic: Arithmetic = options.widened === true ? widenedArithmetic : roundedArithmetic,
): Session {
  const random = new Random(options.seed ?? 0);
  return {
    module,
    arithmetic,
    place: { replica: 0, partition: 0 },
    replicas: 1,
    partitions: 1,
    random: () => random.uniform(),
    print: options.print ?? (() => undefined),
    probes: new Map<string, Tensor[]>(),
    limits: new LimitedProgram(options),
    hasBreaks: false,
    runRegion,
    runFunction,
  };
}

/** The results of a function. */
export function evaluate(
  module: GraphModule,
  name: string,
  inputs: readonly Datum[],
  options: EvaluationOptions = {},
): readonly Datum[] {
  requireRunLimits("evaluate", options, captureLocation());
  return inSession(sessionOf(module, options), name, inputs);
}

/** The results in another arithmetic, where no user has to be told of limits. */
export function evaluateIn(
  arithmetic: Arithmetic,
  module: GraphModule,
  name: string,
  inputs: readonly Datum[],
): readonly Datum[] {
  return inSession(sessionOf(module, {}, arithmetic), name, inputs);
}

function inSession(session: Session, name: string, inputs: readonly Datum[]): readonly Datum[] {
  const { limits } = session;
  try {
    const steps = evaluation(name, inputs, session);
    let step = steps.next([]);
    for (; step.done !== true; step = steps.next([])) limits.look();
    return step.value;
  } finally {
    limits.end();
  }
}

/**
 * The same yielding to the event loop, so that timers are on time and signals are aborted while it runs: the event loop has its
 * turn between two pauses.
 */
export async function evaluateWithBreaks(
  module: GraphModule,
  name: string,
  inputs: readonly Datum[],
  options: EvaluationOptions = {},
): Promise<readonly Datum[]> {
  requireRunLimits("evaluate", options, captureLocation());
  const session = { ...sessionOf(module, options), hasBreaks: true };
  const { limits } = session;
  try {
    const steps = evaluation(name, inputs, session);
    let step = steps.next([]);
    for (; step.done !== true; step = steps.next([])) {
      await limits.pause();
      limits.look();
    }
    return step.value;
  } finally {
    limits.end();
  }
}

/** What is left to the caller of these steps are pauses: one process answers itself. */
function* evaluation(
  name: string,
  inputs: readonly Datum[],
  session: Session,
): Steps<readonly Datum[]> {
  const kept = inputs.map((datum) => stored(datum, session));
  const [results = []] = yield* runProcesses([runFunction(name, kept, session)], () => undefined);
  return results;
}

/** Evaluates a single op, such as a check of what a device computed, on values for its operands. */
export function runCheck(op: AnyGraphOp, operands: readonly Tensor[]): void {
  const frame = new Frame(sessionOf(moduleOf(graphRegion([], [], [])), {}));
  const tensors = operandsOf(op).filter(({ type }) => isTensor(type));
  for (const [i, value] of tensors.entries()) frame.define(value, operands[i] as Tensor);
  const outcome: RuleResult = applyGraphRule(evaluationRules, op, frame);
  if (isSteps(outcome)) atOnce(outcome);
}

/** An input as the session keeps it. */
function stored(datum: Datum, session: Session): Datum {
  return datum.kind === "tensor" ? session.arithmetic.kept(datum) : datum;
}

function* runFunction(
  name: string,
  inputs: readonly Datum[],
  session: Session,
  op?: AnyGraphOp,
): Steps<readonly Datum[]> {
  const found = session.module.functions.get(name);
  if (found === undefined)
    throw new TilewrightError({
      code: "TW9504",
      message: `the module has no function @${name}`,
      location: op?.location,
      expected: [...session.module.functions.keys()].map((each) => `@${each}`).join(", "),
      found: `@${name}`,
    });
  const frame = new Frame(session);
  requireInputs(name, found.body.parameters, inputs, frame);
  return yield* runRegion(found.body, inputs, frame);
}

function requireInputs(
  name: string,
  parameters: readonly GraphValue[],
  inputs: readonly Datum[],
  frame: Frame,
): void {
  const text = (value: GraphValue): string =>
    isTensor(value.type)
      ? typeText({ ...value.type, element: frame.stored(value.type.element) })
      : typeText(value.type);
  const expected = parameters.map(text);
  const found = inputs.map(datumText);
  const fits = expected.every(
    (each, i) => each === found[i] || parameters[i]?.type.kind !== "tensor",
  );
  if (fits && expected.length === found.length) return;
  throw new TilewrightError({
    code: "TW9505",
    message: `@${name} is given other values than it takes`,
    expected: expected.join(", "),
    found: found.join(", "),
  });
}

function* runRegion(
  region: GraphRegion,
  inputs: readonly Datum[],
  frame: Frame,
): Steps<readonly Datum[]> {
  const dying = lastUses(region);
  for (const [i, parameter] of region.parameters.entries())
    frame.define(parameter, inputs[i] as Datum);
  const { limits, hasBreaks } = frame.session;
  for (const [index, op] of region.ops.entries()) {
    limits.step(op.location);
    const results = yield* runOp(op, frame);
    for (const [i, value] of op.results.entries()) {
      const datum = results[i] as Datum;
      requireDeclared(op, value, datum, frame);
      frame.define(value, datum);
    }
    for (const value of dying[index] ?? []) frame.forget(value);
    if (hasBreaks) yield pause;
  }
  return frame.data(region.results);
}

/** Bytes of one value. A process may have room for more, but fills it for long, and takes it from everybody else. */
const mostBytes = 2 ** 32;

function requireRoom(op: AnyGraphOp, type: TensorType): void {
  const bytes = sizeOf(type.shape) * slotsOf(type.element) * elementBytes(type.element);
  if (bytes <= mostBytes) return;
  throw new TilewrightError({
    code: "TW9506",
    message: `${textNameOf(op)} gives a value that is too large to evaluate`,
    location: op.location,
    expected: `at most ${mostBytes} bytes, ${mostBytes / 2 ** 30} GiB, a value`,
    found: `${bytes} bytes, ${typeText(type)}`,
  });
}

/** Reports that say the line of the op that they are about: the innermost that was run. */
const located = new WeakSet<TilewrightError>();

function* runOp(op: AnyGraphOp, frame: Frame): Steps<readonly Datum[]> {
  for (const { type } of op.results) if (isTensor(type)) requireRoom(op, type);
  // The verifier knows nothing of such an op: not even that its axes are there.
  for (const { type } of [...operandsOf(op), ...op.results])
    if (isOpaque(type)) throw unsupported(op, `a value has the type ${typeText(type)}`);
  try {
    const outcome: RuleResult =
      frame.session.arithmetic.results(op, frame) ?? applyGraphRule(evaluationRules, op, frame);
    return isSteps(outcome) ? yield* outcome : outcome;
  } catch (error) {
    if (!(error instanceof TilewrightError) || located.has(error)) throw error;
    const report = error.located(op.location);
    located.add(report);
    throw report;
  }
}

/** What an op makes of numbers that it is given when it runs has the type that the program was written for. */
function requireDeclared(op: AnyGraphOp, value: GraphValue, datum: Datum, frame: Frame): void {
  if (datum.kind !== "tensor" || !isTensor(value.type)) return;
  const declared = frame.typeOf(value, op);
  if (!sameType(declared, typeOf(datum)))
    throw unsupported(op, `it gives ${datumText(datum)} where ${typeText(declared)} is declared`);
}

function isSteps(outcome: RuleResult): outcome is Steps<readonly Datum[]> {
  return !Array.isArray(outcome);
}

const knownLastUses = new WeakMap<GraphRegion, readonly (readonly GraphValue[])[]>();

/** For each op of a region, the region's own values that nothing after it uses. */
function lastUses(region: GraphRegion): readonly (readonly GraphValue[])[] {
  const known = knownLastUses.get(region);
  if (known !== undefined) return known;
  const alive = new Set<GraphValue>(region.results);
  const own = new Set<GraphValue>([
    ...region.parameters,
    ...region.ops.flatMap(({ results }) => results),
  ]);
  const dying: (readonly GraphValue[])[] = new Array<readonly GraphValue[]>(region.ops.length);
  for (let index = region.ops.length - 1; index >= 0; index--) {
    const op = region.ops[index] as AnyGraphOp;
    const used = new Set([...usesOf(op), ...op.results]);
    dying[index] = [...used].filter((value) => own.has(value) && !alive.has(value));
    for (const value of used) alive.add(value);
  }
  knownLastUses.set(region, dying);
  return dying;
}

/** Operands of an op, and what its regions use or return. */
function usesOf(op: AnyGraphOp): readonly GraphValue[] {
  const inner = regionsOf(op).flatMap(({ ops, results }) => [...ops.flatMap(usesOf), ...results]);
  return [...operandsOf(op), ...inner];
}
