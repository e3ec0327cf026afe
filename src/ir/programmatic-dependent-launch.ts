/**
 * Programmatic dependent launch: a kernel that waits by itself for the kernel before it is launched before that one has ended, and nothing
 * but its wait orders its memory accesses behind the other's writes:
 *
 *   kernel before    ……… writes x ……… end
 *   this kernel          start ……… wait ┤ load x          every warp that reaches the load has waited, on every path
 *
 * The analysis follows all warps of a block at once, a bit for each. A condition on the program thread or the warp alone is decided for
 * each of them; of any other branch both sides are followed, and a wait counts if both have it:
 *
 *   when(threadIndex().eq(0), copy, multiply)          each program thread takes its own side
 *   when(any, () => wait())                            nobody is known to have waited
 *   loop(…, (index) => when(index.eq(from), wait))     all have waited: the first iteration runs first
 *
 * A dependent kernel that ends without a wait would let the kernel after it run while the one before it still does, so every block
 * must wait somewhere. It may launch the kernel after it before that.
 */
import { onceForEach } from "../support/memo.ts";
import { WarpScalars } from "./warp-scalars.ts";
import { noSlots } from "./make-op.ts";
import type { AnyOp, Kernel, Op, Region, Value } from "./node.ts";
import { definingOps } from "./rewrite/analysis.ts";
import { accessesOf, windowedBy } from "./traits.ts";
import { regionList, walkOps } from "./traverse.ts";

/** An op that accesses global memory where some warp has not waited. */
export interface AccessBeforeWait {
  readonly op: AnyOp;
  /** The array, its name where the kernel has one, and whether it is only read; none of memory that no window is of. */
  readonly array?: { readonly name: string | undefined; readonly isRead: boolean } | undefined;
  /** Program threads that come there without having waited. */
  readonly threads: readonly number[];
}

export interface DependentLaunch {
  /** The first wait for the kernel before; undefined where there is none, and the kernel starts when that one has ended. */
  readonly wait: Op<"grid_dependency"> | undefined;
  /** Inputs that may be read before it: neither the kernel before nor one that may still run then writes them. */
  readonly settled: readonly string[];
  /** Accesses to other memory that may run before the wait. */
  readonly beforeWait: readonly AccessBeforeWait[];
  /** Whether some warp of each block has waited when the block ends. */
  readonly waitsBeforeEnd: boolean;
  /** Whether only warps that have waited launch the next kernel. */
  readonly launchesNextAfterWait: boolean;
}

const noWait: DependentLaunch = Object.freeze({
  wait: undefined,
  settled: [],
  beforeWait: [],
  waitsBeforeEnd: true,
  launchesNextAfterWait: true,
});

/** What a kernel does before and behind its wait for the kernel before. */
export const dependentLaunchOf = onceForEach((kernel: Kernel): DependentLaunch => {
  const waits: Op<"grid_dependency">[] = [];
  walkOps(kernel.body, (op) => {
    if (op.kind === "grid_dependency" && op.attributes.action === "wait") waits.push(op);
  });
  const [wait] = waits;
  if (wait === undefined) return noWait;
  const settled = [...new Set(waits.flatMap(({ attributes }) => attributes.settled ?? []))];
  const follower = new Follower(kernel, settled);
  const waited = follower.follow();
  const { beforeWait, launchesNextAfterWait } = follower;
  return { wait, settled, beforeWait, waitsBeforeEnd: waited !== 0, launchesNextAfterWait };
});

/** A set of warps, a bit each; a block has at most 32. */
type Warps = number;

/** The loop whose body this is. */
type Rounds = Op<"loop"> | undefined;

class Follower {
  readonly beforeWait: AccessBeforeWait[] = [];
  launchesNextAfterWait = true;
  readonly #kernel: Kernel;
  readonly #settled: readonly string[];
  readonly #definitions: ReadonlyMap<Value, AnyOp>;
  readonly #warpIndices = new Set<Value>();
  /** What each warp knows. */
  readonly #scalars = new Map<number, WarpScalars>();

  constructor(kernel: Kernel, settled: readonly string[]) {
    this.#kernel = kernel;
    this.#settled = settled;
    this.#definitions = definingOps(kernel.body);
  }

  /** Those who have waited in the end. */
  follow(): Warps {
    const { body, threads } = this.#kernel;
    return this.#region(body, this.#warpsOf(threads.keys()), 0);
  }

