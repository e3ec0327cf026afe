/**
 * Ends of a body before its last line. What is traced behind one is a branch, which the end of the body closes:
 *
 *   loop({ to: n, carry: sum }, (k, sum, { breakIf }) => {     loop … {breaks} {
 *     const next = sum.add(x.at(k).loadScalar());                %next = …
 *     breakIf(next.gt(limit), next);                             %c = …
 *     seen.at(k).store(next);                                    %carry, %stops = if %c { yield %next, true } {
 *     return next;                                                 store …
 *   });                                                            yield %next, false }
 *                                                                yield %carry, %stops }
 */
import { bool } from "../formats/dtype.ts";
import type { Value } from "../ir/node.ts";
import { TilewrightError } from "../support/diagnostics.ts";
import type { Location } from "../support/location.ts";
import type { Scope, Trace } from "./trace.ts";

/** One exit: what it asks, what it hands on, and the numbers of the body that it stops. */
interface Exit {
  readonly condition: Value;
  /** What the body yields where it ends there. */
  readonly values: readonly Value[];
  /** Whether the loop ends with the round. */
  readonly breaks: boolean;
  readonly location: Location;
}

/** The early ends of one body that is being traced. */
export class EarlyExits {
  static readonly #ofKernels = new WeakMap<Trace, EarlyExits>();

  readonly #trace: Trace;
  /** What the body belongs to, for messages: "the body of loop". */
  readonly #label: string;
  readonly #exits: Exit[] = [];
  /** The innermost region of the body's own code. */
  #scope: Scope;

  /** To be made in the region of the body. */
  constructor(trace: Trace, label: string) {
    this.#trace = trace;
    this.#label = label;
    this.#scope = trace.scope;
  }

  /** Those of a kernel's body, which `returnIf` finds by the trace. */
  static ofKernel(trace: Trace, label: string): EarlyExits {
    const exits = new EarlyExits(trace, label);
    EarlyExits.#ofKernels.set(trace, exits);
    return exits;
  }

  static inKernel(trace: Trace): EarlyExits {
    const exits = EarlyExits.#ofKernels.get(trace);
    if (exits === undefined) throw new Error("the kernel's body has not begun");
    return exits;
  }

  /** Whether a loop with this body may end behind any of its rounds. */
  get breaks(): boolean {
    return this.#exits.some((exit) => exit.breaks);
  }

  /** Refuses an exit that does not stand in the body's own code, from which nothing else is left with it. */
  requireOwn(name: string, remedy: string, location: Location): void {
    const { scope } = this.#trace;
    if (scope === this.#scope) return;
    throw new TilewrightError({
      code: "TW1041",
      message: `${name} stands outside of ${this.#label}, which it would end`,
      location,
      expected: `a call in ${this.#label} itself`,
      found: this.#scope.open ? `one in ${scope.label} within it` : "one after its end",
      remedy: this.#scope.open ? remedy : `call ${name} while the body runs`,
    });
  }

  /** Ends the body here where the condition is true; `handed` gives what it yields then. */
  add(
    name: string,
    condition: Value,
    { breaks, location }: Pick<Exit, "breaks" | "location">,
    handed: () => readonly Value[],
  ): void {
    const choice = {};
    const values = this.#trace.within(`what ${name} hands on`, choice, handed);
    this.#exits.push({ condition, values, breaks, location });
    this.#trace.begin(`the code behind ${name}`, [], { choice });
    this.#scope = this.#trace.scope;
  }

  /** Closes the branches that the exits began; gives what the body yields, from what its last line does. */
  finish(last: readonly Value[]): readonly Value[] {
    const { breaks } = this;
    const flag = (stops: boolean, location: Location): readonly Value[] =>
      breaks
        ? this.#trace.add("constant", {}, { value: stops, dtype: bool, shape: [] }, {}, location)
        : [];
    const [innermost] = this.#exits.slice(-1);
    if (innermost === undefined) return last;
    let yielded = [...last, ...flag(false, innermost.location)];
    for (const exit of this.#exits.toReversed()) {
      const { condition, location, values } = exit;
      const otherwise = this.#trace.end(yielded, location);
      const then = this.#trace.region("an early end", [], location, () => [
        ...values,
        ...flag(exit.breaks, location),
      ]);
      yielded = [...this.#trace.add("if", { condition }, {}, { then, otherwise }, location)];
    }
    return yielded;
  }
}
