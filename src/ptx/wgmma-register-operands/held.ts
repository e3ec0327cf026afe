/**
 * Products whose factor stays in registers from one round of a loop to the next: read in every round, written in none.
 *
 *   mov %q, …                                     %q is held
 *   $loop:
 *     cvt %p, …                                   %p is not
 *     wgmma.mma_async … {%s}, {%q}, …
 *     wgmma.mma_async … {%o}, {%p}, …
 *     @%more bra $loop
 *
 * PTX allows them; the assemblers of CUDA 13.0 and of driver 580 have been seen to give their registers to others within the
 * loop (docs/reliability.md), without a word. So no kernel is handed to them with one (`renew.ts`).
 */
import { isProduct } from "../register-coalescing/effects.ts";
import { blocksOf } from "../register-coalescing/flow.ts";
import type { Instruction, Register, Statement } from "../module.ts";
import { visitRegisters } from "../register-declarations.ts";

export interface HeldFactor {
  /** Where the product stands in its body. */
  readonly index: number;
  readonly product: Instruction;
  readonly registers: readonly Register[];
}

/** Products with a held factor, in their order. */
export function heldFactors(body: readonly Statement[]): readonly HeldFactor[] {
  const products: HeldFactor[] = [];
  body.forEach((statement, index) => {
    if (statement.kind !== "instruction" || !isProduct(statement)) return;
    const registers = factorsOf(statement);
    if (registers.length > 0) products.push({ index, product: statement, registers });
  });
  if (products.length === 0) return [];
  const loops = loopsOf(body);
  return products.flatMap(({ index, product, registers }) => {
    const around = loops.filter(({ from, to }) => from <= index && index < to);
    const [own] = around.sort((a, b) => a.to - a.from - (b.to - b.from));
    if (own === undefined) return [];
    const held = registers.filter((register) => !own.written().has(register));
    return held.length === 0 ? [] : [{ index, product, registers: held }];
  });
}

/** What tensor cores read from registers while the product runs: the left factor, and which of its elements are there. */
function factorsOf({ opcode, operands }: Instruction): readonly Register[] {
  const found: Register[] = [];
  const [, left, , metadata] = operands;
  if (left?.kind === "vector") visitRegisters(left, (register) => found.push(register));
  if (opcode.includes(".sp.") && metadata?.kind === "register") found.push(metadata);
  return found;
}

interface Loop {
  readonly from: number;
  readonly to: number;
  /** What gets a new value in some round. */
  written(): ReadonlySet<Register>;
}

function loopsOf(body: readonly Statement[]): readonly Loop[] {
  const blocks = blocksOf(body);
  if (blocks === undefined) throw new Error("a jump that cannot be followed");
  return blocks.flatMap(({ to, next }, index) =>
    next.flatMap((target) => {
      const from = blocks[target]?.from;
      if (target > index || from === undefined) return [];
      let known: ReadonlySet<Register> | undefined;
      return [{ from, to, written: () => (known ??= writtenIn(body.slice(from, to))) }];
    }),
  );
}

/** A move of something held gives no new value, since the assembler takes moves away. */
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
