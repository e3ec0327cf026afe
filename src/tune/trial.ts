/**
 * Candidates on a device: bound, run once on results that were spoilt before, compared with what is expected, and
 * timed in groups that take turns.
 *
 *   group 1   a b c d e f     the fastest, c, takes part in every later group
 *   group 2   g h i j k c     so that all times are on one scale, whatever the clocks did meanwhile
 *   last      c i a           those near the fastest, with all rounds
 */
import { bench } from "../bench/bench.ts";
import type { BenchEntry } from "../bench/bench.ts";
import { leastRounds } from "../bench/statistics.ts";
import type { BoundLaunch } from "../device/bound-launch.ts";
import type { Device } from "../device/device.ts";
import { DeviceArray, disposeAll } from "../device/device-array.ts";
import type { Operation } from "../device/operation.ts";
import type { Sizes } from "../device/tuning/line.ts";
import type { HostValue } from "../formats/dtype.ts";
import type { HostArray } from "../formats/hostarray.ts";
import { ratesOf } from "../ir/cost/index.ts";
import { TilewrightError } from "../support/diagnostics.ts";
import { argumentSet, arrayShapes, requireGiven, setBytes } from "./arrays.ts";
import type { ArgumentSet } from "./arrays.ts";
import type { Candidate } from "./candidate.ts";
import { reasonOf } from "./candidate.ts";
import { differenceOf, poison } from "./check.ts";
import type { TuneSettings } from "./options.ts";
import { byReference, byTrusted, verdictOf } from "./majority-reference.ts";
import type { Group, Verdict } from "./majority-reference.ts";

/** What came of trying a candidate. */
export type Outcome =
  | { readonly us: number; readonly spread: number; readonly rounds: number }
  | { readonly rejected: "compile" | "wrong"; readonly reason: string };

/** Candidates that gave the same, and a copy of it. */
interface Agreeing extends Group {
  readonly candidates: Candidate[];
  readonly outputs: ReadonlyMap<string, DeviceArray>;
}

type Reference = NonNullable<TuneSettings["reference"]>;

/** Candidates in a group besides the fastest so far. */
const groupSize = 6;
/** Microseconds that a sample takes at least, in so many launches at most. */
const [sampleMicroseconds, mostLaunches] = [2000, 50];
/** Launches of this many microseconds run at the power limit, so the device rests so many milliseconds before each sample of them. */
const [powerfulMicroseconds, rest] = [100, 20];
/** Those within this of the fastest are compared again, so many at most. */
const [near, finalists] = [1.05, 4];
const timesL2 = 3;

export class Trial {
  readonly #device: Device;
  readonly #sizes: Sizes;
  readonly #settings: TuneSettings;
  readonly #sets: readonly ArgumentSet[];
  readonly #dispose: readonly (() => void)[];
  /** What arrays that are updated hold before a run. */
  readonly #before: ReadonlyMap<string, DeviceArray>;
  /** What outputs must be, from the reference or a choice that is trusted, and which of them it was. */
  #expected:
    | { readonly outputs: ReadonlyMap<string, DeviceArray>; readonly verdict: Verdict }
    | undefined;
  /** Where nothing is expected: candidates by what they gave. */
  readonly #groups: Agreeing[] = [];

  private constructor(
    device: Device,
    sizes: Sizes,
    settings: TuneSettings,
    made: readonly {
      readonly set: ArgumentSet;
      readonly dispose: () => void;
    }[],
    before: ReadonlyMap<string, DeviceArray>,
  ) {
    this.#device = device;
    this.#sizes = sizes;
    this.#settings = settings;
    this.#sets = made.map(({ set }) => set);
    this.#dispose = made.map(({ dispose }) => dispose);
    this.#before = before;
  }

  static async start(
    device: Device,
    operation: Operation,
    sizes: Sizes,
    settings: TuneSettings,
  ): Promise<Trial> {
    const { l2 } = ratesOf(device.target, device.gpu?.name);
    const bytes = Math.max(1, setBytes(operation, sizes));
    const most = settings.launches ?? mostLaunches;
    const count = Math.min(Math.max(2, Math.ceil((timesL2 * l2) / bytes)), most);
    const given = settings.inputs?.(sizes) ?? {};
    requireGiven(operation, sizes, given, settings.location);
    const made: { readonly set: ArgumentSet; readonly dispose: () => void }[] = [];
    const before = new Map<string, DeviceArray>();
    const trial = (): Trial => new Trial(device, sizes, settings, made, before);
    try {
      for (let set = 0; set < count; set += 1)
        made.push(await argumentSet(device, operation, sizes, set, given));
      for (const { name, role } of arrayShapes(operation, sizes)) {
        const array = made[0]?.set[name];
        if (role !== "inout" || !(array instanceof DeviceArray)) continue;
        before.set(name, device.allocate(array.dtype, array.shape));
        await device.copy(array, before.get(name) ?? array);
      }
      const begun = trial();
      if (settings.reference === undefined) await begun.#expectTrusted(operation);
      else await begun.#expectReference(operation, settings.reference);
      return begun;
    } catch (error) {
      trial().dispose();
      throw error;
    }
  }

