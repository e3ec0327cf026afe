/**
 * Buffers that lie in each other's memory. Two buffers may share it where neither is written while the other holds what is read
 * later; a launch may write a result over an input that ends with it, if it reads each element before it writes there.
 *
 *   new = old - rate · gradient                old is donated: new lies where old did
 *   cache' = update of a row of cache          the row alone is written, where nobody needs cache any more
 *   while { y = f(x); copy y -> x }            y lies where x does, and nothing is copied, where f reads x at its own places
 *
 * What saves the most is chosen first: updates and copies, then donated arguments of which results are computed element by
 * element, so that a loop that hands its results back in finds each where it was, and then whatever else fits.
 */
import { sizeOf, typeText } from "../ops/types.ts";
import { alternateBuffers, renamed, withoutDeadLaunches } from "./alternate-buffers.ts";
import { inputsOf, liveBefore, outputsOf } from "./liveness.ts";
import { allSteps, buffersOf } from "./plan.ts";
import type { Buffer, LaunchStep, OperationStep, Plan, Step } from "./plan.ts";

/** A plan whose buffers have no places in the arena yet. */
export type UnplacedPlan = Omit<
  Plan,
  "arenaBytes" | "offsets" | "aliases" | "matmulPrecision" | "target"
>;

/** Arguments that may be overwritten, each with the result that is to lie there, where that is said. */
export type Donated = ReadonlyMap<number, number | undefined>;

/** Buffers with one memory. */
interface Group {
  readonly members: Set<Buffer>;
  argument: number | undefined;
  result: number | undefined;
}

/** The plan with buffers that share memory where they can. */
export function shareStorage(
  plan: UnplacedPlan,
  donated: Donated,
): Pick<Plan, "steps" | "aliases"> {
  const sharing = new Sharing(plan, donated);
  const launches = [...allSteps(plan.steps)].filter((step) => step.kind === "launch");
  const of = (wanted: LaunchStep["form"]): readonly LaunchStep[] =>
    launches.filter(({ form }) => form === wanted);
  const byBytes = (left: LaunchStep, right: LaunchStep): number => bytesOf(right) - bytesOf(left);
  for (const step of of("update")) sharing.overwrite(step);
  for (const { inputs, outputs } of of("copy").toSorted(byBytes))
    sharing.join(inputs[0], outputs[0]);
  sharing.joinSaid();
  for (const step of of("other"))
    if (step.outputs.some(({ place }) => place.kind === "result")) sharing.overwrite(step);
  sharing.joinRest();
  const steps = withoutDeadLaunches(sharing.rewritten(plan.steps), sharing.results);
  return { steps: alternateBuffers(steps), aliases: sharing.aliases() };
}

function bytesOf({ outputs }: LaunchStep): number {
  return outputs.reduce((sum, { bytes }) => sum + bytes, 0);
}

class Sharing {
  readonly #plan: UnplacedPlan;
  readonly #donated: Donated;
  readonly #groups = new Map<Buffer, Group>();
  /** Buffers that may share memory with others, of which alone is known with which they may not. */
  readonly #candidates = new Set<Buffer>();
  readonly #apart = new Map<Buffer, Set<Buffer>>();
  readonly #arguments = new Map<number, Buffer>();
  readonly #results = new Map<number, Buffer>();

  constructor(plan: UnplacedPlan, donated: Donated) {
    this.#plan = plan;
    this.#donated = donated;
    for (const step of allSteps(plan.steps)) {
      const isMoved = step.kind === "launch" && step.form !== "other";
      for (const buffer of buffersOf(step)) {
        const { place } = buffer;
        if (place.kind === "argument") this.#arguments.set(place.index, buffer);
        if (place.kind === "result") this.#results.set(place.index, buffer);
        if (this.#isWritable(buffer) && (isMoved || place.kind !== "arena"))
          this.#candidates.add(buffer);
      }
    }
    liveBefore(plan.steps, new Set(this.#results.values()), (step, live) => {
      this.#keepApart(step, live);
    });
  }

  #isWritable({ place }: Buffer): boolean {
    if (place.kind === "argument") return this.#donated.has(place.index);
    return place.kind !== "constant";
  }

  /** What a launch writes may lie neither where something lives on, nor where it reads while it writes. */
  #keepApart(step: LaunchStep | OperationStep, live: ReadonlySet<Buffer>): void {
    const [inputs, outputs] = [inputsOf(step), outputsOf(step)];
    for (const [place, output] of outputs.entries()) {
      if (!this.#candidates.has(output)) continue;
      const isCopy = step.kind === "launch" && step.form === "copy";
      const free = step.kind === "launch" ? overwritableBy(step, place) : [];
      const read = isCopy ? [] : inputs.filter((input) => !free.includes(input));
      const kept = isCopy ? [...live].filter((other) => !inputs.includes(other)) : live;
      for (const others of [kept, read, outputs])
        for (const other of others) this.#separate(output, other);
    }
  }

  #separate(one: Buffer, other: Buffer): void {
    if (one === other || !this.#candidates.has(other)) return;
    for (const [from, to] of [
      [one, other],
      [other, one],
    ] as const) {
      const known = this.#apart.get(from);
      if (known === undefined) this.#apart.set(from, new Set([to]));
      else known.add(to);
    }
  }

