/**
 * Findings: what a run reports. Each is a `TilewrightError`; a mistake in a loop or in every block is
 * one finding, told apart by its code and the ops involved. After a finding that leaves nothing sensible to
 * do, the run stops.
 */
import type { AnyOp } from "../ir/node.ts";
import { TilewrightError } from "../support/diagnostics.ts";
import type { DiagnosticDetails } from "../support/diagnostics.ts";

/** Unwinds the run after a finding that ends it. */
export class RunStopped extends Error {}

export class Findings {
  readonly #limit: number;
  readonly #errors: TilewrightError[] = [];
  readonly #known = new Map<string, Set<AnyOp>[]>();

  constructor(limit: number) {
    this.#limit = limit;
  }

  get errors(): readonly TilewrightError[] {
    return this.#errors;
  }

  /** Adds a finding about `ops` unless there is one like it. */
  add(details: DiagnosticDetails, ...ops: readonly AnyOp[]): void {
    if (this.#isKnown(details.code, ops)) return;
    this.#errors.push(new TilewrightError(details));
    if (this.#errors.length >= this.#limit) throw new RunStopped();
  }

  /** Adds a finding and stops the run. */
  stop(details: DiagnosticDetails, ...ops: readonly AnyOp[]): never {
    this.add(details, ...ops);
    throw new RunStopped();
  }

  #isKnown(code: string, ops: readonly AnyOp[]): boolean {
    const known = this.#known.get(code) ?? [];
    this.#known.set(code, known);
    const pair = new Set(ops);
    const isSame = (other: Set<AnyOp>): boolean =>
      other.size === pair.size && [...pair].every((op) => other.has(op));
    if (known.some(isSame)) return true;
    known.push(pair);
    return false;
  }
}