  dispose(): void {
    for (const dispose of this.#dispose) dispose();
    const kept = [this.#expected, ...this.#groups].flatMap((each) => [
      ...(each?.outputs.values() ?? []),
    ]);
    disposeAll([...kept, ...this.#before.values()]);
  }

  /** Whether it is known what is right before any candidate runs. */
  get isTold(): boolean {
    return this.#expected !== undefined;
  }

  /** Why a candidate is out of the question; where nothing is expected, what it gave counts in `verdict`. */
  async check(candidate: Candidate): Promise<Outcome | undefined> {
    const { operation } = candidate;
    const outputs = this.#outputs(operation);
    const failed = await this.#run(operation, outputs, 0);
    if (failed !== undefined) return failed;
    if (this.#expected !== undefined) {
      const reason = await this.#difference(outputs, this.#expected.outputs);
      return reason === undefined ? undefined : { rejected: "wrong", reason };
    }
    for (const group of this.#groups)
      if ((await this.#difference(outputs, group.outputs)) === undefined) {
        group.candidates.push(candidate);
        return undefined;
      }
    const written = await this.#written(operation, outputs);
    if ("failed" in written) return written.failed;
    this.#groups.push({ candidates: [candidate], ...written });
    return undefined;
  }

  /** Who said what is right, once candidates were checked, and which of them turn out to be wrong; nobody where none ran. */
  async verdict(isComplete: boolean): Promise<{
    readonly verdict: Verdict | undefined;
    readonly wrong: ReadonlyMap<Candidate, string>;
  }> {
    if (this.#expected !== undefined) return { verdict: this.#expected.verdict, wrong: new Map() };
    if (this.#groups.length === 0) return { verdict: undefined, wrong: new Map() };
    const { verdict, right } = verdictOf(this.#groups, isComplete);
    const wrong = new Map<Candidate, string>();
    for (const group of this.#groups) {
      if (right === undefined || group === right) continue;
      const reason = (await this.#difference(group.outputs, right.outputs)) ?? "its results differ";
      for (const candidate of group.candidates) wrong.set(candidate, `${reason}; ${verdict.text}`);
    }
    return { verdict, wrong };
  }

  /** Runs it once, on results that were spoilt and arrays that are as they were given. */
  async #run(
    operation: Operation,
    outputs: ReadonlyMap<string, DeviceArray>,
    run: 0 | 1,
  ): Promise<Outcome | undefined> {
    let bound: BoundLaunch | undefined;
    try {
      for (const [name, out] of outputs) {
        const before = this.#before.get(name);
        if (before === undefined) await poison(this.#device, out, run);
        else await this.#device.copy(before, out);
      }
      bound = this.#bind(operation, 0);
      bound.launch();
      await this.#device.synchronize();
      return undefined;
    } catch (error) {
      return { rejected: "compile", reason: reasonOf(error) };
    } finally {
      bound?.dispose();
    }
  }

  async #difference(
    outputs: ReadonlyMap<string, DeviceArray>,
    expected: ReadonlyMap<string, DeviceArray>,
  ): Promise<string | undefined> {
    for (const [name, wanted] of expected) {
      const found = outputs.get(name);
      const reason = found && (await differenceOf(this.#device, name, found, wanted));
      if (reason !== undefined) return reason;
    }
    return undefined;
  }

  /** Times candidates; `known` is one whose time is known already, and the scale of the others. */
  async time(
    candidates: readonly Candidate[],
    known: { readonly candidate: Candidate; readonly us: number } | undefined,
    record: (candidate: Candidate, outcome: Outcome) => Promise<void>,
    mayGoOn: () => boolean,
  ): Promise<void> {
    const times = new Map<Candidate, number>();
    let anchor = known;
    for (let at = 0; at < candidates.length && (at === 0 || mayGoOn()); at += groupSize) {
      const group = candidates.slice(at, at + groupSize);
      for (const [candidate, outcome] of await this.#timed(group, anchor, leastRounds)) {
        times.set(candidate, outcome.us);
        await record(candidate, outcome);
        if (anchor === undefined || outcome.us < anchor.us) anchor = { candidate, us: outcome.us };
      }
    }
    if (anchor === undefined || !mayGoOn()) return;
    const { us: best } = anchor;
    const last = [...times]
      .filter(([candidate, us]) => us <= best * near && candidate !== anchor?.candidate)
      .sort(([, left], [, right]) => left - right)
      .slice(0, finalists - 1)
      .map(([candidate]) => candidate);
    if (last.length === 0) return;
    for (const [candidate, outcome] of await this.#timed(last, anchor, this.#settings.rounds))
      await record(candidate, outcome);
  }

  async #timed(
    group: readonly Candidate[],
    anchor: { readonly candidate: Candidate; readonly us: number } | undefined,
    rounds: number,
  ): Promise<ReadonlyMap<Candidate, Extract<Outcome, { us: number }>>> {
    const all = anchor === undefined ? group : [...group, anchor.candidate];
    const entries: { [name: string]: BenchEntry } = {};
    for (const [index, { operation }] of all.entries())
      entries[String(index)] = (set) => this.#bind(operation, set);
    const longest = Math.max(...all.map(({ estimate }) => estimate));
    const enough = Math.min(Math.max(3, Math.ceil(sampleMicroseconds / longest)), mostLaunches);
    const { signal, launches = enough } = this.#settings;
    const sets = Math.min(this.#sets.length, launches);
    const result = await bench(this.#device, entries, {
      rounds,
      launches,
      sets,
      signal,
      warmUp: 1,
      rest: longest >= powerfulMicroseconds ? rest : 0,
    });
    const found = new Map<Candidate, Extract<Outcome, { us: number }>>();
    for (const [index, candidate] of group.entries()) {
      const { milliseconds, ratio, spread } = result.of(String(index));
      const us = anchor === undefined ? milliseconds * 1e3 : anchor.us / ratio;
      found.set(candidate, { us, spread, rounds });
    }
    return found;
  }

  #bind(operation: Operation, set: number): BoundLaunch {
    const args = this.#sets[set % this.#sets.length] ?? {};
    return this.#device.bind(operation, args, {
      dimensions: this.#sizes,
    });
  }

  #outputs(operation: Operation): ReadonlyMap<string, DeviceArray> {
    const [first = {}] = this.#sets;
    return new Map(
      arrayShapes(operation, this.#sizes).flatMap(({ name, role }) => {
        const array = first[name];
        return role !== "input" && array instanceof DeviceArray ? [[name, array] as const] : [];
      }),
    );
  }

  async #copies(
    outputs: ReadonlyMap<string, DeviceArray>,
  ): Promise<ReadonlyMap<string, DeviceArray>> {
    const copies = new Map<string, DeviceArray>();
    for (const [name, out] of outputs) {
      const copy = this.#device.allocate(out.dtype, out.shape);
      copies.set(name, copy);
      await this.#device.copy(out, copy);
    }
    return copies;
  }

  /** A copy of what was given; an outcome where elements are left as they were or differ in every run, which are no measure for others. */
  async #written(
    operation: Operation,
    outputs: ReadonlyMap<string, DeviceArray>,
  ): Promise<
    { readonly outputs: ReadonlyMap<string, DeviceArray> } | { readonly failed: Outcome }
  > {
    const first = await this.#copies(outputs);
    const failed = await this.#run(operation, outputs, 1);
    const reason = failed === undefined ? await this.#difference(outputs, first) : undefined;
    if (failed === undefined && reason === undefined) return { outputs: first };
    disposeAll([...first.values()]);
    const why = "elements are not written, or NaN, or others in every run";
    return { failed: failed ?? { rejected: "wrong", reason: `${why}: ${reason ?? ""}` } };
  }

  /** What the operation's plainest choice gives. Where that cannot run, candidates are held against each other. */
  async #expectTrusted(operation: Operation): Promise<void> {
    const choice = operation.choices?.trusted?.(this.#sizes, this.#device.target);
    if (choice === undefined) return;
    const trusted = operation.with(choice);
    const outputs = this.#outputs(trusted);
    if ((await this.#run(trusted, outputs, 0)) !== undefined) return;
    const written = await this.#written(trusted, outputs);
    if ("outputs" in written) this.#expected = { ...written, verdict: byTrusted };
  }

  async #expectReference(operation: Operation, reference: Reference): Promise<void> {
    const [first = {}] = this.#sets;
    const inputs: { [name: string]: HostArray | HostValue } = {};
    const written = this.#outputs(operation);
    for (const [name, value] of Object.entries(first))
      if (!(value instanceof DeviceArray)) inputs[name] = value;
      else if (!written.has(name) || this.#before.has(name))
        inputs[name] = await this.#device.download(value);
    const given = reference(inputs, this.#sizes);
    const expected = new Map<string, DeviceArray>();
    this.#expected = { outputs: expected, verdict: byReference };
    for (const name of written.keys()) {
      const result = given[name];
      if (result === undefined)
        throw new TilewrightError({
          code: "TW9815",
          message: `reference of tune gives no ${name}`,
          expected: `host arrays for ${[...written.keys()].join(", ")}`,
          found: Object.keys(given).join(", ") || "nothing",
          location: this.#settings.location,
        });
      expected.set(name, await this.#device.upload(result));
    }
  }
}
