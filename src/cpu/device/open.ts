/** Opens the CPU as a device: asks once what the engine offers. */
import { cpuTarget } from "../../targets/target.ts";
import { simplify } from "../../lower/simplify.ts";
import { lowerKernel } from "../lower/index.ts";
import type { CpuFeatures } from "../compiled-kernel.ts";
import { CpuBackend } from "./backend.ts";
import type { CpuOptions } from "./backend.ts";
import { engineFeatures, requireWebAssembly } from "./support.ts";

/** What of the compiler tests choose. */
export interface CpuHooks {
  readonly features?: CpuFeatures | undefined;
}

/** Throws where there is no WebAssembly, or none may be compiled. */
export function openCpu(
  options: Omit<CpuOptions, "target"> = {},
  { features }: CpuHooks = {},
): CpuBackend {
  requireWebAssembly();
  return new CpuBackend(
    { target: cpuTarget, ...options },
    {
      compile: (kernel, offered) => lowerKernel(simplify(kernel), offered),
      features: features ?? engineFeatures(),
    },
  );
}
