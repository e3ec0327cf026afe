/**
 * Execution barriers of a fixed set of agents (block_sync, the cluster's barrier): each arrives and then waits
 * until all have arrived; everything before any arrival is known after every wait.
 *
 *   agent 0   arrive -------- wait | passes here
 *   agent 1        arrive -- wait  | passes here
 *   agent 2                 arrive | wait
 */
import type { Origin } from "./access.ts";
import { Knowledge } from "./knowledge.ts";

export class ExecutionBarrier {
  /** How many agents arrive. */
  readonly needed: number;
  #phase = 0;
  #arrived: Origin[] = [];
  #gathered = Knowledge.none;
  #concluded = Knowledge.none;
  /** The phase an agent has arrived for and not yet waited for. */
  readonly #attending = new Map<number, { readonly phase: number; readonly origin: Origin }>();

  constructor(needed: number) {
    this.needed = needed;
  }

  /** Who has arrived for the running phase. */
  get arrived(): readonly Origin[] {
    return this.#arrived;
  }

  /** Whether the agent has arrived and not yet waited; it must wait before it arrives again. */
  isAttending(agent: number): boolean {
    return this.#attending.has(agent);
  }

  /** Where the agent has arrived, if it has not yet waited. */
  arrivalOf(agent: number): Origin | undefined {
    return this.#attending.get(agent)?.origin;
  }

  /** Arrives; true where this was the last arrival, so that waiters may go on. */
  arrive(agent: number, knowledge: Knowledge, origin: Origin): boolean {
    if (this.isAttending(agent)) throw new Error(`agent ${agent} arrived twice without waiting`);
    this.#attending.set(agent, { phase: this.#phase, origin });
    this.#arrived.push(origin);
    this.#gathered = this.#gathered.join(knowledge);
    if (this.#arrived.length < this.needed) return false;
    this.#phase += 1;
    this.#concluded = this.#gathered;
    this.#arrived = [];
    this.#gathered = Knowledge.none;
    return true;
  }

  /** Whether all have arrived for the phase the agent waits for. */
  isConcluded(agent: number): boolean {
    const attended = this.#attending.get(agent);
    return attended !== undefined && attended.phase < this.#phase;
  }

  /** Ends the agent's wait with what all knew. The next phase cannot complete without this agent. */
  leave(agent: number): Knowledge {
    if (!this.isConcluded(agent)) throw new Error(`agent ${agent} left before all arrived`);
    this.#attending.delete(agent);
    return this.#concluded;
  }
}
