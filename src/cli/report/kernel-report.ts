/**
 * What a kernel takes of a GPU and where in its source that comes from. The placement knows conversions and
 * banks, the emitted instructions know widths, and the assembler knows registers.
 *
 *   Placement ──▶ conversions, banks ─┐
 *   PTX ────────▶ accesses, wgmma ────┼──▶ by source line
 *   assembler ──▶ registers, spills, serialised wgmma ──▶ of the whole kernel
 */
import type { Kernel } from "../../ir/node.ts";
import { opName } from "../../ir/op-names.ts";
import type { Conversion, Placement } from "../../layout/plan/place.ts";
import { place } from "../../lower/stages.ts";
import { emitKernel } from "../../ptx/emit/kernel.ts";
import type { Executable } from "../../ptx/executable.ts";
import { printPtx } from "../../ptx/printer.ts";
import { TilewrightError } from "../../support/diagnostics.ts";
import type { Position } from "../../support/location.ts";
import { occupancy } from "../../targets/target.ts";
import type { Occupancy, Target } from "../../targets/target.ts";
import type { Usage } from "../../ptx/notes/assembler-notes.ts";
import { assemblerNotes } from "../../ptx/notes/assembler-notes.ts";
import type { PerformanceNote } from "../../ptx/notes/note.ts";
import { performanceNotes } from "../../ptx/notes/performance-notes.ts";
import type { Source } from "../cuda-toolkit.ts";
import type { Measurer } from "./measurer.ts";
import { bankUses } from "../../ptx/notes/bank-use.ts";
import { emittedAccesses, positionedInstructions } from "../../ptx/notes/emitted-accesses.ts";
import { memoryAccess } from "../../ptx/notes/memory-instructions.ts";
import type { MemoryAccess } from "../../ptx/notes/memory-instructions.ts";

/** Accesses of one kind and width, and how many instructions make them. */
export interface CountedAccess extends MemoryAccess {
  readonly count: number;
}

export interface LineConversion {
  readonly op: string;
  readonly kind: Conversion["plan"]["kind"];
  /** Cycles of one time, as the cost model has it. */
  readonly cost: number;
  readonly times: number;
}

export interface LineBanks {
  readonly op: string;
  readonly wavefronts: number;
  readonly ideal: number;
}

/** What one source line leads to. */
export interface LineReport {
  readonly file: string;
  readonly line: number;
  /** Of PTX. */
  readonly instructions: number;
  readonly wgmma: number;
  readonly accesses: readonly CountedAccess[];
  readonly conversions: readonly LineConversion[];
  readonly banks: readonly LineBanks[];
}

export interface KernelReport {
  readonly name: string;
  readonly kernel: string;
  readonly target: Target;
  readonly threads: number;
  readonly sharedBytes: number;
  /** Undefined where no assembler is installed, or it took too long. */
  readonly usage: Usage | undefined;
  readonly assembledBy: Measurer["name"] | undefined;
  /** Why the assembler was stopped. */
  readonly stopped: TilewrightError | undefined;
  readonly occupancy: Occupancy;
  readonly lines: readonly LineReport[];
  /** What makes it slower than it could be. */
  readonly notes: readonly PerformanceNote[];
}

export async function reportKernel(
  name: string,
  kernel: Kernel,
  target: Target,
  measurer: Measurer | undefined,
): Promise<KernelReport> {
  const { kernel: placed, placement } = place(kernel, target);
  const executable = emitKernel(placed);
  const { threadsPerBlock: threads, sharedBytes, module } = executable;
  const source = { name: kernel.name, target: target.name, ptx: printPtx(module) };
  const { usage, ...assembly } = await usageOf(source, measurer);
  return {
    name,
    kernel: kernel.name,
    target,
    threads,
    sharedBytes,
    usage,
    ...assembly,
    occupancy: occupancy(target, { threads, sharedBytes, registers: usage?.registers }),
    lines: lineReports(placement, executable),
    notes: [
      ...performanceNotes(placement, module),
      ...(usage === undefined ? [] : assemblerNotes(usage)),
    ],
  };
}

/** What the assembler tells; the rest of a report does not need it. */
async function usageOf(
  source: Source,
  measurer: Measurer | undefined,
): Promise<Pick<KernelReport, "usage" | "stopped" | "assembledBy">> {
  try {
    const usage = await measurer?.measure(source);
    return { usage, stopped: undefined, assembledBy: measurer?.name };
  } catch (error) {
    if (!(error instanceof TilewrightError) || error.code !== "TW5012") throw error;
    return { usage: undefined, stopped: error, assembledBy: undefined };
  }
}

/** Facts of a line while they are gathered. */
interface Gathered {
  instructions: number;
  wgmma: number;
  readonly accesses: Map<string, CountedAccess>;
  readonly conversions: LineConversion[];
  readonly banks: LineBanks[];
}

class Lines {
  readonly #lines = new Map<string, { readonly position: Position; readonly facts: Gathered }>();

  at(position: Position): Gathered {
    const key = `${position.file}:${position.line}`;
    const known = this.#lines.get(key);
    if (known !== undefined) return known.facts;
    const facts = {
      instructions: 0,
      wgmma: 0,
      accesses: new Map<string, CountedAccess>(),
      conversions: [],
      banks: [],
    };
    this.#lines.set(key, { position, facts });
    return facts;
  }

  /** In the order of files and lines. */
  sorted(): readonly LineReport[] {
    return [...this.#lines.values()]
      .map(({ position: { file, line }, facts }) => ({
        ...facts,
        file,
        line,
        accesses: [...facts.accesses.values()],
      }))
      .sort((left, right) =>
        left.file === right.file ? left.line - right.line : left.file < right.file ? -1 : 1,
      );
  }
}

function lineReports(placement: Placement, { module }: Executable): readonly LineReport[] {
  const lines = new Lines();
  for (const [position, instruction] of positionedInstructions(module)) {
    const facts = lines.at(position);
    facts.instructions += 1;
    if (instruction.opcode.startsWith("wgmma.mma_async")) facts.wgmma += 1;
    const access = memoryAccess(instruction);
    if (access !== undefined) countAccess(facts, access);
  }
  addConversions(lines, placement);
  for (const { op, wavefronts, ideal } of bankUses(placement, emittedAccesses(module))) {
    const { position } = op.location;
    if (position !== undefined)
      lines.at(position).banks.push({ op: opName(op), wavefronts, ideal });
  }
  return lines.sorted();
}

function countAccess({ accesses }: Gathered, access: MemoryAccess): void {
  const key = `${access.kind} ${access.bytes} ${access.matrix}`;
  const count = (accesses.get(key)?.count ?? 0) + 1;
  accesses.set(key, { ...access, count });
}

function addConversions(lines: Lines, { conversions }: Placement): void {
  for (const { op, plan, cost, weight } of conversions) {
    const { position } = op.location;
    if (position === undefined) continue;
    lines.at(position).conversions.push({ op: opName(op), kind: plan.kind, cost, times: weight });
  }
}
