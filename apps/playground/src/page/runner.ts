/**
 * Runs programs in workers of the sandboxed frame. Every run has a worker of its own, so that nothing is left over from the
 * one before; the next one is started beforehand and warmed up, so that nobody waits for the library to load:
 *
 *   worker 1   run ───── finished   answers questions …   ended when run 2 begins
 *   worker 2                loads, warms up, waits        run ───── …
 *   worker 3                                                          loads, warms up, waits
 */
import type {
  Finding,
  FromWorker,
  Program,
  QuestionName,
  Questions,
  RunReport,
  Settings,
  ToWorker,
} from "../protocol.ts";
import { heardMessage, isAnswer, mostMessages } from "./heard.ts";
import { WorkerParts } from "./worker-parts.ts";
import type { PartFile } from "../parts.ts";

export interface RunEvents {
  readonly printed: (text: string) => void;
  readonly refused: (what: string) => void;
  readonly progress: (message: string) => void;
}

export type RunEnd =
  | { readonly kind: "finished"; readonly report: RunReport }
  | { readonly kind: "stopped" }
  | { readonly kind: "not loaded" }
  | { readonly kind: "timed out"; readonly seconds: number }
  | { readonly kind: "cut off"; readonly why: string };

/** A question that could not be answered, with why. */
export class Unanswered extends Error {
  readonly finding: Finding;

  constructor(finding: Finding) {
    super(finding.summary);
    this.finding = finding;
  }
}

interface Waiting {
  readonly name: QuestionName;
  readonly resolve: (answer: never) => void;
  readonly reject: (error: Error) => void;
}

class RemoteWorker {
  readonly id: number;
  readonly #port: MessagePort;
  readonly #questions = new Map<number, Waiting>();
  #asked = 0;
  #heard = 0;
  onMessage: (message: FromWorker) => void = () => undefined;
  /** Called when the worker says what no worker says, after which nothing of it is heard. */
  onNonsense: (why: string) => void = () => undefined;
  /** Called with a part of the code that the worker has need of. */
  onNeed: (part: string) => void = () => undefined;

  constructor(id: number, frame: Window, starter: Blob, files: readonly PartFile[]) {
    this.id = id;
    const { port1, port2 } = new MessageChannel();
    this.#port = port1;
    port1.onmessage = ({ data }: MessageEvent<unknown>) => {
      const message = heardMessage(data);
      if ((this.#heard += 1) > mostMessages) this.#refuse(`more than ${mostMessages} messages`);
      else if (message === undefined) this.#refuse("what is no message of a run");
      else this.#take(message);
    };
    frame.postMessage({ kind: "start", id, starter, files }, "*", [port2]);
  }

  post(message: ToWorker): void {
    this.#port.postMessage(message);
  }

  ask<N extends QuestionName>(name: N, asks: Questions[N]["asks"]): Promise<Questions[N]["gives"]> {
    const id = this.#asked++;
    return new Promise((resolve, reject) => {
      this.#questions.set(id, { name, resolve, reject });
      this.post({ kind: "ask", id, question: { name, ...asks } } as ToWorker);
    });
  }

  #refuse(why: string): void {
    const tell = this.onNonsense;
    this.close();
    tell(`The program sent ${why}, and was stopped.`);
  }

  close(): void {
    this.#port.close();
    this.onNonsense = () => undefined;
    this.onMessage = () => undefined;
    for (const { reject } of this.#questions.values()) reject(new Error("the program has ended"));
    this.#questions.clear();
  }

  #take(message: FromWorker): void {
    if (message.kind === "need") {
      this.onNeed(message.part);
      return;
    }
    if (message.kind !== "answered" && message.kind !== "failed") {
      this.onMessage(message);
      return;
    }
    const waiting = this.#questions.get(message.id);
    this.#questions.delete(message.id);
    if (message.kind === "failed") waiting?.reject(new Unanswered(message.finding));
    else if (waiting !== undefined && isAnswer(waiting.name, message.answer))
      waiting.resolve(message.answer as never);
    else waiting?.reject(new Error("the program answered something else"));
  }
}

export class Runner {
  readonly #parts = new WorkerParts();
  readonly #frame: Promise<Window>;
  #started = 0;
  #spare: Promise<RemoteWorker> | undefined;
  #current: RemoteWorker | undefined;
  #stop: (() => void) | undefined;

  constructor(frame: HTMLIFrameElement) {
    this.#frame = listening(frame);
    this.#spare = this.#start();
  }

  get isRunning(): boolean {
    return this.#stop !== undefined;
  }

