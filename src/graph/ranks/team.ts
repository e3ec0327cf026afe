/**
 * The ranks that one process drives: threads with memory in common, or, where the host has none, ranks in turns on the calling thread. A
 * process among others drives one rank of theirs.
 *
 *   const team = await RankTeam.open({ size: 4, device: "cpu" });
 *   await team.all({ kind: "load", … });          the same to each
 *   await team.each((rank) => ({ kind: "run", … }));
 */
import { TilewrightError } from "../../support/diagnostics.ts";
import { canShareMemory } from "../../workers/port.ts";
import type { ModuleTask, OpenPort, Port } from "../../workers/port.ts";
import type { DeviceName } from "../../runtime/open-options.ts";
import { localLinks } from "./link.ts";
import type { Connect } from "./link.ts";
import { RankServer } from "./server.ts";
import type { RankAnswer, RankFailure, RankRequest } from "./server.ts";
import type { ThreadAnswer, ThreadMessage } from "./thread.ts";

type ThreadTask = ModuleTask<ThreadMessage>;

/** Where the threads of ranks come from. */
export interface RankThreads {
  processors(): number;
  readonly openPort: OpenPort<ThreadTask, ThreadAnswer>;
}

export interface TeamOptions {
  readonly size: number;
  readonly device: DeviceName;
  /** Milliseconds that a call waits for the other ranks. */
  readonly timeout?: number | undefined;
  /** Whether ranks share the calling thread. */
  readonly inline?: boolean | undefined;
  /** Where threads come from; Node's or the browser's unless given. */
  readonly threads?: RankThreads | undefined;
}

/** Whoever answers for a rank. */
interface Host {
  ask(request: RankRequest): Promise<RankAnswer>;
  end(): void;
}

/** Written so that no bundler follows it: threads load it by its address. */
const ownAddress = import.meta.url;

function threadAddress(): string {
  return new URL(ownAddress.endsWith(".ts") ? "./thread.ts" : "./thread.js", ownAddress).href;
}

export class RankTeam {
  readonly size: number;
  /** The ranks of this process. */
  readonly ranks: readonly number[];
  /** Whether they have threads of their own. */
  readonly isThreaded: boolean;
  readonly #hosts: readonly Host[];

  private constructor(
    size: number,
    ranks: readonly number[],
    hosts: readonly Host[],
    isThreaded: boolean,
  ) {
    this.size = size;
    this.ranks = ranks;
    this.#hosts = hosts;
    this.isThreaded = isThreaded;
  }

  /** All ranks in this process. */
  static async open(options: TeamOptions): Promise<RankTeam> {
    const { size, device, timeout } = options;
    const ranks = Array.from({ length: size }, (_, rank) => rank);
    const threads = await threadsOf(options);
    const links = localLinks(size);
    const hosts =
      threads === undefined
        ? ranks.map((rank) => inlineHost(links(rank)))
        : threadHosts(threads, size);
    const team = new RankTeam(size, ranks, hosts, threads !== undefined);
    await team.each((rank) => ({ kind: "open", settings: { rank, size, timeout, device } }));
    return team;
  }

  /** One rank, whose others are linked by `connect`. */
  static async join(rank: number, connect: Connect, options: TeamOptions): Promise<RankTeam> {
    const { size, device, timeout } = options;
    const team = new RankTeam(size, [rank], [inlineHost(connect)], false);
    await team.all({ kind: "open", settings: { rank, size, timeout, device } });
    return team;
  }

  /** Asks all ranks of this process for the same. */
  all(request: RankRequest): Promise<readonly RankAnswer[]> {
    return this.each(() => request);
  }

  /** Asks each; rejects with what went wrong first in one of them, when all have ended. */
  async each(request: (rank: number) => RankRequest): Promise<readonly RankAnswer[]> {
    const answers = await Promise.all(
      this.#hosts.map((host, i) => host.ask(request(this.ranks[i] ?? 0))),
    );
    const failures = answers.flatMap((answer) =>
      answer.kind === "failed" ? [answer.failure] : [],
    );
    // Those that were stopped say by whom; that one says why.
    const [first] = failures;
    const origin = failures.find(({ code }) => code !== "TW9703") ?? first;
    if (origin !== undefined) throw errorOf(origin);
    return answers;
  }

