/** Runs an entry of a module on emulated memory: on the calling thread, or with a crew on several. */
import type { PtxModule } from "../ptx/module.ts";
import { Breaks } from "../support/breaks.ts";
import { TilewrightError } from "../support/diagnostics.ts";
import { prepare } from "./emulation.ts";
import { Grid } from "./machine/grid.ts";
import type { Launch } from "./machine/launch.ts";
import type { EmulatedMemory } from "./memory.ts";
import type { Crew } from "./threads/crew.ts";
import type { EmulatedLaunch, EmulationResult, EmulatorOptions } from "./types.ts";

/** What was found before the kernel stopped may well be why it did. */
function withEarlier(error: unknown, { findings }: Launch): unknown {
  if (!(error instanceof TilewrightError)) return error;
  return error.withNotes(
    findings.map((finding) => ({
      message: `before that, ${finding.code}: ${finding.summary}`,
      location: finding,
    })),
  );
}

/**
 * Runs a launch to its end. Throws what stops a kernel on hardware too, with what was found before as
 * notes; other findings are given back.
 */
export function emulate(
  module: PtxModule,
  launch: EmulatedLaunch,
  memory: EmulatedMemory,
  options: EmulatorOptions,
): EmulationResult {
  const state = prepare(module, launch, memory, options);
  try {
    new Grid(state, launch).run();
  } catch (error) {
    throw withEarlier(error, state);
  }
  return { findings: state.findings, printed: state.printed, counters: state.counters };
}

/**
 * The same with a crew's threads where that is quicker, and with breaks for the host between clusters that do
 * not communicate. Until it is over, memory may be allocated but not written or freed.
 */
export async function emulateWith(
  crew: Crew,
  module: PtxModule,
  launch: EmulatedLaunch,
  memory: EmulatedMemory,
  options: EmulatorOptions,
): Promise<EmulationResult> {
  const state = prepare(module, launch, memory, options);
  const grid = new Grid(state, launch);
  const { findings, printed, counters } = state;
  const breaks = new Breaks();
  try {
    const pace = await crew.pace(state);
    while (pace !== undefined && findings.length === 0 && grid.clustersLeft > 0) {
      if (pace.isWorthwhile(grid.clustersLeft)) {
        const { nextCluster: firstCluster, clustersLeft: clusters } = grid;
        const rest = { module, launch, memory, options, state, firstCluster, clusters };
        const more = await crew.run(rest);
        if (more === undefined) break;
        counters.laneInstructions += more.laneInstructions;
        counters.warpInstructions += more.warpInstructions;
        return { findings, printed, counters };
      }
      grid.runNext();
      pace.clusterDone();
      await breaks.takeIfDue();
    }
    if (state.program.communicates) grid.run();
    else while (grid.runNext()) await breaks.takeIfDue();
  } catch (error) {
    throw withEarlier(error, state);
  }
  return { findings, printed, counters };
}
