/**
 * One order of sums: the elements of the ranks are combined one rank after the other, as the group lists them, and every step is rounded to
 * the element's type. The evaluator does the same, so that results have equal bits wherever they are computed.
 *
 *   group [2, 0, 1]     ((x₂ + x₀) + x₁)
 */
import { TilewrightError } from "../../support/diagnostics.ts";
import { binaryForms } from "../evaluate/elementwise/binary.ts";
import { chooseForm } from "../evaluate/elementwise/forms.ts";
import { mapTensors } from "../evaluate/map.ts";
import { emptyTensor } from "../evaluate/value.ts";
import type { Tensor } from "../evaluate/value.ts";
import type { Reduction } from "./collective.ts";

/** Sums of f32 are what training does all day: written out, they run ten times as fast. */
function addTo(sum: Float32Array, value: Float32Array): void {
  for (let i = 0; i < sum.length; i++) sum[i] = (sum[i] ?? 0) + (value[i] ?? 0);
}

/** The values of a group, in its order, as one. */
export function reduced(values: readonly Tensor[], reduction: Reduction): Tensor {
  const [first, ...rest] = values;
  if (first === undefined) throw new Error("a group has a member");
  if (reduction === "add" && first.element === "f32" && first.data instanceof Float32Array) {
    const sum = first.data.slice();
    for (const { data } of rest) if (data instanceof Float32Array) addTo(sum, data);
    return { ...first, data: sum };
  }
  const combine = chooseForm(binaryForms[`stablehlo.${reduction}`], first.element);
  if (combine === undefined)
    throw new TilewrightError({
      code: "TW9705",
      message: `ranks cannot combine ${first.element} by ${reduction}`,
      expected: "a reduction that the elements have: and, or and xor are of integers and i1",
      found: `${reduction} of ${first.element}`,
    });
  let sum = first;
  for (const value of rest) {
    const target = emptyTensor({ element: first.element, shape: first.shape });
    sum = mapTensors(target, combine, [sum, value]);
  }
  return sum;
}
