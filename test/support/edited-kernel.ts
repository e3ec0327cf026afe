/** Runs kernels on the emulator with their PTX edited, to see what an instruction was there for. */
import { compileForFiles } from "../../src/lower/compile-ahead.ts";
import type { HostArray } from "../../src/formats/hostarray.ts";
import type { KernelDefinition } from "../../src/lang/index.ts";
import { kernelFromCompiled, manifestOf } from "../../src/ptx/compiled-kernel.ts";
import { printPtx } from "../../src/ptx/printer.ts";
import { open } from "../../src/runtime/open.ts";
import type { TilewrightError } from "../../src/support/diagnostics.ts";
import { targets } from "../../src/targets/target.ts";
import type { Target } from "../../src/targets/target.ts";

export interface EditedRun {
  readonly ptx: string;
  /** Codes of what was found, each once, but for elements of outputs that these kernels never write. */
  readonly codes: readonly string[];
  /** What was found, but for such elements. */
  readonly findings: readonly TilewrightError[];
  /** Undefined where the launch was given up. */
  readonly results: { readonly [name: string]: HostArray } | undefined;
}

export interface EditOptions {
  readonly edit?: (ptx: string) => string;
  readonly target?: Target;
  readonly seed?: number;
}

export function ptxOf({ kernel }: KernelDefinition, target: Target = targets.sm_90a): string {
  return printPtx(compileForFiles(kernel, target).module);
}

/** Everything that was found is given back, and nothing is thrown for it. */
export async function runEdited(
  { kernel }: KernelDefinition,
  inputs: { readonly [name: string]: HostArray },
  { edit = (text) => text, target = targets.sm_90a, seed = 1 }: EditOptions = {},
): Promise<EditedRun> {
  const { module, ...plan } = compileForFiles(kernel, target);
  const ptx = edit(printPtx(module));
  const found: TilewrightError[] = [];
  const device = await open("emulator", {
    target,
    seed,
    threads: 1,
    onFindings: (findings) => found.push(...findings),
    onPrint: () => undefined,
  });
  try {
    const compiled = kernelFromCompiled(manifestOf(kernel, plan, ptx), ptx);
    const results = await device.run(compiled, inputs);
    return { ptx, ...foundOf(found), results };
  } catch (error) {
    if (found.length === 0) throw error;
    return { ptx, ...foundOf(found), results: undefined };
  } finally {
    device.dispose();
  }
}

function foundOf(all: readonly TilewrightError[]): Pick<EditedRun, "codes" | "findings"> {
  const findings = all.filter(({ code }) => code !== "TW3020");
  return { findings, codes: [...new Set(findings.map(({ code }) => code))] };
}

/** PTX without the lines that match. */
export function withoutLines(pattern: RegExp): (ptx: string) => string {
  return (ptx) =>
    ptx
      .split("\n")
      .filter((line) => !pattern.test(line))
      .join("\n");
}
