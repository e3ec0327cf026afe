/**
 * A rank among others: it runs collectives one after another, in the order of the calls, and knows when that cannot end well.
 *
 *   post parts to the group ──▶ wait for theirs ──▶ make the result        each wait has a deadline
 *
 * Every part says which call it belongs to. A member that is at another call of the group, or that waits in another group for this very
 * rank, will never send what is waited for: both ranks report it at once, by line. Whoever fails tells all others, which then fail too.
 */
import { TilewrightError } from "../../support/diagnostics.ts";
import { formatPosition } from "../../support/location.ts";
import type { Location } from "../../support/location.ts";
import { WorkQueue } from "../../device/work-queue.ts";
import { datumText } from "../evaluate/value.ts";
import type { Tensor } from "../evaluate/value.ts";
import { collectiveText } from "./collective.ts";
import type { CollectiveCall } from "./collective.ts";
import { firstRound, zerosLike } from "./exchanges.ts";
import type { Round, Standing } from "./exchanges.ts";
import type {
  CallNote,
  Connect,
  Link,
  RankMessage,
  RankState,
  SentFailure,
  SentTensor,
} from "./link.ts";
import { receivedTensor, sentTensor } from "./link.ts";
import { callText, FlightRecorder, stateText } from "./recorder.ts";
import type { FlightEntry } from "./recorder.ts";

/** Milliseconds that a call waits for the others unless told otherwise. */
export const defaultTimeout = 120_000;
/** Milliseconds that others have to say where they are, once a deadline has passed. */
const answerTime = 500;

export interface EndpointOptions {
  readonly rank: number;
  readonly size: number;
  readonly connect: Connect;
  /** Milliseconds that a call waits for the others; 120,000 unless given. */
  readonly timeout?: number | undefined;
}

type Part = Extract<RankMessage, { readonly kind: "part" }>;

/** What this rank waits for. */
interface Wait {
  readonly call: CallNote;
  readonly round: number;
  readonly missing: Set<number>;
  readonly done: () => void;
  readonly fail: (error: unknown) => void;
}

function keyOf({ group, sequence }: CallNote, round: number): string {
  return `${group.join()} ${sequence} ${round}`;
}

export class RankEndpoint {
  readonly rank: number;
  readonly size: number;
  readonly timeout: number;
  readonly #links = new Map<number, Link>();
  /** Ranks that have ended, and whether in good order. */
  readonly #gone = new Map<number, "left" | "lost">();
  readonly #inbox = new Map<string, Map<number, Part>>();
  readonly #sequences = new Map<string, number>();
  readonly #recorder = new FlightRecorder();
  readonly #queue = new WorkQueue();
  #states: ((state: RankState) => void) | undefined;
  #wait: Wait | undefined;
  #failure: SentFailure | undefined;
  #isClosed = false;

  constructor({ rank, size, connect, timeout = defaultTimeout }: EndpointOptions) {
    this.rank = rank;
    this.size = size;
    this.timeout = timeout;
    for (let peer = 0; peer < size; peer++) {
      if (peer === rank) continue;
      const link = connect(peer, {
        received: (message) => {
          this.#received(peer, message);
        },
        ended: () => {
          this.#ended(peer);
        },
      });
      this.#links.set(peer, link);
    }
  }

  /** The last calls, oldest first. */
  get flightRecord(): readonly FlightEntry[] {
    return this.#recorder.entries;
  }

