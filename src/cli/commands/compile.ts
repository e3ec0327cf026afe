/** `tilewright compile`: the kernels of a file as text. */
import { printKernel } from "../../ir/printer.ts";
import { runPasses } from "../../passes/pipeline.ts";
import { requireLimits } from "../../sim/limits.ts";
import type { Target } from "../../targets/target.ts";
import { writeText } from "../files.ts";
import type { Output } from "../output.ts";
import { runUserCode } from "../program-output.ts";
import { loadUserModule, selectKernels } from "../user-module.ts";

/** What a kernel can be compiled to. */
export const emitted = ["ir"] as const;

export interface CompileSettings {
  readonly file: string;
  readonly kernel: string | undefined;
  readonly passes: boolean;
  readonly target: Target;
  readonly out: string | undefined;
}

export async function compileCommand(settings: CompileSettings, output: Output): Promise<number> {
  const { file, out, passes, target } = settings;
  const module = await runUserCode(output, () => loadUserModule(file));
  const kernels = selectKernels(module, settings.kernel).map(({ name, definition }) => {
    const kernel = passes ? runPasses(definition.kernel) : definition.kernel;
    requireLimits(kernel, target);
    return { name, kernel: kernel.name, ir: printKernel(kernel) };
  });
  const text = `${kernels.map(({ ir }) => ir).join("\n\n")}\n`;
  if (out === undefined) output.line(text.trimEnd());
  else {
    writeText(out, text);
    output.line(`wrote ${kernels.map(({ name }) => name).join(", ")} to ${out}`);
  }
  output.document({ file, target: target.name, passes, out, kernels });
  return 0;
}
