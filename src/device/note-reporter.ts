/**
 * Reports what makes kernels slow, each note once on a device: a kernel that is compiled for many shapes has the same
 * note for each of them. Where kernels are only simulated or emulated, speed is not what the user looks
 * for, so that notes are on the compilation's record and nowhere else unless a listener asks for them. That a kernel would not be compiled at
 * all is printed there, too, once for a kernel.
 */
import type { Kernel } from "../ir/node.ts";
import { isAnswer, isRefusal, noteText } from "../ptx/notes/note.ts";
import type { PerformanceNote } from "../ptx/notes/note.ts";
import { warn } from "../support/console.ts";
import type { CompilationRecord } from "./compilation.ts";

type Listener = (kernel: string, notes: readonly PerformanceNote[]) => void;

export class NoteReporter {
  readonly #listener: Listener | undefined;
  readonly #reported = new Set<string>();

  constructor(listener: Listener | undefined) {
    this.#listener = listener;
  }

  report(record: CompilationRecord): void {
    const { kernel, notes, machineCode } = record;
    const listener = this.#listener ?? (machineCode === undefined ? undefined : print);
    const fresh = notes.filter((note) => !this.#reported.has(keyOf(kernel, note)));
    if (listener === undefined) {
      printRefusals(record, fresh.filter(isRefusal));
      const answers = fresh.filter(isAnswer);
      for (const note of answers) this.#reported.add(keyOf(kernel, note));
      if (answers.length > 0) warn(answers.map(noteText).join("\n"));
    }
    if (listener === undefined || fresh.length === 0) return;
    for (const note of fresh) this.#reported.add(keyOf(kernel, note));
    listener(kernel, fresh);
  }
}

/** Notes of the whole kernel are identified by its name, others by their line. */
function keyOf(kernel: string, note: PerformanceNote): string {
  return note.position === undefined ? `${kernel} ${noteText(note)}` : noteText(note);
}

/** Kernels of which it was printed that they would not be compiled: a check of one runs it on many devices. */
const refused = new WeakSet<Kernel>();

function printRefusals(record: CompilationRecord, notes: readonly PerformanceNote[]): void {
  // Of a kernel that was kept, its being asked for is what traces it.
  const traced = notes.length === 0 ? undefined : record.traced;
  if (traced === undefined || refused.has(traced)) return;
  refused.add(traced);
  warn([`kernel ${record.kernel} runs on the simulator alone:`, ...notes.map(noteText)].join("\n"));
}

function print(kernel: string, notes: readonly PerformanceNote[]): void {
  warn([`kernel ${kernel} could be faster:`, ...notes.map(noteText)].join("\n"));
}
