/**
 * Until when wgmma in flight own their registers, which no other instruction may read or write meanwhile. A product is
 * all wgmma up to a commit; it is over at the first wait that leaves fewer pending than were committed after it:
 *
 *   wgmma {a}, …   commit      {a}: 0
 *   wgmma {b}, …   commit      {a}: 1   {b}: 0
 *   add %x, %x, 1              x is accessed while both are in flight: it cannot be a or b
 *   wait_group 1               {a} is over: for live ranges this reads a
 */
import type { Statement } from "../module.ts";
import type { Effects } from "./effects.ts";
import { isProduct } from "./effects.ts";
import type { Block } from "./flow.ts";

/** Products are named by the statement that commits them. */
export interface ProductsInFlight {
  /** The registers of each product. */
  readonly registers: ReadonlyMap<number, readonly number[]>;
  /** Products that each wait ends. */
  readonly ended: ReadonlyMap<number, ReadonlySet<number>>;
  /** Products that run while a register is read or written. */
  readonly touched: ReadonlyMap<number, ReadonlySet<number>>;
}

/** Committed since each product. */
type Running = Map<number, number>;

/** Undefined where a product is not committed in its block. */
export function productsInFlight(
  statements: readonly Statement[],
  blocks: readonly Block[],
  effects: readonly (Effects | undefined)[],
): ProductsInFlight | undefined {
  const registers = committed(statements, blocks, effects);
  if (registers === undefined) return undefined;
  const [ended, touched] = [new Map<number, Set<number>>(), new Map<number, Set<number>>()];
  const entries: Running[] = [];
  while (entries.length < blocks.length) entries.push(new Map());
  const waiting = new Set(registers.size === 0 ? [] : blocks.keys());
  for (const index of waiting) {
    waiting.delete(index);
    const block = blocks[index];
    if (block === undefined) continue;
    const running = new Map(entries[index]);
    for (let at = block.from; at < block.to; at += 1) {
      const statement = statements[at];
      if (statement?.kind !== "instruction") continue;
      follow(statement, at, running, ended);
      if (running.size === 0 || isProduct(statement)) continue;
      const touch = (register: number): void => addAll(touched, register, running.keys());
      effects[at]?.reads.forEach(touch);
      effects[at]?.writes.forEach(touch);
    }
    for (const next of block.next) if (join(entries[next], running)) waiting.add(next);
  }
  return { registers, ended, touched };
}

/** The registers of each product. */
function committed(
  statements: readonly Statement[],
  blocks: readonly Block[],
  effects: readonly (Effects | undefined)[],
): ReadonlyMap<number, readonly number[]> | undefined {
  const products = new Map<number, readonly number[]>();
  for (const { from, to } of blocks) {
    let open: number[] | undefined;
    for (let at = from; at < to; at += 1) {
      const statement = statements[at];
      if (statement?.kind !== "instruction") continue;
      if (isProduct(statement)) (open ??= []).push(...(effects[at]?.reads ?? []));
      if (!statement.opcode.startsWith("wgmma.commit_group")) continue;
      products.set(at, [...new Set(open)]);
      open = undefined;
    }
    if (open !== undefined) return undefined;
  }
  return products;
}

function follow(
  { opcode, operands }: Statement & { readonly kind: "instruction" },
  at: number,
  running: Running,
  ended: Map<number, Set<number>>,
): void {
  if (!opcode.startsWith("wgmma.")) return;
  if (opcode.startsWith("wgmma.commit_group")) {
    for (const [product, count] of running) running.set(product, count + 1);
    running.set(at, 0);
  }
  if (!opcode.startsWith("wgmma.wait_group")) return;
  const pending = operands[0];
  const left = pending?.kind === "integer" ? Number(pending.value) : 0;
  const over = [...running].flatMap(([product, count]) => (count >= left ? [product] : []));
  for (const product of over) running.delete(product);
  addAll(ended, at, over);
}

function addAll(sets: Map<number, Set<number>>, key: number, added: Iterable<number>): void {
  const known = sets.get(key) ?? new Set();
  for (const each of added) known.add(each);
  sets.set(key, known);
}

/** Whether the block may be entered with more running than was known. */
function join(entry: Running | undefined, running: Running): boolean {
  let grown = false;
  for (const [product, count] of running) {
    const known = entry?.get(product);
    if (entry === undefined || (known !== undefined && known <= count)) continue;
    entry.set(product, count);
    grown = true;
  }
  return grown;
}
