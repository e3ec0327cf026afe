/** The reference of operations as Markdown, rendered from the op table into docs/operations.md. */
import { markdownTable } from "../support/markdown.ts";
import type { OpKind } from "./ops.ts";
import { opTable } from "./ops.ts";
import { asynchronousOps } from "./ops/asynchronous.ts";
import { controlOps } from "./ops/control.ts";
import { memoryOps } from "./ops/memory.ts";
import { placedOps } from "./ops/placed.ts";
import { synchronizationOps } from "./ops/synchronization.ts";
import { tensorMemoryOps } from "./ops/tensor-memory.ts";
import { tileOps } from "./ops/tiles.ts";
import { valueOps } from "./ops/values.ts";
import { attributeSlot } from "./schema.ts";
import type {
  Access,
  AttributeSchema,
  Synchronization,
  OpSchema,
  Results,
  Traits,
} from "./schema.ts";

const families: readonly { readonly title: string; readonly ops: object }[] = [
  { title: "Values", ops: valueOps },
  { title: "Tiles", ops: tileOps },
  { title: "Memory", ops: memoryOps },
  { title: "Asynchronous operations", ops: asynchronousOps },
  { title: "Tensor memory", ops: tensorMemoryOps },
  { title: "Synchronization", ops: synchronizationOps },
  { title: "Control and debugging", ops: controlOps },
  { title: "Placed kernels", ops: placedOps },
];

const introduction = `# Operations of the tile IR

Generated from the op table in \`src/ir/ops/\`; do not edit.

An operand marked \`?\` may be absent, and one marked \`…\` is a list of any length. An attribute is
written \`name: form\`, where the form is a kind of value or the list of allowed words. The last column has the
operation's traits, the claims that passes, placement, ordering of threads and simulator go by; what is not
said there is not done:

| trait                | meaning                                                                              |
| -------------------- | ------------------------------------------------------------------------------------ |
| reads, writes \`x\`    | all threads of the agent access the memory of \`x\`, and are done when the operation is   |
| … by one thread      | one thread starts it for all                                                         |
| … by the async proxy | TMA or the tensor cores do it                                            |
| … until waited for   | it goes on when the operation is over                                                |
| window on, peer of   | the result is the operand's memory, here or in another block                         |
| one of               | the result is the array that one of the operands is                                  |
| renames              | the result has the operand's registers                                               |
| hands on             | results are what is yielded, or begin as the operand                                 |
| made once            | the result is the same each time                                                     |
| by element           | elements of results follow from the operands' elements in the same place alone       |
| synchronizes | threads are synchronized before or after it; of a cluster, its \`arrive\` and \`wait\` are two halves |
| releases, acquires | to whom it releases what threads did before, and whose accesses it acquires |
| as ordered           | as the attributes \`order\` and \`scope\` say                                       |
| scratch              | threads may need shared memory of their own, by their layout                           |
| stands               | where it may stand, if not anywhere                                                  |
| runs                 | how its regions run                                                                  |
| may never end        | it waits for others, or repeats as long as its condition holds                       |
| rolled               | a loop with it is not unrolled                                                       |
| may                  | what passes may do with it: \`anything\` is dropping, merging and moving; \`drop\` is that alone |`;

function attributeText(name: string, schema: AttributeSchema): string {
  const { form, words, optional } = attributeSlot(schema);
  return `\`${name}${optional ? "?" : ""}\`: ${form ?? words.join(", ")}`;
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

function accessText({ of, mode, actor, proxy, done }: Access): string {
  const parts = [
    `${mode}s \`${of}\``,
    ...(actor === "one thread" ? ["by one thread"] : []),
    ...(proxy === "async" ? ["by the async proxy"] : []),
    ...(done === "at once" ? [] : ["until waited for"]),
  ];
  return parts.join(" ");
}

function accessTexts(accesses: Traits["accesses"]): readonly string[] {
  if (!("by" in accesses)) return accesses.map(accessText);
  return Object.entries(accesses.by).map(([method, list]) => {
    return `with ${method}: ${list.map(accessText).join(", ") || "registers alone"}`;
  });
}

const plainResults = { new: [], fixed: ["made once"], none: [], memory: ["makes memory"] } as const;

function resultTexts(results: Results): readonly string[] {
  if (typeof results === "string") return plainResults[results];
  if ("window" in results) return [`window on \`${results.window}\``];
  if ("oneOf" in results) return [`one of \`${results.oneOf}\``];
  if ("peer" in results) return [`peer of \`${results.peer}\``];
  if ("same" in results) return [`renames \`${results.same}\``];
  return [`hands on \`${results.handed}\``];
}

function elementTexts(elements: Traits["elements"]): readonly string[] {
  if (typeof elements !== "string") return [`without \`${elements.eachWithout}\` by element`];
  return elements === "each" ? ["by element"] : [];
}

function synchronizationText({ who, part, at }: Synchronization): string {
  return part === "whole" ? `synchronizes the ${who} ${at}` : `${part} of a ${who}`;
}

function synchronizationTexts(synchronizes: Traits["synchronizes"]): readonly string[] {
  return synchronizes === "as ordered"
    ? ["synchronizes the thread as ordered"]
    : synchronizes.map(synchronizationText);
}

function acquiresText(acquires: Traits["acquires"]): readonly string[] {
  if (acquires === "nobody") return [];
  return [acquires === "as ordered" ? "acquires as ordered" : `acquires from the ${acquires}`];
}

function releasesText(releases: Traits["releases"]): readonly string[] {
  if (releases === "as ordered") return ["releases as ordered"];
  if (typeof releases !== "string")
    return [
      ...releasesText(releases.otherwise),
      `with \`${releases.with}\` releases to the ${releases.scope}`,
    ];
  return releases === "nobody" ? [] : [`releases to the ${releases}`];
}

function traitTexts(traits: Traits): readonly string[] {
  return [
    ...accessTexts(traits.accesses),
    ...resultTexts(traits.results),
    ...elementTexts(traits.elements),
    ...synchronizationTexts(traits.synchronizes),
    ...releasesText(traits.releases),
    ...acquiresText(traits.acquires),
    ...(traits.scratch === "never" ? [] : ["scratch"]),
    ...(traits.stands === "anywhere" ? [] : [`stands: ${traits.stands}`]),
    ...(traits.regions === "none" ? [] : [`runs: ${traits.regions}`]),
    ...(traits.ends === "always" ? [] : ["may never end"]),
    ...(traits.unrolls === "freely" ? [] : ["rolled"]),
    `may: ${traits.may}`,
  ];
}

const headings = ["operation", "does", "operands", "attributes", "regions", "traits"];

function cellsOf(kind: OpKind): readonly string[] {
  const { summary, operands, attributes, regions, traits } = opTable[kind];
  return [
    `\`${kind}\``,
    summary,
    slotTexts(operands),
    attributeTexts(attributes),
    slotTexts(regions),
    traitTexts(traits).join("; "),
  ];
}

export function renderOperationReference(): string {
  const sections = families.map(({ title, ops }) => {
    const rows = (Object.keys(ops) as OpKind[]).map(cellsOf);
    return `## ${title}\n\n${markdownTable(headings, rows)}`;
  });
  return [introduction, ...sections].join("\n\n") + "\n";
}
