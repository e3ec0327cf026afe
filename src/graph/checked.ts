/** The functions on programs as users call them: what each argument is, checked before anything is done with it. */
import { isHostArray } from "../formats/hostarray.ts";
import { checkedCall, fieldsOf, isListOf, optional } from "../support/checked-call.ts";
import type { ArgumentKind } from "../support/checked-call.ts";
import { isReadable, isRecord } from "../support/options.ts";
import * as evaluation from "./evaluate/index.ts";
import { elementOfDType } from "./ops/elements.ts";
import { isMatmulPrecision } from "./ops/matmul-precision.ts";
import type { GraphModule } from "./ops/node.ts";
import { compilePlan as compile } from "./plan/compile.ts";
import { costNotes } from "./plan/cost-notes.ts";
import { planCosts as costsOfPlan } from "./plan/costs.ts";
import { explainPlan as explain } from "./plan/explain.ts";
import { isPlan, isTensor } from "./plan/arguments.ts";
import { planText as textOfPlan } from "./plan/text.ts";
import * as text from "./text/index.ts";
import * as verification from "./verify/index.ts";

function checked<F extends (...values: never[]) => unknown>(
  name: string,
  kinds: readonly ArgumentKind[],
  call: F,
): F {
  return checkedCall(name, "TW4023", kinds, call);
}

const module: ArgumentKind = {
  expected: "a program, one of those that parseGraph gives",
  holds: (value) => {
    const { functions, foreign } = fieldsOf(value, ["functions", "foreign"]);
    return functions instanceof Map && Array.isArray(foreign);
  },
};

type AfterFirst<F extends (...values: never[]) => unknown> =
  Parameters<F> extends readonly [unknown, ...infer Rest] ? Rest : never;

const verified = new WeakSet<GraphModule>();

/** A program whose types fit, verified the first time it is asked about: what does not fit would be read beyond its elements. */
function sound(program: GraphModule): GraphModule {
  if (verified.has(program)) return program;
  verification.verifyGraph(program);
  verified.add(program);
  return program;
}

const tensor: ArgumentKind = { expected: "a tensor, as tensorOfArray gives it", holds: isTensor };

const isDatum = (value: unknown): boolean =>
  isTensor(value) || ["token", "tuple"].includes(String(fieldsOf(value, ["kind"])["kind"]));
const datum: ArgumentKind = { expected: "a tensor, a token or a tuple", holds: isDatum };

const isArray = (value: unknown): boolean =>
  isHostArray(value) && isReadable(value, ["dtype", "shape", "data"]);
const array: ArgumentKind = {
  expected: "an array of the host, of a format that programs have",
  holds: (value) =>
    isArray(value) && elementOfDType((value as { dtype: never }).dtype) !== undefined,
};

const string: ArgumentKind = { expected: "a text", holds: (value) => typeof value === "string" };
const flag: ArgumentKind = {
  expected: "whether the numbers are complex",
  holds: (value) => typeof value === "boolean",
};
const options = (...names: readonly string[]): ArgumentKind =>
  optional({
    expected: `{ ${names.join(", ")} }`,
    holds: (value) =>
      isRecord(value) &&
      isReadable(value, names) &&
      Object.keys(value).every((name) => names.includes(name)),
  });

/** Reads the programs of a StableHLO text, of which most have one. What does not fit is refused with its line and column. */
export const parseGraph = checked("parseGraph", [string, optional(string)], text.parseGraph);
/** A program as StableHLO text, which `parseGraph` reads again. */
export const printGraph = checked(
  "printGraph",
  [module, options("locations", "generic")],
  text.printGraph,
);
/** Checks the types of a program; throws where an op does not fit its operands. */
export const verifyGraph = checked("verifyGraph", [module], verification.verifyGraph);
/** A host array as a tensor, which `evaluate` takes. */
export const tensorOfArray = checked(
  "tensorOfArray",
  [array, optional(flag)],
  evaluation.tensorOfArray,
);
/** A tensor as a host array; undefined where kernels have no such elements. */
export const arrayOfTensor = checked("arrayOfTensor", [tensor], evaluation.arrayOfTensor);
/**
 * Runs a function of a program on the host, exactly as StableHLO defines it.
 *
 * @example
 * ```ts
 * import { evaluate, parseGraph, tensorOfArray } from "tilewright/graph";
 * import { f32, fromNumbers } from "tilewright";
 *
 * const [program] = parseGraph(`func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
 *   %y = stablehlo.add %x, %x : tensor<2xf32>
 *   return %y : tensor<2xf32>
 * }`);
 * if (program === undefined) throw new Error("no program");
 * const [y] = evaluate(program, "main", [tensorOfArray(fromNumbers(f32, [2], [1, 2]))]);
 * ```
 */
