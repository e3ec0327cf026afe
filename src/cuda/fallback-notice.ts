/**
 * What `open()` says, once a process, when another device stands in for a GPU: it is slower by far, and nobody asked for it.
 *
 *   tilewright: open() uses the simulator: this machine has no NVIDIA driver (TW4501); open("simulator") says nothing
 */
import { warn } from "../support/console.ts";
import type { TilewrightError } from "../support/diagnostics.ts";

let isReported = false;

export function warnOfFallback(device: string, { code, summary }: TilewrightError): void {
  if (isReported) return;
  isReported = true;
  warn(
    `tilewright: open() uses the ${device}: ${summary} (${code}); open("${device}") says nothing`,
  );
}
