/**
 * Opening a context takes the driver some hundred milliseconds. They pass on another thread, and this one
 * uses them to run the compiler once on a small kernel, so that the first kernel of the program finds its
 * code loaded and compiled by the JavaScript engine.
 *
 *   other thread   cuInit ─────────────┐  cuDevicePrimaryCtxRetain ──────────┐
 *   this thread    trace, ask the cache┘  passes, placement, emission, print ┘  the rest of opening
 */
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { kernelText } from "../device/compilation.ts";
import { f32 } from "../formats/dtype.ts";
import type { Kernel } from "../ir/node.ts";
import { array, cdiv, dim, kernel, slice } from "../lang/index.ts";
import { lower } from "../lower/pipeline.ts";
import { freezePlan, revivePlan } from "../ptx/plan-json.ts";
import { printPtx } from "../ptx/printer.ts";
import { defaultTarget } from "../targets/target.ts";
import type { KernelCache } from "./cache/kernel-cache.ts";
import { dataView } from "./driver.ts";
import type { Driver } from "./driver.ts";
import { success } from "./results.ts";

/**
 * Has the driver open the context of a GPU, and gives what lets go of it again. What goes wrong is left to
 * whoever opens the GPU next, who asks the same and reports it.
 */
export async function startAhead(
  driver: Driver,
  ordinal: number,
  cache: () => KernelCache,
): Promise<() => void> {
  const started = driver.callAside("cuInit", 0);
  const traced = warmTracing(cache);
  if ((await started) !== success) return () => undefined;
  const memory = driver.allocateHost(16);
  try {
    if (driver.calls.cuDeviceGet(memory.address, ordinal) !== success) return () => undefined;
    const device = dataView(memory).getInt32(0, true);
    const retained = driver.callAside("cuDevicePrimaryCtxRetain", memory.address + 8, device);
    warmCompiling(traced);
    if ((await retained) !== success) return () => undefined;
    return () => driver.calls.cuDevicePrimaryCtxRelease(device);
  } finally {
    driver.freeHost(memory);
  }
}

let warm = false;

/** The small kernel, as far as a cache would look at it. */
function warmTracing(cache: () => KernelCache): Kernel | undefined {
  if (warm) return undefined;
  warm = true;
  const n = dim("n");
  const block = 512;
  const { kernel: traced } = kernel(
    {
      name: "warm_up",
      grid: { i: cdiv(n, block) },
      inputs: { x: array(f32, [n]) },
      outputs: { out: array(f32, [n]) },
    },
    ({ i, x, out }) => {
      const here = slice(i.mul(block), block);
      out.at(here).store(x.at(here).load().mul(2).add(1));
    },
  );
  const build = { target: defaultTarget, driverVersion: 0, capability: "" };
  cache().readKernel(kernelText(traced, "messages"), build);
  // The first file that a process reads takes milliseconds; any will do.
  readFileSync(fileURLToPath(import.meta.url));
  return traced;
}

function warmCompiling(traced: Kernel | undefined): void {
  if (traced === undefined) return;
  const { module, ...plan } = lower(traced, defaultTarget);
  printPtx(module);
  revivePlan(JSON.parse(JSON.stringify(freezePlan(plan))), { target: defaultTarget });
}