  /** Runs a program to its end; what ran before is stopped and forgotten. */
  async run(
    program: Program,
    settings: Settings,
    seconds: number,
    events: RunEvents,
  ): Promise<RunEnd> {
    this.stop();
    await this.#end();
    const worker = await this.#take();
    if (worker === undefined) return { kind: "not loaded" };
    this.#current = worker;
    const end = await new Promise<RunEnd>((resolve) => {
      const timer = setTimeout(() => {
        resolve({ kind: "timed out", seconds });
      }, seconds * 1000);
      this.#stop = () => {
        clearTimeout(timer);
        resolve({ kind: "stopped" });
      };
      worker.onNonsense = (why) => {
        clearTimeout(timer);
        resolve({ kind: "cut off", why });
      };
      worker.onMessage = (message) => {
        if (message.kind === "printed") events.printed(message.text);
        else if (message.kind === "refused") events.refused(message.what);
        else if (message.kind === "progress") events.progress(message.message);
        else if (message.kind === "finished") {
          clearTimeout(timer);
          resolve({ kind: "finished", report: message.report });
        }
      };
      worker.post({ kind: "run", program, settings });
    });
    this.#stop = undefined;
    if (end.kind !== "finished" && this.#current === worker) await this.#end();
    this.#spare ??= this.#startWarm();
    return end;
  }

  /** Ends the running program, whatever it does. */
  stop(): void {
    this.#stop?.();
    this.#stop = undefined;
  }

  /** Asks the worker of the last run that finished. */
  ask<N extends QuestionName>(name: N, asks: Questions[N]["asks"]): Promise<Questions[N]["gives"]> {
    return this.#current?.ask(name, asks) ?? Promise.reject(new Error("nothing has run"));
  }

  /** Fetches the parts of the worker that no program has needed yet. */
  async fetchRest(): Promise<void> {
    await this.#parts.fetchRest();
  }

  /** The worker that waits, or a new one; undefined where its code could not be fetched. */
  async #take(): Promise<RemoteWorker | undefined> {
    const spare = this.#spare ?? this.#start();
    this.#spare = undefined;
    return spare.catch(() => undefined);
  }

  async #start(): Promise<RemoteWorker> {
    const { starter } = this.#parts;
    const [frame, start, files] = await Promise.all([this.#frame, starter, this.#parts.files()]);
    const worker = new RemoteWorker(this.#started++, frame, start, files);
    worker.onNeed = (part) => {
      const send = (found: readonly PartFile[] | undefined): void => {
        worker.post({ kind: "part", name: part, files: found });
      };
      this.#parts.files(part).then(send, () => {
        send(undefined);
      });
    };
    return worker;
  }

  async #startWarm(): Promise<RemoteWorker> {
    const worker = await this.#start();
    worker.post({ kind: "warm" });
    return worker;
  }

  async #end(): Promise<void> {
    const worker = this.#current;
    if (worker === undefined) return;
    this.#current = undefined;
    worker.close();
    (await this.#frame).postMessage({ kind: "end", id: worker.id }, "*");
  }
}

/** Milliseconds between two questions whether the frame is there. */
const helloInterval = 20;

/** Milliseconds after which a frame that does not answer is looked for among the kept files. */
const frameWait = 1500;

/**
 * A frame without origin tells nobody that it has loaded, so it is asked until it answers. Once the kept one is on its way,
 * an answer of the other one, which came late after all, counts no more: it will be gone.
 */
function listening(frame: HTMLIFrameElement): Promise<Window> {
  return new Promise((resolve) => {
    let wanted = "";
    const late = setTimeout(() => {
      wanted = useKeptFrame(frame);
    }, frameWait);
    const timer = setInterval(() => {
      frame.contentWindow?.postMessage({ kind: "hello" }, "*");
    }, helloInterval);
    addEventListener(
      "message",
      function listen({ source, data }: MessageEvent<{ readonly asked?: string }>) {
        if (source === null || source !== frame.contentWindow || data.asked !== wanted) return;
        removeEventListener("message", listen);
        clearInterval(timer);
        clearTimeout(late);
        resolve(frame.contentWindow);
      },
    );
  });
}

/**
 * Without a network, no service worker answers for a sandboxed frame. The kept file comes with a header that sandboxes it, and
 * listens only where that has taken its origin. Gives what is asked for besides the file: nothing where no file is kept.
 */
function useKeptFrame(frame: HTMLIFrameElement): string {
  const isKept = "serviceWorker" in navigator && navigator.serviceWorker.controller !== null;
  if (!isKept) return "";
  frame.removeAttribute("sandbox");
  frame.src = "sandbox.html?kept";
  return "?kept";
}
