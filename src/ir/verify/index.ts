/**
 * The verifier: whatever tracing, parsing or a pass has built, a kernel that passes here obeys the rules
 * of the IR. Tests run it after every pass.
 *
 * | check      | asks                                                                       |
 * |------------|----------------------------------------------------------------------------|
 * | header     | do grid, threads, dimensions and parameters make sense                     |
 * | form       | do ops look as the op table says, are nodes frozen, do regions yield       |
 * | visibility | is each value defined once, before its uses, in a region around them       |
 * | types      | does inference give the types that results have                            |
 * | linear     | is each in-flight accumulator consumed exactly once                        |
 * | in-flight products | are tiles of accumulators taken when their own products are over           |
 * | placement  | do allocations, collective ops and warp code stand where they can run      |
 * | memory     | are inputs only read, and private memory kept private                      |
 * | dependent launch | do kernels under programmatic dependent launch wait before they access memory |
 *
 * Each check relies on the ones before it.
 */
import { inferResults } from "../infer/index.ts";
import { sameTypeLists, typesText } from "../infer/checks.ts";
import type { Kernel, Module } from "../node.ts";
import { walkOps, yieldedValues } from "../traverse.ts";
import { verifyDependentLaunch } from "./programmatic-dependent-launch.ts";
import { verifyInFlightProducts } from "./in-flight-products.ts";
import { verifyForm } from "./form.ts";
import { verifyHeader } from "./kernel.ts";
import { verifyLinear } from "./linear.ts";
import { verifyMemory } from "./memory.ts";
import { verifyPlacement } from "./placement.ts";
import { reject } from "./report.ts";
import { collectDefinitions, verifyVisibility } from "./visibility.ts";

function verifyTypes(kernel: Kernel): void {
  walkOps(kernel.body, (op) => {
    const inferred = inferResults(op, kernel);
    const found = op.results.map(({ type }) => type);
    if (!sameTypeLists(inferred, found))
      reject(op, "TW2205", `results of ${op.kind} have other types than inference gives`, {
        expected: typesText(inferred),
        found: typesText(found),
      });
  });
  const yielded = yieldedValues(kernel.body);
  if (yielded.length > 0)
    reject(kernel, "TW2213", `the body of ${kernel.name} yields values`, {
      expected: "()",
      found: typesText(yielded.map(({ type }) => type)),
    });
}

/** Throws a TilewrightError for the first rule the kernel breaks. */
export function verifyKernel(kernel: Kernel): void {
  verifyHeader(kernel);
  verifyForm(kernel.body, kernel);
  const definitions = collectDefinitions(kernel);
  verifyVisibility(kernel.body, definitions);
  verifyTypes(kernel);
  verifyLinear(kernel, definitions);
  verifyInFlightProducts(kernel);
  verifyPlacement(kernel);
  verifyMemory(kernel);
  verifyDependentLaunch(kernel);
}

/** Verifies every kernel and that their names differ. */
export function verifyModule(module: Module): void {
  const names = new Map<string, Kernel>();
  for (const kernel of module.kernels) {
    const before = names.get(kernel.name);
    if (before !== undefined)
      reject(kernel, "TW2214", `the module has two kernels ${kernel.name}`, {
        expected: "a name of its own for each kernel",
        found: `${kernel.name} twice`,
        notes: [{ message: "the first is here", location: before.location }],
      });
    names.set(kernel.name, kernel);
    verifyKernel(kernel);
  }
}
