/**
 * Launch plans as JSON, for files that outlive the process: the cache of compiled kernels and kernels that
 * were compiled ahead of time. Number formats and targets are one object each and become their names.
 *
 *   { entry: "axpy", parameters: [{ kind: "scalar", name: "alpha", dtype: f32 }], target: sm_90a … }
 *   {"entry":"axpy","parameters":[{"kind":"scalar","name":"alpha","dtype":"f32"}] …}
 *
 * In files the threads of a block are `lanes`.
 */
import { dtypes } from "../formats/dtype.ts";
import type { DType, DTypeName } from "../formats/dtype.ts";
import { isRecord } from "../support/options.ts";
import type { Target } from "../targets/target.ts";
import type { LaunchPlan } from "./executable.ts";
import { isLaunchPlan } from "./plan-check.ts";

/** A plan without its target, as JSON has it. */
export function freezePlan({ threadsPerBlock: lanes, ...plan }: LaunchPlan): unknown {
  return JSON.parse(
    JSON.stringify({ ...plan, lanes, target: undefined }, (name, value: unknown) =>
      name === "dtype" ? (value as DType).name : value,
    ),
  );
}

/** The plan that `freezePlan` was given, for its target; undefined where the data is no plan. */
export function revivePlan(
  frozen: unknown,
  { target }: { readonly target: Target },
): LaunchPlan | undefined {
  const plan: unknown = JSON.parse(JSON.stringify(frozen) ?? "null", (name, value: unknown) =>
    name === "dtype" && typeof value === "string" ? dtypes[value as DTypeName] : value,
  );
  if (!isRecord(plan)) return undefined;
  const { lanes: threadsPerBlock, ...rest } = plan;
  const renamed = { ...rest, threadsPerBlock };
  return isLaunchPlan(renamed) ? { ...renamed, target } : undefined;
}
