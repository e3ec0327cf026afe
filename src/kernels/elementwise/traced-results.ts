/**
 * The results of a function on tiles, found by tracing it once on a small tile, and whether it is elementwise. A kernel calls it on
 * windows whose shape depends on the sizes, so a function that looks beyond its element would give results that depend on the window:
 *
 *   ({ x }) => ({ y: x.mul(2) })               y: f32
 *   ({ x }) => ({ y: x.div(x.sum()) })         refused: a sum is not elementwise
 */
import { dtypes } from "../../formats/dtype.ts";
import type { DType } from "../../formats/dtype.ts";
import { tensor, kernel, smem } from "../../lang/index.ts";
import type { TensorSpec, Ref, Scalar, ScalarSpec } from "../../lang/index.ts";
import { Tile } from "../../lang/tile.ts";
import type { Location } from "../../support/location.ts";
import { isRecord, optionText } from "../../support/options.ts";
import { byElement } from "../support/by-element.ts";
import { refused } from "../support/arguments.ts";
import type { MapBody } from "./map-kernel.ts";

/** A shape that no function could expect. */
const probe = [2, 4];

/** Names and formats of what the function gives. */
export function tracedResults(
  name: string,
  arrays: { readonly [name: string]: TensorSpec },
  scalars: { readonly [name: string]: ScalarSpec },
  body: MapBody,
  location: Location,
): { readonly [name: string]: DType } {
  if (typeof body !== "function")
    throw refused(
      "TW9905",
      `${name} has no function`,
      "a function on tiles",
      optionText(body),
      location,
    );
  let results: { readonly [name: string]: DType } = {};
  let conditions = "conditions";
  while (Object.hasOwn(arrays, conditions) || Object.hasOwn(scalars, conditions)) conditions += "_";
  kernel(
    {
      name: "probe",
      inputs: {
        ...Object.fromEntries(
          Object.entries(arrays).map(([own, { dtype }]) => [own, tensor(dtype, probe)]),
        ),
        ...scalars,
      },
      scratch: { [conditions]: smem(dtypes.bool, probe) },
    },
    (given) => {
      const argument = given as unknown as {
        readonly [name: string]: Ref | Scalar;
      };
      const use = (result: Tile): void => {
        // A condition that nothing uses is taken for a mistake.
        if (result.dtype === dtypes.bool) (argument[conditions] as Ref).store(result);
      };
      const tiles: { [name: string]: Tile | Scalar } = {};
      for (const [own, value] of Object.entries(argument))
        if (Object.hasOwn(scalars, own)) tiles[own] = value as Scalar;
        else if (Object.hasOwn(arrays, own)) tiles[own] = (value as Ref).load();
      const made = byElement(`the function of ${name}`, body, tiles, location);
      results = formats(name, made, use, location);
    },
  );
  return results;
}

function formats(
  name: string,
  given: unknown,
  use: (result: Tile) => void,
  location: Location,
): { readonly [name: string]: DType } {
  const expected = "{ name: tile, … }, each of the shape that the inputs broadcast to";
  const wrong = (found: string) =>
    refused("TW9905", `the function of ${name} gives something else`, expected, found, location);
  if (!isRecord(given) || Object.keys(given).length === 0) throw wrong(optionText(given));
  return Object.fromEntries(
    Object.entries(given).map(([own, value]) => {
      if (!(value instanceof Tile)) throw wrong(`${own}: ${optionText(value)}`);
      const fits =
        value.shape.length === 2 &&
        value.shape.every((extent, axis) => extent === 1 || extent === probe[axis]);
      if (!fits) throw wrong(`${own}: a tile of another shape`);
      use(value as Tile);
      return [own, value.dtype];
    }),
  );
}