  /** Asks one of the ranks of this process. */
  async ask(rank: number, request: RankRequest): Promise<RankAnswer> {
    const host = this.#hosts[this.ranks.indexOf(rank)];
    if (host === undefined) throw new Error(`rank ${rank} is in another process`);
    const answer = await host.ask(request);
    if (answer.kind === "failed") throw errorOf(answer.failure);
    return answer;
  }

  /** Ends all ranks of this process in good order, and their threads. */
  async close(): Promise<void> {
    try {
      await this.all({ kind: "close" });
    } finally {
      for (const host of this.#hosts) host.end();
    }
  }
}

function errorOf({ code, message, expected, found, position }: RankFailure): TilewrightError {
  return new TilewrightError({ code, message, expected, found, location: { position } });
}

async function threadsOf({ inline, threads }: TeamOptions): Promise<RankThreads | undefined> {
  if (inline === true || !canShareMemory()) return undefined;
  const host = threads ?? (await import("../../workers/node.ts"));
  return host.processors() > 1 ? host : undefined;
}

function inlineHost(connect: Connect): Host {
  const server = new RankServer(connect);
  return { ask: (request) => server.answer(request), end: () => undefined };
}

/** Threads, no more than there are processors, with ports between any two ranks. */
function threadHosts(threads: RankThreads, size: number): readonly Host[] {
  const ports = Array.from({ length: size }, () => new Array<readonly [number, MessagePort]>());
  for (let left = 0; left < size; left++)
    for (let right = left + 1; right < size; right++) {
      const { port1, port2 } = new MessageChannel();
      ports[left]?.push([right, port1]);
      ports[right]?.push([left, port2]);
    }
  const count = Math.min(size, threads.processors());
  const homes = Array.from({ length: count }, () => new RankThread(threads.openPort));
  return ports.flatMap((own, rank) => {
    const home = homes[rank % count];
    return home === undefined ? [] : [home.host(rank, own)];
  });
}

/** A thread with one rank or several. */
class RankThread {
  readonly #port: Port<ThreadTask>;
  readonly #waiting = new Map<number, (answer: RankAnswer) => void>();
  #asked = 0;
  #isOver = false;

  constructor(openPort: RankThreads["openPort"]) {
    this.#port = openPort({
      answered: ({ id, answer }) => {
        const waiting = this.#waiting.get(id);
        this.#waiting.delete(id);
        if (this.#waiting.size === 0) this.#port.hold(false);
        waiting?.(answer);
      },
      ended: () => {
        this.#isOver = true;
        for (const waiting of this.#waiting.values()) waiting(lost);
        this.#waiting.clear();
      },
    });
    this.#port.hold(false);
  }

  host(rank: number, own: readonly (readonly [number, MessagePort])[]): Host {
    let ports = own;
    return {
      ask: (request) => {
        const given = ports;
        ports = [];
        return this.#ask(rank, request, given);
      },
      end: () => {
        this.#port.end();
      },
    };
  }

  #ask(
    rank: number,
    request: RankRequest,
    ports: readonly (readonly [number, MessagePort])[],
  ): Promise<RankAnswer> {
    if (this.#isOver) return Promise.resolve(lost);
    return new Promise((resolve) => {
      const id = this.#asked++;
      this.#waiting.set(id, resolve);
      this.#port.hold(true);
      const message: ThreadMessage = { rank, id, request, ...(ports.length > 0 && { ports }) };
      this.#port.post(
        { task: "module", address: threadAddress(), message },
        ports.map(([, port]) => port),
      );
    });
  }
}

const lost: RankAnswer = {
  kind: "failed",
  failure: {
    code: "TW9703",
    message: "the thread of a rank has ended",
    expected: "threads that live until their ranks are closed",
    found: "one that died or was ended",
    position: undefined,
    stack: undefined,
  },
};
