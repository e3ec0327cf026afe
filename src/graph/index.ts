/**
 * Programs: what `import … from "tilewright/graph"` offers.
 *
 *   const [module] = parseGraph(text, "model.mlir");
 *   const plan = compilePlan(module, "main");
 */
export {
  arrayOfTensor,
  compilePlan,
  disagreement,
  evaluate,
  explainPlan,
  namedTensors,
  parseGraph,
  planCosts,
  planNotes,
  planText,
  printGraph,
  tensorOfArray,
  verifyGraph,
} from "./checked.ts";
export type { Datum, EvaluationOptions, Tensor } from "./evaluate/index.ts";
export type { GraphFunction, GraphModule } from "./ops/index.ts";
export type { PrintOptions } from "./text/printer.ts";
export type { CompileOptions } from "./plan/device-passes.ts";
export type { StepCost } from "./plan/costs.ts";
export type { MeasuredTimes } from "./plan/explain.ts";
export type { Plan } from "./plan/plan.ts";
export type { PlanTextOptions } from "./plan/text.ts";
export { Program } from "./plan/program.ts";
export type { BoundProgram, LaunchTime } from "./plan/program.ts";
