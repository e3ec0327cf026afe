/**
 * Programs of graphs on a device, and what they may keep. What was compiled for a graph (its plan, which is data of the host) is
 * remembered by the graph's structure and serves every graph that computes the same. What a program holds of a device's memory
 * (arena, constants, arrays it is bound to) is kept for compiled functions alone, which run again and again:
 *
 *   await add(x, 1).read()      plan remembered; the memory is given back as soon as the result is there
 *   f(x), f = jit(…)            plan remembered; the memory is kept, until
 *                                 - f or one of its programs is gone
 *                                 - as many others have run since as the device keeps
 *                                 - an allocation would fail without it
 */
import type { DeviceArray } from "../device/device-array.ts";
import type { Device } from "../device/device.ts";
import type { Tensor } from "../graph/evaluate/value.ts";
import type { GraphRegion } from "../graph/ops/node.ts";
import type { Replay } from "../graph/plan/replay.ts";
import { runEach } from "../support/run-all.ts";
import { LruCache } from "../support/lru-cache.ts";
import type { ProgramRun } from "./load-program.ts";

/** Programs of compiled functions that a device keeps loaded by default. */
export const keptPrograms = 128;

export interface ProgramResults {
  readonly outputs: readonly DeviceArray[];
  /** The inputs whose memory results have taken. */
  readonly taken: ReadonlySet<number>;
}

interface Loaded {
  readonly replay: Promise<Replay>;
  /** Once it is there. */
  made: Replay | undefined;
  /** Runs that have begun and not ended: until then it is not given back. */
  runs: number;
  isForgotten: boolean;
}

/** The programs of a device, from the time it is chosen until it is left. */
export class DevicePrograms {
  readonly #device: Device;
  readonly #loaded = new Set<Loaded>();
  /** Those of compiled functions. */
  readonly #kept: LruCache<Loaded, Loaded>;
  readonly #byGraph = new WeakMap<GraphRegion, Loaded>();
  readonly #unreachable = new FinalizationRegistry<Loaded>((loaded) => {
    this.#forget(loaded);
  });
  readonly #endShortage: () => void;

  constructor(device: Device, limit: number) {
    this.#device = device;
    this.#kept = new LruCache<Loaded, Loaded>(limit, (loaded) => {
      this.#forget(loaded);
    });
    this.#endShortage = device.arrays.onShortage(() => this.#giveBackIdle());
  }

  /** How many hold memory of the device now. */
  get live(): number {
    return this.#loaded.size;
  }

  async run(run: ProgramRun, inputs: readonly (DeviceArray | Tensor)[]): Promise<ProgramResults> {
    const { limits, isKept, location } = run;
    const loaded = isKept ? this.#keptProgram(run) : this.#load(run);
    loaded.runs += 1;
    try {
      const replay = (loaded.made = await loaded.replay);
      const outputs = await replay.run(inputs, limits, location);
      return { outputs, taken: new Set(replay.takenOver) };
    } finally {
      loaded.runs -= 1;
      // One that could not be made is tried again by the next call.
      if (!isKept || loaded.isForgotten || loaded.made === undefined) this.#forget(loaded);
    }
  }

  /** Gives back what a graph's program holds, now or when its run has ended. */
  forget(graph: GraphRegion): void {
    const loaded = this.#byGraph.get(graph);
    if (loaded !== undefined) this.#forget(loaded);
  }

  dispose(): void {
    this.#endShortage();
    runEach(
      [...this.#loaded].map((loaded) => () => {
        this.#forget(loaded);
      }),
    );
  }

  #load(run: ProgramRun): Loaded {
    const load = async (): Promise<Replay> => {
      // The compiler is most of the library, and programs that choose no device need none of it.
      const { loadProgram } = await import("./load-program.ts");
      return loadProgram(this.#device, run);
    };
    const loaded = { replay: load(), made: undefined, runs: 0, isForgotten: false };
    this.#loaded.add(loaded);
    return loaded;
  }

  #keptProgram(run: ProgramRun): Loaded {
    const { graph } = run;
    const known = this.#byGraph.get(graph);
    const loaded = known === undefined || known.isForgotten ? this.#load(run) : known;
    if (loaded !== known) {
      this.#byGraph.set(graph, loaded);
      this.#unreachable.register(graph, loaded, loaded);
    }
    this.#kept.set(loaded, loaded);
    return loaded;
  }

  #forget(loaded: Loaded): void {
    loaded.isForgotten = true;
    this.#kept.delete(loaded);
    this.#unreachable.unregister(loaded);
    if (loaded.runs > 0) return;
    this.#loaded.delete(loaded);
    loaded.made?.dispose();
  }

  /** Gives back what no run needs; says whether there was anything. */
  #giveBackIdle(): boolean {
    const idle = [...this.#loaded].filter(({ runs }) => runs === 0);
    for (const loaded of idle) this.#forget(loaded);
    return idle.length > 0;
  }
}
