/** Ops by which threads and blocks order themselves: they hold nothing in registers but scalars. */
import type { synchronizationOps } from "../../ir/ops/synchronization.ts";
import type { Rules } from "./values.ts";

const nothing = (): void => undefined;

export const synchronizationRules: Rules<typeof synchronizationOps> = {
  alloc_barrier: nothing,
  linear_index: nothing,
  barrier_arrive: nothing,
  barrier_wait: nothing,
  barrier_test: nothing,
  delay: nothing,
  block_sync: nothing,
  cluster_arrive: nothing,
  cluster_wait: nothing,
  set_registers: nothing,
  grid_dependency: nothing,
  alloc_semaphore: nothing,
  semaphore_signal: nothing,
  semaphore_wait: nothing,
  semaphore_read: nothing,
};
