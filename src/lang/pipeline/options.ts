/** What pipelines are told: their types as the user writes them, and plans made of them once they have been checked. */
import type { DTypeName } from "../../formats/dtype.ts";
import { TilewrightError } from "../../support/diagnostics.ts";
import type { Location } from "../../support/location.ts";
import { isReadable, isRecord, requireKnownOptions } from "../../support/options.ts";
import type { CopyOptions } from "../async.ts";
import type { Ref } from "../ref.ts";
import type { Trace } from "../trace.ts";
import { describe, wrongKind } from "../traced.ts";
import { planBlock } from "./blocks.ts";
import type { BlockMap, BlockPlan } from "./blocks.ts";
import type { OutputPlan } from "./output-ring.ts";
import type { FeedPlan, InputPlan } from "./input-ring.ts";
import { multicastAxes, multicastAxis, peersAlong } from "../multicast.ts";
import type { Sharers } from "../multicast.ts";
import { dividedAxis, requireMulticastSlots } from "./multicast.ts";
import type { Axes } from "./step-grid.ts";

/** How a pipeline fetches an input: the window of each step, and how many are in flight. */
export interface InputOptions<A, D extends DTypeName = DTypeName> {
  /** The window of a step. */
  readonly at: BlockMap<A, D>;
  /** Says that the block stays for all steps, so that its window must not depend on them; seen from the window unless given. */
  readonly stationary?: boolean;
  /** How many blocks there is room for; as the pipeline says unless given. */
  readonly depth?: number;
  /** How many steps ahead a block is copied; as many as there is room for unless given. */
  readonly lookahead?: number;
  /** After how many more steps a block may be overwritten; as the pipeline says unless given. */
  readonly delay?: number;
  /** What stands where the window overhangs its array; zeros by default. */
  readonly fill?: "zero" | "nan";
  /** Tells the L2 cache to drop what is copied first, or last. */
  readonly evict?: CopyOptions["evict"];
  /** Axes of the cluster along which all blocks need this one: each copies a part for all, or one copies all of it. */
  readonly multicast?: CopyOptions["multicast"];
  /** The body of the steps itself waits for the block and releases it; for specialized threads. */
  readonly manual?: boolean;
  /**
   * Steps get the block of the step after theirs. The body of the tile waits for the first one before its steps, and for the
   * last one of every other input after them; all are `manual`.
   */
  readonly early?: boolean;
}

/** How a pipeline stores an output: the window of each step, and how many are in flight. */
export interface OutputOptions<A, D extends DTypeName = DTypeName> {
  /** The window of a step. */
  readonly at: BlockMap<A, D>;
  /** Says that the block stays for all steps, so that its window must not depend on them; seen from the window unless given. */
  readonly stationary?: boolean;
  /** How many blocks there is room for; 2 unless given. */
  readonly depth?: number;
  /** The window may come back after others have been written: its stores wait for each other. */
  readonly revisited?: boolean;
}

/** The formats of blocks, by name. */
export interface Formats {
  readonly [name: string]: DTypeName;
}

/** Inputs as the user describes them; a window's function alone where nothing else is to be said. */
export type InputsOf<A, F extends Formats> = {
  readonly [N in keyof F]: BlockMap<A, F[N]> | InputOptions<A, F[N]>;
};

export type OutputsOf<A, F extends Formats> = {
  readonly [N in keyof F]: BlockMap<A, F[N]> | OutputOptions<A, F[N]>;
};

/** The blocks that the body gets. */
export type BlocksOf<F extends Formats> = { readonly [N in keyof F]: Ref<F[N]> };

/** What holds of every input that does not say otherwise. */
export interface FeedDefaults {
  readonly depth?: number | undefined;
  readonly lookahead?: number | undefined;
  readonly delay?: number | undefined;
  /** The delay where nothing is said, as far as there is room for it. */
  readonly usualDelay: number;
}

/** The surroundings of a pipeline, as its plans need them. */
export interface Surroundings {
  readonly trace: Trace;
  readonly outer: readonly string[];
  readonly inner: readonly string[];
  /** The program threads that copy. */
  readonly copiers: Sharers;
  /** Whether the threads that use blocks are others than the ones that copy, and how many there are. */
  readonly specialized: boolean;
  readonly users: number;
  readonly synchronous: boolean;
  readonly location: Location;
}

const inputOptions = [
  "at",
  "stationary",
  "depth",
  "lookahead",
  "delay",
  "fill",
  "evict",
  "multicast",
  "manual",
  "early",
];
const outputOptions = ["at", "stationary", "depth", "revisited"];

/** Every name stands for one thing in the body of the steps. */
export function requireNames(groups: readonly (readonly string[])[], location: Location): void {
  const taken = new Set<string>();
  for (const name of groups.flat()) {
    if (taken.has(name))
      throw new TilewrightError({
        code: "TW1103",
        message: `${name} names two things of a pipeline`,
        location,
        expected: "a name for each axis, input and output",
        found: `${name} twice`,
      });
    taken.add(name);
  }
}

