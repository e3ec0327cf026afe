/**
 * A peer: another process that does the same work on the same GPU, and waits while we work. Requests and answers are
 * lines of JSON over pipes (`serve.py` has the protocol).
 *
 *   we        ▮▮▮          ▮▮▮
 *   PyTorch      ▮▮▮          ▮▮▮         one of them works at a time
 *   JAX             ▮▮▮          ▮▮▮
 */
import { spawn } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { createInterface } from "node:readline";
import type { SelfTimed } from "tilewright/bench";
import type { Task } from "../case.ts";

/** One way in which a peer does a task. */
export interface PeerLane {
  readonly name: string;
  /** How its launches were issued and timed. */
  readonly how: string;
  readonly timed: SelfTimed;
}

export interface PreparedPeer {
  readonly lanes: readonly PeerLane[];
  /** What it could not do, with the reason. */
  readonly refused: readonly string[];
}

export interface PeerCommand {
  /** What it is called where it does not start. */
  readonly name: string;
  readonly command: readonly string[];
}

type Answer = { readonly [name: string]: unknown };

/** Importing a framework and finding the GPU may take this long; so may compiling every configuration of a task. */
const startMilliseconds = 120_000;
const answerMilliseconds = 300_000;

export class Peer {
  readonly name: string;
  /** Its version, and what it calls the GPU. */
  readonly description: string;
  readonly #process: ChildProcess;
  readonly #answers: AsyncIterator<string>;

  private constructor(
    name: string,
    description: string,
    started: ChildProcess,
    answers: AsyncIterator<string>,
  ) {
    this.name = name;
    this.description = description;
    this.#process = started;
    this.#answers = answers;
  }

  /** Starts it, and waits until it has said which version it is. */
  static async start({ name, command }: PeerCommand): Promise<Peer> {
    const [program = "", ...args] = command;
    const child = spawn(program, args, { stdio: ["pipe", "pipe", "pipe"] });
    const complaints: string[] = [];
    createInterface({ input: child.stderr }).on("line", (line) => {
      complaints.push(line);
      if (complaints.length > 50) complaints.shift();
    });
    const failed = new Promise<never>((_, reject) => {
      child.once("error", reject);
    });
    failed.catch(() => undefined);
    child.stdin.on("error", () => undefined);
    const answers = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
    try {
      const hello = await Promise.race([nextAnswer(answers, startMilliseconds), failed]);
      const description = `${text(hello["peer"])} on ${text(hello["gpu"])}`;
      return new Peer(name, description, child, answers);
    } catch (error) {
      child.kill();
      const last = complaints.findLast((line) => line.trim() !== "");
      throw new Error(last ?? (error instanceof Error ? error.message : String(error)), {
        cause: error,
      });
    }
  }

  async prepare(task: object, sets: number, launches: number): Promise<PreparedPeer> {
    const { lanes, refused } = await this.#ask({ do: "prepare", task, sets, launches });
    if (!Array.isArray(lanes) || !Array.isArray(refused))
      throw new Error(`${this.name} does not keep to the protocol`);
    return {
      lanes: lanes.map((lane: Answer, index) => ({
        name: text(lane["name"]),
        how: text(lane["how"]),
        timed: { sample: () => this.#sample(index) },
      })),
      refused: refused.map(text),
    };
  }

  /** Has it compile what it needs for all of the tasks, where that takes it long. */
  async compile(tasks: readonly Task[]): Promise<void> {
    await this.#ask({ do: "compile", tasks });
  }

  /** Has it give its arrays back. */
  async forget(): Promise<void> {
    await this.#ask({ do: "forget" });
  }

  stop(): void {
    this.#process.stdin?.end();
    this.#process.kill();
  }

  async #sample(lane: number): Promise<number> {
    return (await this.#ask({ do: "sample", lane }))["milliseconds"] as number;
  }

  async #ask(request: object): Promise<Answer> {
    this.#process.stdin?.write(`${JSON.stringify(request)}\n`);
    const answer = await nextAnswer(this.#answers, answerMilliseconds);
    if (answer["error"] !== undefined) throw new Error(`${this.name}: ${text(answer["error"])}`);
    return answer;
  }
}

async function nextAnswer(answers: AsyncIterator<string>, within: number): Promise<Answer> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      reject(new Error(`no answer within ${within / 1000} s`));
    }, within);
  });
  try {
    const next = await Promise.race([answers.next(), late]);
    if (next.done === true) throw new Error("it ended");
    return JSON.parse(next.value) as Answer;
  } finally {
    clearTimeout(timer);
  }
}

function text(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}

/** All peers that start here; those that do not are reported with the reason. */
export async function startPeers(
  commands: readonly PeerCommand[],
  log: (line: string) => void,
): Promise<readonly Peer[]> {
  const started = await Promise.allSettled(commands.map((command) => Peer.start(command)));
  return started.flatMap((result, index) => {
    const name = commands[index]?.name ?? "";
    if (result.status === "fulfilled") {
      log(`peer ${name}: ${result.value.description}`);
      return [result.value];
    }
    const { reason } = result as { readonly reason: unknown };
    log(`peer ${name} is not here: ${reason instanceof Error ? reason.message : String(reason)}`);
    return [];
  });
}

/** Those peers that have compiled what the tasks need, at the same time and before anything is timed; others are stopped. */
export async function compiledPeers(
  peers: readonly Peer[],
  tasks: readonly Task[],
  log: (line: string) => void,
): Promise<readonly Peer[]> {
  const start = performance.now();
  const compiled = await Promise.allSettled(peers.map((peer) => peer.compile(tasks)));
  log(`peers compiled in ${((performance.now() - start) / 1000).toFixed(0)} s`);
  return peers.filter((peer, index) => {
    const found = compiled[index];
    if (found?.status !== "rejected") return true;
    // What it answers later would be taken for the answer to another request.
    peer.stop();
    log(`peer ${peer.name} is left out: ${String(found.reason)}`);
    return false;
  });
}
