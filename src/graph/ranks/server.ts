/**
 * What a rank does for whoever drives it: it holds a device, arrays by number and programs, and answers requests in their order. It may
 * live in a thread of its own or in the driver's: requests and answers are plain data.
 *
 *   { kind: "load", program: 0, text: "module …" }
 *   { kind: "run", program: 0, inputs: [{ element: "f32", … }, 7], outputs: [8] }     array 7 in, array 8 out
 *   { kind: "read", array: 8 }                                                        { element: "f32", … }
 */
import { fromElements, toElements } from "../../formats/hostarray.ts";
import type { DeviceArray } from "../../device/device-array.ts";
import type { Device } from "../../device/device.ts";
import { checksum } from "../../ptx/checksum.ts";
import { open } from "../../runtime/open.ts";
import type { DeviceName } from "../../runtime/open-options.ts";
import { TilewrightError } from "../../support/diagnostics.ts";
import type { Position } from "../../support/location.ts";
import { tensor } from "../evaluate/value.ts";
import type { MatmulPrecision } from "../ops/matmul-precision.ts";
import { sizeOf } from "../ops/types.ts";
import type { TensorType } from "../ops/types.ts";
import { compilePlan } from "../plan/compile.ts";
import type { Plan } from "../plan/plan.ts";
import { allocateFor } from "../plan/program.ts";
import { Replay } from "../plan/replay.ts";
import { parseGraph } from "../text/index.ts";
import { RankEndpoint } from "./endpoint.ts";
import type { Connect, SentFailure, SentTensor } from "./link.ts";
import { receivedTensor, sentTensor } from "./link.ts";
import { callText } from "./recorder.ts";

export interface RankSettings {
  readonly rank: number;
  readonly size: number;
  readonly timeout: number | undefined;
  readonly device: DeviceName;
}

export type RankRequest =
  | { readonly kind: "open"; readonly settings: RankSettings }
  | {
      readonly kind: "load";
      readonly program: number;
      readonly text: string;
      readonly file: string;
      readonly name: string;
      readonly donated: readonly number[];
      readonly matmulPrecision: MatmulPrecision;
    }
  | {
      readonly kind: "run";
      readonly program: number;
      /** Arrays by number, or data. */
      readonly inputs: readonly (number | SentTensor)[];
      /** The numbers that the results get. */
      readonly outputs: readonly number[];
      /** Numbers of inputs that are gone after the run. */
      readonly donated: readonly number[];
    }
  | { readonly kind: "put"; readonly array: number; readonly value: SentTensor }
  | { readonly kind: "read"; readonly array: number }
  | { readonly kind: "drop"; readonly arrays: readonly number[] }
  | { readonly kind: "record" }
  | { readonly kind: "close" };

export type RankAnswer =
  | { readonly kind: "done" }
  | { readonly kind: "tensor"; readonly value: SentTensor }
  | { readonly kind: "record"; readonly lines: readonly string[] }
  | { readonly kind: "failed"; readonly failure: RankFailure };

/** What went wrong in a rank. */
export interface RankFailure extends SentFailure {
  readonly position: Position | undefined;
  /** The whole report where it is none of the library's. */
  readonly stack: string | undefined;
}

interface Loaded {
  readonly plan: Plan;
  readonly replay: Replay;
}

/** An array of the device, or data that no program has asked for yet. */
interface Held {
  readonly type: TensorType;
  readonly array: DeviceArray;
}

const done: RankAnswer = { kind: "done" };

export class RankServer {
  readonly #connect: Connect;
  readonly #programs = new Map<number, Loaded>();
  readonly #arrays = new Map<number, Held>();
  #device: Device | undefined;
  #ranks: RankEndpoint | undefined;
  #last: Promise<unknown> = Promise.resolve();

  constructor(connect: Connect) {
    this.#connect = connect;
  }

