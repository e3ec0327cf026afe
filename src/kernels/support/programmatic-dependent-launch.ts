/**
 * Programmatic dependent launch for the kernels of a sequence: blocks of the next kernel are scheduled as soon as a multiprocessor has room,
 * and have set up their barriers when the last block of this one is done.
 *
 *   kernel before    ……… last blocks ……… end
 *   this kernel          start, barriers ┤ followPrevious ┤ memory
 */
import { launchNextKernel, waitForPreviousKernel } from "../../lang/index.ts";

/** Waits for the kernel before, so that memory may be accessed from here on, and lets the kernel after this one start. */
export function followPrevious(): void {
  waitForPreviousKernel();
  launchNextKernel();
}
