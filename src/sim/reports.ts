/**
 * Findings: what a run reports. Each is a `TilewrightError`; a mistake in a loop or in every block is
 * one finding, identified by its code and what it concerns. After a finding that leaves nothing sensible to
 * do, the run stops. And what a run did, in numbers.
 */
import type { AnyOp, Value } from "../ir/node.ts";
import { TilewrightError } from "../support/diagnostics.ts";
import type { DiagnosticDetails } from "../support/diagnostics.ts";

/** What a run did, counted. */
export interface Statistics {
  /** Steps of agents; an op takes one or a few. */
  steps: number;
  blocks: number;
  /** Asynchronous copies. */
  copies: number;
  /** Bytes that loads, stores and copies moved. */
  bytes: number;
  /** How often another agent was chosen. */
  switches: number;
}

/** What a finding is about: the ops involved, or an argument. */
type Subject = AnyOp | Value;

/** Unwinds the run after a finding that ends it. */
export class RunStopped extends Error {}

export class Findings {
  readonly #limit: number;
  readonly #errors: TilewrightError[] = [];
  readonly #known = new Map<string, Set<Subject>[]>();

  constructor(limit: number) {
    this.#limit = limit;
  }

  get errors(): readonly TilewrightError[] {
    return this.#errors;
  }

  /** Adds a finding about `subjects` unless there is one like it. */
  add(details: DiagnosticDetails, ...subjects: readonly Subject[]): void {
    if (this.#isKnown(details.code, subjects)) return;
    this.#errors.push(new TilewrightError(details));
    if (this.#errors.length >= this.#limit) throw new RunStopped();
  }

  /** Adds a finding and stops the run. */
  stop(details: DiagnosticDetails, ...subjects: readonly Subject[]): never {
    this.add(details, ...subjects);
    throw new RunStopped();
  }

  #isKnown(code: string, subjects: readonly Subject[]): boolean {
    const known = this.#known.get(code) ?? [];
    this.#known.set(code, known);
    const pair = new Set(subjects);
    const isSame = (other: Set<Subject>): boolean =>
      other.size === pair.size && [...pair].every((subject) => other.has(subject));
    if (known.some(isSame)) return true;
    known.push(pair);
    return false;
  }
}
