/** Which accesses to memory an op led to, found by the source position that its instructions carry. */
import type { AnyOp } from "../../ir/node.ts";
import type { Position } from "../../support/location.ts";
import type { Instruction, PtxModule, Statement } from "../module.ts";
import { memoryAccess } from "./memory-instructions.ts";
import type { MemoryAccess } from "./memory-instructions.ts";

/** The accesses that were emitted for an op. */
export type AccessesOf = (op: AnyOp) => readonly MemoryAccess[];

export function emittedAccesses(module: PtxModule): AccessesOf {
  const byPosition = new Map<string, MemoryAccess[]>();
  for (const [position, instruction] of positionedInstructions(module)) {
    const access = memoryAccess(instruction);
    if (access === undefined) continue;
    const key = positionKey(position);
    const known = byPosition.get(key);
    if (known === undefined) byPosition.set(key, [access]);
    else known.push(access);
  }
  return ({ location: { position } }) =>
    position === undefined ? [] : (byPosition.get(positionKey(position)) ?? []);
}

function positionKey({ file, line, column }: Position): string {
  return `${file}:${line}:${column}`;
}

/** The instructions of the module that come from a line of the user's. */
export function* positionedInstructions({
  declarations,
  files,
}: PtxModule): Generator<readonly [Position, Instruction]> {
  for (const declaration of declarations) {
    if (declaration.kind !== "function") continue;
    for (const instruction of instructionsIn(declaration.body ?? [])) {
      const { position } = instruction;
      const file = position === undefined ? undefined : files[position.file - 1];
      if (position === undefined || file === undefined) continue;
      yield [{ file, line: position.line, column: position.column }, instruction];
    }
  }
}

function* instructionsIn(statements: readonly Statement[]): Generator<Instruction> {
  for (const statement of statements) {
    if (statement.kind === "block") yield* instructionsIn(statement.body);
    else if (statement.kind === "instruction") yield statement;
  }
}
