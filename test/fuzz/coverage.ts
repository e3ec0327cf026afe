/** What a subject exercises, as words: ops with their formats, layouts of shared memory, instructions. */
import type { Kernel } from "../../src/ir/node.ts";
import { walkOps } from "../../src/ir/traverse.ts";
import type { Type } from "../../src/ir/types.ts";
import type { Executable } from "../../src/ptx/executable.ts";
import type { Statement } from "../../src/ptx/module.ts";

function formatOf(type: Type): string {
  return "dtype" in type ? type.dtype.name : type.kind;
}

function opcodesIn(statements: readonly Statement[], seen: Set<string>): void {
  for (const statement of statements)
    if (statement.kind === "instruction") seen.add(`ptx ${statement.opcode}`);
    else if (statement.kind === "block") opcodesIn(statement.body, seen);
}

export function featuresOf(
  kernel: Kernel,
  executable: Executable | undefined,
): ReadonlySet<string> {
  const seen = new Set<string>();
  walkOps(kernel.body, ({ kind, results }) => {
    if (results.length === 0) seen.add(kind);
    for (const { type } of results) seen.add(`${kind} ${formatOf(type)}`);
  });
  if (executable === undefined) return seen;
  for (const { holds } of executable.buffers)
    if (typeof holds === "object") seen.add(`layout ${holds.layout}`);
  for (const declaration of executable.module.declarations)
    if (declaration.kind === "function") opcodesIn(declaration.body ?? [], seen);
  return seen;
}
