/** From what `warpSpecialized` is told to plans of its inputs and outputs. */
import { i32 } from "../../formats/dtype.ts";
import { scalarType } from "../../ir/types.ts";
import { TilewrightError } from "../../support/diagnostics.ts";
import { atOwnLines } from "../../support/location.ts";
import type { Location } from "../../support/location.ts";
import { constant } from "../create.ts";
import { Scalar } from "../elementwise.ts";
import { originOf } from "../trace.ts";
import type { Trace } from "../trace.ts";
import { callBody } from "../traced.ts";
import { drainScratch } from "./output-ring.ts";
import type { DrainPlan } from "./output-ring.ts";
import { feedScratch } from "./input-ring.ts";
import type { Feed, FeedPlan } from "./input-ring.ts";
import { entriesOf, planFeeds, planOutputs, readOnlyWait, requireNames } from "./options.ts";
import type { Formats } from "./options.ts";
import { alone } from "../multicast.ts";
import type { SpecializedOptions } from "./warp-specialized-options.ts";
import { Steps } from "./step-grid.ts";
import type { Axes, StepGrid } from "./step-grid.ts";
import type { TilePart, Tiles } from "./tiles.ts";

/** A specialized kernel's inputs, outputs and steps, once they have been checked. */
export interface SpecializedPlan {
  readonly feeds: readonly FeedPlan[];
  readonly drain: DrainPlan;
  readonly scratch: ReturnType<typeof drainScratch>;
  /** The names of the steps' axes. */
  readonly names: readonly string[];
  readonly stepsOf: (tile: Axes, part?: TilePart) => Steps;
  /** How many steps are run by the body of a tile itself: 1 where some blocks are early. */
  readonly outside: 0 | 1;
}

export function planSpecialized(
  trace: Trace,
  options: SpecializedOptions<Axes, StepGrid, Formats, Formats>,
  tiles: Tiles,
  computing: number,
  location: Location,
): SpecializedPlan {
  const { grid, inputs, outputs, synchronous = false } = options;
  const gridOf = (tile: Axes): StepGrid =>
    typeof grid === "function"
      ? atOwnLines(() => callBody("the grid of steps", location, grid, tile))
      : grid;
  const names = stepNames(trace, tiles.names, gridOf, location);
  const namesOf = (group: string, specs: unknown): readonly string[] =>
    entriesOf(group, specs, location).map(([name]) => name);
  const blocks = [namesOf("inputs", inputs), namesOf("outputs", outputs)];
  requireNames([tiles.names, names, ["part", "steps", "wait", "release"], ...blocks], location);
  const surroundings = {
    ...{ trace, outer: tiles.names, inner: names, copiers: alone, specialized: true },
    ...{ users: computing, synchronous, location },
  };
  const defaults = { depth: options.depth, delay: options.delay, usualDelay: 1 };
  const feeds = planFeeds(inputs, defaults, options.prefetch, surroundings);
  const outer = [...tiles.names, "part"];
  const drain: DrainPlan = {
    outputs: planOutputs(outputs, alone, { ...surroundings, outer }),
    sharers: alone,
    writers: { count: computing, part: () => undefined },
    synchronous,
    waitReadOnly: readOnlyWait("warpSpecialized", options.waitReadOnly, location),
  };
  const scratch = Object.assign(
    {},
    ...feeds.map((plan) => feedScratch(plan, location)),
    drainScratch(drain),
  ) as ReturnType<typeof drainScratch>;
  if (tiles.isSplit) requireSplittable(grid, names, drain, location);
  const stepsOf = (tile: Axes, part?: TilePart): Steps => new Steps(gridOf(tile), location, part);
  const outside = feeds.some(({ early }) => early) ? 1 : 0;
  return { feeds, drain, scratch, names, stepsOf, outside };
}

/** Tiles are cut along one axis of steps, of which all have as many, and nobody stores a tile before its sums are whole. */
function requireSplittable(
  grid: unknown,
  names: readonly string[],
  { outputs }: DrainPlan,
  location: Location,
): void {
  const refuse = (message: string, expected: string, found: string): never => {
    throw new TilewrightError({ code: "TW1112", message, location, expected, found });
  };
  if (typeof grid === "function")
    refuse("split tiles have different numbers of steps", "a grid for all tiles", "a function");
  if (names.length !== 1)
    refuse("split tiles have several axes of steps", "one axis of steps", names.join(", "));
  const still = outputs.filter(({ pace }) => pace === "never").map(({ name }) => name);
  if (still.length > 0)
    refuse(
      `every part of a split tile would store ${still.join(", ")}`,
      "outputs of the steps, and stores in the third function of steps",
      still.join(", "),
    );
}

/** The names of the steps' axes, from a grid that may be a function of the tile. */
function stepNames(
  trace: Trace,
  outer: readonly string[],
  gridOf: (tile: Axes) => StepGrid,
  location: Location,
): readonly string[] {
  let names: readonly string[] = [];
  const types = outer.map(() => scalarType(i32));
  trace.region("the grid of steps", types, location, (values) => {
    const indices = values.map((value) => new Scalar<"i32">(originOf(value, location)));
    const tile = outer.map((name, axis) => [name, indices[axis]]);
    names = new Steps(gridOf(Object.fromEntries(tile) as Axes), location).names;
    return [];
  });
  return names;
}

/** Indices for blocks that do not depend on them. */
export function zeroAxes(names: readonly string[]): Axes {
  return Object.fromEntries(names.map((name) => [name, constant(i32, 0)]));
}

/** Feeds by how often their blocks are copied. */
export interface Paces {
  /** Copied once. */
  readonly once: readonly Feed[];
  /** Copied for every tile. */
  readonly perTile: readonly Feed[];
  readonly moving: readonly Feed[];
}

export function byPace(feeds: readonly Feed[]): Paces {
  const still = feeds.filter(({ plan }) => plan.pace === "never");
  const isPerTile = ({ plan: { inputs } }: Feed): boolean => inputs.some(({ byTile }) => byTile);
  return {
    once: still.filter((feed) => !isPerTile(feed)),
    perTile: still.filter(isPerTile),
    moving: feeds.filter(({ plan }) => plan.pace !== "never"),
  };
}
