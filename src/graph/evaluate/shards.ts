/**
 * Arrays in parts: what each process of a mesh holds of a whole one, and the whole one of what they hold.
 *
 *   [0 1 2 3] along y of x=2, y=2     processes 0 and 2: [0 1], 1 and 3: [2 3]
 */
import type { Location } from "../../support/location.ts";
import { partAt, partShape, sizeOf } from "../ops/index.ts";
import type { TensorSharding } from "../ops/index.ts";
import { atOnce } from "./frame.ts";
import { slice } from "./shapes.ts";
import { copyBox, placeOf, stridesOf } from "./strides.ts";
import { emptyTensor } from "./value.ts";
import type { Tensor } from "./value.ts";

/** Where the part of the process at a place of the mesh begins. */
function startsOf(
  local: readonly number[],
  { dimensions }: TensorSharding,
  place: number,
): readonly number[] {
  return local.map((extent, axis) => extent * partAt(place, dimensions[axis] ?? []));
}

/** The parts of a whole array, by the places of the mesh. */
export function cut(
  whole: Tensor,
  sharding: TensorSharding,
  location?: Location,
): readonly Tensor[] {
  const local = partShape(whole.shape, sharding, location);
  return sharding.mesh.ids.map((_, place) => {
    const starts = startsOf(local, sharding, place);
    const limits = starts.map((start, axis) => start + (local[axis] ?? 0));
    const steps = local.map(() => 1);
    return atOnce(slice(whole, starts, limits, steps))?.value ?? whole;
  });
}

/** The whole array of parts, by the places of the mesh; of equal ones the first counts. */
export function assembled(
  parts: readonly Tensor[],
  shape: readonly number[],
  sharding: TensorSharding,
): Tensor {
  const [first] = parts;
  if (first === undefined) throw new Error("a mesh has processes");
  const whole = emptyTensor({ element: first.element, shape });
  if (sizeOf(shape) === 0) return whole;
  const strides = stridesOf(shape);
  const written = new Set<number>();
  for (const [place, part] of parts.entries()) {
    const start = placeOf(startsOf(part.shape, sharding, place), strides);
    if (written.has(start)) continue;
    written.add(start);
    const from = { start: 0, strides: stridesOf(part.shape) };
    atOnce(copyBox(part.shape, part, from, whole.data, { start, strides }));
  }
  return whole;
}
