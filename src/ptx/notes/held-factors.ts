/**
 * Products whose left factor stays in registers from one round of a loop to the next: read in every round, written in none.
 *
 *   mov %q, …                                     %q is held
 *   $loop:
 *     cvt %p, …                                   %p is not
 *     wgmma.mma_async … {%s}, {%q}, …
 *     wgmma.mma_async … {%o}, {%p}, …
 *     @%more bra $loop
 *
 * PTX allows them, and the emulator runs them; the assembler of CUDA 13.0 has been seen to give their registers to others within the
 * loop (docs/reliability.md), without a word. Kernels of the library have none, and other kernels are told by a note.
 */
import { codes } from "../../support/codes/index.ts";
import { isProduct } from "../coalescing/effects.ts";
import { blocksOf } from "../coalescing/flow.ts";
import type { Instruction, PtxModule, Register, Statement } from "../module.ts";
import { visitRegisters } from "../registers.ts";
import type { PerformanceNote } from "./note.ts";

interface HeldFactor {
  readonly product: Instruction;
  readonly registers: readonly Register[];
}

/** Products with a held factor. */
export function heldFactors({ declarations }: PtxModule): readonly HeldFactor[] {
  return declarations.flatMap((each) => (each.kind === "function" ? heldIn(each.body ?? []) : []));
}

export function heldFactorNotes(module: PtxModule): readonly PerformanceNote[] {
  return heldFactors(module).map(({ product: { position }, registers }) => {
    const file = position === undefined ? undefined : module.files[position.file - 1];
    return {
      code: "TW7511",
      message: "the left factor of a wgmma stays in registers over the rounds of a loop",
      because: `${registers.length} registers are read in every round and written in none, and assemblers have given such registers away`,
      remedy: codes.TW7511.remedy,
      position:
        position === undefined || file === undefined
          ? undefined
          : { file, line: position.line, column: position.column },
    };
  });
}

function heldIn(body: readonly Statement[]): readonly HeldFactor[] {
  if (!body.some(hasLeftInRegisters)) return [];
  const blocks = blocksOf(body);
  // Jumps of a user's own PTX may be ones that cannot be followed.
  if (blocks === undefined) return [];
  const loops = blocks.flatMap(({ to, next }, index) =>
    next.flatMap((target) => {
      const from = blocks[target]?.from;
      return target <= index && from !== undefined ? [{ from, to }] : [];
    }),
  );
  return body.flatMap((statement, index) => {
    if (statement.kind !== "instruction" || !isProduct(statement)) return [];
    const around = loops.filter(({ from, to }) => from <= index && index < to);
    const own = around.sort((a, b) => a.to - a.from - (b.to - b.from))[0];
    const [, left] = statement.operands;
    if (own === undefined || left?.kind !== "vector") return [];
    const written = writtenIn(body.slice(own.from, own.to));
    const factors: Register[] = [];
    visitRegisters(left, (register) => factors.push(register));
    const registers = factors.filter((register) => !written.has(register));
    return registers.length === 0 ? [] : [{ product: statement, registers }];
  });
}

function hasLeftInRegisters(statement: Statement): boolean {
  if (statement.kind !== "instruction" || !isProduct(statement)) return false;
  return statement.operands[1]?.kind === "vector";
}

/** What gets a new value in some round; a move of something held gives none, since the assembler takes moves away. */
function writtenIn(body: readonly Statement[]): ReadonlySet<Register> {
  const written = new Set<Register>();
  const moves: (readonly [to: Register, from: Register])[] = [];
  for (const statement of body) {
    if (statement.kind !== "instruction") continue;
    const [result, source] = statement.operands;
    const isMove = statement.opcode === "mov.b32" && statement.guard === undefined;
    if (isMove && result?.kind === "register" && source?.kind === "register")
      moves.push([result, source]);
    else if (result !== undefined && result.kind !== "address")
      visitRegisters(result, (register) => written.add(register));
  }
  let before = -1;
  while (before < written.size) {
    before = written.size;
    for (const [to, from] of moves) if (written.has(from)) written.add(to);
  }
  return written;
}
