/**
 * Random programs of one device on the emulator, whose every array is known: what is issued changes plain numbers at once, and
 * what comes back much later has to be those.
 *
 *   device    upload a ─ launch ─ allocate c ─ dispose a ─ download b ─ launch …     in turns of the host, or none
 *   model     a = […]    b = 3a+k            ─           ─ expects b   ─ …
 *
 * Launches take turns with the host as if each of their clusters were long, and are handed over to threads at once, so that
 * all of it happens while launches are under way. Some fail, some are aborted; what they were to write is unknown then, and
 * everything else as it was.
 */
import { tensor, assert, cdiv, dim, hostArray, i32, kernel, scalar, slice } from "tilewright";
import type { DeviceArray, HostArray, KernelDefinition } from "tilewright";
import { Device } from "../../src/device/device.ts";
import type { ThreadHost } from "../../src/emulator/host-workers/worker-pool.ts";
import { EmulatorBackend } from "../../src/runtime/emulator-backend.ts";
import { Random } from "../../src/support/random.ts";

const n = dim("n");
const block = 128;
/** Of what kernels work on: what more there is, the emulator would take long for. */
const mostElements = 10 * block;

const arrays = { grid: { i: cdiv(n, block) }, inputs: { k: scalar(i32), x: tensor(i32, [n]) } };

const combine = kernel(
  { ...arrays, name: "combine", outputs: { out: tensor(i32, [n]) } },
  ({ i, k, x, out }) => {
    const here = slice(i.mul(block), block);
    out.at(here).store(x.at(here).load().mul(3).add(k));
  },
);

const update = kernel(
  { ...arrays, name: "update", inouts: { y: tensor(i32, [n]) } },
  ({ i, k, x, y }) => {
    const here = slice(i.mul(block), block);
    y.at(here).store(y.at(here).load().mul(5).add(x.at(here).load()).add(k));
  },
);

/** Blocks add to one place, so that no other thread takes any of them. */
const total = kernel(
  { ...arrays, name: "total", inouts: { sum: tensor(i32, [1]) } },
  ({ i, k, x, sum }) => {
    const here = slice(i.mul(block), block);
    sum.at(0).atomicAdd(x.at(here).load().sum().add(k));
  },
);

/** Block `k` ends it. */
const failing = kernel(
  { ...arrays, name: "failing", outputs: { out: tensor(i32, [n]) } },
  ({ i, k, x, out }) => {
    const here = slice(i.mul(block), block);
    out.at(here).store(x.at(here).load());
    assert(i.ne(k), "this is another block");
  },
);

/** An array of the device, and what it holds: undefined where that is not known. */
interface Known {
  readonly array: DeviceArray<"i32">;
  /** By which what was issued is told. */
  readonly name: string;
  readonly length: number;
  content: Int32Array | undefined;
  /** Whether every element was written; a launch that reads others is reported. */
  isWritten: boolean;
}

export interface ScheduleOptions {
  readonly seed: number;
  /** Of which the threads come. */
  readonly host: ThreadHost;
  readonly steps: number;
}

/** How often what happened. */
export interface ScheduleCounts {
  launches: number;
  failures: number;
  allocations: number;
  refused: number;
  downloads: number;
}

/** Runs the schedule of a seed; an error tells what was issued. */
export async function runMemorySchedule(options: ScheduleOptions): Promise<ScheduleCounts> {
  const schedule = new Schedule(options);
  try {
    return await schedule.run(options.steps);
  } catch (error) {
    throw new Error(`seed ${options.seed}: ${String(error)}\n${schedule.issued.join("\n")}`, {
      cause: error,
    });
  }
}

/** Of launches that are ended by their limits or by an assertion. */
const launchCodes: ReadonlySet<unknown> = new Set(["TW3022", "TW3012"]);

