/**
 * The schedule that counts cycles: what is due first happens first. Every step takes its agent as long as the cost
 * model says that the op takes on one processor; what runs beside it takes its turn on the processor's TMA or
 * tensor cores, and then its latency:
 *
 *   copy       ■ 4 cycles
 *   its copy     ├ TMA: bytes ┤   ├──── latency ────┤         the next copy has TMA after this one's bytes
 *   multiply   ▒▒▒▒▒▒▒▒▒▒▒▒ waits ▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒■ wgmma
 *
 * Every block has a processor to itself with an even share of the memory's bandwidth, and copies find their source in
 * the L2 cache. The model is for pictures of who waits for whom; it knows nothing of banks and register files.
 */
import { costRules, ratesOf, roofline } from "../ir/cost/index.ts";
import type { CostContext, Rates } from "../ir/cost/index.ts";
import type { AnyOp } from "../ir/node.ts";
import { ruleOf } from "../ir/ops.ts";
import { accessesOf } from "../ir/traits.ts";
import type { Target } from "../targets/target.ts";
import type { Agent, AsyncOperation } from "./agent.ts";
import type { Block } from "./block.ts";
import type { Choice, Clock, Schedule } from "./scheduler.ts";

/** What runs beside a thread takes turns on one of these. */
type Unit = "copy" | "products";

/** Cycles before the result of each is there, beyond what the work takes. */
const latencies: { readonly [U in Unit]: number } = { copy: 700, products: 32 };
/** Cycles that global memory takes to answer a thread. */
const loadLatency = 500;
/** Cycles of a step that does nothing else, such as a barrier or the start of a copy. */
const issueCycles = 4;
/** Bytes that a processor's shared memory gives in a cycle, which `ratesOf` counts over all processors and a second. */
const sharedBytesPerCycle = 128;
/** Bytes that TMA of a processor moves in a cycle: what it copies mostly lies in the L2 cache. */
const copiedBytesPerCycle = 64;

interface Duration {
  /** Cycles of the agent itself. */
  readonly own: number;
  /** What goes on without the agent, and the cycles that it holds its unit. */
  readonly beside: { readonly unit: Unit; readonly cycles: number } | undefined;
}

class DurationModel {
  readonly #context: CostContext;
  readonly #rates: Rates;
  readonly #known = new Map<AnyOp, Duration>();

  constructor(context: CostContext, target: Target) {
    this.#context = context;
    this.#rates = ratesOf(target);
  }

  of(op: AnyOp): Duration {
    const known = this.#known.get(op) ?? this.#durationOf(op);
    this.#known.set(op, known);
    return known;
  }

  #durationOf(op: AnyOp): Duration {
    const cost = ruleOf(costRules, op)(op, this.#context);
    const { milliseconds } = roofline(cost, this.#rates);
    const cycles = Math.ceil((milliseconds * 1e-3 * this.#rates.smemBytes) / sharedBytesPerCycle);
    const unit = accessesOf(op)
      .map(({ done }) => done)
      .find((done) => done !== "at once");
    const { read, written } = cost.bytes.gmem;
    const held = unit === "copy" ? Math.ceil((read + written) / copiedBytesPerCycle) : cycles;
    if (unit !== undefined) return { own: issueCycles, beside: { unit, cycles: held } };
    return { own: issueCycles + cycles + (read > 0 ? loadLatency : 0), beside: undefined };
  }
}

interface Due {
  readonly operation: AsyncOperation;
  readonly at: number;
}

export class TimedSchedule implements Schedule, Clock {
  readonly immediate = false;
  readonly clock = this;
  readonly #model: DurationModel;
  readonly #ready: Agent[] = [];
  readonly #due: Due[] = [];
  /** When each unit of a block's processor is free again. */
  readonly #free = new Map<Block, { [U in Unit]: number }>();
  /** When what was chosen last happens. */
  now = 0;

  constructor(context: CostContext, target: Target) {
    this.#model = new DurationModel(context, target);
  }

  ready(agent: Agent): void {
    agent.cycles = Math.max(agent.cycles, this.now);
    this.#ready.push(agent);
  }

  issue(operation: AsyncOperation): void {
    const { issuer, origin } = operation;
    const { unit, cycles } = this.#model.of(origin.op).beside ?? { unit: "copy", cycles: 0 };
    const free = this.#free.get(issuer.block) ?? { copy: 0, products: 0 };
    this.#free.set(issuer.block, free);
    free[unit] = Math.max(free[unit], issuer.cycles) + cycles;
    this.#due.push({ operation, at: free[unit] + latencies[unit] });
  }

  next(canStart: boolean): Choice {
    if (canStart) return "start";
    const agent = first(this.#ready, ({ cycles }) => cycles);
    const due = first(this.#due, ({ at }) => at);
    if (due !== undefined && due.key <= (agent?.key ?? Infinity)) {
      this.now = Math.max(this.now, due.key);
      return this.#due.splice(due.position, 1)[0]?.operation;
    }
    if (agent === undefined) return undefined;
    this.now = Math.max(this.now, agent.key);
    return this.#ready.splice(agent.position, 1)[0];
  }

  interrupts(): boolean {
    return true;
  }

  passed(agent: Agent, op: AnyOp): number {
    agent.cycles += this.#model.of(op).own;
    return agent.cycles;
  }
}

/** The first of the items with the least key. */
function first<T>(
  items: readonly T[],
  keyOf: (item: T) => number,
): { readonly position: number; readonly key: number } | undefined {
  let best: { readonly position: number; readonly key: number } | undefined;
  for (const [position, item] of items.entries()) {
    const key = keyOf(item);
    if (best === undefined || key < best.key) best = { position, key };
  }
  return best;
}
