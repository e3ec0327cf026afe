/**
 * Links between ranks: messages there and back, in order, nothing lost while both live. Threads are linked by message ports over shared
 * memory, processes by sockets (`#rank-links`), ranks of one thread directly.
 */
import type { DiagnosticCode } from "../../support/diagnostics.ts";
import { canShareMemory } from "../../workers/port.ts";
import { tensor } from "../evaluate/value.ts";
import type { Tensor } from "../evaluate/value.ts";
import { elementConstructor } from "../ops/index.ts";
import type { ElementType } from "../ops/index.ts";

/** A tensor on its way. */
export interface SentTensor {
  readonly element: ElementType;
  readonly shape: readonly number[];
  readonly bytes: Uint8Array;
}

/** Which call of a rank something belongs to, as reports and checks need it. */
export interface CallNote {
  /** The ranks of its group, in order. */
  readonly group: readonly number[];
  /** How many calls this group has had before. */
  readonly sequence: number;
  /** The collective and the types of its operands: equal in all ranks of the group. */
  readonly text: string;
  /** The user's line. */
  readonly line: string;
}

/** What a rank is at, as it answers others that wait for it. */
export interface RankState {
  readonly rank: number;
  /** The call that it waits in. */
  readonly waiting: CallNote | undefined;
  /** The last call that it has ended. */
  readonly last: CallNote | undefined;
  /** Milliseconds since that began, or ended. */
  readonly since: number;
}

/** A failure as it travels: what a report is made of. */
export interface SentFailure {
  readonly code: DiagnosticCode;
  readonly message: string;
  readonly expected: string;
  readonly found: string;
}

export type RankMessage =
  | {
      readonly kind: "part";
      readonly call: CallNote;
      readonly round: number;
      readonly values: readonly SentTensor[];
    }
  | { readonly kind: "ask" }
  | { readonly kind: "state"; readonly state: RankState }
  | { readonly kind: "abort"; readonly failure: SentFailure }
  /** The rank has ended in good order. */
  | { readonly kind: "leave" };

export interface LinkEvents {
  readonly received: (message: RankMessage) => void;
  /** Nothing will come any more. */
  readonly ended: () => void;
}

export interface Link {
  post(message: RankMessage): void;
  close(): void;
}

/** Opens the link to another rank. */
export type Connect = (peer: number, events: LinkEvents) => Link;

/** The links of so many ranks that live in one thread; what comes before a rank is there waits for it. */
export function localLinks(size: number): (rank: number) => Connect {
  const events = new Map<string, LinkEvents>();
  const early = new Map<string, ((to: LinkEvents) => void)[]>();
  const tell = (key: string, message: (to: LinkEvents) => void): void => {
    queueMicrotask(() => {
      const to = events.get(key);
      if (to !== undefined) message(to);
      else early.set(key, [...(early.get(key) ?? []), message]);
    });
  };
  return (rank) => (peer, own) => {
    if (rank < 0 || rank >= size) throw new Error(`no rank ${rank}`);
    const [here, there] = [`${peer} ${rank}`, `${rank} ${peer}`];
    events.set(here, own);
    for (const message of early.get(here) ?? [])
      queueMicrotask(() => {
        message(own);
      });
    early.delete(here);
    return {
      post: (message) => {
        tell(there, (to) => {
          to.received(message);
        });
      },
      close: () => {
        tell(there, (to) => {
          to.ended();
        });
      },
    };
  };
}

/** A copy, in memory that all threads see: what a caller does with its own after the call is its own. */
export function sentTensor({ element, shape, data }: Tensor): SentTensor {
  const { byteLength } = data;
  const bytes = new Uint8Array(
    canShareMemory() ? new SharedArrayBuffer(byteLength) : new ArrayBuffer(byteLength),
  );
  bytes.set(new Uint8Array(data.buffer, data.byteOffset, byteLength));
  return { element, shape, bytes };
}

export function receivedTensor({ element, shape, bytes }: SentTensor): Tensor {
  const Data = elementConstructor(element);
  const size = Data.BYTES_PER_ELEMENT;
  const aligned = bytes.byteOffset % size === 0 ? bytes : bytes.slice();
  return tensor(
    element,
    shape,
    new Data(aligned.buffer, aligned.byteOffset, aligned.byteLength / size),
  );
}
