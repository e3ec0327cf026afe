/**
 * Candidates compiled before they are tried, by helper processes that fill the caches of compiled kernels and of the
 * driver, from which the device then takes what it needs at once.
 */
import type { Device } from "../device/device.ts";
import type { Sizes } from "../device/tuning/line.ts";
import { printKernel } from "../ir/printer.ts";
import type { Candidate } from "./candidate.ts";
import type { TuneSettings } from "./options.ts";

/** Fewer kernels than this are compiled sooner than helpers are started. */
const worthHelpers = 4;

/** Compiles the kernels of all candidates; a failure is reported when the candidate is tried. */
export async function compileAll(
  { gpu, target }: Device,
  waiting: readonly { readonly candidate: Candidate; readonly sizes: Sizes }[],
  { workers, signal }: TuneSettings,
): Promise<void> {
  if (gpu === undefined || workers === 0) return;
  const texts = waiting.flatMap(({ candidate, sizes }) =>
    candidate.operation
      .plan(sizes, target)
      .launches.map(({ kernel }) => printKernel(kernel.kernel, { locations: true })),
  );
  const distinct = [...new Set(texts)];
  if (distinct.length < worthHelpers) return;
  const { compileInBackground } = await import("../cuda/open.ts");
  await compileInBackground(distinct, { helpers: workers, signal });
}
