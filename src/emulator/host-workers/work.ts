/** What a thread does with a job: clusters, one after the other, until none is left or someone says stop. */
import type { PtxModule } from "../../ptx/module.ts";
import { prepareOn } from "../prepare.ts";
import { Grid } from "../machine/grid.ts";
import type { Launch } from "../machine/launch.ts";
import { surroundings, viewsOf } from "../memory.ts";
import type { EmulationCounters } from "../types.ts";
import { control, keepNewest } from "./job.ts";
import type { Answer, Job, SentModule } from "./job.ts";
import { Marks } from "./touched-bytes.ts";

/** Whether a launch has found something, which the calling thread is to find again. */
function somethingToSay({ findings, notes }: Launch): boolean {
  return findings.length > 0 || notes.length > 0;
}

export class Worksite {
  readonly #modules = new Map<number, PtxModule>();

  /** Does a job. Nothing is reported from here: the calling thread meets again whatever there is to report. */
  do(job: Job): Answer {
    const shared = new Int32Array(job.control);
    try {
      return this.#run(job, shared);
    } catch {
      Atomics.store(shared, control.stop, 1);
      return undefined;
    }
  }

  #module({ number, content }: SentModule): PtxModule {
    if (content !== undefined) this.#modules.set(number, content);
    keepNewest(this.#modules);
    const module = this.#modules.get(number);
    if (module === undefined) throw new Error(`module ${number} was never sent`);
    return module;
  }

  #run(job: Job, shared: Int32Array): EmulationCounters {
    const { heap, launch, symbols, options, end, stride } = job;
    const marks = new Marks(job.marks, heap.size);
    marks.clear();
    const views = viewsOf(heap.bytes, heap.states, heap.size);
    const around = (address: number) => surroundings(job.allocations, address);
    const seen = { views, around };
    const module = this.#module(job.module);
    const state = prepareOn(seen, module, launch, symbols, options, marks);
    const grid = new Grid(state, launch);
    for (;;) {
      const first = Atomics.add(shared, control.next, stride);
      if (first >= end) break;
      for (let cluster = first; cluster < Math.min(end, first + stride); cluster++)
        this.#runCluster(grid, cluster, () => {
          if (somethingToSay(state) || Atomics.load(shared, control.stop) !== 0)
            throw new Error("the calling thread takes over");
        });
    }
    if (somethingToSay(state)) throw new Error("there is something to report");
    return state.counters;
  }

  #runCluster(grid: Grid, cluster: number, check: () => void): void {
    grid.beginOnly(cluster);
    while (grid.advance()) check();
  }
}
