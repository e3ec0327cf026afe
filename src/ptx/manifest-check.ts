/**
 * Whether the parts of a manifest belong together. Each part has been looked at by itself (`plan-check.ts`); here names that one part uses
 * have to be another's, so that a launch never asks for what nobody gives.
 *
 *   kernel   parameters x, out, of n elements         every name once, arrays with a shape, sizes of its own dimensions alone
 *   plan     array x, array out, size n               what it passes is one of those, in the role that it says
 */
import type { Size } from "../ir/size.ts";
import { dimensionsOf } from "../ir/size.ts";
import type { InterfaceData } from "./compiled-kernel.ts";
import type { LaunchParameter, LaunchPlan, TensorMapPlan } from "./executable.ts";

function sizesOf(parameter: LaunchParameter): readonly Size[] {
  if (parameter.kind === "size") return [parameter.size];
  if (parameter.kind === "scratch") return [parameter.bytes];
  if (parameter.kind !== "tensorMap") return [];
  return [...parameter.map.extents, ...parameter.map.strides];
}

/** One extent and one width of the box an axis; the innermost axis has no stride. */
function isEven({ extents, strides, box }: TensorMapPlan): boolean {
  const rank = extents.length;
  return rank >= 1 && rank <= 5 && box.length === rank && strides.length === rank - 1;
}

/** Whether a plan launches this kernel. */
export function belongTogether(kernel: InterfaceData, plan: Omit<LaunchPlan, "target">): boolean {
  const { parameters, dimensions, grid } = kernel;
  const arrays = new Set(parameters.flatMap(({ name, shape }) => (shape ? [name] : [])));
  const scalars = new Map(parameters.map(({ name, dtype, shape }) => [name, shape ? "" : dtype]));
  const declared = new Map(dimensions.map(({ name, multipleOf }) => [name, multipleOf]));
  const sizes = [
    ...parameters.flatMap(({ shape = [], strides = [] }) => [...shape, ...strides]),
    ...[...grid, ...plan.grid].map(({ extent }) => extent),
    ...plan.parameters.flatMap(sizesOf),
    plan.blocks,
  ];
  const passed = (parameter: LaunchParameter): boolean => {
    if (parameter.kind === "array") return arrays.has(parameter.name);
    if (parameter.kind === "scalar") return scalars.get(parameter.name) === parameter.dtype.name;
    if (parameter.kind !== "tensorMap") return true;
    return arrays.has(parameter.map.array) && isEven(parameter.map);
  };
  return (
    declared.size === dimensions.length &&
    scalars.size === parameters.length &&
    parameters.every(({ role, shape, strides }) => {
      const isEvenly = strides === undefined || strides.length === shape?.length;
      return (role === "scalar") === (shape === undefined) && isEvenly;
    }) &&
    sizes.flatMap(dimensionsOf).every(({ name }) => declared.has(name)) &&
    plan.parameters.every(passed)
  );
}
