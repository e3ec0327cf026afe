/** Functions of floats whose results on a GPU may differ from the simulator's, by the bounds that they declare. */
import { mathBounds } from "../../src/ptx/math/index.ts";

export const inexactFunctions: ReadonlySet<string> = new Set(
  Object.entries(mathBounds.f32).flatMap(([fn, { ulp }]) => (ulp > 0 ? [fn] : [])),
);
