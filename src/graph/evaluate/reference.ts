/** The list of graph ops and where they run, rendered from the tables into docs/stablehlo-operations.md. */
import { markdownTable } from "../../support/markdown.ts";
import { chloOps } from "../ops/chlo.ts";
import { controlOps } from "../ops/control.ts";
import { distributionOps } from "../ops/distribution.ts";
import { elementwiseOps } from "../ops/elementwise.ts";
import { productOps } from "../ops/products.ts";
import { reductionOps } from "../ops/reductions.ts";
import { shapeOps } from "../ops/shapes.ts";
import { graphOpTable } from "../ops/table.ts";
import type { GraphOpKind } from "../ops/table.ts";
import { testingOps } from "../ops/testing.ts";
import { scalarKindDomains } from "./elementwise/index.ts";
import { evaluationRules } from "./rules/index.ts";
import { refusalOf } from "./rules/shared.ts";

const families: readonly { readonly title: string; readonly ops: object }[] = [
  { title: "Elementwise", ops: elementwiseOps },
  { title: "Shapes, gathers and scatters", ops: shapeOps },
  { title: "Products, transforms and random bits", ops: productOps },
  { title: "Reductions and sorting", ops: reductionOps },
  { title: "Control", ops: controlOps },
  { title: "Processes and the host", ops: distributionOps },
  { title: "CHLO", ops: chloOps },
  { title: "Tests", ops: testingOps },
];

const introduction = `# Operations of programs

Generated from the op table in \`src/graph/ops\` and the rules of the evaluator; do not edit. [stablehlo.md](stablehlo.md) has what
programs mean. Every op is read, verified and printed; the last column says where it runs, and for which kinds of elements
where not for all.`;

function whereRuns(kind: GraphOpKind): string {
  const refusal = refusalOf(evaluationRules[kind]);
  if (refusal !== undefined) return `nowhere: ${refusal}`;
  const domains = scalarKindDomains(kind);
  return domains === undefined ? "evaluator" : `evaluator: ${domains.join(", ")}`;
}

/** The whole page. */
export function renderGraphReference(): string {
  const sections = families.map(({ title, ops }) => {
    const rows = (Object.keys(ops) as readonly GraphOpKind[]).map((kind) => [
      `\`${kind}\``,
      graphOpTable[kind].summary,
      whereRuns(kind),
    ]);
    return `## ${title}\n\n${markdownTable(["op", "computes", "runs on"], rows)}`;
  });
  return `${[introduction, ...sections].join("\n\n")}\n`;
}
