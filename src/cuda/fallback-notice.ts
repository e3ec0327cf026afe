/**
 * What `open()` says, once a process, when another device stands in for a GPU: it is slower by far, and nobody asked for it.
 *
 *   tilewright: open() uses the simulator, which looks for mistakes: this machine has no NVIDIA driver (TW4501); open("cpu") is for speed, …
 */
import { warn } from "../support/console.ts";
import type { TilewrightError } from "../support/diagnostics.ts";

let isReported = false;

export function warnOfFallback(device: string, { code, summary }: TilewrightError): void {
  if (isReported) return;
  isReported = true;
  warn(
    `tilewright: open() uses the ${device}, which looks for mistakes: ${summary} (${code}); open("cpu") is for speed, open("${device}") says nothing`,
  );
}
