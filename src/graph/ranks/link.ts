/**
 * Links between ranks: messages there and back, in order, nothing lost while both live. Threads are linked by message ports over shared
 * memory, processes by sockets (`#rank-links`), ranks of one thread directly.
 */
import type { DiagnosticCode } from "../../support/diagnostics.ts";
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

/** The links of so many ranks that live in one thread. */
export function localLinks(size: number): (rank: number) => Connect {
  const events = new Map<string, LinkEvents>();
  const key = (from: number, to: number): string => `${from} ${to}`;
  return (rank) => (peer, own) => {
    if (rank < 0 || rank >= size) throw new Error(`no rank ${rank}`);
    events.set(key(peer, rank), own);
    return {
      post: (message) => {
        queueMicrotask(() => events.get(key(rank, peer))?.received(message));
      },
      close: () => {
        const other = events.get(key(rank, peer));
        events.delete(key(peer, rank));
        queueMicrotask(() => other?.ended());
      },
    };
  };
}
