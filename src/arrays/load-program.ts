/**
 * From a graph to a program that a device holds. This part of the library is loaded when the first program runs on a device
 * (`programs.ts`): it brings the lowering of every op, and with it the kernels.
 */
import type { Device } from "../device/device.ts";
import type { MatmulPrecision } from "../graph/ops/matmul-precision.ts";
import { moduleOf } from "../graph/ops/node.ts";
import type { GraphRegion } from "../graph/ops/node.ts";
import { copyRegion } from "../graph/ops/rebuild.ts";
import { structureText } from "../graph/passes/structure.ts";
import { compilePlan } from "../graph/plan/compile.ts";
import type { Plan } from "../graph/plan/plan.ts";
import { Replay } from "../graph/plan/replay.ts";
import { atLocation } from "../support/location.ts";
import type { Location } from "../support/location.ts";
import type { RunLimits } from "../support/run-limits.ts";
import { defaultTarget } from "../targets/target.ts";
import type { Target } from "../targets/target.ts";
import { LruCache } from "../support/lru-cache.ts";
import { settleLocations } from "./locations.ts";

/** A graph to run, and the places of inputs whose memory results may take. */
export interface ProgramRun {
  readonly graph: GraphRegion;
  readonly donated: readonly number[];
  readonly limits: RunLimits;
  readonly matmulPrecision: MatmulPrecision;
  /** Whether the graph belongs to a compiled function, which runs it again. */
  readonly isKept: boolean;
  /** The user's call that it runs for, settled. */
  readonly location: Location;
}

/** Plans that are remembered, of all devices together. */
const keptPlans = 128;

const plans = new LruCache<string, Plan>(keptPlans);

export function loadProgram(device: Device, run: ProgramRun): Promise<Replay> {
  return Replay.load(device, planOf(run, device.target), run.location);
}

/** The plan of a graph; what it is made of is attributed to `location`. GPUs share one, whose operations are planned when it is bound. */
function planOf({ graph, donated, matmulPrecision, location }: ProgramRun, own: Target): Plan {
  const target = own.caches === undefined ? defaultTarget : own;
  const key = `${target.name} ${donated.join()} ${matmulPrecision} ${structureText(graph)}`;
  const known = plans.get(key);
  if (known !== undefined) return known;
  // What is remembered must not keep the caller's arrays alive, neither as values nor by stacks.
  settleLocations(graph);
  const copy = moduleOf(copyRegion(graph, new Map()));
  const plan = atLocation(location, () =>
    compilePlan(copy, "main", donated, { matmulPrecision, target }),
  );
  plans.set(key, plan);
  return plan;
}
