/** What the rest of the project uses of the evaluator. */
export { arrayOfTensor, datumText, isTensorDatum, tensor, tensorOfArray } from "./datum.ts";
export type { Datum, Tensor } from "./datum.ts";
export { evaluate, evaluateWithBreaks } from "./evaluate.ts";
export type { EvaluationOptions } from "./evaluate.ts";
export { numbersOf, reader } from "./scalars.ts";
export type { Scalar } from "./scalars.ts";
export { namedTensors } from "./arrays.ts";
export { disagreement } from "./compare.ts";
