/**
 * What a kernel goes through on its way to machine code, a file for each stage:
 *
 *   DIR/axpy.sm_90a/00-traced.ir
 *                   01-foldConstants.ir      after each pass that changed it
 *                   02-canonicalize.ir
 *                   03-select.ir             instructions of products
 *                   04-place.ir              the placed kernel: layouts, conversions, scratch
 *                   05-allocate.ir           bytes of shared memory
 *                   06-bound.ir              tests of bounds, units of accesses
 *                   …
 *                   placement.txt            layouts, instructions, conversions, shared memory
 *                   kernel.ptx
 *                   assembler.log            what ptxas says of it, where that is installed
 *                   kernel.sass              where a disassembler is installed
 *                   error.txt                why there is no more, for a kernel that cannot be compiled
 */
import { join } from "node:path";
import type { Kernel } from "../ir/node.ts";
import { printKernel } from "../ir/printer.ts";
import { placementReport } from "../layout/plan/report.ts";
import { place } from "../lower/stages.ts";
import { emitKernel } from "../ptx/emit/kernel.ts";
import { portableExecutable } from "../ptx/relative-source-paths.ts";
import { warningLines } from "../ptx/notes/assembler-notes.ts";
import { printPtx } from "../ptx/printer.ts";
import { TilewrightError } from "../support/diagnostics.ts";
import type { Target } from "../targets/target.ts";
import { makeFolder, writeFile } from "./files.ts";
import { disassemble, findAssembler } from "./cuda-toolkit.ts";

export interface DumpedKernel {
  readonly name: string;
  readonly kernel: Kernel;
  readonly target: Target;
  /** What the driver's assembler said, where it has been asked. */
  readonly driverLog?: string | undefined;
}

/** The dumps of one command. */
export class Dumps {
  readonly #folder: string;
  readonly #taken = new Set<string>();

  constructor(folder: string) {
    this.#folder = folder;
  }

  async write(dumped: DumpedKernel): Promise<void> {
    const folder = join(this.#folder, this.#nameFor(dumped));
    makeFolder(folder);
    const write = (name: string, text: string): void => {
      writeFile(join(folder, name), text);
    };
    try {
      const ptx = writeStages(dumped, write);
      await writeAssembly(dumped, ptx, write);
    } catch (error) {
      if (!(error instanceof TilewrightError)) throw error;
      write("error.txt", `${error.message}\n`);
    }
  }

  /** A line for people. */
  summary(): string {
    return `wrote ${[...this.#taken].map((name) => join(this.#folder, name)).join(", ")}`;
  }

  /** Kernels of one name each have a folder. */
  #nameFor({ name, target }: DumpedKernel): string {
    const plain = `${name.replace(/[^\w.$-]/g, "_")}.${target.name}`;
    let chosen = plain;
    for (let number = 2; this.#taken.has(chosen); number += 1) chosen = `${plain}-${number}`;
    this.#taken.add(chosen);
    return chosen;
  }
}

type Write = (name: string, text: string) => void;

/** Everything that is made without a tool; gives the PTX. */
function writeStages({ kernel, target }: DumpedKernel, write: Write): string {
  let number = 0;
  const writeIr = (stage: string, ir: Kernel): void => {
    write(`${String(number++).padStart(2, "0")}-${stage}.ir`, `${printKernel(ir)}\n`);
  };
  writeIr("traced", kernel);
  const { kernel: placed, placement } = place(kernel, target, { observe: writeIr });
  write("placement.txt", placementReport(placement));
  const ptx = printPtx(portableExecutable(emitKernel(placed)).module);
  write("kernel.ptx", ptx);
  return ptx;
}

/** Seconds; whoever dumps stages wants to see them. */
const assemblerLimit = 120;

async function writeAssembly(
  { name, target, driverLog = "" }: DumpedKernel,
  ptx: string,
  write: Write,
): Promise<void> {
  const assembler = findAssembler(assemblerLimit);
  if (assembler === undefined) {
    const lines = [
      "ptxas is not installed",
      ...warningLines(driverLog).map((line) => `the driver: ${line}`),
    ];
    write("assembler.log", `${lines.join("\n")}\n`);
    return;
  }
  const { log, cubin } = await assembler({ name, target: target.name, ptx });
  write("assembler.log", log);
  const sass = await disassemble(cubin);
  if (sass !== undefined) write("kernel.sass", sass);
}
