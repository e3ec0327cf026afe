/** Findings of collective instructions, each once for an instruction. */
import type { DiagnosticDetails } from "../support/diagnostics.ts";
import type { CollectiveInstruction, MachineView, Place, WarpView } from "./collective.ts";
import { byteStates } from "./memory.ts";

const reported = new WeakMap<MachineView, Map<CollectiveInstruction, Set<string>>>();

/** Reports a finding at an instruction, unless it has been reported there before. */
export function reportOnce(
  machine: MachineView,
  instruction: CollectiveInstruction,
  details: DiagnosticDetails,
): void {
  if (isNew(machine, instruction, details.code)) machine.report(details);
}

/** Whether something has not been told of an instruction; from now on it has. */
function isNew(machine: MachineView, instruction: CollectiveInstruction, what: string): boolean {
  const ofMachine = reported.get(machine) ?? new Map<CollectiveInstruction, Set<string>>();
  reported.set(machine, ofMachine);
  const known = ofMachine.get(instruction) ?? new Set<string>();
  ofMachine.set(instruction, known);
  if (known.has(what)) return false;
  known.add(what);
  return true;
}

/** The same of a note. */
export function noteOnce(
  machine: MachineView,
  instruction: CollectiveInstruction,
  details: DiagnosticDetails,
): void {
  if (isNew(machine, instruction, `note ${details.code}`)) machine.note(details);
}

/** Reports a read of bytes that nothing has written. */
export function checkWritten(
  machine: MachineView,
  warp: WarpView,
  instruction: CollectiveInstruction,
  { views: { states }, offset, space }: Pick<Place, "views" | "offset" | "space">,
  bytes: number,
): void {
  if (!machine.checks) return;
  for (let at = offset; at < offset + bytes; at++) {
    if (states[at] === byteStates.written) continue;
    reportOnce(machine, instruction, {
      code: "TW8013",
      message: `${instruction.instruction.opcode} of ${warp.title} reads ${space} memory that nothing has written`,
      location: instruction.location,
      expected: "bytes that were written before",
      found: space === "shared" ? machine.naming.shared(at) : machine.naming.global(at),
    });
    return;
  }
}
