/**
 * Blocks that the body of a step waits for and releases itself, each exactly once. Where some of them are `early`, steps are
 * shifted against each other, so that what one step begins runs under the rest of the step before:
 *
 *   k early, v not     body of the tile   k0 ·          · v2
 *                      body of the steps     k1 v0 · k2 v1
 *
 * The body of the tile waits for the first block of those that are early before its steps, and for the last one of the
 * others after them.
 */
import { TilewrightError } from "../../support/diagnostics.ts";
import { captureLocation } from "../../support/location.ts";
import type { Location } from "../../support/location.ts";
import { commitShared } from "../async.ts";
import { Ref } from "../ref.ts";
import type { Scope, Trace } from "../trace.ts";
import { describe } from "../traced.ts";
import type { Feed, Using } from "./input-ring.ts";
import { accessedByThreads } from "./reads.ts";

interface ManualBlock {
  readonly feed: Feed;
  readonly using: Using;
  /** The block in shared memory, as the body got it. */
  readonly window: Ref;
  waits: number;
  releases: number;
}

export class ManualBlocks {
  readonly #trace: Trace;
  readonly #blocks: ReadonlyMap<string, ManualBlock>;
  readonly #scope: Scope;
  readonly #start: number;
  readonly #location: Location;

  constructor(
    trace: Trace,
    feeds: readonly Feed[],
    using: readonly Using[],
    blocks: { readonly [name: string]: unknown },
    location: Location,
  ) {
    this.#trace = trace;
    this.#scope = trace.scope;
    this.#start = trace.position;
    this.#location = location;
    this.#blocks = new Map(
      feeds.flatMap((feed, position) => {
        const own = using[position];
        const name = feed.plan.inputs[0]?.name ?? "";
        const window = blocks[name];
        if (!feed.plan.manual || own === undefined || !(window instanceof Ref)) return [];
        return [[name, { feed, using: own, window, waits: 0, releases: 0 }] as const];
      }),
    );
  }

  readonly wait = (name: unknown): Ref => {
    const block = this.#named(name, "waited for", captureLocation());
    block.waits += 1;
    block.feed.landed(block.using.position);
    return block.window;
  };

  readonly release = (name: unknown): void => {
    const block = this.#named(name, "released", captureLocation());
    block.releases += 1;
    if (accessedByThreads(this.#trace.opsSince(this.#start), [block.window])) commitShared();
    block.feed.release(block.using.position);
  };

  /** Every block has been waited for and released. */
  requireDone(): void {
    for (const [name, { waits, releases }] of this.#blocks)
      if (waits !== 1 || releases !== 1)
        this.#refuse(
          `${name} is waited for ${waits} times and released ${releases} times`,
          "wait and release once each",
          `${waits} and ${releases}`,
          this.#location,
        );
  }

  #named(name: unknown, deed: string, location: Location): ManualBlock {
    const block = typeof name === "string" ? this.#blocks.get(name) : undefined;
    const names = [...this.#blocks.keys()].join(", ");
    const found = typeof name === "string" ? name : describe(name);
    if (block === undefined)
      return this.#refuse(
        `${found} cannot be ${deed} by the body`,
        names === "" ? "a block that is declared manual" : `one of ${names}`,
        found,
        location,
      );
    if (this.#trace.scope !== this.#scope)
      this.#refuse(
        `${found} is ${deed} in a loop or a branch`,
        "a call in the body itself",
        "a call in another",
        location,
      );
    return block;
  }

  #refuse(message: string, expected: string, found: string, location: Location): never {
    throw new TilewrightError({ code: "TW1108", message, location, expected, found });
  }
}
