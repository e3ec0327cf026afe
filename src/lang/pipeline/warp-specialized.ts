/**
 * `warpSpecialized`: one thread copies, the others compute. The copying thread runs ahead as far as there are free slots,
 * over the end of a tile into the next, so that computing threads never wait for the first blocks of a tile:
 *
 *   copy      tile 0: 0 1 2 3   tile 1: 0 1 2 3   tile 2: …
 *   first             tile 0: 0 1 2 3 · result   tile 1: 0 1 2 3 · result   …
 *   second            the same on its own rows
 *
 * It expands to slots with `full` and `empty` barriers, one warp that waits and copies, and one body of code for all
 * threads that compute, in which `part` says which of them it is.
 */
import { i32 } from "../../formats/dtype.ts";
import { TilewrightError } from "../../support/diagnostics.ts";
import { atLocation, captureLocation } from "../../support/location.ts";
import type { Location } from "../../support/location.ts";
import { requireKnownOptions } from "../../support/options.ts";
import { onThreads, scoped, warps, when } from "../control.ts";
import type { Scalar } from "../elementwise.ts";
import type { Empty } from "../spec.ts";
import { clusterSync, setRegisters, threadIndex } from "../sync.ts";
import { activeTrace } from "../trace.ts";
import type { Trace } from "../trace.ts";
import { describe, wrongKind } from "../traced.ts";
import { Computing } from "./consumer.ts";
import { copyTiles } from "./producer.ts";
import { Mailbox, mailboxScratch } from "./dynamic-tile-counter.ts";
import type { Dealer } from "./dynamic-tile-counter.ts";
import { LaunchResponses, responseScratch } from "./launched-tiles.ts";
import { Drain } from "./output-ring.ts";
import { Feed } from "./input-ring.ts";
import type { Formats } from "./options.ts";
import { registersFor } from "./registers.ts";
import { planSpecialized } from "./warp-specialized-plan.ts";
import type { SpecializedOptions, SpecializedTile } from "./warp-specialized-options.ts";
import type { Named } from "./pipeline-step.ts";
import type { Axes, StepGrid } from "./step-grid.ts";
import { Tiles } from "./tiles.ts";

const optionNames = [
  ...["tiles", "grid", "inputs", "outputs", "depth", "delay", "prefetch", "copy", "registers"],
  "synchronous",
  "waitReadOnly",
];

/** Copies in one program thread, and runs `body` in all others for each tile. */
export function warpSpecialized<
  const G extends StepGrid,
  W extends Axes = Empty,
  const I extends Formats = Empty,
  const O extends Formats = Empty,
>(options: SpecializedOptions<W, G, I, O>, body: (tile: SpecializedTile<W, G, I, O>) => void): void;
export function warpSpecialized(
  options: SpecializedOptions<Axes, StepGrid, Formats, Formats>,
  body: (tile: never) => void,
): void {
  const location = captureLocation();
  atLocation(location, () => {
    specialize(options, body, location);
  });
}

function specialize(
  options: SpecializedOptions<Axes, StepGrid, Formats, Formats>,
  body: (tile: never) => void,
  location: Location,
): void {
  const trace = activeTrace("warpSpecialized", location);
  requireKnownOptions("warpSpecialized", options, optionNames, "TW1033", location);
  const crew = crewOf(trace, options.copy, location);
  const tiles: Tiles = options.tiles ?? new Tiles([]);
  if (!(tiles instanceof Tiles)) wrongKind("tiles", "what tiles(…) gives", tiles, location);
  const plan = planSpecialized(trace, options, tiles, crew.compute.length, location);
  const registers = options.registers ?? registersFor(crew.compute.length, trace.context.warps);
  const readers = crew.compute.length;
  const scratch = {
    ...plan.scratch,
    ...(tiles.isCounted && mailboxScratch(readers)),
    ...(tiles.isLaunched && responseScratch()),
  };
  scoped(scratch, (objects) => {
    const mailbox = tiles.isCounted ? new Mailbox(objects) : undefined;
    const responses = tiles.isLaunched ? new LaunchResponses(objects) : undefined;
    const dealer = (kind: "leads" | "follows"): Dealer =>
      mailbox === undefined ? { kind: "alone" } : { kind, mailbox, responses };
    const feeds = plan.feeds.map((each) => new Feed(trace, each, objects, location));
    onThreads(
      trace,
      crew.copyName,
      [crew.copy],
      () => {
        if (registers !== undefined) setRegisters(registers.copy);
        warps((warp) => {
          when(warp.eq(0), () => {
            copyTiles(feeds, plan, tiles, dealer("leads"));
          });
        });
      },
      location,
    );
    onThreads(
      trace,
      crew.computeNames.join(" and "),
      crew.compute,
      () => {
        if (registers !== undefined) setRegisters(registers.compute);
        const part = partOf(crew);
        const writers = { count: crew.compute.length, part: () => part };
        const drain = new Drain(trace, { ...plan.drain, writers }, objects, location);
        const work = {
          trace,
          feeds,
          drain,
          plan,
          tiles,
          dealer: dealer("follows"),
          part,
          location,
        };
        new Computing(work, body as (tile: Named) => void).all();
      },
      location,
    );
    if (feeds.some(({ plan: { peers } }) => peers !== undefined)) clusterSync();
  });
}

/** The program threads: which one copies, and which compute. */
interface Crew {
  readonly copy: number;
  readonly copyName: string;
  readonly compute: readonly number[];
  readonly computeNames: readonly string[];
}

function crewOf(trace: Trace, copy: unknown, location: Location): Crew {
  const { threads } = trace.context;
  const position = copy === undefined ? 0 : threads.findIndex((name) => name === copy);
  const refuse = (message: string, expected: string, found: string): never => {
    throw new TilewrightError({ code: "TW1106", message, location, expected, found });
  };
  if (trace.thread !== undefined)
    refuse(
      "specialized threads stand in the code of a thread",
      "code that all threads of the block run",
      `the code of ${trace.thread}`,
    );
  if (threads.length < 2)
    refuse("there is nobody to copy for", "two program threads or more", "one");
  if (position < 0)
    refuse(
      "the thread that copies is none of the block",
      `one of ${threads.join(", ")}`,
      describe(copy),
    );
  const compute = threads.flatMap((_, thread) => (thread === position ? [] : [thread]));
  return {
    copy: position,
    copyName: threads[position] ?? "",
    compute,
    computeNames: compute.map((thread) => threads[thread] ?? ""),
  };
}

/** Which of the computing threads runs the code; at least 0 as facts see it, too. */
function partOf({ copy, compute }: Crew): Scalar<"i32"> {
  const index = threadIndex();
  if (copy === 0) return index.sub(1).maximum(0);
  return copy === compute.length ? index : index.sub(index.gt(copy).cast(i32)).maximum(0);
}
