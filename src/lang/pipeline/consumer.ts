/**
 * The computing threads of `warpSpecialized`: what runs around the user's bodies of tiles and steps.
 *
 *   tile     wait for the tile's own blocks · body · release them · store outputs that stay
 *   body     whatever the user does · steps: a loop of `workStep` · whatever the user does, such as storing a result
 */
import { TilewrightError } from "../../support/diagnostics.ts";
import { atLocation, atOwnLines, captureLocation } from "../../support/location.ts";
import type { Location } from "../../support/location.ts";
import { commitShared, waitGroup } from "../async.ts";
import { loop } from "../control.ts";
import type { Scalar } from "../elementwise.ts";
import type { Scope, Trace } from "../trace.ts";
import { Tile } from "../tile.ts";
import { callBody, describe, wrongKind } from "../traced.ts";
import type { Tree } from "../tree.ts";
import { settle } from "./carries.ts";
import type { Dealer } from "./dynamic-tile-counter.ts";
import type { Drain, Draining } from "./output-ring.ts";
import type { Feed, FeedPlan, Using } from "./input-ring.ts";
import { ManualBlocks } from "./manual-release.ts";
import { accessedByThreads } from "./reads.ts";
import { handSums } from "./stream-k.ts";
import { byPace, zeroAxes } from "./warp-specialized-plan.ts";
import type { Paces, SpecializedPlan } from "./warp-specialized-plan.ts";
import { workStep } from "./pipeline-step.ts";
import type { Named, StepState, StepWork } from "./pipeline-step.ts";
import type { Axes } from "./step-grid.ts";
import type { Tiles, TileTurn } from "./tiles.ts";

export interface ComputeWork {
  readonly trace: Trace;
  readonly feeds: readonly Feed[];
  readonly drain: Drain;
  readonly plan: SpecializedPlan;
  readonly tiles: Tiles;
  readonly dealer: Dealer;
  readonly part: Scalar<"i32">;
  readonly location: Location;
}

/** What is handed from tile to tile. */
type TileState = {
  readonly perTile: readonly Using[];
  readonly moving: readonly Using[];
  readonly draining: Draining;
};

/** Which tile it is, and which part of it where tiles are split. */
interface Place extends TileTurn {
  readonly axes: Axes;
}

/** What the computing threads do. */
export class Computing {
  readonly #work: ComputeWork;
  readonly #body: (tile: Named) => void;

  constructor(work: ComputeWork, body: (tile: Named) => void) {
    this.#work = work;
    this.#body = body;
  }

  all(): void {
    const { feeds, drain, tiles, dealer } = this.#work;
    const paces = byPace(feeds);
    const fixed = paces.once.map((feed) => {
      const { position, seen } = feed.start();
      feed.landed(position);
      return feed.blocks({ position, seen });
    });
    const start: TileState = {
      perTile: paces.perTile.map((feed) => feed.start()),
      moving: paces.moving.map((feed) => feed.start()),
      draining: drain.start(),
    };
    tiles.deal(
      dealer,
      start,
      (tile, state, turn) =>
        this.#tile({ axes: tile, ...turn }, state, paces, Object.assign({}, ...fixed) as Named),
      () => this.#work.plan.stepsOf({}).total,
    );
    // Copies out of shared memory have landed in the end, or, as the user's own, at least read it.
    const { outputs, waitReadOnly } = this.#work.plan.drain;
    waitGroup(0, { read: waitReadOnly || outputs.length === 0 });
  }

