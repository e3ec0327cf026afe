/** A program's plan as plain data: its launches, and the buffers between them in the arena over the steps. */
import { allSteps, buffersOf } from "../../../../../src/graph/plan/plan.ts";
import type { Buffer, Plan } from "../../../../../src/graph/plan/plan.ts";
import { planText } from "../../../../../src/graph/plan/text.ts";
import { typeText } from "../../../../../src/graph/ops/types.ts";
import type { ArenaBuffer, PlanReport } from "../../protocol.ts";

export function planReport(plan: Plan): PlanReport {
  return {
    kind: "planned",
    lines: planText(plan).split("\n"),
    launches: [...allSteps(plan.steps)].filter(
      ({ kind }) => kind === "launch" || kind === "operation",
    ).length,
    steps: plan.steps.length,
    arenaBytes: plan.arenaBytes,
    buffers: arenaBuffers(plan),
  };
}

function arenaBuffers({ steps, offsets }: Plan): readonly ArenaBuffer[] {
  const used = new Map<Buffer, { from: number; to: number }>();
  steps.forEach((step, number) => {
    for (const inner of allSteps([step]))
      for (const buffer of buffersOf(inner)) {
        const known = used.get(buffer);
        if (known === undefined) used.set(buffer, { from: number, to: number });
        else known.to = number;
      }
  });
  return [...offsets].flatMap(([buffer, offset]) => {
    const span = used.get(buffer);
    const { type, bytes } = buffer;
    return span === undefined ? [] : [{ type: typeText(type), offset, bytes, ...span }];
  });
}
