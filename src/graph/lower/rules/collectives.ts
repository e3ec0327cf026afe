/**
 * Ops between processes as collectives of ranks: their groups, which text gives by replicas, by partitions or by both, become groups of
 * ranks, and their regions reductions by name.
 *
 *   all_reduce, groups [[0, 1]] of partitions, 2 replicas of 2     { all_reduce add } among [0, 1], [2, 3]
 */
import { exchangeMode, processGroups, reductionMode } from "../../evaluate/processes.ts";
import type { GroupMode } from "../../evaluate/processes.ts";
import { combinerKind } from "../../ops/combiner.ts";
import type { GraphOp, GraphRegion } from "../../ops/node.ts";
import type { GraphOpKind } from "../../ops/table.ts";
import type { Location } from "../../../support/location.ts";
import { groupsOfPairs, reductions } from "../../ranks/collective.ts";
import type {
  Collective,
  CollectiveCall,
  ProcessCounts,
  Reduction,
} from "../../ranks/collective.ts";
import type { Lowerings } from "../lowering.ts";

/** What a region combines by; undefined where it is more than one of the reductions. */
function reductionOf(region: GraphRegion): Reduction | undefined {
  // JAX says of values in there how they are sharded.
  const renamed = new Map(
    region.ops.flatMap((op) =>
      op.kind === "sdy.sharding_constraint"
        ? op.results.map((value) => [value, op.operands.input])
        : [],
    ),
  );
  const ops = region.ops.filter(({ kind }) => kind !== "sdy.sharding_constraint");
  const results = region.results.map((value) => renamed.get(value) ?? value);
  const kind = combinerKind({ ...region, ops, results });
  return reductions.find((each) => `stablehlo.${each}` === kind);
}

type Called = { readonly location: Location };
type Rows = readonly (readonly number[])[];

/** How a group's rows are read, and what the op does; undefined where its region is no reduction. */
interface Reading {
  readonly rows: Rows;
  readonly mode: GroupMode;
  readonly collective: Collective | undefined;
}

function grouped<O extends Called>(
  read: (op: O) => Reading,
): (op: O, processes: ProcessCounts) => CollectiveCall | undefined {
  return (op, processes) => {
    const { rows, mode, collective } = read(op);
    if (collective === undefined) return undefined;
    return { collective, groups: processGroups(rows, mode, processes), location: op.location };
  };
}

/** A collective that combines, where its region is a reduction. */
function reducing(
  region: GraphRegion,
  make: (reduction: Reduction) => Collective,
): Collective | undefined {
  const reduction = reductionOf(region);
  return reduction === undefined ? undefined : make(reduction);
}

const globalMode = ({
  channel_handle: channel,
  use_global_device_ids: isGlobal,
}: GraphOp<
  "stablehlo.all_gather" | "stablehlo.all_reduce" | "stablehlo.reduce_scatter"
>["attributes"]) => reductionMode(channel, isGlobal);

export const collectiveLowerings = {
  "stablehlo.replica_id": { form: "number", of: "replica" },
  "stablehlo.partition_id": { form: "number", of: "partition" },
  "stablehlo.all_gather": {
    form: "collective",
    call: grouped(({ attributes }) => ({
      rows: attributes.replica_groups,
      mode: globalMode(attributes),
      collective: { kind: "all_gather", axis: attributes.all_gather_dim },
    })),
  },
  "stablehlo.all_reduce": {
    form: "collective",
    call: grouped(({ attributes, regions }) => ({
      rows: attributes.replica_groups,
      mode: globalMode(attributes),
      collective: reducing(regions.computation, (reduction) => ({ kind: "all_reduce", reduction })),
    })),
  },
  "stablehlo.reduce_scatter": {
    form: "collective",
    call: grouped(({ attributes, regions }) => ({
      rows: attributes.replica_groups,
      mode: globalMode(attributes),
      collective: reducing(regions.computation, (reduction) => ({
        kind: "reduce_scatter",
        axis: attributes.scatter_dimension,
        reduction,
      })),
    })),
  },
  "stablehlo.all_to_all": {
    form: "collective",
    call: grouped(({ attributes }) => ({
      rows: attributes.replica_groups,
      mode: exchangeMode(attributes.channel_handle),
      collective: {
        kind: "all_to_all",
        split: attributes.split_dimension,
        concat: attributes.concat_dimension,
      },
    })),
  },
  "stablehlo.collective_broadcast": {
    form: "collective",
    call: grouped(({ attributes }) => ({
      rows: attributes.replica_groups,
      mode: exchangeMode(attributes.channel_handle),
      collective: { kind: "collective_broadcast", hasRoots: attributes.has_dynamic_root },
    })),
  },
  "stablehlo.collective_reduce": {
    form: "collective",
    call: grouped(({ attributes, regions }) => ({
      rows: attributes.replica_groups,
      mode: exchangeMode(attributes.channel_handle),
      collective: reducing(regions.computation, (reduction) => ({
        kind: "collective_reduce",
        reduction,
      })),
    })),
  },
  "stablehlo.collective_permute": {
    form: "collective",
    call: ({ attributes, location }, processes) => {
      const { source_target_pairs: rows, channel_handle: channel } = attributes;
      const pairs = rows.length === 0 ? [] : processGroups(rows, exchangeMode(channel), processes);
      const collective: Collective = { kind: "collective_permute", pairs };
      return { collective, groups: groupsOfPairs(pairs), location };
    },
  },
} satisfies Partial<Lowerings<GraphOpKind>>;
