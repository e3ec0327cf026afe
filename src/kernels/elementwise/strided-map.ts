/**
 * An elementwise launch over strided views: each array has an offset into its argument and a stride along every axis. Copies of slices and functions
 * of the two halves of rows are such launches:
 *
 *   gated    x f32[m, 2n]     gate: strides [2n, 1], from 0      up: strides [2n, 1], from n      out: strides [n, 1]
 *   slice    x f32[m, n]      x: strides [n, 2], from n + 3      out: by rows
 */
import type { PlannedArgument } from "../../device/launch-inputs.ts";
import type { Planned, PlannedLaunch } from "../../device/operation.ts";
import type { KernelDefinition, ScalarSpec } from "../../lang/index.ts";
import type { Target } from "../../targets/target.ts";
import { collapsedAxes } from "../support/collapse.ts";
import { StridedForm, formText } from "../support/strided.ts";
import type { StridedAxis } from "../support/strided.ts";
import { chooseWindow, mapKernel } from "./map-kernel.ts";
import type { MapBody, MapConfiguration, MappedArray } from "./map-kernel.ts";

export interface StridedArray extends MappedArray {
  /** The argument of the operation that the parameter is given. */
  readonly argument: string;
  /** Along every axis that is gone through; 0 where the array repeats. */
  readonly strides: readonly number[];
  /** The element of the argument where it begins. */
  readonly offset: number;
}

export interface StridedMap {
  readonly name: string;
  /** The first of them, a result, decides the order of axes. */
  readonly arrays: readonly StridedArray[];
  readonly scalars: { readonly [name: string]: ScalarSpec };
  readonly extents: readonly number[];
  readonly body: MapBody;
  /**
   * Whether the length of rows and the repeats of arrays within the first axis are constants of the kernel: sizes of a model, which all
   * launches share. Blocks then compute their offsets without a division.
   */
  readonly isFixed?: boolean;
}

/** The last axis, and those behind the first along which some array repeats. */
function fixedAxes(axes: readonly StridedAxis[]): readonly number[] {
  return axes.flatMap(({ strides }, axis) =>
    axis === axes.length - 1 || (axis > 0 && strides.includes(0)) ? [axis] : [],
  );
}

/** The launch, or none where there are no elements. */
export function planStridedMap(
  { name, arrays, scalars, extents, body, isFixed = false }: StridedMap,
  kernels: Map<string, KernelDefinition>,
  target: Target,
): Planned<MapConfiguration> {
  const isEmpty = extents.includes(0);
  // Strides of arrays without elements are 0 where none repeats: the window is chosen as for one element.
  const axes = collapsedAxes(
    isEmpty ? [] : extents,
    arrays.map(({ strides }) => strides),
  );
  const configuration = chooseWindow(arrays, axes, target.processors);
  if (isEmpty) return { configuration, source: "heuristic", launches: [] };
  const isMadeOfWindows = (axes.at(-1)?.extent ?? 1) % configuration.columns === 0;
  const placements = arrays.map(({ parameter, offset, isOutput }) => ({
    offset,
    most: Math.max(...arrays.map((each) => (each.parameter === parameter ? each.offset : 0))),
    of: arrays.findIndex((each) => each.parameter === parameter),
    mayReachOn: isMadeOfWindows || !isOutput,
  }));
  const launches = (): readonly PlannedLaunch[] => {
    const exact = isFixed ? fixedAxes(axes) : [];
    const form = new StridedForm(axes, exact, placements);
    const wholes = arrays.map((_, position) => form.wholeShape(position));
    const fixed = [exact.map((axis) => axes[axis]?.extent), wholes.map((shape) => shape?.at(-1))];
    const text = JSON.stringify([name, configuration, fixed]) + formText(axes, placements);
    const kernel = kernels.get(text) ?? mapKernel(name, arrays, scalars, form, configuration, body);
    kernels.set(text, kernel);
    const given = arrays.map(({ parameter, argument }, position): [string, PlannedArgument] => {
      const shape = wholes[position];
      return [parameter, shape ? { argument, shape } : { argument, flat: true }];
    });
    const single = Object.keys(scalars).map((own): [string, PlannedArgument] => [
      own,
      { argument: own },
    ]);
    return [
      {
        kernel,
        arguments: Object.fromEntries<PlannedArgument>([...given, ...single]),
        dimensions: form.dimensions(),
      },
    ];
  };
  return { configuration, source: "heuristic", launches };
}