export const evaluate = checked(
  "evaluate",
  [
    module,
    string,
    { expected: "a list of values for the function's parameters", holds: isListOf(isDatum) },
    options("widened", "seed", "print", "signal", "timeLimit", "stepLimit"),
  ],
  (program: GraphModule, ...rest: AfterFirst<typeof evaluation.evaluate>) =>
    evaluation.evaluate(sound(program), ...rest),
);
/** Says where a result differs from what was expected by more than the bound of that element; undefined where it does not. */
export const disagreement = checked(
  "disagreement",
  [datum, tensor, datum],
  evaluation.disagreement,
);
/** Arrays named `in0`, `in1`, … or `out0`, … as tensors of the types of a function, in order. */
export const namedTensors = checked(
  "namedTensors",
  [
    {
      expected: "arrays of the host by name",
      holds: (value) =>
        isRecord(value) &&
        isReadable(value, Object.keys(value)) &&
        Object.values(value).every(isArray),
    },
    { expected: '"in" or "out"', holds: (value) => value === "in" || value === "out" },
    {
      expected: "a list of types",
      holds: isListOf((value) => typeof fieldsOf(value, ["kind"])["kind"] === "string"),
    },
  ],
  evaluation.namedTensors,
);
/**
 * Compiles a function of a program into a plan of kernels, for a device to run.
 *
 * @example
 * ```ts
 * import { compilePlan, parseGraph, planText } from "tilewright/graph";
 *
 * const [program] = parseGraph(`func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
 *   %y = stablehlo.tanh %x : tensor<4xf32>
 *   return %y : tensor<4xf32>
 * }`);
 * if (program === undefined) throw new Error("no program");
 * console.log(planText(compilePlan(program, "main")));
 * ```
 */
export const compilePlan = checked(
  "compilePlan",
  [
    module,
    string,
    optional({
      expected: "a list of places of arguments",
      holds: isListOf((each) => Number.isSafeInteger(each)),
    }),
    optional({
      expected: '{ matmulPrecision: "f32" or "tf32", target }',
      holds: (value) =>
        isRecord(value) &&
        Object.keys(value).every((name) => name === "matmulPrecision" || name === "target") &&
        (value["matmulPrecision"] === undefined || isMatmulPrecision(value["matmulPrecision"])),
    }),
  ],
  (program: GraphModule, ...rest: AfterFirst<typeof compile>) => compile(sound(program), ...rest),
);
const plan: ArgumentKind = { expected: "a plan, as compilePlan gives it", holds: isPlan };

const hasFields = (value: unknown, names: readonly string[]): boolean =>
  isRecord(value) && isReadable(value, names);
const isCosts = isListOf((each) => hasFields(each, ["roofline", "estimate", "runs"]));
const costs: ArgumentKind = { expected: "what planCosts gives", holds: isCosts };
const isTimes = isListOf((each) => hasFields(each, ["milliseconds"]));
const times: ArgumentKind = { expected: "what profile() gives", holds: isTimes };

/** A plan as text: its steps, the kernels that they launch, and where values lie; with costs and times, these too. */
export const planText = checked(
  "planText",
  [
    plan,
    optional({
      expected: "{ costs, times }",
      holds: (value) =>
        isRecord(value) &&
        Object.keys(value).every((name) => name === "costs" || name === "times") &&
        [value["costs"] ?? []].every(isCosts) &&
        [value["times"] ?? []].every(isTimes),
    }),
  ],
  textOfPlan,
);
/**
 * What each launch of a plan takes, in microseconds: the least that its ops need (`roofline`), and what its kernel does (`estimate`). No GPU is
 * needed.
 *
 * @example
 * ```ts
 * import { compilePlan, parseGraph, planCosts } from "tilewright/graph";
 *
 * const [program] = parseGraph(`func.func @main(%x: tensor<1048576xf32>) -> tensor<1048576xf32> {
 *   %y = stablehlo.tanh %x : tensor<1048576xf32>
 *   return %y : tensor<1048576xf32>
 * }`);
 * if (program === undefined) throw new Error("no program");
 * for (const { kernel, roofline, estimate } of planCosts(compilePlan(program, "main")))
 *   console.log(kernel, roofline, estimate); // tanh 4.5 …
 * ```
 */
export const planCosts = checked(
  "planCosts",
  [plan, optional({ expected: "a target", holds: () => true })],
  costsOfPlan,
);
/** Notes on launches that take over three times what they need. */
export const planNotes = checked("planNotes", [costs], costNotes);
/** Where the time of a plan goes: its dearest launches, why each is one, and notes on slow ones. */
export const explainPlan = checked("explainPlan", [plan, costs, optional(times)], explain);