  #tile(place: Place, state: TileState, paces: Paces, fixed: Named): TileState {
    const { trace, drain, plan, part, location } = this.#work;
    const tile = place.axes;
    drain.renew();
    const stays = paces.perTile.map((feed, position) => {
      const using = state.perTile[position] ?? feed.start();
      feed.landed(using.position);
      return { feed, using, blocks: feed.blocks(using) };
    });
    const before = trace.position;
    const still = Object.assign({}, fixed, ...stays.map(({ blocks }) => blocks)) as Named;
    const run = new TileRun(this.#work, paces.moving, place, state, still);
    const moving = [
      ...paces.moving.flatMap(({ plan: { inputs } }) => inputs),
      ...plan.drain.outputs.filter(({ pace }) => pace !== "never"),
    ].map(({ name }) => name);
    const given = {
      ...tile,
      ...still,
      part,
      steps: run.steps,
      wait: run.wait,
      release: run.release,
      ...stillOutputs(plan, drain, state),
    };
    atOwnLines(() => {
      callBody("the body of a tile", location, this.#body, withoutMoving(given, moving));
    });
    const { moving: after, draining } = run.finished();
    const held = stays.flatMap(({ blocks }) => Object.values(blocks));
    if (accessedByThreads(trace.opsSince(before), held)) commitShared();
    const perTile = stays.map(({ feed, using }) => {
      feed.release(using.position);
      return { position: feed.next(using.position), seen: [] };
    });
    drain.finish(draining, { ...zeroAxes(plan.names), ...tile, part });
    return { perTile, moving: after, draining };
  }
}

/** The outputs that do not move with the steps. */
function stillOutputs(
  { drain: { outputs } }: SpecializedPlan,
  drain: Drain,
  { draining }: TileState,
): Named {
  const blocks = drain.blocks(draining);
  const names = outputs.filter(({ pace }) => pace === "never").map(({ name }) => name);
  return Object.fromEntries(names.map((name) => [name, blocks[name]]));
}

/** Refuses the blocks that exist in the body of the steps alone. */
function withoutMoving(given: Named, moving: readonly string[]): Named {
  const argument = { ...given };
  for (const name of moving)
    Object.defineProperty(argument, name, {
      get(): never {
        throw new TilewrightError({
          code: "TW1109",
          message: `${name} is a block of the steps`,
          expected: "a block that does not depend on the step",
          found: name,
        });
      },
    });
  return argument;
}

/** The steps of one tile. */
class TileRun {
  readonly #work: ComputeWork;
  readonly #moving: readonly Feed[];
  readonly #place: Place;
  readonly #state: TileState;
  readonly #still: Named;
  readonly #scope: Scope;
  /** The first blocks of early inputs; once the steps are over, the last ones of the others. */
  #outside: ManualBlocks;
  #end: Pick<TileState, "moving" | "draining"> | undefined;

  constructor(
    work: ComputeWork,
    moving: readonly Feed[],
    place: Place,
    state: TileState,
    still: Named,
  ) {
    this.#work = work;
    this.#moving = moving;
    this.#place = place;
    this.#state = state;
    this.#still = still;
    this.#scope = work.trace.scope;
    this.#outside = this.#blocksOutside((feed) => feed.plan.early, state.moving);
  }

