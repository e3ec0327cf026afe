/**
 * Failures that were found, as files: how to run it, then the kernel.
 *
 *   {"target":"sm_90a","schedule":"random","seed":17,"dimensions":{"n":9}}
 *   kernel @carries …
 */
import { parseModule } from "../../src/ir/parser/parser.ts";
import { printKernel } from "../../src/ir/printer.ts";
import type { Subject } from "./subjects.ts";

export function fixtureText({ kernel, target, schedule, seed, dimensions }: Subject): string {
  return `${JSON.stringify({ target, schedule, seed, dimensions })}\n${printKernel(kernel)}\n`;
}

export function fixtureOf(text: string): Subject {
  const end = text.indexOf("\n");
  const header = JSON.parse(text.slice(0, end)) as Omit<Subject, "kernel">;
  const [kernel] = parseModule(text.slice(end + 1)).kernels;
  if (kernel === undefined) throw new Error("the fixture has no kernel");
  return { ...header, kernel };
}
