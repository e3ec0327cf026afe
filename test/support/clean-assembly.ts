/** What the assembler tells of the kernels of an operation where they are not as fast as they were written to be. */
import type { Kernel } from "../../src/ir/node.ts";
import { lower } from "../../src/lower/stages.ts";
import { renewedFactorNotes } from "../../src/ptx/notes/renewed-factors.ts";
import { targets } from "../../src/targets/target.ts";
import { describeAssembly, disassemble, hasDisassembler, textWithoutLines } from "../ptxas.ts";
import { assemblyRecord } from "./assembly-record.ts";
import { touchedInFlight } from "./machine-flights.ts";

interface Told {
  /** C7510 and its like: products in a row, registers that were not given. And registers of products in flight that are touched. */
  readonly complaints: readonly string[];
  /** Bytes that a lane of one of its functions spills at most. */
  readonly spilled: number;
}

/** What was said of a kernel, by its text: operations share kernels, and assembling is what takes time. */
const told = new Map<string, Told>();

function assembled(text: string): Told {
  const { said, code } = hasDisassembler
    ? disassemble(text, "sm_90a")
    : { said: describeAssembly(text, "sm_90a"), code: "" };
  const lines = said.split("\n").filter((line) => /C75\d\d|warning|error|fatal/.test(line));
  const spills = [...said.matchAll(/(\d+) bytes spill stores/g)].map(([, bytes]) => Number(bytes));
  // Silence is no word of content.
  const silence = spills.length === 0 ? ["the assembler tells of no function"] : [];
  return {
    complaints: [...touchedInFlight(code), ...lines, ...silence],
    spilled: Math.max(0, ...spills),
  };
}

function toldOf(text: string): Told {
  const record = assemblyRecord();
  const recorded = record.spilled(text);
  if (recorded !== undefined) return { complaints: [], spilled: recorded };
  const found = told.get(text) ?? assembled(text);
  told.set(text, found);
  if (found.complaints.length === 0) record.note(text, found.spilled);
  return found;
}

/** Left factors that are copied in every round, spills, and what else the assembler complains of. */
export function assemblyProblems(
  kernels: readonly { readonly kernel: Kernel }[],
  /** Bytes that a lane may spill: what is computed at the start and read once a tile is no loss. */
  allowed = 0,
): readonly string[] {
  return kernels.flatMap(({ kernel }) => {
    const { module } = lower(kernel, targets.sm_90a);
    const held = renewedFactorNotes(module).map(({ because }) => because);
    // Where its lines were written changes nothing in a kernel.
    const { complaints, spilled } = toldOf(textWithoutLines(module));
    const spills = spilled > allowed ? [`${kernel.name}: ${spilled} bytes spill stores`] : [];
    return [...held, ...complaints, ...spills];
  });
}
