/** Work of the emulator alone, whose memory changes while its launches are under way on threads of their own. */
import { withHostTurns } from "../../test/support/clocks.ts";
import { runArrayProgram } from "../../test/support/emulated-programs.ts";
import { runMemorySchedule } from "../../test/support/memory-schedules.ts";
import { KeptThreads } from "./kept-threads.ts";
import type { Work } from "./work.ts";

/** Random programs of a device; see the model. */
export async function memory(firstSeed: number): Promise<Work> {
  const host = new KeptThreads();
  let seed = firstSeed;
  return {
    step: async () => {
      const schedule = () => runMemorySchedule({ seed, host, steps: 100 });
      // Of two schedules one has launches that take turns with the host.
      const isSlow = seed % 2 === 1;
      const counts = isSlow
        ? (await withHostTurns(() => undefined, schedule)).result
        : await schedule();
      seed += 1;
      return { memory: 1, ...counts };
    },
    end: () => host.end(),
  };
}

/** Programs of arrays, likewise. */
export async function programs(firstSeed: number): Promise<Work> {
  const host = new KeptThreads();
  let seed = firstSeed;
  return {
    step: async () => {
      await runArrayProgram({ seed, host, threads: 1 + (seed % 8), size: 1 });
      seed += 1;
      return { programs: 1 };
    },
    end: () => host.end(),
  };
}
