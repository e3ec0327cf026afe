/**
 * Who assembles the kernels of a report. Where the machine has the GPU that a report is for, its driver does, so that the
 * report is about the code that will run; elsewhere ptxas of a toolkit does, if there is one.
 *
 *   target sm_90a, on a machine with an H200   the driver
 *   target sm_100a there, or no GPU            ptxas
 */
import { CudaContext } from "../../cuda/context.ts";
import type { Driver } from "../../cuda/driver.ts";
import { loadModule } from "../../cuda/module.ts";
import { processDriver } from "../../cuda/open.ts";
import { usageIn } from "../../ptx/notes/assembler-notes.ts";
import type { Usage } from "../../ptx/notes/assembler-notes.ts";
import { TilewrightError } from "../../support/diagnostics.ts";
import { unknownLocation } from "../../support/location.ts";
import type { Target } from "../../targets/target.ts";
import { findAssembler } from "../cuda-toolkit.ts";
import type { Source } from "../cuda-toolkit.ts";

export interface Measurer {
  readonly name: "the driver" | "ptxas";
  measure(source: Source): Promise<Usage>;
}

/** Finds a measurer for each target; dispose of it when done. */
export class Measurers {
  readonly #context: CudaContext | undefined;
  readonly #seconds: number;

  /** ptxas is stopped after `seconds`; the driver cannot be. */
  constructor(driver: Driver | undefined, seconds: number) {
    this.#context = driver && contextOn(driver);
    this.#seconds = seconds;
  }

  for(target: Target): Measurer | undefined {
    const context = this.#context;
    if (context?.target.name === target.name)
      return { name: "the driver", measure: async (source) => driverUsage(context, source) };
    const assembler = findAssembler(this.#seconds);
    return (
      assembler && { name: "ptxas", measure: async (source) => (await assembler(source)).usage }
    );
  }

  dispose(): void {
    this.#context?.dispose();
  }
}

/** The driver of this machine; undefined where it has none. */
export async function driverHere(): Promise<Driver | undefined> {
  try {
    return await processDriver();
  } catch (error) {
    if (error instanceof TilewrightError) return undefined;
    throw error;
  }
}

/** A report without a GPU is still a report: a driver whose GPU cannot be opened does not stop it. */
function contextOn(driver: Driver): CudaContext | undefined {
  try {
    return new CudaContext(driver, 0);
  } catch (error) {
    if (error instanceof TilewrightError) return undefined;
    throw error;
  }
}

/** The driver tells nothing of code that it has kept from before, so every report's PTX is a new text. */
function driverUsage(context: CudaContext, { name, ptx }: Source): Usage {
  const code = `${ptx}\n// report of ${new Date().toISOString()} ${Math.random()}\n`;
  const { handle, log = "" } = loadModule(context, { name, location: unknownLocation, code });
  context.driver.calls.cuModuleUnload(handle);
  return usageIn(log);
}
