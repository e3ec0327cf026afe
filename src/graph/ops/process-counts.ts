/**
 * How many processes a program is for, as its module says.
 *
 *   module @jit_f attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32}
 */
import type { ProcessCounts } from "../ranks/collective.ts";
import type { GraphModule } from "./node.ts";

export function processesOf({ attributes }: Pick<GraphModule, "attributes">): ProcessCounts {
  const count = (name: string): number => {
    const found = attributes.get(`mhlo.${name}`);
    return found?.kind === "integer" ? Number(found.value) : 1;
  };
  return { replicas: count("num_replicas"), partitions: count("num_partitions") };
}
