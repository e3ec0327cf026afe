/**
 * A plan on one of its ranks: it takes as many ranks as its program is for, and holds the number of its own.
 *
 *   plan of 2 replicas × 4 partitions on rank 6     replica_id 1, partition_id 2
 */
import { fromElements } from "../../formats/hostarray.ts";
import type { HostArray } from "../../formats/hostarray.ts";
import { TilewrightError } from "../../support/diagnostics.ts";
import { RankEndpoint } from "../ranks/endpoint.ts";
import { allSteps } from "./plan.ts";
import type { Plan } from "./plan.ts";

/** The rank that a plan is loaded for; one without collectives needs none. */
export function ranksOf(plan: Plan, given: RankEndpoint | undefined): RankEndpoint {
  const { replicas, partitions } = plan.processes;
  const wanted = replicas * partitions;
  const ranks = given ?? alone();
  const meets = plan.numbers.size > 0 || [...allSteps(plan.steps)].some(isCollective);
  if (ranks.size === wanted || !meets) return ranks;
  throw new TilewrightError({
    code: "TW9706",
    message: `@${plan.name} is a program for ${wanted} ranks`,
    expected: `${wanted} ranks: ${replicas} ${replicas === 1 ? "replica" : "replicas"} of ${partitions}`,
    found: `${ranks.size}`,
  });
}

function isCollective({ kind }: { readonly kind: string }): boolean {
  return kind === "collective";
}

/** A world of one, which waits for nobody. */
function alone(): RankEndpoint {
  const connect = (): never => {
    throw new Error("a world of one has no others");
  };
  return new RankEndpoint({ rank: 0, size: 1, connect });
}

/** A constant as this rank has it: some hold its number. */
export function numbered(constant: HostArray, plan: Plan, place: number, rank: number): HostArray {
  const of = plan.numbers.get(place);
  if (of === undefined) return constant;
  const { partitions } = plan.processes;
  const number = of === "replica" ? Math.floor(rank / partitions) : rank % partitions;
  return fromElements(constant.dtype, constant.shape, Uint32Array.of(number));
}
