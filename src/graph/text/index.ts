/**
 * Text of programs: StableHLO as JAX and others print it, read and written.
 *
 *   %0 = stablehlo.add %x, %y : tensor<4xf32>      ◀──▶      GraphOp { kind: "stablehlo.add", operands: { lhs, rhs } }
 */
export { cutPrograms, parseGraph, parsePiece } from "./program.ts";
export type { ProgramPiece } from "./program.ts";
export { printFunction, printGraph } from "./printer.ts";
export type { PrintOptions } from "./printer.ts";
