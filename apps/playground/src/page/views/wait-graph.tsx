/**
 * A deadlock drawn: those who wait on the left, each with an arrow over the barrier it waits for to the thread that would
 * arrive there, and what keeps that thread.
 *
 *   load     ── empty[0] ──▶  Barrier.arrive in compute   ── waits itself ──▶ compute
 *   compute  ── full[0]  ──▶  copyAsync in load           ── waits itself ──▶ load
 */
import type { DeadlockGraph } from "../../protocol.ts";
import type { Marking } from "../parts.tsx";

const boxWidth = 210;
const boxHeight = 54;
const gap = 26;
const middle = 190;

export function WaitGraphDrawing({
  graph,
  marking,
}: {
  readonly graph: DeadlockGraph;
  readonly marking: Marking;
}) {
  const { waits, edges } = graph;
  const rows = Math.max(waits.length, edges.length, 1);
  const height = rows * (boxHeight + gap) + 12;
  const width = 2 * boxWidth + middle + 8;
  const top = (row: number): number => 8 + row * (boxHeight + gap);
  const isMarked = (line: number | undefined): boolean =>
    line !== undefined && line === marking.marked;
  const words = edges.map(
    ({ waiter, barrier, thread, arrival, keptBy }) =>
      `${waits[waiter]?.thread ?? ""} waits for ${barrier}, on which ${arrival.op} of ${thread} would arrive, which ${keptBy === undefined ? "has ended" : "waits itself"}`,
  );
  return (
    <div class="drawing" tabIndex={0} role="region" aria-label="Wait-for graph, drawn">
      <svg
        class="wait-graph"
        viewBox={`0 0 ${width} ${height}`}
        width={width}
        height={height}
        role="img"
        aria-label={words.length === 0 ? "Nobody would arrive." : words.join("; ")}
      >
        <defs>
          <marker
            id="arrow"
            viewBox="0 0 8 8"
            refX="7"
            refY="4"
            markerWidth="7"
            markerHeight="7"
            orient="auto-start-reverse"
          >
            <path d="M0 0 8 4 0 8z" class="arrow-head" />
          </marker>
        </defs>
        {edges.map(({ waiter, barrier, keptBy }, index) => {
          const [from, to] = [top(waiter) + boxHeight / 2, top(index) + boxHeight / 2];
          const [left, right] = [4 + boxWidth, 4 + boxWidth + middle];
          const centre = (left + right) / 2;
          return (
            <g key={index}>
              <path
                class="edge"
                d={`M${left} ${from} C ${centre} ${from} ${centre} ${to} ${right} ${to}`}
                marker-end="url(#arrow)"
              />
              <text class="edge-label" x={centre} y={(from + to) / 2 - 5} text-anchor="middle">
                {barrier}
              </text>
              {keptBy !== undefined && (
                <path
                  class="edge kept"
                  d={`M${right} ${to + 12} C ${centre + 20} ${to + 24} ${centre - 20} ${top(keptBy) + boxHeight - 2} ${left} ${top(keptBy) + boxHeight - 10}`}
                  marker-end="url(#arrow)"
                />
              )}
            </g>
          );
        })}
        {waits.map((wait, index) => (
          <g
            key={index}
            transform={`translate(4 ${top(index)})`}
            class={isMarked(wait.line) ? "box marked" : "box"}
            onClick={() => {
              marking.mark(wait.line);
            }}
          >
            <title>{`${wait.place} waits for ${wait.awaited}`}</title>
            <rect width={boxWidth} height={boxHeight} rx={8} />
            <text x={12} y={22} class="strong">
              {wait.thread}
            </text>
            <text x={12} y={42}>
              {wait.op}, line {wait.line ?? "?"}
            </text>
          </g>
        ))}
        {edges.map(({ arrival, thread, keptBy }, index) => (
          <g
            key={index}
            transform={`translate(${4 + boxWidth + middle} ${top(index)})`}
            class={isMarked(arrival.line) ? "box arrival marked" : "box arrival"}
            onClick={() => {
              marking.mark(arrival.line);
            }}
          >
            <title>{`${arrival.op} in ${thread}`}</title>
            <rect width={boxWidth} height={boxHeight} rx={8} />
            <text x={12} y={22}>
              {arrival.op}, line {arrival.line ?? "?"}
            </text>
            <text x={12} y={42} class="strong">
              {thread}
              {keptBy === undefined ? " has ended" : " waits itself"}
            </text>
          </g>
        ))}
      </svg>
      <ul class="spoken">
        {words.map((text, index) => (
          <li key={index}>{text}</li>
        ))}
      </ul>
    </div>
  );
}
