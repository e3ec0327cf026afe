/** Ranks in a thread: a server each, linked to the other ranks by the message ports that come with its first message. */
import type { Connect, RankMessage } from "./link.ts";
import { RankServer } from "./server.ts";
import type { RankAnswer, RankRequest } from "./server.ts";

/** What the thread of a rank is sent. */
export interface ThreadMessage {
  readonly rank: number;
  /** The answer has it, too. */
  readonly id: number;
  readonly request: RankRequest;
  /** To each of the other ranks, by their numbers; with the first message. */
  readonly ports?: readonly (readonly [rank: number, port: MessagePort])[];
}

export interface ThreadAnswer {
  readonly id: number;
  readonly answer: RankAnswer;
}

/** Links over ports; what they carry lies in shared memory and is not copied. */
function portLinks(ports: ReadonlyMap<number, MessagePort>): Connect {
  return (peer, { received, ended }) => {
    const port = ports.get(peer);
    if (port === undefined) throw new Error(`no port to rank ${peer}`);
    port.addEventListener("message", ({ data }: MessageEvent<RankMessage>) => {
      received(data);
    });
    port.addEventListener("close", ended);
    port.start();
    return {
      post: (message) => {
        port.postMessage(message);
      },
      close: () => {
        port.close();
      },
    };
  };
}

const servers = new Map<number, RankServer>();

export async function serve({
  rank,
  id,
  request,
  ports = [],
}: ThreadMessage): Promise<ThreadAnswer> {
  const server = servers.get(rank) ?? new RankServer(portLinks(new Map(ports)));
  servers.set(rank, server);
  return { id, answer: await server.answer(request) };
}
