/**
 * Reserved names: kernels use names for grid axes, buffers, program threads and scratch. An array of the user with such a name is renamed inside the
 * kernel, so that users may choose any name:
 *
 *   map({ block0: f32 }, ({ block0 }) => ({ out: block0.neg() }))
 *
 *   outside    block0                     arrays of the operation, tiles of functions
 *   inside     given_block0               arrays of kernels, beside their own axis
 */
import { operation } from "../../device/operation.ts";
import type { Operation, Planned, PlannedArgument } from "../../device/operation.ts";
import { isRecord } from "../../support/options.ts";
import type { Target } from "../../targets/target.ts";
import type { Choice } from "../../device/tuning/line.ts";

interface Named<T> {
  readonly [name: string]: T;
}

export class ReservedNames {
  readonly #inner: ReadonlyMap<string, string>;
  readonly #outer: ReadonlyMap<string, string>;

  /** The prefix of renamed arrays, and of scratch whose name a user's array has. */
  readonly #prefix: string;

  private constructor(changed: readonly string[], prefix: string) {
    this.#prefix = prefix;
    this.#inner = new Map(changed.map((name) => [name, prefix + name]));
    this.#outer = new Map(changed.map((name) => [prefix + name, name]));
  }

  /** Undefined if no name is reserved. */
  static of(given: readonly string[], taken: RegExp): ReservedNames | undefined {
    // Every object has a constructor, so that a record would seem to have one before it is given.
    const changed = given.filter((name) => taken.test(name) || name in Object.prototype);
    let prefix = "given_";
    while (given.some((name) => name.startsWith(prefix))) prefix += "_";
    return changed.length === 0 ? undefined : new ReservedNames(changed, prefix);
  }

  inner(name: string): string {
    return this.#inner.get(name) ?? name;
  }

  #outerName(name: string): string {
    return this.#outer.get(name) ?? name;
  }

  inside<T>(record: Named<T>): Named<T> {
    return renamed(record, (name) => this.inner(name));
  }

  outside<T>(record: Named<T>): Named<T> {
    return renamed(record, (name) => this.#outerName(name));
  }

  /** Wraps a function of the user, so that it sees its own names. */
  around(
    compute: (...tiles: readonly Named<never>[]) => unknown,
  ): (...tiles: readonly Named<never>[]) => unknown {
    return (...tiles) => {
      const made = compute(...tiles.map((each) => this.outside(each)));
      return isRecord(made) ? this.inside(made) : made;
    };
  }

  /** The operation under the user's names. */
  operation(inner: Operation): Operation {
    const { name, inputs, outputs, inouts, choices } = inner;
    return operation({
      name,
      inputs: this.outside(inputs),
      outputs: this.outside(outputs),
      inouts: this.outside(inouts),
      choices,
      plan: (dimensions: Named<number>, target: Target, choice?: Choice) => {
        const chosen = choice === undefined ? inner : inner.with(choice);
        return this.#planned(chosen.planFor(new Map(Object.entries(dimensions)), target));
      },
    }) as unknown as Operation;
  }

  #planned(plan: Planned): Planned {
    const { configuration, source, scratch = {}, notes, tiles } = plan;
    // Scratch may be called as the user's arrays are, too.
    const scratchName = (name: string): string =>
      this.#inner.has(name) ? this.#prefix + name : name;
    const outer = (argument: PlannedArgument): PlannedArgument => {
      if ("scalar" in argument) return argument;
      const { argument: own } = argument;
      const isScratch = Object.hasOwn(scratch, own);
      return { ...argument, argument: isScratch ? scratchName(own) : this.#outerName(own) };
    };
    const launches = () =>
      [plan.launches]
        .flatMap((given) => (typeof given === "function" ? given() : given))
        .map((launch) => ({
          ...launch,
          arguments: Object.fromEntries(
            Object.entries(launch.arguments).map(([own, argument]) => [own, outer(argument)]),
          ),
        }));
    return {
      ...{ configuration, source, launches, notes, tiles },
      scratch: renamed(scratch, scratchName),
    };
  }
}

function renamed<T>(record: Named<T>, change: (name: string) => string): Named<T> {
  return Object.fromEntries(Object.entries(record).map(([name, each]) => [change(name), each]));
}
