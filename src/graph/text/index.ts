/** Text of programs. */
export { parseGraph } from "./program.ts";
export { printFunction, printGraph } from "./printer.ts";
export type { PrintOptions } from "./printer.ts";
