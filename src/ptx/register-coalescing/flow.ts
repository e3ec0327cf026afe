/**
 * The blocks of a function's body: runs of statements that are entered at their first and left at their last, and
 * where each may go on.
 *
 *   0  mov %i, 0            block 0, then 1
 *   1  $loop:               block 1, then 1 or 2
 *   2  add %i, %i, 1
 *   3  @%p bra $loop
 *   4  ret                  block 2, then nowhere
 *
 * Here and in the files beside, lists grow by `push`: those that `map` makes have other elements, to V8, once it has optimised the caller,
 * and whoever reads them is then thrown out of its own optimised code. These are the longest functions that run for every instruction.
 */
import type { Instruction, Statement } from "../module.ts";

export interface Block {
  /** Its first statement, and the one behind its last. */
  readonly from: number;
  readonly to: number;
  readonly next: readonly number[];
}

/** Undefined where statements are nested, or jumps lead where only a register knows. */
export function blocksOf(statements: readonly Statement[]): readonly Block[] | undefined {
  const starts: number[] = [];
  const labels = new Map<string, number>();
  let behindJump = true;
  for (let index = 0; index < statements.length; index += 1) {
    const statement = statements[index] as Statement;
    const isLabel = statement.kind === "label";
    if (behindJump || isLabel) starts.push(index);
    behindJump = false;
    if (isLabel) labels.set(statement.name, starts.length - 1);
    else if (statement.kind === "instruction") {
      if (leadsAnywhere(statement.opcode)) return undefined;
      behindJump = leaves(statement);
    } else if (statement.kind !== "pragma") return undefined;
  }
  const blocks: Block[] = [];
  for (let block = 0; block < starts.length; block += 1) {
    const to = starts[block + 1] ?? statements.length;
    const last = statements[to - 1];
    const follower = block + 1 < starts.length ? [block + 1] : [];
    const next = last?.kind === "instruction" ? nextOf(last, labels, follower) : follower;
    blocks.push({ from: starts[block] as number, to, next });
  }
  return blocks;
}

function leadsAnywhere(opcode: string): boolean {
  return opcode.startsWith("brx") || opcode.startsWith("call");
}

function leaves({ opcode }: Instruction): boolean {
  return isJump(opcode) || opcode === "ret";
}

function isJump(opcode: string): boolean {
  return opcode === "bra" || opcode.startsWith("bra.");
}

function nextOf(
  last: Instruction,
  labels: ReadonlyMap<string, number>,
  follower: readonly number[],
): readonly number[] {
  const falls = last.guard === undefined && leaves(last) ? [] : follower;
  const [target] = last.operands;
  if (!isJump(last.opcode) || target?.kind !== "symbol") return falls;
  const place = labels.get(target.name);
  if (place === undefined) throw new Error(`a jump to ${target.name}, which is nowhere`);
  return [...falls, place];
}

/** How many loops each statement is in: jumps back, and everything between. */
export function loopDepths(blocks: readonly Block[], count: number): Readonly<Int32Array> {
  const change = new Int32Array(count + 1);
  blocks.forEach(({ to, next }, index) => {
    for (const target of next) {
      const start = blocks[target]?.from;
      if (target > index || start === undefined) continue;
      change[start] = (change[start] ?? 0) + 1;
      change[to] = (change[to] ?? 0) - 1;
    }
  });
  for (let index = 1; index < count; index += 1)
    change[index] = (change[index] as number) + (change[index - 1] as number);
  return change;
}
