/**
 * What the user's program prints to standard output while it runs, led elsewhere: with `--json` it must
 * not mix with the document, and under many schedules it is worth seeing once.
 */
import type { Output } from "./output.ts";

/** Runs `work` with everything written to standard output given to `take` instead. */
export async function redirectOutput<T>(
  take: (text: string) => void,
  work: () => Promise<T>,
): Promise<T> {
  const { stdout } = process;
  const original = Object.getOwnPropertyDescriptor(stdout, "write");
  Object.defineProperty(stdout, "write", {
    value: writer(take),
    configurable: true,
    writable: true,
  });
  try {
    return await work();
  } finally {
    if (original === undefined) Reflect.deleteProperty(stdout, "write");
    else Object.defineProperty(stdout, "write", original);
  }
}

type WriteCallback = (error?: Error | null) => void;

/** A stand-in for a stream's `write`, in both of its forms. */
function writer(take: (text: string) => void) {
  return (
    chunk: string | Uint8Array,
    encoding?: BufferEncoding | WriteCallback,
    done?: WriteCallback,
  ): boolean => {
    take(typeof chunk === "string" ? chunk : Buffer.from(chunk).toString("utf8"));
    const callback = typeof encoding === "function" ? encoding : done;
    callback?.();
    return true;
  };
}

/** Runs the user's code; what it prints stays out of the document of --json. */
export function runUserCode<T>(output: Output, work: () => Promise<T>): Promise<T> {
  if (!output.json) return work();
  return redirectOutput((text) => {
    output.text(text);
  }, work);
}
