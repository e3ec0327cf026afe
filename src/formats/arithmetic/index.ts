/**
 * Arithmetic on lanes: what the simulator executes.
 *
 *   binaryLanes("add", bf16, x, y, target)      each sum exact, then rounded to bf16 once
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
  binaryLanes,
  classifyLanes,
  compareLanes,
  selectLanes,
  unaryLanes,
} from "./elementwise.ts";
export { fusedMultiplyAdd, fusedMultiplyAddLanes } from "./fused.ts";
export { reduceLanes } from "./reduce.ts";
export { scanLanes } from "./scan.ts";
export { argLanes, sortLanes } from "./order.ts";
export { acceptsDot, dotLanes, dotStep } from "./dot.ts";
export type { DotPrecision, DotShape } from "./dot.ts";
export {
  chunkBits,
  chunkOf,
  chunkProblem,
  elementsPerWord,
  heldPlaces,
  sparseDotLanes,
} from "./sparse-dot.ts";