class Schedule {
  readonly issued: string[] = [];
  readonly #random: Random;
  readonly #device: Device;
  readonly #limit: number;
  /** Of arrays that kernels work on: few, so that many are alike. */
  readonly #lengths: readonly number[];
  readonly #live: Known[] = [];
  readonly #pending: Promise<void>[] = [];
  readonly #counts: ScheduleCounts = {
    ...{ launches: 0, failures: 0, allocations: 0, refused: 0, downloads: 0 },
  };
  /** Whether a launch since the last `synchronize` fails, or may fail. */
  #fails: "no" | "maybe" | "yes" = "no";

  constructor({ seed, host }: ScheduleOptions) {
    const random = new Random(seed);
    this.#random = random;
    this.#limit = random.below(3) === 0 ? 50_000 : 1e9;
    this.#lengths = [1, ...Array.from({ length: 3 }, () => 1 + random.below(mostElements))];
    const threads = 1 + random.below(8);
    const checks = random.below(2) === 0;
    const backend = new EmulatorBackend({
      ...{ seed, checks, memoryLimit: this.#limit },
      pool: { threads, host, handover: { patience: 0, gain: 0 } },
    });
    this.#device = new Device(backend, { onLeak: () => undefined });
    this.issued.push(`threads ${threads}, checks ${checks}, limit ${this.#limit}`);
  }

  async run(steps: number): Promise<ScheduleCounts> {
    for (let step = 0; step < steps; step++) {
      this.#step();
      await this.#passTime();
    }
    await this.#end();
    return this.#counts;
  }

  #step(): void {
    const random = this.#random;
    const steps: readonly (() => void)[] = [
      () => this.#allocate(),
      () => this.#allocate(),
      () => this.#upload(),
      () => this.#upload(),
      () => this.#write(),
      () => this.#launch(),
      () => this.#launch(),
      () => this.#launch(),
      () => this.#runWhole(),
      () => this.#fail(),
      () => this.#copy(),
      () => this.#download(),
      () => this.#download(),
      () => this.#dispose(),
      () => this.#dispose(),
    ];
    random.pick(steps)();
  }

  /** Nothing, a promise, some turns of the host, or all that was issued. */
  async #passTime(): Promise<void> {
    const random = this.#random;
    const kind = random.below(12);
    if (kind === 0) return this.#synchronize();
    if (kind < 3) await Promise.resolve();
    if (kind < 6) return;
    for (let turns = random.below(4); turns >= 0; turns--)
      await new Promise<void>((resolve) => void setImmediate(resolve));
  }

  /* ---- arrays ---- */

  #length(): number {
    const random = this.#random;
    const kind = random.below(12);
    if (kind === 0) return 0;
    if (kind > 3) return random.pick(this.#lengths);
    // About as much as the heap has left, so that it grows or just does not.
    const { used, reserved } = this.#device.memory;
    const left = Math.max(0, reserved - used) / 4;
    return Math.min(2 ** 18, Math.floor(left * (0.5 + random.uniform())));
  }

  /** An array of the device, unless that is more than it may have. */
  #make(length: number, make: () => DeviceArray<"i32">): DeviceArray<"i32"> | undefined {
    const { used } = this.#device.memory;
    const fits = used + 4 * length <= this.#limit;
    try {
      const made = make();
      if (!fits) throw new Error(`${used} and ${4 * length} bytes are beyond the limit`);
      this.#counts.allocations += 1;
      return made;
    } catch (error) {
      if (fits || codeOf(error) !== "TW4030") throw error;
      this.#counts.refused += 1;
      return undefined;
    }
  }

  #allocate(length = this.#length()): Known | undefined {
    const made = this.#make(length, () => this.#device.allocate(i32, [length]));
    if (made === undefined) return undefined;
    const name = `#${this.#counts.allocations} of ${length}`;
    this.issued.push(`allocate ${name}`);
    const known: Known = { array: made, name, length, content: undefined, isWritten: length === 0 };
    if (length === 0) known.content = new Int32Array();
    this.#live.push(known);
    return known;
  }

  #values(length: number): HostArray<"i32"> {
    const values = hostArray(i32, [length]);
    for (let at = 0; at < length; at++) values.data[at] = this.#random.bits() | 0;
    return values;
  }

  #upload(): Known | undefined {
    const known = this.#allocate();
    if (known !== undefined) this.#write(known);
    return known;
  }

  #write(known = this.#some()): void {
    if (known === undefined) return;
    const { array: to, length } = known;
    if (this.#random.below(3) === 0) {
      const value = this.#random.below(1000);
      this.issued.push(`fill ${known.name}`);
      this.#pending.push(this.#device.fill(to, value));
      known.content = new Int32Array(length).fill(value);
    } else {
      this.issued.push(`write ${known.name}`);
      const values = this.#values(length);
      this.#pending.push(this.#device.write(to, values));
      known.content = Int32Array.from(values.data as Int32Array);
      // Writing has read its values when it returns.
      values.data.fill(0 as never);
    }
    known.isWritten = true;
  }

  #some(wanted: (known: Known) => boolean = () => true): Known | undefined {
    const found = this.#live.filter(wanted);
    return found.length === 0 ? undefined : this.#random.pick(found);
  }

  #copy(): void {
    const from = this.#some();
    const to = this.#some(({ length }) => length === from?.length);
    if (from === undefined || to === undefined) return;
    this.issued.push(`copy ${from.name} to ${to.name}`);
    this.#pending.push(this.#device.copy(from.array, to.array));
    to.content = from.content?.slice();
    to.isWritten = from.isWritten;
  }

  #download(known = this.#some()): void {
    if (known === undefined) return;
    const { length, content } = known;
    const first = this.#random.below(length + 1);
    const last = first + this.#random.below(length - first + 1);
    const isWhole = this.#random.below(2) === 0;
    this.issued.push(`download ${known.name}`);
    this.#counts.downloads += 1;
    const issued = this.issued.length;
    const part = isWhole ? known.array : known.array.slice(first, last);
    const expected = isWhole ? content?.slice() : content?.slice(first, last);
    const check = this.#device.download(part).then(({ data }) => {
      const wrong = expected?.findIndex((value, at) => value !== data[at]) ?? -1;
      if (wrong >= 0)
        throw new Error(
          `line ${issued}: element ${wrong} is ${data[wrong]}, not ${expected?.[wrong]}`,
        );
    });
    this.#pending.push(check);
  }

  #dispose(known = this.#some()): void {
    if (known === undefined) return;
    this.issued.push(`dispose ${known.name}`);
    this.#live.splice(this.#live.indexOf(known), 1);
    known.array.dispose();
  }

  /* ---- launches ---- */

  /** An array that a launch may read, of few enough elements for the emulator. */
  #input(): Known | undefined {
    return this.#some(({ isWritten, length }) => isWritten && length <= mostElements);
  }

  #launch(): void {
    const x = this.#input() ?? this.#upload();
    if (x === undefined || x.length > mostElements) return;
    const random = this.#random;
    const k = random.below(100);
    const { length } = x;
    this.#counts.launches += 1;
    const isLike = (each: Known): boolean => each !== x && each.length === length;
    const y = this.#some((each) => isLike(each) && each.isWritten);
    const sum = this.#some((each) => each !== x && each.length === 1 && each.isWritten);
    const kind = random.below(3);
    if (kind === 0 && y !== undefined) {
      this.#issue(update, { k, x: x.array, y: y.array }, length, y, (at) =>
        plus(Math.imul(y.content?.[at] ?? 0, 5), x.content?.[at] ?? 0, k),
      );
      if (x.content === undefined) y.content = undefined;
      return;
    }
    if (kind === 1 && sum !== undefined) {
      const blocks = Math.ceil(length / block);
      const added = x.content?.reduce((all, value) => plus(all, value), Math.imul(k, blocks));
      this.#issue(total, { k, x: x.array, sum: sum.array }, length, sum, () =>
        plus(sum.content?.[0] ?? 0, added ?? 0),
      );
      if (added === undefined) sum.content = undefined;
      return;
    }
    const out = this.#some(isLike) ?? this.#allocate(length);
    if (out === undefined) return;
    out.content ??= new Int32Array(length);
    this.#issue(combine, { k, x: x.array, out: out.array }, length, out, (at) =>
      plus(Math.imul(x.content?.[at] ?? 0, 3), k),
    );
    if (x.content === undefined) out.content = undefined;
  }

  /** Issues a launch over some elements that writes an array; some are aborted, some may take few steps only. */
  #issue(
    definition: KernelDefinition,
    args: { readonly k: number; readonly [name: string]: unknown },
    elements: number,
    written: Known,
    valueAt: (at: number) => number,
  ): void {
    const random = this.#random;
    const ended = random.below(12);
    const controller = new AbortController();
    const limits =
      ended === 0 ? { signal: controller.signal } : ended === 1 ? { stepLimit: 10 } : {};
    this.issued.push(`${definition.kernel.name} of ${args.k} to ${written.name}`);
    this.#device.launch(definition, args as never, limits as never);
    const { content } = written;
    written.content = content && Int32Array.from(content, (_, at) => valueAt(at));
    if (ended > 1) {
      written.isWritten = true;
      return;
    }
    this.issued.push(ended === 0 ? "which is aborted" : "which may take 10 steps");
    if (ended === 0) abortLater(controller, random.below(8));
    // One that is aborted before its turn says so, however little it has to do.
    if (ended === 0 && this.#fails === "no") this.#fails = "maybe";
    if (elements === 0) return;
    written.content = undefined;
    if (ended === 1) this.#fails = "yes";
  }

  /** A run with arrays of the host. */
  #runWhole(): void {
    const length = 1 + this.#random.below(4 * block);
    if (this.#device.memory.used + 8 * length > this.#limit) return;
    const k = this.#random.below(100);
    const x = this.#values(length);
    const before = Int32Array.from(x.data as Int32Array);
    this.issued.push(`run of ${length}`);
    this.#counts.launches += 1;
    const issued = this.issued.length;
    const check = this.#device.run(combine, { k, x }).then(({ out }) => {
      const wrong = before.findIndex((value, at) => out.data[at] !== plus(Math.imul(value, 3), k));
      if (wrong >= 0) throw new Error(`line ${issued}: element ${wrong} of a run is wrong`);
    });
    this.#pending.push(check);
  }

  #fail(): void {
    const x = this.#some(
      ({ isWritten, length }) => isWritten && length > 0 && length <= mostElements,
    );
    const out = this.#some((each) => each !== x && each.length === x?.length);
    if (x === undefined || out === undefined) return;
    const k = this.#random.below(Math.ceil(x.length / block));
    this.issued.push(`failing of ${k} to ${out.name}`);
    this.#device.launch(failing, { k, x: x.array, out: out.array });
    this.#counts.launches += 1;
    this.#fails = "yes";
    out.content = undefined;
  }

  async #synchronize(): Promise<void> {
    this.issued.push("synchronize");
    const fails = this.#fails;
    this.#fails = "no";
    try {
      await this.#device.synchronize();
      if (fails === "yes") throw new Error("a failure was not told");
    } catch (error) {
      if (fails === "no" || !launchCodes.has(codeOf(error))) throw error;
      this.#counts.failures += 1;
    }
    await Promise.all(this.#pending.splice(0));
  }

  /** All arrays are looked at; the device goes before or after that is over. */
  async #end(): Promise<void> {
    for (const known of this.#live) this.#download(known);
    if (this.#random.below(3) === 0) {
      this.issued.push("dispose of the device");
      this.#device.dispose();
      await Promise.all(this.#pending);
      return;
    }
    for (const known of [...this.#live]) this.#dispose(known);
    await this.#synchronize();
    const { used, allocations } = this.#device.memory;
    if (used !== 0 || allocations !== 0) throw new Error(`${used} bytes are still in use`);
    this.#device.dispose();
  }
}

/** Sums wrap around, as those of the device do. */
function plus(...numbers: readonly number[]): number {
  return numbers.reduce((sum, number) => (sum + number) | 0, 0);
}

function codeOf(error: unknown): unknown {
  return typeof error === "object" && error !== null && "code" in error ? error.code : undefined;
}

/** After some turns of the host. */
function abortLater(controller: AbortController, turns: number): void {
  if (turns === 0) controller.abort();
  else setImmediate(() => abortLater(controller, turns - 1));
}
