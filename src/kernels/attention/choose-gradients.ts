/** Which kernels compute gradients, and in which tiles, where none were given. */
import { dtypes } from "../../formats/dtype.ts";
import type { Location } from "../../support/location.ts";
import { isRecord, optionText } from "../../support/options.ts";
import type { Target } from "../../targets/target.ts";
import { refused, refuseOldKernel, requireSettings } from "../support/arguments.ts";
import { warpSpecializedProblem } from "./choose.ts";
import { plainSettings } from "./configuration.ts";
import type { GradientConfiguration, PlainGradients } from "./configuration.ts";
import { paddedHead } from "./dimensions.ts";
import type { AttentionProblem } from "./problem.ts";
import type { AttentionSizes } from "./scores.ts";

/** Why the warp-specialized kernel cannot be used, in words for a note; undefined where it can. */
export function warpSpecializedGradientProblem(
  problem: AttentionProblem,
  sizes: AttentionSizes,
  target: Target,
): string | undefined {
  const { b, s, h } = sizes;
  const general = warpSpecializedProblem(problem, sizes, target);
  if (general !== undefined) return general;
  return b * s * h === 0 ? "there are no rows" : undefined;
}

export function chooseGradients(
  problem: AttentionProblem,
  sizes: AttentionSizes,
  isPossible: boolean,
): GradientConfiguration {
  return isPossible ? { kernel: "warp-specialized" } : plainGradientTiles(problem, sizes);
}

/** Tiles whose scores, gradients and operands fit the registers of one thread; lanes that multiply f32 hold their factors besides. */
export function plainGradientTiles(
  { q }: AttentionProblem,
  { d, e }: AttentionSizes,
): PlainGradients {
  const head = paddedHead(Math.max(d, e));
  const isExact = q.dtype === dtypes.f32;
  if (head > 128 || (isExact && head > 32)) return { kernel: "plain", rows: 16, columns: 32 };
  return head > 32 || isExact
    ? { kernel: "plain", rows: 32, columns: 32 }
    : { kernel: "plain", rows: 64, columns: 64 };
}

/** Throws where a configuration is none, or not one for these operands. */
export function requireGradients(
  configuration: GradientConfiguration,
  slow: string | undefined,
  location: Location,
): void {
  refuseOldKernel("the gradients of attention", configuration, location);
  const text = isRecord(configuration) ? JSON.stringify(configuration) : optionText(configuration);
  const wrong = (message: string, expected: string) =>
    refused("TW9904", message, expected, text, location);
  const within = (value: unknown, allowed: readonly number[]): boolean =>
    allowed.includes(value as number);
  const isKnown =
    isRecord(configuration) &&
    (configuration.kernel === "warp-specialized" ||
      (configuration.kernel === "plain" &&
        within(configuration.rows, [16, 32, 64]) &&
        within(configuration.columns, [16, 32, 64])));
  if (!isKnown)
    throw wrong(
      "the gradients of attention have no such configuration",
      '{ kernel: "warp-specialized" } or { kernel: "plain", rows, columns } of 16, 32 or 64',
    );
  const of = "the gradients of attention";
  if (configuration.kernel === "plain") requireSettings(of, configuration, plainSettings, location);
  else requireSettings(of, configuration, ["kernel"], location);
  if (configuration.kernel === "warp-specialized" && slow !== undefined)
    throw wrong(
      `the gradients of attention cannot use the warp-specialized kernel here: ${slow}`,
      '{ kernel: "plain", … }',
    );
}