  #warpsOf(threads: Iterable<number>): Warps {
    const { warps } = this.#kernel;
    let set = 0;
    for (const thread of threads)
      for (let warp = 0; warp < warps; warp += 1) set |= 1 << (thread * warps + warp);
    return set;
  }

  #region({ ops }: Region, active: Warps, before: Warps, rounds?: Rounds): Warps {
    let waited = before;
    for (let place = 0; place < ops.length; place += 1)
      waited = this.#step(ops[place] as AnyOp, active, waited, rounds);
    return waited;
  }

  #step(op: AnyOp, active: Warps, waited: Warps, rounds: Rounds): Warps {
    if (op.kind === "grid_dependency") {
      if (op.attributes.action === "wait") return waited | active;
      this.launchesNextAfterWait &&= (active & ~waited) === 0;
      return waited;
    }
    if ((active & ~waited) !== 0) this.#note(op, active & ~waited);
    return op.regions === noSlots ? waited : this.#inside(op, active, waited, rounds);
  }

  #inside(op: AnyOp, active: Warps, waited: Warps, rounds: Rounds): Warps {
    if (op.kind === "if") return this.#branch(op, active, waited, rounds);
    if (op.kind === "scoped") return this.#region(op.regions.body, active, waited);
    if (op.kind === "on_threads")
      return this.#region(op.regions.body, active & this.#warpsOf(op.attributes.threads), waited);
    if (op.kind === "warps") {
      const [index] = op.regions.body.parameters;
      if (index !== undefined) this.#warpIndices.add(index);
      return this.#region(op.regions.body, active, waited);
    }
    if (op.kind === "loop") {
      const over = this.#region(op.regions.body, active, waited, op);
      return this.#hasRounds(op) ? over : waited;
    }
    if (op.kind === "while") {
      const asked = this.#region(op.regions.condition, active, waited);
      this.#region(op.regions.body, active, asked);
      return asked;
    }
    // One of them runs, or, of ops that only compute, nobody waits in any.
    const ends = regionList(op).map((region) => this.#region(region, active, waited));
    return ends.length === 0 ? waited : ends.reduce((both, each) => both & each);
  }

  #branch(op: Op<"if">, active: Warps, waited: Warps, rounds: Rounds): Warps {
    const { then, otherwise } = op.regions;
    if (rounds !== undefined && this.#isFirst(op.operands.condition, rounds)) {
      // Whoever comes the other way has been here in the first round.
      const first = this.#region(then, active, waited);
      this.#region(otherwise, active, first);
      return first;
    }
    const [yes, no] = this.#decided(op.operands.condition, active);
    const left = this.#region(then, active & ~no, waited);
    const right = this.#region(otherwise, active & ~yes, waited);
    return (left & yes) | (right & no) | (left & right);
  }

  /** Those for whom a condition holds for certain, and those for whom it does not. */
  #decided(condition: Value, active: Warps): readonly [yes: Warps, no: Warps] {
    let [yes, no] = [0, 0];
    for (let agent = 0; agent < 32; agent += 1) {
      if ((active & (1 << agent)) === 0) continue;
      const holds = this.#scalarsOf(agent).of(condition);
      if (holds === 1) yes |= 1 << agent;
      else if (holds === 0) no |= 1 << agent;
    }
    return [yes, no];
  }

  #scalarsOf(agent: number): WarpScalars {
    const known = this.#scalars.get(agent);
    if (known !== undefined) return known;
    const { warps } = this.#kernel;
    const isIndex = (value: Value): boolean => this.#warpIndices.has(value);
    const made = new WarpScalars(this.#definitions, Math.floor(agent / warps), (value) =>
      isIndex(value) ? agent % warps : undefined,
    );
    this.#scalars.set(agent, made);
    return made;
  }

  /** Whether the condition is that this is the loop's first round. */
  #isFirst(condition: Value, { operands: { lower }, regions }: Op<"loop">): boolean {
    const op = this.#definitions.get(condition);
    if (op?.kind !== "compare" || op.attributes.predicate !== "eq") return false;
    const [index] = regions.body.parameters;
    const { left, right } = op.operands;
    const other = left === index ? right : right === index ? left : undefined;
    return other !== undefined && (other === lower || this.#areEqual(other, lower));
  }

  #areEqual(left: Value, right: Value): boolean {
    const known = constantOf(this.#definitions.get(left));
    return known !== undefined && known === constantOf(this.#definitions.get(right));
  }

  #hasRounds({ operands: { lower, upper } }: Op<"loop">): boolean {
    const from = constantOf(this.#definitions.get(lower));
    const to = constantOf(this.#definitions.get(upper));
    return from !== undefined && to !== undefined && from < to;
  }

  #note(op: AnyOp, late: Warps): void {
    const { threads } = this.#kernel;
    const those = (): readonly number[] =>
      [...threads.keys()].filter((thread) => (late & this.#warpsOf([thread])) !== 0);
    if (touchesUnseen(op)) this.beforeWait.push({ op, threads: those() });
    for (const { mode, value } of accessesOf(op)) {
      if (value.type.kind !== "ref" || value.type.space !== "gmem") continue;
      const name = this.#arrayOf(value);
      const isRead = mode === "read";
      if (isRead && name !== undefined && this.#settled.includes(name)) continue;
      this.beforeWait.push({ op, array: { name, isRead }, threads: those() });
    }
  }

  /** The name of the array that a window lies in. */
  #arrayOf(window: Value): string | undefined {
    const op = this.#definitions.get(window);
    const source = op && windowedBy(op);
    if (source !== undefined) return this.#arrayOf(source);
    return this.#kernel.parameters.find(({ value }) => value === window)?.name;
  }
}

/**
 * Whether an op touches global memory without a window: counters, and the ring of messages. What is asked for ahead changes nothing but
 * the cache that all share, and maps are parameters; a kernel with profile marks is never launched so.
 */
function touchesUnseen({ kind, operands }: AnyOp): boolean {
  return kind === "debug_print" || kind === "assert" || "semaphore" in operands;
}

function constantOf(op: AnyOp | undefined): number | undefined {
  if (op?.kind !== "constant" || op.attributes.shape.length > 0) return undefined;
  const { value } = op.attributes;
  return typeof value === "number" ? value : undefined;
}
