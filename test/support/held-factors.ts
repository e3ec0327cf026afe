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
 * loop (docs/reliability.md), without a word. Kernels of the library have none.
 */
import { isProduct } from "../../src/ptx/coalescing/effects.ts";
import { blocksOf } from "../../src/ptx/coalescing/flow.ts";
import type { PtxModule, Register, Statement } from "../../src/ptx/module.ts";
import { visitRegisters } from "../../src/ptx/registers.ts";

/** The names of the registers that are held. */
export function heldFactors({ declarations }: PtxModule): readonly string[] {
  return declarations.flatMap((each) => (each.kind === "function" ? heldIn(each.body ?? []) : []));
}

function heldIn(body: readonly Statement[]): readonly string[] {
  const blocks = blocksOf(body);
  if (blocks === undefined) throw new Error("a body whose jumps cannot be followed");
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
    return factors.filter((register) => !written.has(register)).map(({ name }) => name);
  });
}

function writtenIn(body: readonly Statement[]): ReadonlySet<Register> {
  const written = new Set<Register>();
  for (const statement of body) {
    if (statement.kind !== "instruction") continue;
    const [result] = statement.operands;
    if (result !== undefined && result.kind !== "address")
      visitRegisters(result, (register) => written.add(register));
  }
  return written;
}
