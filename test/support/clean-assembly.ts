/** What the assembler tells of the kernels of an operation where they are not as fast as they were written to be. */
import type { Kernel } from "../../src/ir/node.ts";
import { lower } from "../../src/lower/pipeline.ts";
import { renewedFactorNotes } from "../../src/ptx/notes/renewed-factors.ts";
import { printPtx } from "../../src/ptx/printer.ts";
import { targets } from "../../src/targets/target.ts";
import { describeAssembly, disassemble, hasDisassembler } from "../ptxas.ts";
import type { Assembly } from "../ptxas.ts";
import { touchedInFlight } from "./machine-flights.ts";

/** What was said of a kernel, by its text: operations share kernels, and assembling is what takes time. */
const told = new Map<string, Assembly>();

function assemblyOf(text: string): Assembly {
  const before = told.get(text);
  if (before !== undefined) return before;
  const found = hasDisassembler
    ? disassemble(text, "sm_90a")
    : { said: describeAssembly(text, "sm_90a"), code: "" };
  told.set(text, found);
  return found;
}

/**
 * Left factors that are copied in every round, spills, and C7510 and its like: products in a row, registers that were not given. Where
 * machine code can be read, registers of products in flight that it touches.
 */
export function assemblyProblems(
  kernels: readonly { readonly kernel: Kernel }[],
  /** Bytes that a lane may spill: what is computed at the start and read once a tile is no loss. */
  spilled = 0,
): readonly string[] {
  const spills = (line: string): boolean =>
    [...line.matchAll(/(\d+) bytes spill stores/g)].some(([, bytes]) => Number(bytes) > spilled);
  return kernels.flatMap(({ kernel }) => {
    const { module } = lower(kernel, targets.sm_90a);
    const held = renewedFactorNotes(module).map(({ because }) => because);
    const { said, code } = assemblyOf(printPtx(module));
    return [
      ...held,
      ...touchedInFlight(code),
      ...said
        .split("\n")
        .filter((line) => /C75\d\d|warning|error|fatal/.test(line) || spills(line)),
    ];
  });
}
