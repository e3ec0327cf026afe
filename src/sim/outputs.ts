/**
 * Outputs that a run has left in part as they were. An output starts with nothing sensible in it, so
 * every element that its shape reaches must be written:
 *
 *   grid of 1 block, 4 elements each      out [8]   W W W W · · · ·      4 of 8: [4], [5], [6] … [7]
 */
import { coordinatesOf } from "../formats/shape.ts";
import type { Kernel, KernelInterface, KernelParameter } from "../ir/node.ts";
import type { DiagnosticDetails } from "../support/diagnostics.ts";
import type { Findings } from "./reports.ts";
import type { SlotValue } from "./values.ts";
import { isView, product, visitRuns } from "./view.ts";
import type { View } from "./view.ts";

/** How many elements are named one by one. */
const namedElements = 3;

export function reportUnwrittenOutputs(
  findings: Findings,
  kernel: Kernel,
  values: readonly SlotValue[],
): void {
  for (const [position, parameter] of kernel.parameters.entries()) {
    const view = values[position];
    if (parameter.role === "output" && isView(view))
      reportUnwritten(findings, kernel, parameter, view);
  }
}

function reportUnwritten(
  findings: Findings,
  kernel: Kernel,
  { name, value }: KernelParameter,
  view: View,
): void {
  const unwritten = unwrittenElements(view);
  if (unwritten.count > 0)
    findings.add(unwrittenReport(kernel, name, view.sizes, unwritten), value);
}

/** Elements that were never written, by their numbers in row-major order. */
export class UnwrittenElements {
  count = 0;
  readonly first: number[] = [];
  last = 0;

  add(element: number): void {
    this.count += 1;
    if (this.first.length < namedElements) this.first.push(element);
    this.last = element;
  }
}

/** The report of elements of an output that were never written, wherever the kernel ran. */
export function unwrittenReport(
  kernel: KernelInterface,
  name: string,
  shape: readonly number[],
  { count, first, last }: UnwrittenElements,
): DiagnosticDetails {
  const coordinates = (element: number): string => `[${coordinatesOf(element, shape).join(", ")}]`;
  const end = count > namedElements ? ` … ${coordinates(last)}` : "";
  return {
    code: "TW3020",
    message: `${kernel.name} leaves elements of ${name} unwritten`,
    location: kernel.location,
    expected: `every element of the output ${name} written`,
    found: `${count} of ${product(shape)} never written: ${first.map(coordinates).join(", ")}${end}`,
    remedy: `cover ${name} with the grid, or declare it under inouts if it is updated in part`,
  };
}

/** Elements in row-major order that nobody has written. */
function unwrittenElements(view: View): UnwrittenElements {
  const found = new UnwrittenElements();
  const { memory, dtype } = view;
  const isUnwritten = memory.shadow?.unwritten();
  if (isUnwritten === undefined) return found;
  const scale = dtype.bits / 8 / memory.granuleBytes;
  visitRuns(view, (element, flat, length, stride) => {
    for (let i = 0; i < length; i++)
      if (isUnwritten((element + i * stride) * scale)) found.add(flat + i);
  });
  return found;
}
