/**
 * What the driver answers, as reports of tilewright's own. A result is a number that says little; who
 * called it and for which kernel says the rest.
 */
import { TilewrightError } from "../support/diagnostics.ts";
import type { Location } from "../support/location.ts";
import { outOfMemory, resultName } from "./results.ts";

/** The driver's answer, as reports show it. */
export function answerText(call: string, result: number): string {
  return `${call} answered ${resultName(result)} (${result})`;
}

/** An answer that no other report fits. */
export function refusedCall(call: string, result: number, doing: string): TilewrightError {
  return new TilewrightError({
    code: "TW4512",
    message: `the NVIDIA driver could not ${doing}`,
    expected: "CUDA_SUCCESS",
    found: answerText(call, result),
  });
}

/** The answer to a call that asked for memory. */
export function refusedMemory(
  call: string,
  result: number,
  bytes: number,
  free: { readonly free: number; readonly total: number } | undefined,
): TilewrightError {
  if (result !== outOfMemory) return refusedCall(call, result, `allocate ${bytes} bytes`);
  return new TilewrightError({
    code: "TW4510",
    message: `the GPU has no room for ${bytes} bytes`,
    expected: `${bytes} bytes in one piece`,
    found:
      free === undefined
        ? answerText(call, result)
        : `${free.free} of ${free.total} bytes not in use by any process`,
  });
}

/** The kernel whose fault ended the context, as far as that is known. */
export function lostDevice(
  gpu: string,
  candidates: readonly string[],
  what: string,
  answer: string,
): TilewrightError {
  const [only, ...others] = candidates;
  const who =
    only === undefined
      ? "work on the GPU"
      : others.length === 0
        ? `kernel ${only}`
        : `one of the kernels ${candidates.join(", ")}`;
  return new TilewrightError({
    code: "TW4509",
    message: `${who} failed and took the device ${gpu} with it: ${what}`,
    expected: "kernels that end without a fault",
    found: answer,
  });
}

/** A use of a device that was lost before. */
export function useAfterLoss(loss: TilewrightError): TilewrightError {
  return new TilewrightError({
    code: "TW4509",
    message: `the device was lost before this use: ${loss.summary}`,
    expected: "a device that no kernel has broken",
    found: loss.found,
    remedy: "dispose of the device and open it again, in a new process where that fails",
  });
}

/** The driver's context is still broken after it was opened anew. */
export function brokenProcess(gpu: string, answer: string): TilewrightError {
  return new TilewrightError({
    code: "TW4509",
    message: `the driver does not recover ${gpu} in this process after a kernel's fault`,
    expected: "a context that works again once it is opened anew",
    found: answer,
    remedy: "start a new process",
  });
}

export function misfit(
  kernel: string,
  location: Location,
  needs: string,
  answer: string,
): TilewrightError {
  return new TilewrightError({
    code: "TW4507",
    message: `kernel ${kernel} does not fit on this GPU`,
    expected: "blocks that the GPU can place",
    found: `${needs}; ${answer}`,
    notes: [{ message: "the kernel is declared here", location }],
  });
}

export function hugeGrid(kernel: string, location: Location, blocks: number): TilewrightError {
  return new TilewrightError({
    code: "TW4508",
    message: `the launch of kernel ${kernel} has ${blocks} blocks`,
    expected: "fewer than 2147483648",
    found: String(blocks),
    notes: [{ message: "the kernel is declared here", location }],
  });
}

export function refusedProgram(
  kernel: string,
  location: Location,
  log: string,
  answer: string,
): TilewrightError {
  const lines = log.trim();
  return new TilewrightError({
    code: "TW4506",
    message: `the driver's assembler refused kernel ${kernel}`,
    expected: "PTX that the driver's version assembles",
    found: lines === "" ? answer : `${answer}\n${lines}`,
    notes: [{ message: "the kernel is declared here", location }],
  });
}