  /** One request after the other. */
  answer(request: RankRequest): Promise<RankAnswer> {
    const answered = this.#last
      .then(() => this.#do(request))
      .catch((error: unknown) => {
        // Whoever waits for this rank must not wait any longer.
        this.#ranks?.abort(error);
        return { kind: "failed", failure: failureOf(error) } as const;
      });
    this.#last = answered;
    return answered;
  }

  get #opened(): { readonly device: Device; readonly ranks: RankEndpoint } {
    const [device, ranks] = [this.#device, this.#ranks];
    if (device === undefined || ranks === undefined) throw new Error("a rank is opened first");
    return { device, ranks };
  }

  async #do(request: RankRequest): Promise<RankAnswer> {
    switch (request.kind) {
      case "open": {
        const { rank, size, timeout, device } = request.settings;
        this.#ranks = new RankEndpoint({ rank, size, timeout, connect: this.#connect });
        this.#device = await open(device, device === "cpu" ? { threads: 1 } : {});
        return done;
      }
      case "load":
        return this.#load(request);
      case "run":
        return this.#run(request);
      case "put": {
        const value = receivedTensor(request.value);
        this.#arrays.set(request.array, await this.#uploaded(value));
        return done;
      }
      case "read": {
        const { type, array } = this.#array(request.array);
        const elements = toElements(await this.#opened.device.download(array));
        const data = sizeOf(type.shape) === 0 ? elements.slice(0, 0) : elements;
        return { kind: "tensor", value: sentTensor(tensor(type.element, type.shape, data)) };
      }
      case "drop":
        for (const number of request.arrays) this.#drop(number);
        return done;
      case "record": {
        const entries = this.#ranks?.flightRecord ?? [];
        const lines = entries.map(
          ({ call, begun, ended }) =>
            `${callText(call)}, ${ended === undefined ? "waiting" : `${(ended - begun).toFixed(1)} ms`}`,
        );
        return { kind: "record", lines };
      }
      case "close":
        this.#ranks?.close();
        for (const { replay } of this.#programs.values()) replay.dispose();
        for (const number of [...this.#arrays.keys()]) this.#drop(number);
        this.#programs.clear();
        this.#device?.dispose();
        return done;
    }
  }

  async #load({
    program,
    text,
    file,
    name,
    donated,
    matmulPrecision,
  }: Extract<RankRequest, { readonly kind: "load" }>): Promise<RankAnswer> {
    const { device, ranks } = this.#opened;
    // Before anything is compiled: other programs would meet at other calls, or never.
    await ranks.agree(`program @${name} ${checksum(`${text} ${donated.join()}`)}`);
    const [module] = parseGraph(text, file);
    if (module === undefined) throw new Error("a program is sent");
    const plan = compilePlan(module, name, donated, { matmulPrecision, target: device.target });
    this.#programs.set(program, {
      plan,
      replay: await Replay.load(device, plan, undefined, ranks),
    });
    return done;
  }

  async #run({
    program,
    inputs,
    outputs,
    donated,
  }: Extract<RankRequest, { readonly kind: "run" }>): Promise<RankAnswer> {
    const loaded = this.#programs.get(program);
    if (loaded === undefined) throw new Error("a program is loaded before it runs");
    const { plan, replay } = loaded;
    const given = inputs.map((input) =>
      typeof input === "number" ? this.#array(input).array : receivedTensor(input),
    );
    const results = await replay.run(given);
    const taken = new Set(replay.takenOver.map((place) => inputs[place]));
    for (const number of donated) {
      // What a result took over is the result's.
      if (taken.has(number)) this.#arrays.delete(number);
      else this.#drop(number);
    }
    for (const [i, array] of results.entries()) {
      const [number, type] = [outputs[i], plan.results[i]];
      if (number !== undefined && type !== undefined) this.#arrays.set(number, { type, array });
    }
    return done;
  }

  async #uploaded({ element, shape, data }: ReturnType<typeof receivedTensor>): Promise<Held> {
    const { device } = this.#opened;
    const type: TensorType = { kind: "tensor", element, shape };
    const array = allocateFor(device, type);
    if (data.length > 0) await device.write(array, fromElements(array.dtype, array.shape, data));
    return { type, array };
  }

  #array(number: number): Held {
    const found = this.#arrays.get(number);
    if (found === undefined) throw new Error(`a rank has no array ${number}`);
    return found;
  }

  #drop(number: number): void {
    this.#arrays.get(number)?.array.dispose();
    this.#arrays.delete(number);
  }
}

function failureOf(error: unknown): RankFailure {
  if (error instanceof TilewrightError) {
    const { code, summary: message, expected, found, position } = error;
    return { code, message, expected, found, position, stack: undefined };
  }
  const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
  return {
    code: "TW9703",
    message: "a rank failed",
    expected: "ranks that all go on to the end",
    found: text.split("\n")[0] ?? "",
    position: undefined,
    stack: text,
  };
}
