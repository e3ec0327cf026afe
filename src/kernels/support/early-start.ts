/**
 * Kernels of a sequence that start before the one before them has ended: blocks of the next are brought to a processor as soon as
 * one of this has left it, and have their barriers ready when the last is done.
 *
 *   kernel before    ……… last blocks ……… end
 *   this kernel          start, barriers ┤ followPrevious ┤ memory
 */
import { launchNextKernel, waitForPreviousKernel } from "../../lang/index.ts";

/** From here on memory may be touched; the kernel after this may start. */
export function followPrevious(): void {
  waitForPreviousKernel();
  launchNextKernel();
}
