/**
 * What the assembler says of speed, as notes. ptxas and the driver write the same lines:
 *
 *   ptxas info : Used 168 registers, used 4 barriers                         Usage
 *       0 bytes stack frame, 512 bytes spill stores, 480 bytes spill loads   TW7505
 *   ptxas info : (C7504) … 'setmaxnreg' ignored …                            TW7507
 *   ptxas info : (C7510) … wgmma.mma_async instructions are serialized …     TW7506
 *   ptxas info : (C7512) … wgmma.mma_async instructions are serialized …     TW7506
 */
import { codes } from "../../support/diagnostic-codes/index.ts";
import type { PerformanceCode, PerformanceNote } from "./note.ts";
import { productInstructions } from "../../targets/product-instructions.ts";

/** What a kernel takes of a GPU, as the assembler tells. */
export interface Usage {
  /** Of a lane. */
  readonly registers: number;
  readonly barriers: number;
  /** Bytes of a lane that go to memory for want of registers. */
  readonly spillStores: number;
  readonly spillLoads: number;
  /** Lines that tell of lost speed, such as wgmma that runs one after the other. */
  readonly warnings: readonly string[];
}

export function usageIn(log: string): Usage {
  const number = (pattern: RegExp): number => Number(pattern.exec(log)?.[1] ?? 0);
  return {
    registers: number(/Used (\d+) registers/),
    barriers: number(/used (\d+) barriers/),
    spillStores: number(/(\d+) bytes spill stores/),
    spillLoads: number(/(\d+) bytes spill loads/),
    warnings: warningLines(log),
  };
}

/** Lines that carry a number of the assembler's own. */
export function warningLines(log: string): readonly string[] {
  return log
    .split("\n")
    .filter((line) => line.includes("(C7"))
    .map((line) => line.trim());
}

export function assemblerNotes(
  usage: Pick<Usage, "spillStores" | "spillLoads" | "warnings">,
): readonly PerformanceNote[] {
  const { spillStores, spillLoads, warnings } = usage;
  const lines = warnings.map((line): PerformanceNote => {
    const code = codeOf(line);
    const because = line.replace(/^.*?\((C\d+)\)\s*/, "($1) ");
    return wholeKernel(code, titles[code], because, remedyOf(code, line));
  });
  if (spillStores + spillLoads === 0) return lines;
  const bytes = `a thread writes ${spillStores} bytes and reads ${spillLoads} back`;
  const spills = wholeKernel(
    "TW7505",
    "registers are spilled to memory",
    bytes,
    codes.TW7505.remedy,
  );
  return [spills, ...lines];
}

type AssemblerCode = "TW7506" | "TW7507" | "TW7508";

const titles: { readonly [C in AssemblerCode]: string } = {
  TW7506: "wgmma instructions run one after the other",
  TW7507: "setRegisters has no effect",
  TW7508: "the assembler reports a loss of speed",
};

function codeOf(line: string): AssemblerCode {
  if (line.includes("setmaxnreg")) return "TW7507";
  return isOfProducts(line) ? "TW7506" : "TW7508";
}

/** Whether a warning of the assembler is about products with sums in flight, which it serialises. */
export function isOfProducts(warning: string): boolean {
  return warning.includes(productInstructions.wgmma.name);
}

/** Products wait for each other for want of registers, or because something is done to their registers in between. */
function remedyOf(code: AssemblerCode, line: string): string {
  if (code !== "TW7506" || line.includes("insufficient register")) return codes[code].remedy;
  return "let nothing but wgmma read or write accumulators and operand tiles until their wait";
}

function wholeKernel(
  code: PerformanceCode,
  message: string,
  because: string,
  remedy: string,
): PerformanceNote {
  return { code, message, because, remedy, position: undefined };
}
