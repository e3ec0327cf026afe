/** The reference of operations as Markdown, rendered from the op table into docs/operations.md. */
import type { OpKind } from "./ops.ts";
import { opTable } from "./ops.ts";
import { asynchronousOps } from "./ops/asynchronous.ts";
import { controlOps } from "./ops/control.ts";
import { memoryOps } from "./ops/memory.ts";
import { synchronizationOps } from "./ops/synchronization.ts";
import { tileOps } from "./ops/tiles.ts";
import { valueOps } from "./ops/values.ts";
import type { AttributeSchema, OpSchema } from "./schema.ts";

const families: readonly { readonly title: string; readonly ops: object }[] = [
  { title: "Values", ops: valueOps },
  { title: "Tiles", ops: tileOps },
  { title: "Memory", ops: memoryOps },
  { title: "Asynchronous operations", ops: asynchronousOps },
  { title: "Synchronization", ops: synchronizationOps },
  { title: "Control and debugging", ops: controlOps },
];

const introduction = `# Operations of the tile IR

Generated from the op table in \`src/ir/ops/\`; do not edit.

An operand marked \`?\` may be absent, and one marked \`…\` is a list of any length. An attribute is
written \`name: form\`, where the form is a kind of value or the list of allowed words. The effect says
what a pass may do with the operation:

| effect   | meaning                                                                   |
| -------- | ------------------------------------------------------------------------- |
| none     | depends on its operands alone: unused ones go, equal ones merge, any move |
| read     | reads memory: unused ones go                                              |
| allocate | makes memory: unused ones go                                              |
| write    | changes memory: stays where it is                                         |
| order    | waits, signals or can be seen: stays where it is                          |
| regions  | does what its regions do                                                  |`;

function attributeText(name: string, schema: AttributeSchema): string {
  if (typeof schema !== "string") return `\`${name}\`: ${schema.join(", ")}`;
  return schema.endsWith("?") ? `\`${name}?\`: ${schema.slice(0, -1)}` : `\`${name}\`: ${schema}`;
}

const arityMarks = { one: "", optional: "?", many: "…" } as const;

function slotTexts(slots: OpSchema["operands"] | OpSchema["regions"]): string {
  return Object.entries(slots)
    .map(([name, arity]) => `\`${name}${arityMarks[arity]}\``)
    .join(", ");
}

function attributeTexts(attributes: OpSchema["attributes"]): string {
  return Object.entries(attributes)
    .map(([name, schema]) => attributeText(name, schema))
    .join("; ");
}

const headings = ["operation", "does", "operands", "attributes", "regions", "effect"];

function renderRow(cells: readonly string[]): string {
  return `| ${cells.join(" | ")} |`;
}

function renderOp(kind: OpKind): string {
  const { summary, operands, attributes, regions, effect } = opTable[kind];
  return renderRow([
    `\`${kind}\``,
    summary,
    slotTexts(operands),
    attributeTexts(attributes),
    slotTexts(regions),
    effect,
  ]);
}

export function renderOperationReference(): string {
  const sections = families.map(({ title, ops }) =>
    [
      `## ${title}`,
      "",
      renderRow(headings),
      renderRow(headings.map(() => "---")),
      ...(Object.keys(ops) as OpKind[]).map(renderOp),
    ].join("\n"),
  );
  return [introduction, ...sections].join("\n\n") + "\n";
}
