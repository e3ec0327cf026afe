/** A StableHLO program: its simplified graph in layers, its text after simplification, and its plan. */
import type { GraphNode, GraphReport } from "../../protocol.ts";
import { opColour } from "../colours.ts";
import { Answered, Empty } from "../parts.tsx";
import type { Marking } from "../parts.tsx";
import type { Runner } from "../runner.ts";
import { useAnswer } from "../use-answer.ts";
import { LineList } from "./line-list.tsx";
import { PlanSection } from "./plan.tsx";

export function GraphView({
  runner,
  run,
  marking,
}: {
  readonly runner: Runner;
  readonly run: number;
  readonly marking: Marking;
}) {
  const answer = useAnswer(runner, "graph", {}, String(run));
  return (
    <Answered answer={answer} what="Simplifying" marking={marking}>
      {(report) => (
        <div class="graph">
          <PlanSection plan={report.plan} marking={marking} />
          <h3>
            Graph of @main <small>{report.nodes.length} nodes after simplification</small>
          </h3>
          {report.nodes.length > mostNodes ? (
            <Empty>The graph is larger than {mostNodes} nodes; its text is below.</Empty>
          ) : (
            <GraphDrawing report={report} marking={marking} />
          )}
          <h3>Simplified</h3>
          <LineList lines={report.simplified} label="Simplified program" marking={marking} />
        </div>
      )}
    </Answered>
  );
}

const mostNodes = 400;
const [boxWidth, boxHeight, gapX, gapY] = [168, 42, 18, 30];

/** Where nodes stand: layers from the top, in each layer by the mean place of what they use. */
function places({ nodes, edges }: GraphReport): ReadonlyMap<number, readonly [number, number]> {
  const layers: GraphNode[][] = [];
  for (const node of nodes) (layers[node.layer] ??= []).push(node);
  const sources = new Map<number, number[]>();
  for (const [from, to] of edges) sources.set(to, [...(sources.get(to) ?? []), from]);
  const found = new Map<number, readonly [number, number]>();
  layers.forEach((layer, depth) => {
    const wish = (node: GraphNode): number => {
      const xs = (sources.get(node.id) ?? []).map((source) => found.get(source)?.[0] ?? 0);
      return xs.length === 0
        ? node.id * (boxWidth + gapX)
        : xs.reduce((sum, x) => sum + x, 0) / xs.length;
    };
    [...layer]
      .sort((a, b) => wish(a) - wish(b))
      .forEach((node, index) => {
        found.set(node.id, [8 + index * (boxWidth + gapX), 8 + depth * (boxHeight + gapY)]);
      });
  });
  return found;
}

function GraphDrawing({
  report,
  marking,
}: {
  readonly report: GraphReport;
  readonly marking: Marking;
}) {
  const place = places(report);
  const points = [...place.values()];
  const width = Math.max(300, ...points.map(([x]) => x + boxWidth + 8));
  const height = Math.max(60, ...points.map(([, y]) => y + boxHeight + 8));
  return (
    <div class="drawing tall" tabIndex={0} role="region" aria-label="Graph of the program, drawn">
      <svg
        viewBox={`0 0 ${width} ${height}`}
        width={width}
        height={height}
        role="img"
        aria-label={`${report.nodes.length} nodes: ${report.nodes
          .map(({ kind }) => kind)
          .slice(0, 30)
          .join(", ")}`}
      >
        {report.edges.map(([from, to], index) => {
          const [x1, y1] = place.get(from) ?? [0, 0];
          const [x2, y2] = place.get(to) ?? [0, 0];
          const [a, b] = [x1 + boxWidth / 2, x2 + boxWidth / 2];
          return (
            <path
              key={index}
              class="edge thin"
              d={`M${a} ${y1 + boxHeight} C ${a} ${y1 + boxHeight + 18} ${b} ${y2 - 18} ${b} ${y2}`}
            />
          );
        })}
        {report.nodes.map((node) => {
          const [x, y] = place.get(node.id) ?? [0, 0];
          const isMarked = node.line !== undefined && node.line === marking.marked;
          return (
            <g
              key={node.id}
              transform={`translate(${x} ${y})`}
              class={isMarked ? "node marked" : "node"}
              onClick={() => {
                marking.mark(node.line);
              }}
            >
              <title>{`${node.kind} : ${node.type}${node.detail === "" ? "" : `\n${node.detail}`}`}</title>
              <rect width={boxWidth} height={boxHeight} rx={7} />
              <rect width={5} height={boxHeight} rx={2} style={{ fill: opColour(node.kind) }} />
              <text x={13} y={17} class="strong">
                {node.kind.replace("stablehlo.", "").slice(0, 22)}
              </text>
              <text x={13} y={33} class="axis">
                {node.type.replace(/^tensor<(.*)>$/, "$1").slice(0, 26)}
              </text>
            </g>
          );
        })}
      </svg>
    </div>
  );
}
