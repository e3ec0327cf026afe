/**
 * Which ops need scratch, and how many agents run each of them side by side: the program threads of the
 * innermost `on_threads` around it, or all of the kernel's, and each of their warps inside `warps`.
 *
 *   | op is in                        | agents | scratch lies in                                   |
 *   |---------------------------------|--------|---------------------------------------------------|
 *   | a kernel of one program thread  | 1      | a buffer of its own, for the time of the op       |
 *   | `warps` there                   | 4      | one buffer for all ops, as long as the `warps` runs |
 *   | on_threads [0]                  | 1      | a buffer of its own, for the time of the op       |
 *   | on_threads [1, 2]               | 2      | one buffer for all ops, as long as that runs      |
 *   | a kernel of three, outside      | 3      | one buffer for all ops, as long as the kernel runs |
 */
import type { AnyOp, Kernel, Region } from "../../ir/node.ts";
import { countUses } from "../../ir/rewrite/analysis.ts";
import { regionList } from "../../ir/traverse.ts";
import type { RegisterLayout } from "../algebra/register-layout.ts";
import { scratchBytes } from "../relayout/steps.ts";
import type { RelayoutPlan } from "../relayout/steps.ts";
import { scratchOf } from "./scratch.ts";

/** Agents' parts begin at a multiple of this. */
const partAlignment = 128;

/** What an op needs, conversions of its operands included. */
export interface ScratchUse {
  readonly op: AnyOp;
  readonly bytes: number;
  /** Whether the op needs some by itself. */
  readonly itself: boolean;
}

/** Scratch that lies in one buffer. */
export interface ScratchArea {
  readonly users: readonly ScratchUse[];
  /** Of one agent's part. */
  readonly bytes: number;
  readonly agents: number;
  /** Whether it is that of a single op that one agent runs. */
  readonly own: boolean;
  /** The op whose region the agents run; undefined for the whole kernel. */
  readonly region: AnyOp | undefined;
}

export interface ScratchRequest {
  readonly kernel: Kernel;
  readonly conversions: readonly { readonly op: AnyOp; readonly plan: RelayoutPlan }[];
  readonly needs: ReadonlyMap<AnyOp, readonly { readonly layout: RegisterLayout }[]>;
}

interface Surroundings {
  readonly threads: number;
  readonly branch: AnyOp | undefined;
  /** The `warps` around. */
  readonly warps: AnyOp | undefined;
}

interface GrowingArea extends ScratchArea {
  readonly users: ScratchUse[];
  bytes: number;
}

export function collectScratch(request: ScratchRequest): readonly ScratchArea[] {
  const { kernel, conversions, needs } = request;
  const uses = countUses(kernel.body);
  const plans = new Map<AnyOp, RelayoutPlan[]>();
  for (const { op, plan } of conversions) plans.set(op, [...(plans.get(op) ?? []), plan]);
  const areas: GrowingArea[] = [];
  const together = new Map<AnyOp | undefined, GrowingArea>();
  const visit = (op: AnyOp, { threads, branch, warps }: Surroundings): void => {
    const layout = needs.get(op)?.[0]?.layout;
    const used = op.results.some((result) => uses.has(result));
    const own = scratchOf({ op, layout, warps: warps === undefined ? kernel.warps : 1, used });
    const bytes = Math.max(own, ...(plans.get(op) ?? []).map(scratchBytes));
    if (bytes === 0) return;
    const agents = threads * (warps === undefined ? 1 : kernel.warps);
    const alone = agents === 1;
    // Warps of several threads do not meet those of others at the beginning and end of `warps`.
    const region = threads === 1 ? warps : branch;
    const known = alone ? undefined : together.get(warps ?? branch);
    const area = known ?? { users: [], bytes: 0, agents, own: alone, region };
    if (known === undefined) areas.push(area);
    if (!alone) together.set(warps ?? branch, area);
    area.users.push({ op, bytes, itself: own > 0 });
    area.bytes = Math.max(area.bytes, Math.ceil(bytes / partAlignment) * partAlignment);
  };
  walk(kernel.body, { threads: kernel.threads.length, branch: undefined, warps: undefined }, visit);
  return areas;
}

function walk(
  region: Region,
  surroundings: Surroundings,
  visit: (op: AnyOp, surroundings: Surroundings) => void,
): void {
  for (const op of region.ops) {
    visit(op, surroundings);
    for (const inner of regionList(op)) walk(inner, inside(op, surroundings), visit);
  }
}

function inside(op: AnyOp, surroundings: Surroundings): Surroundings {
  if (op.kind === "on_threads")
    return { ...surroundings, threads: op.attributes.threads.length, branch: op };
  return op.kind === "warps" ? { ...surroundings, warps: op } : surroundings;
}
