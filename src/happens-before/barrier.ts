/**
 * The state of one mbarrier. A phase completes with its last arrival and carries what the arriving
 * agents knew. The hardware keeps one bit of the phase, so a waiter must have seen a phase before the
 * next one completes. Whether it did must not depend on the schedule: each wait has to be *ordered*
 * before an arrival of the next phase.
 *
 *   arrive phase 0     wait for 0 (agent 2, count 5) --- something --> arrive phase 1     ordered: right
 *   arrive phase 0     wait for 0                                      arrive phase 1     overrun, even
 *                                                                      in runs where the wait came first
 *
 * A wait by parity passes while the running phase has the other parity, so before anything has arrived
 * a wait for parity 1 passes: it counts as a wait for phase -1.
 */
import type { Origin } from "./access.ts";
import { Knowledge } from "./knowledge.ts";
import type { Epoch } from "./knowledge.ts";

/** A wait that passed, with the step `Timeline.passWait` gave it. */
export interface Wait extends Epoch, Origin {}

/** A wait that may miss its phase, because the next one can complete before it. */
export interface Overrun {
  readonly phase: number;
  readonly wait: Wait;
  /** Who completed the next phase; empty where that lies too far back. */
  readonly overrunBy: readonly Origin[];
}

export interface CompletedPhase {
  readonly phase: number;
  readonly knowledge: Knowledge;
  readonly arrivals: readonly Origin[];
}

export interface PhaseCompletion extends CompletedPhase {
  readonly overruns: readonly Overrun[];
}

export interface Leftovers {
  /** Arrivals of a phase that never completed. */
  readonly arrivals: readonly Origin[];
  /** The first phase that completed with copies and that nobody waited for. */
  readonly unawaited: CompletedPhase | undefined;
  /** Phases that completed behind the last wait, where these are more than the one that a wait could tell. */
  readonly extraPhases: number;
}

export class BarrierState {
  /** How many arrivals complete a phase. */
  readonly needed: number;
  #phase = 0;
  #arrived: Origin[] = [];
  #gathered = Knowledge.none;
  /** Parts of arrivals that are not complete, by how many one has. */
  readonly #landed = new Map<
    number,
    { readonly origins: readonly Origin[]; readonly known: Knowledge }
  >();
  #last: CompletedPhase | undefined;
  #beforeLast: CompletedPhase | undefined;
  /** Waits for the last completed phase, the latest of each agent. */
  #waits = new Map<number, Wait>();
  #unawaited: CompletedPhase | undefined;
  /** Phases that have completed since the last one that was waited for. */
  #phasesAhead = 0;

  constructor(needed: number) {
    this.needed = needed;
  }

  /** The number of the running phase, which is also how many have completed. */
  get phase(): number {
    return this.#phase;
  }

  /** Who has arrived in the running phase. */
  get arrived(): readonly Origin[] {
    return this.#arrived;
  }

  /** Who completed the last phase. */
  get lastArrivals(): readonly Origin[] {
    return this.#last?.arrivals ?? [];
  }

  arrive(knowledge: Knowledge, origin: Origin): PhaseCompletion | undefined {
    this.#arrived.push(origin);
    this.#gathered = this.#gathered.join(knowledge);
    return this.#arrived.length < this.needed ? undefined : this.#complete();
  }

  /** One of `parts` that make an arrival together, in whatever order they come. */
  arrivePart(knowledge: Knowledge, origin: Origin, parts: number): PhaseCompletion | undefined {
    const { origins, known } = this.#landed.get(parts) ?? { origins: [], known: Knowledge.none };
    const landed = { origins: [...origins, origin], known: known.join(knowledge) };
    if (landed.origins.length < parts) {
      this.#landed.set(parts, landed);
      return undefined;
    }
    this.#landed.delete(parts);
    return this.arrive(landed.known, origin);
  }

  #complete(): PhaseCompletion {
    const completed: CompletedPhase = {
      phase: this.#phase,
      knowledge: this.#gathered,
      arrivals: this.#arrived,
    };
    const overruns = [...this.#waits.values()]
      .filter(({ agent, count }) => !completed.knowledge.generic.includes(agent, count))
      .map((wait) => ({ phase: this.#phase - 1, wait, overrunBy: completed.arrivals }));
    this.#unawaited ??= this.#lastUnawaited();
    this.#beforeLast = this.#last;
    this.#last = completed;
    this.#waits = new Map();
    this.#phasesAhead += 1;
    this.#phase += 1;
    this.#arrived = [];
    this.#gathered = Knowledge.none;
    return { ...completed, overruns };
  }

  /** Whether a wait for phase `phase` passes. */
  hasCompleted(phase: number): boolean {
    return phase < this.#phase;
  }

  /** The phase a wait for `parity` passes with now; undefined where it blocks. */
  passingPhase(parity: number): number | undefined {
    return (this.#phase & 1) === (parity & 1) ? undefined : this.#phase - 1;
  }

  /** What a waiter for a completed phase learns; nothing where it came too late or for phase -1. */
  phaseKnowledge(phase: number): Knowledge {
    for (const completed of [this.#last, this.#beforeLast])
      if (completed?.phase === phase) return completed.knowledge;
    return Knowledge.none;
  }

  /** Notes a wait that passed; an overrun where the next phase has completed already. */
  recordWait(phase: number, wait: Wait): Overrun | undefined {
    this.#phasesAhead = this.#phase - 1 - phase;
    if (phase === this.#phase - 1) {
      this.#waits.set(wait.agent, wait);
      return undefined;
    }
    // It comes too late, but it does come: the overrun is the mistake to report.
    if (this.#unawaited?.phase === phase) this.#unawaited = undefined;
    const next = this.#last?.phase === phase + 1 ? this.#last.arrivals : [];
    return { phase, wait, overrunBy: next };
  }

  #lastUnawaited(): CompletedPhase | undefined {
    const copied = this.#last?.arrivals.some(({ op }) => op.kind === "copy_async") ?? false;
    return copied && this.#waits.size === 0 ? this.#last : undefined;
  }

  /** What is wrong when all threads have ended. */
  leftovers(): Leftovers {
    return {
      arrivals: [...this.#arrived, ...[...this.#landed.values()].flatMap(({ origins }) => origins)],
      unawaited: this.#unawaited ?? this.#lastUnawaited(),
      extraPhases: this.#phasesAhead > 1 ? this.#phasesAhead : 0,
    };
  }
}
