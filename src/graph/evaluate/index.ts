/**
 * What the rest of the project uses of the evaluator, which says what a program means: op by op, in order, each
 * rounded to its own format.
 *
 *   evaluate(module, "main", [x])      values of %arg0, then of each op, then what is returned
 */
export { arrayOfTensor, datumText, isTensorDatum, tensor, tensorOfArray } from "./value.ts";
export type { Datum, Tensor } from "./value.ts";
export { evaluate, evaluateIn, evaluateWithBreaks } from "./evaluate.ts";
export type { EvaluationOptions } from "./evaluate.ts";
export { modularArithmetic } from "./modular.ts";
export { numbersOf, reader } from "./scalars.ts";
export type { Scalar } from "./scalars.ts";
export { namedTensors } from "./arrays.ts";
export { disagreement } from "./compare.ts";
