/** The list of graph ops and where they run, rendered from the tables into docs/stablehlo-operations.md. */
import { markdownTable } from "../support/markdown.ts";
import { chloOps } from "./ops/chlo.ts";
import { controlOps } from "./ops/control.ts";
import { distributionOps } from "./ops/distribution.ts";
import { elementwiseOps } from "./ops/elementwise.ts";
import { productOps } from "./ops/products.ts";
import { reductionOps } from "./ops/reductions.ts";
import { shapeOps } from "./ops/shapes.ts";
import { graphOpTable } from "./ops/table.ts";
import type { GraphOpKind } from "./ops/table.ts";
import { testingOps } from "./ops/testing.ts";
import { scalarKindDomains } from "./evaluate/elementwise/index.ts";
import { evaluationRules } from "./evaluate/rules/index.ts";
import { lowerings } from "./lower/record.ts";
import type { AnyLowering } from "./lower/record.ts";
import { refusalOf } from "./evaluate/rules/shared.ts";

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

Generated from the op table in \`src/graph/ops\`, the rules of the evaluator and the lowerings; do not edit. [stablehlo.md](stablehlo.md) has what
programs mean. Every op is read, verified and printed. The last two columns say how the evaluator runs it, for which kinds of elements
where not for all, and how devices do: the simulator, the emulator and GPUs. There a _map_ shares kernels with its neighbours, a _fold_
is a kernel with a loop in it, _tiles_ says that it has a faster kernel for some shapes and types, and _steps_ that it takes several
kernels; the _expanded_ ones become other ops. On devices a complex number is two real ones: ops on them become ops on their parts, in
f64 where those are more than sums.`;

function onEvaluator(kind: GraphOpKind): string {
  const refusal = refusalOf(evaluationRules[kind]);
  if (refusal !== undefined) return `no: ${refusal}`;
  return scalarKindDomains(kind)?.join(", ") ?? "yes";
}

const formTitles: { readonly [F in AnyLowering["form"]]: string } = {
  map: "map",
  fold: "fold",
  steps: "steps",
  library: "an operation of the library",
  expand: "expanded",
  pairs: "by parts",
  alias: "nothing to do",
  control: "plan within the plan",
  collective: "between ranks",
  number: "by the rank",
  check: "compared by the host",
  none: "nothing to do",
  choose: "by its attributes and types",
  refuse: "no",
};

function onDevices(kind: GraphOpKind): string {
  // A record with one entry a kind; the form is all that is read of it.
  const lowering = lowerings[kind] as unknown as AnyLowering;
  if (lowering.form === "refuse") return `no: ${lowering.reason}`;
  const isTiled = lowering.form === "fold" && lowering.tiled !== undefined;
  return isTiled ? "fold, tiles" : formTitles[lowering.form];
}

/** The whole page. */
export function renderGraphReference(): string {
  const sections = families.map(({ title, ops }) => {
    const rows = (Object.keys(ops) as readonly GraphOpKind[]).map((kind) => [
      `\`${kind}\``,
      graphOpTable[kind].summary,
      onEvaluator(kind),
      onDevices(kind),
    ]);
    return `## ${title}\n\n${markdownTable(["op", "computes", "evaluator", "devices"], rows)}`;
  });
  return `${[introduction, ...sections].join("\n\n")}\n`;
}
