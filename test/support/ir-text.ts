/** Kernels as text for tests of passes: what a test shows is the body alone. */
import type { Kernel } from "../../src/ir/node.ts";
import { parseModule } from "../../src/ir/parser/parser.ts";
import { printKernel } from "../../src/ir/printer.ts";
import { verifyKernel } from "../../src/ir/verify/index.ts";

const header = `kernel @k dimensions [n] grid [i = ceildiv(n, 8), j = 1] threads [main] (
  inout %0 "x": ref<gmem, f32, [8]>,
  inout %1 "y": ref<gmem, i32, [8]>,
  scalar %2 "a": f32,
  scalar %3 "b": i32,
  scalar %4 "c": bool
) {`;

/**
 * A kernel with this body (a yield is added), where `%x` and `%y` are windows on f32 and i32 of shape
 * [8], and `%a`, `%b`, `%c` scalars of f32, i32 and bool.
 */
export function kernelWith(body: string): Kernel {
  const named = header.replace(/%(\d)/g, (_, index: string) => `%${"xyabc".charAt(Number(index))}`);
  const [kernel] = parseModule(`${named}\n${body}\nyield\n}`).kernels;
  if (kernel === undefined) throw new Error("the text has a kernel");
  verifyKernel(kernel);
  return kernel;
}

/** The kernel's body, in which the parameters have their names again. */
export function bodyText(kernel: Kernel): string {
  verifyKernel(kernel);
  return printKernel(kernel)
    .split("\n")
    .slice(header.split("\n").length, -2)
    .map((line) =>
      line
        .slice(2)
        .replace(/%([0-4])\b/g, (_, index: string) => `%${"xyabc".charAt(Number(index))}`),
    )
    .join("\n");
}

/** The body after the pass. */
export function after(pass: (kernel: Kernel) => Kernel, body: string): string {
  return bodyText(pass(kernelWith(body)));
}
