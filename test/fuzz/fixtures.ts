/**
 * Failures that were found, as files: how to run it, then the kernel.
 *
 *   {"target":"sm_90a","schedule":"random","seed":17,"dimensions":{"n":9},"placement":5}
 *   kernel @carries …
 */
import { parseModule } from "../../src/ir/parser/parser.ts";
import { printKernel } from "../../src/ir/printer.ts";
import type { Subject } from "./subjects.ts";

export function fixtureText(subject: Subject): string {
  const { kernel, target, schedule, seed, dimensions, scalars, placement } = subject;
  const header = { target, schedule, seed, dimensions, scalars, placement };
  return `${JSON.stringify(header)}\n${printKernel(kernel)}\n`;
}

export function fixtureOf(text: string): Subject {
  const end = text.indexOf("\n");
  const header = JSON.parse(text.slice(0, end)) as Omit<Subject, "kernel">;
  const [kernel] = parseModule(text.slice(end + 1)).kernels;
  if (kernel === undefined) throw new Error("the fixture has no kernel");
  return { ...header, kernel };
}