/** The descriptions of a group, by name. */
export function entriesOf(
  group: string,
  specs: unknown,
  location: Location,
): readonly (readonly [string, unknown])[] {
  if (specs === undefined) return [];
  if (!isRecord(specs) || !isReadable(specs, []))
    return wrongKind(`${group} of a pipeline`, "an object with a name for each", specs, location);
  return Object.entries(specs);
}

interface Described {
  readonly plan: BlockPlan;
  readonly options: { readonly [name: string]: unknown };
}

function describeBlock(
  name: string,
  spec: unknown,
  known: readonly string[],
  { trace, outer, inner, location }: Surroundings,
): Described {
  if (typeof spec === "function")
    return {
      plan: planBlock(trace, name, spec as BlockMap<Axes>, { outer, inner }, location),
      options: {},
    };
  requireKnownOptions(`the block of ${name}`, spec, known, "TW1033", location);
  const options = spec as { readonly [name: string]: unknown };
  const { at } = options;
  if (typeof at !== "function")
    return wrongKind(`the block of ${name}`, "a function that gives a window", at, location);
  const plan = planBlock(trace, name, at as BlockMap<Axes>, { outer, inner }, location);
  requireStationary(plan, options["stationary"], inner);
  return { plan, options };
}

/** What is said to stay must not depend on the step. */
function requireStationary(
  { name, pace, location }: BlockPlan,
  stationary: unknown,
  steps: readonly string[],
): void {
  if (stationary === undefined || stationary === false) return;
  if (stationary !== true)
    wrongKind(`stationary of the block of ${name}`, "true or false", stationary, location);
  if (pace === "never") return;
  throw new TilewrightError({
    code: "TW1113",
    message: `the block of ${name} is stationary, and its window moves with the steps`,
    location,
    expected: `a window that does not depend on ${steps.join(" or ")}`,
    found: pace === "each step" ? "one that moves in each step" : "one that moves in some steps",
  });
}

/** A whole number between two others, or the usual one. */
function countOption(
  what: string,
  given: unknown,
  usual: number,
  [least, most]: readonly [number, number],
  location: Location,
): number {
  const count = given ?? usual;
  if (typeof count === "number" && Number.isInteger(count) && count >= least && count <= most)
    return count;
  throw new TilewrightError({
    code: "TW1102",
    message: `${what} cannot be ${describe(count)}`,
    location,
    expected: least === most ? String(least) : `a whole number from ${least} to ${most}`,
    found: describe(count),
  });
}

/** More slots than any shared memory holds; a bound for messages. */
const mostSlots = 64;

/** Inputs that travel together are one feed: those of one depth that move in every step. */
export function planFeeds(
  specs: unknown,
  defaults: FeedDefaults,
  order: unknown,
  surroundings: Surroundings,
): readonly FeedPlan[] {
  const { location } = surroundings;
  const entries = entriesOf("inputs", specs, location);
  const names = orderOf(
    order,
    entries.map(([name]) => name),
    location,
  );
  const feeds = new Map<string, FeedPlan>();
  for (const name of names) {
    const spec = entries.find(([each]) => each === name)?.[1];
    const feed = planFeed(name, spec, defaults, surroundings);
    const alone = feed.pace !== "each step" || feed.manual;
    const { depth, delay, lookahead, peers } = feed;
    const key = alone ? name : [depth, delay, lookahead, peers?.axes ?? ""].join();
    const known = feeds.get(key);
    feeds.set(
      key,
      known === undefined ? feed : { ...known, inputs: [...known.inputs, ...feed.inputs] },
    );
  }
  const made = [...feeds.values()];
  requireManualWithEarly(made);
  // A step waits for its early blocks before it is done with those of the others: where one of these has a single slot, it would never get what is copied after it.
  const isTight = made.some(({ early, pace, depth }) => !early && pace !== "never" && depth === 1);
  if (!isTight) return made;
  return made.toSorted((left, right) => Number(right.early) - Number(left.early));
}

/** Where steps are shifted against each other, the bodies of tile and steps say which block they wait for. */
function requireManualWithEarly(feeds: readonly FeedPlan[]): void {
  if (!feeds.some(({ early }) => early)) return;
  for (const { manual, pace, inputs } of feeds) {
    const [input] = inputs;
    if (manual || pace === "never" || input === undefined) continue;
    throw new TilewrightError({
      code: "TW1102",
      message: `${input.name} moves with steps of which some are early`,
      location: input.location,
      expected: "manual: true of every block that moves",
      found: "a block that steps wait for by themselves",
    });
  }
}

