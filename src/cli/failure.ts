/**
 * How a command's failure is told. A mistake that tilewright knows is its report alone; an error that
 * the user's program throws is shown with the program's own frames.
 *
 *   people   TW5003: there is no file axpi.ts          Error: boom
 *              remedy: …                                   at main (file:///…/axpy.ts:12:9)
 *   --json   { "error": { "code": "TW5003", … } }      { "error": { "name": "Error", "frames": [ … ] } }
 */
import { inspect } from "node:util";
import { TilewrightError } from "../support/diagnostics.ts";
import { userFrames } from "../support/location.ts";

/** The text for people. */
export function failureText(error: unknown): string {
  if (error instanceof TilewrightError) return error.message;
  if (!(error instanceof Error)) return `a thrown ${inspect(error)}`;
  const own = [heading(error), ...userFrames(error.stack ?? "")].join("\n");
  return error.cause === undefined ? own : `${own}\ncaused by ${failureText(error.cause)}`;
}

/** The document for --json. */
export function failureDocument(error: unknown): { readonly error: unknown } {
  if (error instanceof TilewrightError) return { error };
  if (!(error instanceof Error)) return { error: { summary: inspect(error) } };
  const frames = userFrames(error.stack ?? "").map((frame) => frame.trim());
  return { error: { name: error.name, summary: error.message, frames } };
}

/** What a stack says above its frames; for a syntax error that includes the place. */
function heading(error: Error): string {
  const lines = (error.stack ?? "").split("\n");
  const firstFrame = lines.findIndex((line) => /^\s+at /.test(line));
  const above = lines.slice(0, firstFrame === -1 ? lines.length : firstFrame).join("\n");
  return above === "" ? `${error.name}: ${error.message}` : above;
}
