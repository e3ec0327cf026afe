/**
 * A StableHLO program as a drawing: its simplified main function in layers, each op below those it uses, and the ops of
 * one layer ordered by where their operands stand.
 */
import { printGraph } from "../../../../../src/graph/index.ts";
import type { GraphModule } from "../../../../../src/graph/index.ts";
import type { AnyGraphOp, GraphValue } from "../../../../../src/graph/ops/index.ts";
import { operandsOf, regionsOf, typeText } from "../../../../../src/graph/ops/index.ts";
import { runPasses } from "../../../../../src/graph/passes/pass-order.ts";
import type { GraphNode, GraphReport, PlanReport } from "../../protocol.ts";
import type { SourceLines } from "../source-lines.ts";
import { newLines } from "./line-difference.ts";

export function graphReport(
  module: GraphModule,
  plan: PlanReport,
  lines: SourceLines,
): GraphReport {
  const simplified = runPasses(module);
  const { nodes, edges } = drawnGraph(simplified, lines);
  const [before, after] = [module, simplified].map((each) =>
    printGraph(each).trimEnd().split("\n"),
  );
  const isNew = newLines((before ?? []).map(comparable), (after ?? []).map(comparable));
  return {
    name: module.name,
    nodes,
    edges,
    simplified: (after ?? []).map((text, position) => ({
      text,
      line: undefined,
      change: isNew[position] === true ? "new" : "same",
    })),
    plan,
  };
}

function comparable(text: string): string {
  return text.replace(/%[\w#]+/g, "%");
}

function drawnGraph(
  module: GraphModule,
  lines: SourceLines,
): {
  readonly nodes: readonly GraphNode[];
  readonly edges: readonly (readonly [number, number])[];
} {
  const main = module.functions.get("main");
  if (main === undefined) return { nodes: [], edges: [] };
  const nodes: GraphNode[] = [];
  const edges: (readonly [number, number])[] = [];
  const makers = new Map<GraphValue, number>();
  main.body.parameters.forEach((value, index) => {
    makers.set(value, nodes.length);
    const id = nodes.length;
    nodes.push({
      id,
      kind: `%arg${index}`,
      type: typeText(value.type),
      detail: "",
      line: undefined,
      layer: 0,
    });
  });
  for (const op of main.body.ops) {
    const id = nodes.length;
    const sources = usedBy(op).flatMap((value) => makers.get(value) ?? []);
    for (const source of new Set(sources)) edges.push([source, id]);
    for (const value of op.results) makers.set(value, id);
    const layer = sources.reduce(
      (most, source) => Math.max(most, (nodes[source]?.layer ?? 0) + 1),
      0,
    );
    nodes.push({
      id,
      kind: op.kind,
      type: op.results.map(({ type }) => typeText(type)).join(", "),
      detail: op.name,
      line: lines.lineOf(op.location.position),
      layer,
    });
  }
  return { nodes: lowered(nodes, edges), edges };
}

/** Nodes that use nothing, such as constants, moved down to just above the first that uses them. */
function lowered(
  nodes: readonly GraphNode[],
  edges: readonly (readonly [number, number])[],
): readonly GraphNode[] {
  const hasSource = new Set(edges.map(([, to]) => to));
  return nodes.map((node) => {
    const users = edges.filter(([from]) => from === node.id).map(([, to]) => nodes[to]?.layer ?? 1);
    if (hasSource.has(node.id) || users.length === 0) return node;
    return { ...node, layer: Math.max(0, Math.min(...users) - 1) };
  });
}

/** Operands, and what the op's regions take from outside. */
function usedBy(op: AnyGraphOp): readonly GraphValue[] {
  const inside = regionsOf(op).flatMap(({ ops, results }) => [...ops.flatMap(usedBy), ...results]);
  return [...operandsOf(op), ...inside];
}