  /** Blocks that the body of the tile waits for itself, where some are early. */
  #blocksOutside(chosen: (feed: Feed) => boolean, using: readonly Using[]): ManualBlocks {
    const { trace, plan, location } = this.#work;
    const pairs = this.#moving.flatMap((feed, position) => {
      const own = using[position];
      return plan.outside > 0 && own !== undefined && chosen(feed) ? [{ feed, own }] : [];
    });
    const blocks = Object.assign({}, ...pairs.map(({ feed, own }) => feed.blocks(own))) as Named;
    const feeds = pairs.map(({ feed }) => feed);
    const positions = pairs.map(({ own }) => own);
    return new ManualBlocks(trace, feeds, positions, blocks, location);
  }

  readonly wait = (name: unknown): unknown => this.#outside.wait(name);

  readonly release = (name: unknown): void => {
    this.#outside.release(name);
  };

  /** What the body of a tile calls. */
  readonly steps = (first: unknown, second?: unknown, third?: unknown): Tree | undefined => {
    const location = captureLocation();
    if (this.#end !== undefined) misused("steps is called again", "one call", location);
    if (this.#work.trace.scope !== this.#scope)
      misused("steps is called in a loop or a branch", "a call in the body of the tile", location);
    const carries = second !== undefined;
    const body = (carries ? second : first) as (argument: Named, carry?: unknown) => unknown;
    if (typeof body !== "function") wrongKind("the body of steps", "a function", body, location);
    if (third !== undefined && typeof third !== "function")
      wrongKind("what is done with the sums of steps", "a function", third, location);
    const done = third as ((sums: unknown) => void) | undefined;
    return atLocation(location, () => {
      const end = this.#run(carries ? (first as Tree) : undefined, body, location);
      return this.#finish(carries ? end : undefined, done, location);
    });
  };

  /** What is left is the user's, or that of the block that gets all sums of the tile. */
  #finish(
    end: Tree | undefined,
    done: ((sums: unknown) => void) | undefined,
    location: Location,
  ): Tree | undefined {
    const segment = this.#place.part;
    if (segment === undefined) {
      if (done === undefined) return end;
      atOwnLines(() => {
        callBody("what is done with the sums", location, done, end);
      });
      return undefined;
    }
    if (!(end instanceof Tile) || done === undefined)
      return unsplit(end instanceof Tile ? "no third function" : describe(end), location);
    const holder = { worker: segment.worker, part: this.#work.part };
    const whole = (sums: Tile): void => {
      atOwnLines(() => {
        callBody("what is done with the sums", location, done, sums);
      });
    };
    handSums(segment.handing, segment, holder, end, whole, (): void => undefined);
    return undefined;
  }

  finished(): Pick<TileState, "moving" | "draining"> {
    const { location } = this.#work;
    this.#outside.requireDone();
    return this.#end ?? misused("the body of a tile does not call steps", "one call", location);
  }

  #run(
    carry: Tree | undefined,
    body: (argument: Named, carry?: unknown) => unknown,
    location: Location,
  ): Tree | undefined {
    const { trace, drain, plan, part } = this.#work;
    const steps = plan.stepsOf(this.#place.axes, this.#place.part).but(plan.outside);
    const feeds = this.#moving;
    this.#outside.requireDone();
    const work: StepWork = {
      ...{ trace, steps, feeds, drain, location },
      tile: { ...this.#place.axes, part },
      still: this.#still,
      body: (argument, handed, using) => {
        const manual = new ManualBlocks(trace, feeds, using, argument, location);
        const given = { ...argument, wait: manual.wait, release: manual.release };
        const result = atOwnLines(() => (carry === undefined ? body(given) : body(given, handed)));
        manual.requireDone();
        return result;
      },
      label: "the body of steps",
      carries: carry !== undefined,
    };
    const initial: StepState = {
      carry: carry ?? [],
      odometer: steps.start(),
      using: past(this.#state.moving, feeds, ({ early }) => early),
      draining: this.#state.draining,
    };
    const end = loop({ to: steps.total, carry: initial }, (step, state) =>
      workStep(work, step, state),
    );
    this.#place.nearlyDone();
    const settled = settle(end.carry);
    for (const [position, feed] of feeds.entries()) {
      const using = end.using[position];
      if (using !== undefined) feed.finish(using, steps.total);
    }
    this.#outside = this.#blocksOutside(({ plan: { early } }) => !early, end.using);
    const isLate = ({ early }: FeedPlan): boolean => plan.outside > 0 && !early;
    this.#end = { moving: past(end.using, feeds, isLate), draining: end.draining };
    return settled;
  }
}

/** Where feeds are once those chosen have been used for a step. */
function past(
  using: readonly Using[],
  feeds: readonly Feed[],
  chosen: (plan: FeedPlan) => boolean,
): readonly Using[] {
  return using.map((own, position) => {
    const feed = feeds[position];
    if (feed === undefined || !chosen(feed.plan)) return own;
    return { position: feed.next(own.position), seen: [] };
  });
}

function unsplit(found: string, location: Location): never {
  throw new TilewrightError({
    code: "TW1112",
    message: "the sums of a split tile are not handed over",
    location,
    expected: "steps(tile or accumulator, body, (sums) => …), which runs where the sums are whole",
    found,
  });
}

function misused(message: string, expected: string, location: Location): never {
  throw new TilewrightError({ code: "TW1108", message, location, expected, found: "another" });
}