function planFeed(
  name: string,
  spec: unknown,
  defaults: FeedDefaults,
  surroundings: Surroundings,
): FeedPlan {
  const { trace, copiers, specialized, users, synchronous } = surroundings;
  const described = describeBlock(name, spec, inputOptions, surroundings);
  const { plan, options } = described;
  const line = plan.location;
  const axes = multicastAxes(options["multicast"], line);
  const peers = axes.length === 0 ? undefined : peersAlong(trace, axes, line);
  const shared = specialized || copiers.count > 1 || peers !== undefined;
  const parts = copiers.count * (peers?.count ?? 1);
  const input: InputPlan = {
    ...plan,
    fill: options["fill"] === "nan" ? "nan" : "zero",
    evict: options["evict"] as InputPlan["evict"],
    divided: inputAxis(plan, parts, peers !== undefined),
  };
  const manual = options["manual"] === true;
  if (manual) requireOwnWaits(plan, specialized);
  const early = options["early"] === true;
  const room = roomOf(described, defaults, specialized, shared);
  if (peers !== undefined) requireMulticastSlots(plan, room.depth);
  return {
    ...room,
    inputs: [input],
    pace: plan.pace,
    manual,
    early,
    copiers,
    peers,
    users: shared ? users : 0,
    synchronous,
  };
}

function inputAxis(plan: BlockPlan, parts: number, multicast: boolean): number | undefined {
  if (parts === 1) return 0;
  return multicast
    ? multicastAxis(plan, parts)
    : dividedAxis(plan.name, plan.shape, parts, plan.location);
}

/** How many slots an input has, how long each is in use, and how far ahead it is copied. */
function roomOf(
  { plan: { name, pace, location }, options }: Described,
  defaults: FeedDefaults,
  specialized: boolean,
  shared: boolean,
): Pick<FeedPlan, "depth" | "delay" | "lookahead"> {
  const count = (
    what: "depth" | "delay" | "lookahead",
    usual: number,
    least: number,
    most: number,
  ) =>
    countOption(
      `the ${what} of ${name}`,
      options[what] ?? defaults[what],
      usual,
      [least, most],
      location,
    );
  const slots = count("depth", 2, 1, mostSlots);
  // A block that stays needs one slot, or those that it is given where it is copied again for every tile.
  if (pace === "never") {
    const depth = specialized && options["depth"] !== undefined ? slots : 1;
    return { depth, delay: 0, lookahead: 1 };
  }
  const mostDelay = pace === "sometimes" ? Math.min(1, slots - 1) : slots - 1;
  const delay = count("delay", Math.min(defaults.usualDelay, mostDelay), 0, mostDelay);
  // A block that moves sometimes is given back only when the next one is taken.
  const room = pace === "sometimes" && shared ? slots - 1 : slots - delay;
  return { depth: slots, delay, lookahead: count("lookahead", room, Math.min(1, room), room) };
}

function requireOwnWaits({ name, pace, location }: BlockPlan, specialized: boolean): void {
  if (specialized && pace === "each step") return;
  throw new TilewrightError({
    code: "TW1102",
    message: `the steps cannot wait for ${name} themselves`,
    location,
    expected: "a block of specialized threads that moves in every step",
    found: specialized ? `a block that moves ${pace}` : "a pipeline of one thread",
  });
}

/** The inputs in the order in which their copies start: those that are named, then the others. */
function orderOf(order: unknown, names: readonly string[], location: Location): readonly string[] {
  if (order === undefined) return names;
  const list: readonly unknown[] = Array.isArray(order)
    ? order
    : wrongKind("prefetch of a pipeline", "a list of inputs", order, location);
  const ordered = list.map((name) => {
    const known = names.find((each) => each === name);
    if (known !== undefined) return known;
    throw new TilewrightError({
      code: "TW1104",
      message: "prefetch names no input of the pipeline",
      location,
      expected: names.join(", ") || "no inputs",
      found: typeof name === "string" ? name : describe(name),
    });
  });
  return [...new Set([...ordered, ...names])];
}

export function planOutputs(
  specs: unknown,
  sharers: Sharers,
  surroundings: Surroundings,
): readonly OutputPlan[] {
  const { inner, location } = surroundings;
  return entriesOf("outputs", specs, location).map(([name, spec]) => {
    const { plan, options } = describeBlock(name, spec, outputOptions, surroundings);
    const { pace, shape, location: line } = plan;
    const depth = countOption(`the depth of ${name}`, options["depth"], 2, [1, mostSlots], line);
    return {
      ...plan,
      // Along several axes the fastest may have one step only, and then the window comes back.
      pace: pace === "each step" && inner.length > 1 ? "sometimes" : pace,
      depth: pace === "never" ? 1 : depth,
      revisited: options["revisited"] === true,
      divided: sharers.count === 1 ? 0 : dividedAxis(name, shape, sharers.count, line),
    };
  });
}

/** Whether a pipeline waits in the end for no more than that its outputs have been read. */
export function readOnlyWait(owner: string, given: unknown, location: Location): boolean {
  if (given === undefined || typeof given === "boolean") return given === true;
  return wrongKind(`waitReadOnly of ${owner}`, "true or false", given, location);
}
