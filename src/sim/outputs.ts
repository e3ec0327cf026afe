/**
 * Outputs that a run has left in part as they were. An output starts with nothing sensible in it, so
 * every element that its shape reaches must be written:
 *
 *   grid of 1 block, 4 elements each      out [8]   W W W W · · · ·      4 of 8: [4], [5], [6] … [7]
 */
import type { Kernel, KernelParameter } from "../ir/node.ts";
import type { Findings } from "./reports.ts";
import type { SlotValue } from "./values.ts";
import { coordinatesOf, isView, product, visitRuns } from "./view.ts";
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
  const { count, first, last } = unwrittenLanes(view);
  if (count === 0) return;
  const names = first.map((lane) => coordinates(lane, view));
  const end = count > namedElements ? ` … ${coordinates(last, view)}` : "";
  findings.add(
    {
      code: "TW3020",
      message: `${kernel.name} leaves elements of ${name} unwritten`,
      location: kernel.location,
      expected: `every element of the output ${name} written`,
      found: `${count} of ${product(view.sizes)} never written: ${names.join(", ")}${end}`,
      remedy: `cover ${name} with the grid, or declare it under inouts if it is updated in part`,
    },
    value,
  );
}

interface Unwritten {
  count: number;
  readonly first: number[];
  last: number;
}

/** Elements in row-major order that nobody has written. */
function unwrittenLanes(view: View): Unwritten {
  const found: Unwritten = { count: 0, first: [], last: 0 };
  const { memory, dtype } = view;
  const isUnwritten = memory.shadow?.unwritten();
  if (isUnwritten === undefined) return found;
  const scale = dtype.bits / 8 / memory.granuleBytes;
  visitRuns(view, (element, lane, length, stride) => {
    for (let i = 0; i < length; i++) {
      if (!isUnwritten((element + i * stride) * scale)) continue;
      found.count += 1;
      if (found.first.length < namedElements) found.first.push(lane + i);
      found.last = lane + i;
    }
  });
  return found;
}

function coordinates(lane: number, { sizes }: View): string {
  return `[${coordinatesOf(lane, sizes).join(", ")}]`;
}