  /** Runs a collective on this rank's values; every rank of a group calls it with its own. */
  run(call: CollectiveCall, values: readonly Tensor[]): Promise<readonly Tensor[]> {
    const group = call.groups.find((members) => members.includes(this.rank));
    const { collective } = call;
    if (group === undefined) {
      const hasRoots = collective.kind === "collective_broadcast" && collective.hasRoots;
      return Promise.resolve((hasRoots ? values.slice(0, -1) : values).map(zerosLike));
    }
    const types = values.map(datumText).join(", ");
    const text = `${collectiveText(collective)} of ${types}`;
    const standing = { group, position: group.indexOf(this.rank) };
    return this.#call(text, call.location, standing, () =>
      firstRound(collective, standing, values),
    );
  }

  /** Resolves when all ranks have come with the same text, such as the hash of a program. */
  async agree(text: string, location?: Location): Promise<void> {
    const group = Array.from({ length: this.size }, (_, rank) => rank);
    await this.#call(text, location, { group, position: this.rank }, () => ({
      send: () => [],
      receive: () => [],
    }));
  }

  /** Ends all work of all ranks: their calls are rejected, now and from now on. */
  abort(error: unknown): void {
    const { rank } = this;
    const message = error instanceof TilewrightError ? error.summary : String(error);
    this.#fail({
      code: "TW9703",
      message: `rank ${rank} was stopped: ${message}`,
      expected: "ranks that all go on to the end",
      found: error instanceof TilewrightError ? error.message : String(error),
    });
  }

  /** Ends this rank in good order. */
  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    for (const link of this.#links.values()) {
      link.post({ kind: "leave" });
      link.close();
    }
  }

  #call(
    text: string,
    location: Location | undefined,
    standing: Standing,
    begin: () => Round,
  ): Promise<readonly Tensor[]> {
    const line = formatPosition(location?.position);
    return this.#queue.run(async () => {
      this.#requireAlive(location);
      const { group } = standing;
      const key = group.join();
      const sequence = (this.#sequences.get(key) ?? 0) + 1;
      this.#sequences.set(key, sequence);
      const call: CallNote = { group, sequence, text, line };
      const ended = this.#recorder.begin(call);
      try {
        let made: Round | readonly Tensor[] = begin();
        for (let round = 0; "send" in made; round++)
          made = made.receive(await this.#exchange(call, round, standing, made, location));
        ended();
        return made;
      } catch (error) {
        // The others must not wait for what will not come.
        this.#fail(failureOf(error, this.rank, call));
        throw error;
      }
    });
  }

  async #exchange(
    call: CallNote,
    round: number,
    { group, position }: Standing,
    { send }: Round,
    location: Location | undefined,
  ): Promise<readonly (readonly Tensor[])[]> {
    const sent = new Map<Tensor, SentTensor>();
    for (const [to, member] of group.entries()) {
      if (to === position) continue;
      const values = send(to).map((value) => {
        const known = sent.get(value) ?? sentTensor(value);
        sent.set(value, known);
        return known;
      });
      this.#links.get(member)?.post({ kind: "part", call, round, values });
    }
    const own = send(position);
    await this.#waitFor(call, round, location);
    const key = keyOf(call, round);
    const parts = this.#inbox.get(key);
    this.#inbox.delete(key);
    return group.map((member, at) =>
      at === position ? own : (parts?.get(member)?.values ?? []).map(receivedTensor),
    );
  }

  /** Resolves when the parts of all other members are there. */
  async #waitFor(call: CallNote, round: number, location: Location | undefined): Promise<void> {
    const here = this.#inbox.get(keyOf(call, round));
    const missing = new Set(
      call.group.filter((member) => member !== this.rank && here?.get(member) === undefined),
    );
    // A failure that came while the parts were being made.
    this.#requireAlive(location);
    for (const part of here?.values() ?? []) this.#requireSame(call, part);
    if (missing.size === 0) return;
    let timer: ReturnType<typeof setTimeout> | undefined;
    try {
      await new Promise<void>((resolve, reject) => {
        this.#wait = { call, round, missing, done: resolve, fail: reject };
        for (const member of missing) this.#lookAt(member);
        timer = setTimeout(() => void this.#timedOut(), this.timeout);
      });
    } catch (error) {
      throw error instanceof TilewrightError && location !== undefined
        ? error.located(location)
        : error;
    } finally {
      clearTimeout(timer);
      this.#wait = undefined;
    }
  }

  /** Looks whether a member that is waited for can still come. */
  #lookAt(member: number): void {
    const wait = this.#wait;
    if (wait?.missing.has(member) !== true) return;
    const gone = this.#gone.get(member);
    if (gone !== undefined) {
      this.#fail({
        code: "TW9703",
        message: `rank ${member} has ended${gone === "lost" ? " without a word" : ""} and rank ${this.rank} waits for it`,
        expected: `rank ${member} at ${callText(wait.call)}`,
        found: `rank ${member}, which has ${gone === "lost" ? "died or was killed" : "ended its work"}`,
      });
      return;
    }
    // It waits for this rank in another group, so it will not come here.
    for (const parts of this.#inbox.values()) {
      const part = parts.get(member);
      if (part === undefined || part.call.group.join() === wait.call.group.join()) continue;
      this.#fail(otherCall(this.rank, wait.call, member, part.call));
      return;
    }
  }

  /** All members of a group make the same call. */
  #requireSame(call: CallNote, part: Part): void {
    if (part.call.text === call.text) return;
    const other = [...(this.#inbox.get(keyOf(call, part.round)) ?? [])].find(
      ([, each]) => each === part,
    );
    throw errorOf(otherCall(this.rank, call, other?.[0] ?? -1, part.call));
  }

  #received(peer: number, message: RankMessage): void {
    if (this.#isClosed) return;
    switch (message.kind) {
      case "part":
        this.#take(peer, message);
        return;
      case "ask":
        this.#links.get(peer)?.post({ kind: "state", state: this.#recorder.state(this.rank) });
        return;
      case "state":
        this.#states?.(message.state);
        return;
      case "abort":
        this.#hear(message.failure);
        return;
      case "leave":
        this.#gone.set(peer, "left");
        this.#lookAt(peer);
    }
  }

  #take(peer: number, part: Part): void {
    const key = keyOf(part.call, part.round);
    const parts = this.#inbox.get(key) ?? new Map<number, Part>();
    this.#inbox.set(key, parts.set(peer, part));
    const wait = this.#wait;
    if (wait === undefined || !wait.missing.has(peer)) return;
    if (key !== keyOf(wait.call, wait.round)) {
      this.#lookAt(peer);
      return;
    }
    if (part.call.text !== wait.call.text) {
      this.#fail(otherCall(this.rank, wait.call, peer, part.call));
      return;
    }
    wait.missing.delete(peer);
    if (wait.missing.size === 0) wait.done();
  }

  #ended(peer: number): void {
    if (this.#isClosed) return;
    if (!this.#gone.has(peer)) this.#gone.set(peer, "lost");
    this.#lookAt(peer);
  }

  /** Fails by oneself: the others hear of it. */
  #fail(failure: SentFailure): void {
    if (this.#failure !== undefined || this.#isClosed) return;
    for (const link of this.#links.values()) link.post({ kind: "abort", failure });
    this.#hear(failure);
  }

  #hear(failure: SentFailure): void {
    this.#failure ??= failure;
    this.#wait?.fail(errorOf(this.#failure));
  }

  #requireAlive(location: Location | undefined): void {
    const failure = this.#failure;
    if (failure !== undefined) throw errorOf(failure, location);
    if (!this.#isClosed) return;
    throw new TilewrightError({
      code: "TW9704",
      message: `rank ${this.rank} was closed before this call`,
      location,
      expected: "a rank that is kept until its last call",
      found: "one that was closed",
    });
  }

  /** Asks all ranks where they are, and reports it. */
  async #timedOut(): Promise<void> {
    const wait = this.#wait;
    if (wait === undefined) return;
    const states = new Map<number, RankState>([[this.rank, this.#recorder.state(this.rank)]]);
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, answerTime);
      this.#states = (state) => {
        states.set(state.rank, state);
        if (states.size < this.size) return;
        clearTimeout(timer);
        resolve();
      };
      for (const link of this.#links.values()) link.post({ kind: "ask" });
    });
    // It may have come after all, or somebody else has reported.
    if (this.#wait !== wait || this.#failure !== undefined) return;
    const lines = Array.from({ length: this.size }, (_, rank) => {
      const state = states.get(rank);
      return state === undefined ? `rank ${rank} does not answer` : stateText(state);
    });
    const late = [...wait.missing].sort((left, right) => left - right).join(", ");
    this.#fail({
      code: "TW9702",
      message: `rank ${this.rank} has waited ${this.timeout / 1000} s at ${callText(wait.call)} for ${wait.missing.size === 1 ? "rank" : "ranks"} ${late}`,
      expected: `all of ranks ${wait.call.group.join(", ")} at this call within ${this.timeout / 1000} s`,
      found: lines.join("; "),
    });
  }
}

function otherCall(rank: number, own: CallNote, peer: number, theirs: CallNote): SentFailure {
  const [first, second] = rank < peer ? [rank, peer] : [peer, rank];
  const [a, b] = rank < peer ? [own, theirs] : [theirs, own];
  return {
    code: "TW9701",
    message: `ranks ${first} and ${second} are at different calls`,
    expected:
      "the same collectives in the same order, with the same types, in all ranks of a group",
    found: `rank ${first} at ${callText(a)}; rank ${second} at ${callText(b)}`,
  };
}

function errorOf({ code, message, expected, found }: SentFailure, location?: Location) {
  return new TilewrightError({ code, message, location, expected, found });
}

/** What the others are told of an error in a call. */
function failureOf(error: unknown, rank: number, call: CallNote): SentFailure {
  if (error instanceof TilewrightError && /^TW970[1-4]$/.test(error.code)) {
    const { code, summary: message, expected, found } = error;
    return { code, message, expected, found };
  }
  return {
    code: "TW9703",
    message: `rank ${rank} failed at ${callText(call)}`,
    expected: "ranks that all go on to the end",
    found: error instanceof TilewrightError ? `${error.code}: ${error.summary}` : String(error),
  };
}
