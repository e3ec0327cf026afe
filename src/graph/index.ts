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
export { parseGraph, printGraph } from "./text/index.ts";
export { verifyGraph } from "./verify/index.ts";
