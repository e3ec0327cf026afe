/**
 * When each allocation of shared or tensor memory is in use. Ops are numbered in the order of the program; a life
 * is a range of those numbers, and the program threads that it belongs to.
 *
 *    1 scoped                     a: 1 to 4      from entry to exit of its scope
 *    2   alloc a
 *    3   store a
 *    4   load a
 *    5 loop
 *    6   store b                  b: 5 to 7      used in a loop or `warps`: as long as that runs
 *    7   load b
 *
 * Only scopes end lives in general, because threads and asynchronous operations may still be at work
 * behind the last op that names a buffer; scratch lives until the last op that has it. Where a kernel has one program thread and only plain loads and
 * stores touch a buffer, it lives from its first use to its last.
 */
import { noSlots } from "../../ir/make-op.ts";
import type { AnyOp, Kernel, Op, Region, Value } from "../../ir/node.ts";
import { accessesOf, allocatesInBlock, traitsOf } from "../../ir/traits.ts";
import { operandValues, regionList } from "../../ir/traverse.ts";
import { visitEach } from "../../support/visit-each.ts";

export interface Life {
  readonly from: number;
  readonly to: number;
  /** The innermost `on_threads` around it, whose threads run beside those of others. */
  readonly branch: AnyOp | undefined;
}

export function livesOverlap(left: Life, right: Life): boolean {
  const apart = left.to < right.from || right.to < left.from;
  return !apart || (left.branch !== right.branch && isBranch(left) && isBranch(right));
}

function isBranch({ branch }: Life): boolean {
  return branch !== undefined;
}

interface Surroundings {
  readonly scope: AnyOp | undefined;
  readonly branch: AnyOp | undefined;
  /** Outermost loop or `warps` since the scope began. */
  readonly loop: AnyOp | undefined;
}

interface Buffer {
  readonly scope: AnyOp | undefined;
  readonly branch: AnyOp | undefined;
  /** Ops that touch it, or the loops and `warps` around them; the ops themselves of scratch. */
  readonly users: AnyOp[];
  /** What allocates it, for ops that need some by themselves. */
  readonly scratch: Op<"alloc_scratch"> | undefined;
  asynchronous: boolean;
}

export class Lives {
  readonly #first = new Map<AnyOp, number>();
  readonly #last = new Map<AnyOp, number>();
  readonly #branches = new Map<AnyOp, AnyOp | undefined>();
  /** The op with regions that comes next in the same region. */
  readonly #after = new Map<AnyOp, AnyOp>();
  readonly #buffers = new Map<Value, Buffer>();
  /** The allocation that a window lies in. */
  readonly #roots = new Map<Value, Value>();
  readonly #sequential: boolean;
  #next = 0;

  constructor(kernel: Kernel) {
    this.#sequential = kernel.threads.length === 1;
    this.#walk(kernel.body, { scope: undefined, branch: undefined, loop: undefined });
  }

