/**
 * What a device knows from earlier measurements when an operation is planned on it, and what an operation says of its
 * choices so that they can be measured.
 */
import type { Target } from "../../targets/target.ts";
import { TilewrightError } from "../../support/diagnostics.ts";
import type { Backend } from "../backend.ts";
import type { Choice, MeasuredLine, Sizes } from "./line.ts";
import { recordText } from "./line.ts";
import type { TuningTable } from "./table.ts";

/** What there is to choose in an operation. */
export interface OperationChoices {
  /** Tells operations of one name apart. */
  readonly variant: string;
  /** Sizes that share a result. */
  readonly bucket: (dimensions: Sizes) => Sizes;
  /** What can be tried for some sizes, in any order. */
  readonly candidates: (dimensions: Sizes, target: Target) => readonly Choice[];
  /** The choice whose results others are held against: the plainest one. What most choices agree on is right unless given. */
  readonly trusted?: ((dimensions: Sizes, target: Target) => Choice) | undefined;
  /** What a model thinks that a choice takes, in seconds; what `cost()` comes to unless given. */
  readonly estimate?:
    | ((choice: Choice, dimensions: Sizes, target: Target) => number | undefined)
    | undefined;
}

/** What a device knows. */
export interface DeviceTuning {
  readonly gpu: string;
  readonly driver: string;
  readonly table: TuningTable | undefined;
  /** Whether to refuse what was never measured. */
  readonly required: boolean;
}

/** What a device is told of tuning. */
export interface TuningOptions {
  /** What was measured of operations' choices. */
  readonly measurements?: TuningTable;
  /** Refuse operations that were never tuned for their sizes on this GPU; false unless given. */
  readonly requireTuned?: boolean;
}

export function deviceTuning(
  { name, board }: Pick<Backend, "name" | "board">,
  { measurements: table, requireTuned: required = false }: TuningOptions,
): DeviceTuning {
  return { gpu: board?.name ?? name, driver: board?.driver ?? "", table, required };
}

export interface TunedChoice {
  readonly choice: Choice;
  readonly notes: readonly string[];
}

/** The choice to plan with; undefined where nothing was measured. */
export function tunedChoice(
  op: string,
  choices: OperationChoices,
  dimensions: Sizes,
  { gpu, driver, table, required }: DeviceTuning,
): TunedChoice | undefined {
  const bucket = choices.bucket(dimensions);
  const work = { op, variant: choices.variant, gpu, bucket };
  const own = table?.best(work, driver);
  if (own !== undefined) return { choice: own.choice, notes: driverNotes(own, driver) };
  if (required) throw neverTuned(op, choices.variant, bucket, { gpu, driver });
  return undefined;
}

function driverNotes(line: MeasuredLine, driver: string): readonly string[] {
  if (line.driver === driver) return [];
  return [`tuned with the driver of ${line.driver}, and this one is of ${driver}: tune again`];
}

function neverTuned(
  op: string,
  variant: string,
  bucket: Sizes,
  { gpu, driver }: Pick<DeviceTuning, "gpu" | "driver">,
): TilewrightError {
  const sizes = Object.entries(bucket)
    .map(([name, size]) => `${name}=${size}`)
    .join(",");
  return new TilewrightError({
    code: "TW9814",
    message: `${op} was never tuned for ${sizes} on ${gpu}`,
    expected: `a measurement of ${variant} for ${recordText(bucket)} in the tuning files`,
    found: "none, and requireTuned is set",
    remedy:
      driver === ""
        ? `leave requireTuned out: the ${gpu} is never measured, only a GPU is`
        : `run tilewright tune FILE --case ${sizes}, or leave requireTuned out`,
  });
}
