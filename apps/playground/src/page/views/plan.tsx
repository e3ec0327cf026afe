/** A program's plan: its launches as text, and the arena, with each buffer from the step that writes it to the last that reads it. */
import type { ArenaBuffer, PlanReport } from "../../protocol.ts";
import { bytesText, FindingCard } from "../parts.tsx";
import type { Marking } from "../parts.tsx";
import { LineList } from "./line-list.tsx";

export function PlanSection({
  plan,
  marking,
}: {
  readonly plan: PlanReport;
  readonly marking: Marking;
}) {
  if (plan.kind === "refused")
    return (
      <section>
        <h3>Plan</h3>
        <FindingCard finding={plan.finding} marking={marking} />
      </section>
    );
  const { launches, arenaBytes, buffers, steps } = plan;
  const lines = plan.lines.map((text) => ({ text, line: undefined, change: "same" as const }));
  return (
    <section data-testid="plan">
      <h3>
        Plan{" "}
        <small>
          {launches} launches, an arena of {bytesText(arenaBytes)}
        </small>
      </h3>
      <LineList lines={lines} label="Plan" marking={marking} />
      {buffers.length > 0 && <Arena {...{ buffers, steps, bytes: arenaBytes }} />}
    </section>
  );
}

const [width, labelWidth, tall] = [880, 70, 160];

/** Steps go to the right, bytes down. */
function Arena({
  buffers,
  steps,
  bytes,
}: {
  readonly buffers: readonly ArenaBuffer[];
  readonly steps: number;
  readonly bytes: number;
}) {
  const x = (step: number): number => labelWidth + (step / steps) * (width - labelWidth - 4);
  const y = (offset: number): number => 18 + (offset / Math.max(1, bytes)) * tall;
  return (
    <div class="drawing memory" tabIndex={0} role="region" aria-label="Arena over steps, drawn">
      <svg
        viewBox={`0 0 ${width} ${tall + 24}`}
        role="img"
        aria-label={`Arena of ${bytes} bytes over ${steps} steps: ${buffers
          .slice(0, 30)
          .map(({ type, offset, from, to }) => `${type} at ${offset}, steps ${from} to ${to}`)
          .join("; ")}`}
      >
        <text x={labelWidth} y={12} class="axis">
          step 0
        </text>
        <text x={width - 4} y={12} class="axis" text-anchor="end">
          step {steps - 1}
        </text>
        <text x={4} y={y(0) + 12} class="axis">
          byte 0
        </text>
        <text x={4} y={y(bytes)} class="axis">
          {bytes}
        </text>
        {buffers.map(({ type, offset, bytes: size, from, to }, index) => (
          <g key={index}>
            <title>{`${type}: bytes ${offset} to ${offset + size - 1}, steps ${from} to ${to}`}</title>
            <rect
              class="buffer"
              x={x(from)}
              y={y(offset)}
              width={x(to + 1) - x(from) - 2}
              height={Math.max(3, y(offset + size) - y(offset) - 2)}
            />
            <text x={x(from) + 4} y={y(offset) + 14} class="axis">
              {type.replace(/^tensor<(.*)>$/, "$1")}
            </text>
          </g>
        ))}
      </svg>
    </div>
  );
}