  #groupOf(buffer: Buffer): Group {
    const known = this.#groups.get(buffer);
    if (known !== undefined) return known;
    const { place } = buffer;
    const made = {
      members: new Set([buffer]),
      argument: place.kind === "argument" ? place.index : undefined,
      result: place.kind === "result" ? place.index : undefined,
    };
    this.#groups.set(buffer, made);
    return made;
  }

  /** Gives two buffers one memory, where they can have it; says whether they have. */
  join(one: Buffer | undefined, other: Buffer | undefined): boolean {
    if (one === undefined || other === undefined) return false;
    const [left, right] = [this.#groupOf(one), this.#groupOf(other)];
    if (left === right) return true;
    if (one.dtype !== other.dtype || one.count !== other.count || one.count === 0) return false;
    if (!this.#candidates.has(one) || !this.#candidates.has(other)) return false;
    const argument = left.argument ?? right.argument;
    const result = left.result ?? right.result;
    if (left.argument !== undefined && right.argument !== undefined) return false;
    if (left.result !== undefined && right.result !== undefined) return false;
    if (!this.#isAlias(argument, result)) return false;
    for (const each of left.members) {
      const apart = this.#apart.get(each);
      if (apart !== undefined && [...right.members].some((member) => apart.has(member)))
        return false;
    }
    const joined = { members: new Set([...left.members, ...right.members]), argument, result };
    for (const member of joined.members) this.#groups.set(member, joined);
    return true;
  }

  /** A result that takes an argument's memory is the caller's array, and has its type. */
  #isAlias(argument: number | undefined, result: number | undefined): boolean {
    if (argument === undefined || result === undefined) return true;
    const [given, made] = [this.#plan.parameters[argument], this.#plan.results[result]];
    if (given === undefined || made === undefined) return false;
    return typeText(given) === typeText(made) && sizeOf(given.shape) > 0;
  }

  /** Puts results of a launch where inputs are. */
  overwrite(step: LaunchStep): void {
    for (const [place, output] of step.outputs.entries())
      for (const input of overwritableBy(step, place)) if (this.join(input, output)) break;
  }

  /** Puts results where the program says. */
  joinSaid(): void {
    for (const [argument, result] of this.#donated)
      if (result !== undefined) this.join(this.#arguments.get(argument), this.#results.get(result));
  }

  /** Puts results that lie nowhere else into arguments that are left. */
  joinRest(): void {
    for (const result of this.#results.values()) {
      if (this.#groupOf(result).argument !== undefined) continue;
      for (const argument of this.#arguments.values())
        if (this.#groupOf(argument).result === undefined && this.join(argument, result)) break;
    }
  }

  get results(): ReadonlySet<Buffer> {
    return new Set(this.#results.values());
  }

  aliases(): ReadonlyMap<number, number> {
    const found = [...new Set(this.#groups.values())].flatMap(({ argument, result }) =>
      argument === undefined || result === undefined ? [] : [[result, argument] as const],
    );
    return new Map(found.toSorted(([left], [right]) => left - right));
  }

  /** The buffer in whose place one of the arena lies. */
  #home(buffer: Buffer): Buffer {
    const group = this.#groups.get(buffer);
    if (group === undefined || buffer.place.kind !== "arena") return buffer;
    const members = [...group.members];
    const isOf = (kind: Buffer["place"]["kind"]): Buffer | undefined =>
      members.find(({ place }) => place.kind === kind);
    const [first = buffer] = members;
    // Where an argument and a result are one array, what is written there is the result.
    return isOf("result") ?? isOf("argument") ?? first;
  }

  #isTogether(one: Buffer, other: Buffer): boolean {
    const group = this.#groups.get(one);
    return one === other || (group !== undefined && group === this.#groups.get(other));
  }

  rewritten(steps: readonly Step[]): readonly Step[] {
    return steps.flatMap((step) => this.#step(step));
  }

  #step(step: Step): readonly Step[] {
    switch (step.kind) {
      case "launch":
        return this.#launch(step);
      case "operation":
      case "collective":
      case "check":
        return [renamed(step, (buffer) => this.#home(buffer))];
      case "branch":
        return [
          {
            ...step,
            index: this.#home(step.index),
            branches: step.branches.map((branch) => this.rewritten(branch)),
          },
        ];
      case "while":
        return [
          {
            ...step,
            predicate: this.#home(step.predicate),
            condition: this.rewritten(step.condition),
            body: this.rewritten(step.body),
          },
        ];
    }
  }

  #launch(step: LaunchStep): readonly Step[] {
    const { inputs, outputs } = step;
    const overwritten = new Map<number, readonly Buffer[]>();
    for (const [place, output] of outputs.entries()) {
      const same = inputs.filter((input) => this.#isTogether(input, output));
      if (same.length > 0) overwritten.set(place, same);
    }
    if (step.form === "copy" && overwritten.size > 0) return [];
    const taken = new Set([...overwritten.values()].flat());
    const kernel = overwritten.size > 0 ? { kernel: step.inPlace(overwritten) } : {};
    const kept = inputs.filter((input) => !taken.has(input));
    const launch = { ...step, ...kernel, inputs: kept, overwritten };
    return [renamed(launch, (buffer) => this.#home(buffer))];
  }
}

/** The inputs that a result may lie where: each of them is one input alone, since others may be read elsewhere. */
function overwritableBy({ overwritable, inputs }: LaunchStep, place: number): readonly Buffer[] {
  const found = overwritable.get(place) ?? [];
  return found.filter((buffer) => inputs.filter((each) => each === buffer).length === 1);
}
