/**
 * Compiled functions: recorded once for each structure, shapes and dtypes of their arguments and each value of
 * their static parts, simplified, and run as one program from then on. Each compilation says why it happened.
 */
import { TilewrightError } from "../support/diagnostics.ts";
import { captureLocation } from "../support/location.ts";
import { requireRunLimits } from "../support/run-limits.ts";
import { LruCache } from "../support/lru-cache.ts";
import type { RunLimits } from "../support/run-limits.ts";
import type { MatmulPrecision } from "../graph/ops/matmul-precision.ts";
import { derivativesPass } from "../graph/passes/derivatives.ts";
import { runPasses } from "../graph/passes/pass-order.ts";
import { moduleOf } from "../graph/ops/node.ts";
import type { GraphRegion, GraphValue } from "../graph/ops/node.ts";
import { graphValue } from "../graph/ops/node.ts";
import { typeText } from "../graph/ops/types.ts";
import { printGraph } from "../graph/text/index.ts";
import { compute, defer, donateValues, onDevice, placeFor, runGraph, setMade } from "./array.ts";
import { forgetPrograms, runOnDevice } from "./device.ts";
import type { DeviceRun } from "./device.ts";
import { requireUsable } from "./use-after-dispose.ts";
import { settleLocations } from "./locations.ts";
import {
  arraysOf,
  inlineCall,
  isRecording,
  recordForCalls,
  recordFunction,
} from "./trace-function.ts";
import type { Recording } from "./trace-function.ts";
import { flatten, rebuild } from "./tree.ts";

/** Why `jit` compiled a function (again). */
export type CompilationReason = "first call" | "new structure" | "new shapes";

/** One compilation of a function by `jit`, and why it was needed. */
export interface Compilation {
  /** Why it was compiled: the first call, arguments of another structure, or other shapes or dtypes. */
  readonly reason: CompilationReason;
  /** The types of the arrays among the arguments. */
  readonly types: readonly string[];
  /** How products and convolutions of f32 that ask for no precision are multiplied on a device. */
  readonly matmulPrecision: MatmulPrecision;
}

/** A function that `jit` compiles, with a record of its compilations. */
export interface Compiled<A extends readonly unknown[], R> {
  (...args: A): R;
  /** The compilations so far, the last 1,024 of them, with their reasons. */
  readonly compilations: readonly Compilation[];
}

interface Program<R> {
  readonly structure: string;
  readonly recording: Recording<R>;
  readonly graph: GraphRegion;
}

function simplified(graph: GraphRegion): GraphRegion {
  return runPasses(moduleOf(graph)).functions.get("main")?.body ?? graph;
}

/** Kinds of arguments that a function is kept compiled for by default. */
const keptKinds = 128;

/** Compilations that are remembered. */
const keptCompilations = 1024;

/** Limits hold for each call. */
export interface JitOptions extends RunLimits {
  /** The name of the program in messages and profiles. */
  readonly name?: string | undefined;
  /**
   * Arguments, by their places, whose memory the results may take: on a device their arrays are disposed of by the call.
   */
  readonly donate?: readonly number[] | undefined;
  /**
   * Programs that are kept, one for each structure, shapes, dtypes and static values of the arguments; 128 unless given. The one that has not
   * been called for longest makes room, and gives its memory on devices back.
   */
  readonly cacheSize?: number | undefined;
  /**
   * How a device multiplies f32 in products and convolutions that ask for no precision: `"f32"`, the default, no less exactly than f32 is
   * summed, or `"tf32"`, rounded to 11 bits, as JAX does on GPUs. A compiled function that another one calls is a part of that one and
   * takes its precision.
   */
  readonly matmulPrecision?: MatmulPrecision | undefined;
}

