/**
 * Arithmetic on elements: what the simulator executes.
 *
 *   binaryElements("add", bf16, x, y, target)      each sum exact, then rounded to bf16 once
 */
export {
  acceptsArg,
  acceptsBinary,
  acceptsClassify,
  acceptsCompare,
  acceptsFused,
  acceptsReduce,
  acceptsScan,
  acceptsSort,
  acceptsUnary,
  argDomain,
  argFunctions,
  binaryDomain,
  binaryFunctions,
  classifyDomain,
  classifyFunctions,
  compareDomain,
  comparePredicates,
  inDomain,
  isArithmeticFloat,
  reduceDomain,
  reduceFunctions,
  scanDomain,
  scanFunctions,
  unaryDomain,
  unaryFunctions,
} from "./functions.ts";
export type {
  ArgFunction,
  ArithmeticFloatName,
  BinaryFunction,
  BinaryIn,
  ClassifyFunction,
  ComparePredicate,
  Domain,
  ReduceFunction,
  ScanFunction,
  UnaryFunction,
  UnaryIn,
} from "./functions.ts";
export type { Axis } from "./axis.ts";
export {
  binaryElements,
  classifyElements,
  compareElements,
  selectElements,
  unaryElements,
} from "./elementwise.ts";
export { fusedMultiplyAdd, fusedMultiplyAddElements } from "./fused.ts";
export { reduceElements } from "./reduce.ts";
export { scanElements } from "./scan.ts";
export { argElements, sortElements } from "./order.ts";
export { acceptsDot, dotElements, dotStep } from "./dot.ts";
export type { DotPrecision, DotShape } from "./dot.ts";
export {
  chunkBits,
  chunkOf,
  chunkProblem,
  elementsPerWord,
  heldPlaces,
  sparseDotElements,
} from "./sparse-dot.ts";
