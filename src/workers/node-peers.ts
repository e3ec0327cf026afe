/**
 * Processes that find each other over sockets. Rank 0 listens where all know; each other one listens where it likes, tells rank 0, and is told
 * of all. From then on any two have a connection, over which frames of bytes go both ways, in order.
 *
 *   rank 2 ──hello, port──▶ rank 0 ──addresses of all──▶ rank 2 ──hello──▶ rank 1
 */
import { Buffer } from "node:buffer";
import { createServer, connect } from "node:net";
import type { Server, Socket } from "node:net";

import type { MeetingPlace, PeerEvents, Peers } from "./port.ts";

interface Hello {
  readonly rank: number;
  readonly port: number;
  readonly host: string;
}

const retryAfter = 50;

/** Frames of a socket: four bytes of length, and so many bytes. */
class Channel {
  readonly #socket: Socket;
  #pending: Buffer[] = [];
  #length = 0;
  readonly #early: Uint8Array[] = [];
  #events: PeerEvents | undefined;
  #isOver = false;

  constructor(socket: Socket) {
    this.#socket = socket;
    socket.setNoDelay(true);
    socket.on("data", (data: Buffer) => {
      this.#take(data);
    });
    socket.on("error", () => undefined);
    socket.on("close", () => {
      this.#isOver = true;
      this.#events?.ended();
    });
  }

  #take(data: Buffer): void {
    this.#pending.push(data);
    this.#length += data.length;
    for (;;) {
      if (this.#length < 4) return;
      const all =
        this.#pending.length === 1 ? (this.#pending[0] ?? data) : Buffer.concat(this.#pending);
      this.#pending = [all];
      const size = all.readUInt32LE(0);
      if (all.length < 4 + size) return;
      const frame = new Uint8Array(all.subarray(4, 4 + size));
      this.#pending = [all.subarray(4 + size)];
      this.#length -= 4 + size;
      if (this.#events === undefined) this.#early.push(frame);
      else this.#events.received(frame);
    }
  }

  listen(events: PeerEvents): void {
    this.#events = events;
    for (const frame of this.#early.splice(0)) events.received(frame);
    if (this.#isOver) events.ended();
  }

  /** The next frame alone. */
  next(): Promise<Uint8Array> {
    const early = this.#early.shift();
    if (early !== undefined) return Promise.resolve(early);
    return new Promise((resolve, reject) => {
      this.#events = {
        received: (frame) => {
          this.#events = undefined;
          resolve(frame);
        },
        ended: () => {
          reject(new Error("the connection ended"));
        },
      };
    });
  }

  post(parts: readonly Uint8Array[]): void {
    if (this.#isOver) return;
    const head = Buffer.alloc(4);
    head.writeUInt32LE(parts.reduce((sum, { byteLength }) => sum + byteLength, 0));
    this.#socket.cork();
    this.#socket.write(head);
    for (const part of parts) this.#socket.write(part);
    this.#socket.uncork();
  }

  close(): void {
    this.#socket.end();
  }

  get host(): string {
    return this.#socket.remoteAddress ?? "127.0.0.1";
  }
}

const encode = (value: unknown): Uint8Array => new TextEncoder().encode(JSON.stringify(value));

const decode = (frame: Uint8Array): Hello[] =>
  JSON.parse(new TextDecoder().decode(frame)) as Hello[];

function listening(host: string | undefined, port: number): Promise<Server> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once("error", reject);
    server.listen(port, host, () => {
      resolve(server);
    });
  });
}

async function connected(host: string, port: number, deadline: number): Promise<Channel> {
  for (;;) {
    const socket = connect(port, host);
    const isThere = await new Promise<boolean>((resolve) => {
      socket.once("connect", () => {
        resolve(true);
      });
      socket.once("error", () => {
        resolve(false);
      });
    });
    if (isThere) return new Channel(socket);
    if (performance.now() > deadline) throw new Error(`nobody answers at ${host}:${port}`);
    await new Promise((resolve) => setTimeout(resolve, retryAfter));
  }
}

/** Resolves when all ranks are there. */
export async function meetPeers({ rank, size, host, port, timeout }: MeetingPlace): Promise<Peers> {
  const deadline = performance.now() + timeout;
  const isLocal = host === "127.0.0.1" || host === "localhost" || host === "::1";
  const channels = new Map<number, Channel>();
  const server = await listening(isLocal ? host : undefined, rank === 0 ? port : 0);
  const hellos = new Map<number, Hello>();
  const came = new Promise<void>((resolve, reject) => {
    const timer = setTimeout(() => {
      const there = [...channels.keys()].sort((left, right) => left - right).join(", ");
      reject(
        new Error(
          `of ${size} ranks only ${rank}${there === "" ? "" : `, ${there}`} came within ${timeout / 1000} s`,
        ),
      );
    }, timeout);
    const expected = size - 1 - rank;
    const look = (): void => {
      if (hellos.size < expected) return;
      clearTimeout(timer);
      resolve();
    };
    server.on("connection", (socket) => {
      const channel = new Channel(socket);
      void channel
        .next()
        .then((frame) => {
          const [hello] = decode(frame);
          if (hello === undefined) return;
          channels.set(hello.rank, channel);
          hellos.set(hello.rank, { ...hello, host: channel.host });
          look();
        })
        .catch(() => undefined);
    });
    look();
  });
  try {
    const address = server.address();
    const own = typeof address === "object" ? (address?.port ?? 0) : 0;
    const hello = (): readonly Uint8Array[] => [encode([{ rank, port: own, host: "" }])];
    if (rank === 0) {
      await came;
      for (const channel of channels.values()) channel.post([encode([...hellos.values()])]);
    } else {
      const first = await connected(host, port, deadline);
      channels.set(0, first);
      first.post(hello());
      const all = decode(await first.next());
      for (const other of all) {
        if (other.rank >= rank) continue;
        const channel = await connected(other.host, other.port, deadline);
        channels.set(other.rank, channel);
        channel.post(hello());
      }
      await came;
    }
  } catch (error) {
    for (const channel of channels.values()) channel.close();
    throw error;
  } finally {
    server.close();
  }
  return {
    open: (peer, events) => {
      const channel = channels.get(peer);
      if (channel === undefined) throw new Error(`no connection to rank ${peer}`);
      channel.listen(events);
      return channel;
    },
    close: () => {
      for (const channel of channels.values()) channel.close();
    },
  };
}
