/** The functions on programs as users call them: what each argument is, checked before anything is done with it. */
import { isHostArray } from "../formats/hostarray.ts";
import { checkedCall, fieldsOf, isListOf, optional } from "../support/checked-call.ts";
import type { ArgumentKind } from "../support/checked-call.ts";
import { isReadable, isRecord } from "../support/options.ts";
import * as evaluation from "./evaluate/index.ts";
import { elementOfDType } from "./ops/elements.ts";
import type { GraphModule } from "./ops/node.ts";
import { compilePlan as compile } from "./plan/compile.ts";
import { isPlan, isTensor } from "./plan/given.ts";
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

export const parseGraph = checked("parseGraph", [string, optional(string)], text.parseGraph);
export const printGraph = checked(
  "printGraph",
  [module, options("locations", "generic")],
  text.printGraph,
);
export const verifyGraph = checked("verifyGraph", [module], verification.verifyGraph);
export const tensorOfArray = checked(
  "tensorOfArray",
  [array, optional(flag)],
  evaluation.tensorOfArray,
);
export const arrayOfTensor = checked("arrayOfTensor", [tensor], evaluation.arrayOfTensor);
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
export const disagreement = checked(
  "disagreement",
  [datum, tensor, datum],
  evaluation.disagreement,
);
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
export const compilePlan = checked(
  "compilePlan",
  [module, string],
  (program: GraphModule, ...rest: AfterFirst<typeof compile>) => compile(sound(program), ...rest),
);
export const planText = checked(
  "planText",
  [
    {
      expected: "a plan, as compilePlan gives it",
      holds: isPlan,
    },
  ],
  textOfPlan,
);
