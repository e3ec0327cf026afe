/** Text of programs. */
export { cutPrograms, parseGraph, parsePiece } from "./program.ts";
export type { ProgramPiece } from "./program.ts";
export { printFunction, printGraph } from "./printer.ts";
export type { PrintOptions } from "./printer.ts";