  /** Of an allocation, a union or an array of barriers. */
  of(allocation: Value): Life {
    const buffer = this.#buffers.get(allocation);
    if (buffer === undefined) throw new Error(`%${allocation.id} is not allocated`);
    const { scope, branch, users, scratch } = buffer;
    if (scratch !== undefined) return this.#spanning(scratch, users);
    const whole = this.#whole(scope);
    if (!this.#sequential || buffer.asynchronous || users.length === 0) return { ...whole, branch };
    return {
      from: Math.min(...users.map((user) => this.#at(user))),
      to: Math.max(...users.map((user) => this.#end(user))),
      branch,
    };
  }

  /**
   * Of tensor memory: as long as its scope, at whose end all lanes meet anyway; columns used again sooner would need barriers of their own. That of a
   * pair always lives, since its blocks may be in different scopes.
   */
  ofTensorMemory({ attributes, results: [value] }: Op<"alloc_tmem">): Life {
    const buffer = value && this.#buffers.get(value);
    if (buffer === undefined) throw new Error("alloc_tmem has no result");
    if (attributes.pair === true) return { from: 0, to: this.#next, branch: undefined };
    return { ...this.#whole(buffer.scope), branch: buffer.branch };
  }

  #whole(scope: AnyOp | undefined): Omit<Life, "branch"> {
    return { from: scope ? this.#at(scope) : 0, to: scope ? this.#end(scope) : this.#next };
  }

  /** Of scratch that all agents running an op's region have a part of. */
  #throughout(op: AnyOp): Life {
    const branch = op.kind === "on_threads" ? op : this.#branches.get(op);
    return { from: this.#at(op), to: this.#end(op), branch };
  }

  /**
   * Of scratch from where it is allocated to the last of its users. Users of several agents are not in step: the
   * whole of what they run around those users counts.
   */
  #spanning(allocation: Op<"alloc_scratch">, users: readonly AnyOp[]): Life {
    const branch = this.#branches.get(allocation);
    const from = this.#at(allocation);
    const to = Math.max(from, ...users.map((user) => this.#end(user)));
    if (allocation.attributes.agents === 1) return { from, to, branch };
    const around = this.#after.get(allocation);
    const inside = around !== undefined && this.#end(around) >= to;
    return inside ? this.#throughout(around) : { from: 0, to: this.#next, branch: undefined };
  }

  #at(op: AnyOp): number {
    return this.#first.get(op) ?? 0;
  }

  #end(op: AnyOp): number {
    return this.#last.get(op) ?? this.#next;
  }

  #walk(region: Region, surroundings: Surroundings): void {
    this.#findFollowers(region);
    visitEach(region.ops, (op) => {
      this.#first.set(op, this.#next++);
      this.#branches.set(op, surroundings.branch);
      this.#visit(op, surroundings);
      if (op.regions !== noSlots)
        for (const inner of regionList(op)) this.#walk(inner, inside(op, surroundings));
      this.#last.set(op, this.#next - 1);
    });
  }

  #findFollowers({ ops }: Region): void {
    let next: AnyOp | undefined;
    for (let place = ops.length - 1; place >= 0; place -= 1) {
      const op = ops[place] as AnyOp;
      if (op.kind === "alloc_scratch" && next !== undefined) this.#after.set(op, next);
      if (regionList(op).length > 0) next = op;
    }
  }

  #visit(op: AnyOp, { scope, branch, loop }: Surroundings): void {
    const result = op.results[0];
    if (result !== undefined && allocatesInBlock(op)) {
      this.#buffers.set(result, {
        scope,
        branch,
        users: [],
        scratch: op.kind === "alloc_scratch" ? op : undefined,
        asynchronous: op.kind === "alloc_barrier",
      });
      this.#roots.set(result, result);
      return;
    }
    const operands = operandValues(op);
    for (let place = 0; place < operands.length; place += 1) {
      const operand = operands[place] as Value;
      const root = this.#roots.get(operand);
      const buffer = root && this.#buffers.get(root);
      if (root === undefined || buffer === undefined) continue;
      if (buffer.scratch !== undefined) buffer.users.push(op);
      else if (makesWindows(op)) for (const window of op.results) this.#roots.set(window, root);
      else if (isSynchronous(op, operand)) buffer.users.push(loop ?? op);
      else buffer.asynchronous = true;
    }
  }
}

/** Whether the op is done with the operand when it is over, so that it may be followed from op to op. */
function isSynchronous(op: AnyOp, value: Value): boolean {
  const accesses = accessesOf(op).filter((access) => access.value === value);
  return accesses.length > 0 && accesses.every(({ done }) => done === "at once");
}

/** Whether the results are windows on the same bytes; those of another block's are touched by others. */
function makesWindows(op: AnyOp): boolean {
  const { results } = traitsOf(op);
  return typeof results === "object" && "window" in results;
}

/** Rounds follow one another, warps run side by side: no op in them is before another. */
function runsTogether(op: AnyOp): boolean {
  const { regions } = traitsOf(op);
  return regions === "repeat" || regions === "each warp";
}

function inside(op: AnyOp, { scope, branch, loop }: Surroundings): Surroundings {
  const { regions } = traitsOf(op);
  if (regions === "once") return { scope: op, branch, loop: undefined };
  if (regions === "some threads") return { scope, branch: op, loop };
  return { scope, branch, loop: loop ?? (runsTogether(op) ? op : undefined) };
}
