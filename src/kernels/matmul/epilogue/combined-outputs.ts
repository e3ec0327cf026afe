/** Launches that reduce the partials which tiles leave of an epilogue's further outputs, over rows or columns, and their workspace. */
import type { Planned, PlannedLaunch } from "../../../device/operation.ts";
import type { ProductSizes } from "../configuration.ts";
import { parameterName } from "../user-array-names.ts";
import { launched } from "../launch-arguments.ts";
import { combineKernel } from "./outputs.ts";
import type { FurtherOutput, PieceShape } from "./types.ts";
import type { MatmulProblem } from "../problem.ts";

type Launches = Pick<Planned, "launches" | "scratch" | "notes">;

/** Where pieces leave what they come to. */
function partsName({ name }: FurtherOutput): string {
  return `parts of ${name}`;
}

/** What the launch that finishes the result is given for the outputs. */
export function outputArguments({ outputs }: MatmulProblem): PlannedLaunch["arguments"] {
  return Object.fromEntries(
    outputs.map((output) => [
      parameterName(output.name),
      { argument: output.combined === undefined ? output.name : partsName(output) },
    ]),
  );
}

/** The launches of a product, and after them those of its combined outputs. */
export function withCombined(
  planned: Launches,
  { outputs }: MatmulProblem,
  piece: PieceShape,
  { m, n }: ProductSizes,
): Launches {
  const combined = outputs.filter((output) => output.combined !== undefined);
  if (combined.length === 0) return planned;
  const extents = (output: FurtherOutput): { readonly pieces: number; readonly extent: number } =>
    output.combined?.along === "rows"
      ? { pieces: m === 0 ? 0 : Math.ceil(n / piece.columns), extent: m }
      : { pieces: n === 0 ? 0 : Math.ceil(m / piece.rows), extent: n };
  const { launches } = planned;
  return {
    ...planned,
    scratch: {
      ...planned.scratch,
      ...Object.fromEntries(
        combined.map((output) => {
          const { pieces, extent } = extents(output);
          return [partsName(output), { dtype: output.spec.dtype, shape: [pieces, extent] }];
        }),
      ),
    },
    launches: () => [
      ...(typeof launches === "function" ? launches() : launches),
      ...combined.map((output) =>
        launched(
          combineKernel(output),
          { parts: { argument: partsName(output) }, out: { argument: output.name } },
          extents(output),
        ),
      ),
    ],
  };
}