/** A function that is recorded once for each kind of arguments. */
export function jit<A extends readonly unknown[], R>(
  f: (...args: A) => R,
  options: JitOptions = {},
): Compiled<A, R> {
  requireRunLimits("jit", options, captureLocation());
  const { signal, timeLimit, stepLimit } = options;
  const limits = { signal, timeLimit, stepLimit };
  const { donate = [], matmulPrecision = "f32" } = options;
  const name = `jit(${options.name ?? (f.name || "f")})`;
  const programs = new LruCache<string, Program<R>>(options.cacheSize ?? keptKinds, ({ graph }) => {
    forgetPrograms(graph);
  });
  const compilations: Compilation[] = [];

  const compile = (args: A, structure: string, types: readonly string[]): Program<R> => {
    const isKnown = programs.values().some((known) => known.structure === structure);
    const reason =
      compilations.length === 0 ? "first call" : isKnown ? "new shapes" : "new structure";
    compilations.push(Object.freeze({ reason, types, matmulPrecision }));
    if (compilations.length > keptCompilations) compilations.shift();
    const recording = recordForCalls(name, f, args);
    const graph = simplified(recording.graph);
    // The program lives as long as the function; what stacks of its recording can reach need not.
    settleLocations(recording.graph);
    settleLocations(graph);
    return { structure, recording, graph };
  };

  const call = (...args: A): R => {
    requirePlaces(name, donate, Math.max(f.length, args.length));
    const { leaves, structure } = flatten(args);
    for (const { value } of leaves) requireUsable(value);
    const types = leaves.map(({ value }) => typeText(value.type));
    const key = `${structure} ${types.join()}`;
    const program = programs.get(key) ?? compile(args, structure, types);
    programs.set(key, program);
    const inputs = [...leaves.map(({ value }) => value), ...program.recording.captures];
    for (const value of program.recording.captures) requireUsable(value);
    const values = isRecording()
      ? inlineCall(program.graph, inputs)
      : run(program.graph, inputs, {
          donated: donatedLeaves(args, donate),
          limits,
          matmulPrecision,
        });
    return rebuild(program.recording.result, arraysOf(values));
  };
  return Object.assign(call, { compilations });
}

/** Fails where an argument is donated that the function does not take. */
function requirePlaces(name: string, donate: readonly number[], count: number): void {
  const beyond = donate.find((place) => place >= count);
  if (beyond === undefined) return;
  throw new TilewrightError({
    code: "TW4023",
    message: `${name} has no argument ${beyond} to donate`,
    expected: count === 0 ? "no places: there are no arguments" : `places from 0 to ${count - 1}`,
    found: `donate: [${donate.join(", ")}]`,
    remedy: "count arguments from 0",
  });
}

/** The places among all arrays of those that belong to donated arguments. */
function donatedLeaves(args: readonly unknown[], donate: readonly number[]): readonly number[] {
  let next = 0;
  return args.flatMap((arg, i) =>
    flatten(arg).leaves.flatMap(() => {
      const place = next++;
      return donate.includes(i) ? [place] : [];
    }),
  );
}

/** Fails where a donated array is also another argument, or one that the function uses from around it. */
function requireOnce(inputs: readonly GraphValue[], donated: readonly number[]): void {
  const twice = donated.find((place) => inputs.indexOf(inputs[place] as GraphValue) !== place);
  const again = donated.find((place) => inputs.lastIndexOf(inputs[place] as GraphValue) !== place);
  const place = twice ?? again;
  if (place === undefined) return;
  throw new TilewrightError({
    code: "TW9317",
    message: "an array is donated to a call that uses it a second time",
    expected: "every donated array once",
    found: `${typeText((inputs[place] as GraphValue).type)} at two places`,
  });
}

/**
 * Runs a graph: on the evaluator now, so that the results have data, or on a device in its turn. With a signal the
 * evaluator waits until a result is read: nobody can abort anything while JavaScript runs without a break.
 */
function run(
  graph: GraphRegion,
  inputs: readonly GraphValue[],
  { donated, limits, matmulPrecision }: Required<Omit<DeviceRun, "isKept">>,
): readonly GraphValue[] {
  requireOnce(inputs, donated);
  const place = placeFor(inputs, graph);
  const given = donated.map((place) => inputs[place] as GraphValue);
  if (place !== undefined) {
    const targets = graph.results.map(({ type }) => graphValue(type));
    const sources = onDevice(place, inputs);
    donateValues(given);
    runOnDevice(place, graph, sources, targets, {
      donated,
      limits,
      matmulPrecision,
      isKept: true,
    });
    return targets;
  }
  if (limits.signal?.aborted === false && given.length === 0) return defer(graph, inputs, limits);
  const sources = compute(inputs);
  donateValues(given);
  const results = runGraph(graph, sources, limits);
  return results.map((tensor, i) => {
    const value = graphValue(graph.results[i]?.type ?? { kind: "token" });
    setMade(value, tensor);
    return value;
  });
}

/** The program of a function as StableHLO text; values from around it are further parameters. */
export function lower<A extends readonly unknown[]>(
  f: (...args: A) => unknown,
  ...args: A
): string {
  const module = moduleOf(simplified(recordFunction("lower", f, args).graph));
  return printGraph(derivativesPass.run(module));
}
