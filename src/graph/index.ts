/** Programs: what `import … from "tilewright/graph"` offers. */
export {
  arrayOfTensor,
  disagreement,
  evaluate,
  namedTensors,
  tensorOfArray,
} from "./evaluate/index.ts";
export type { Datum, EvaluationOptions, Tensor } from "./evaluate/index.ts";
export type { GraphFunction, GraphModule } from "./ops/index.ts";
export { compilePlan } from "./plan/compile.ts";
export type { Plan } from "./plan/plan.ts";
export { Program } from "./plan/program.ts";
export type { BoundProgram } from "./plan/program.ts";
export { planText } from "./plan/text.ts";
export { parseGraph, printGraph } from "./text/index.ts";
export { verifyGraph } from "./verify/index.ts";
