/** The two blocks of a cluster read each other's shared memory, hand tiles over, and share copies. */
import {
  tensor,
  barrier,
  clusterRank,
  clusterSync,
  commitShared,
  copyAsync,
  f32,
  fromNumbers,
  kernel,
  loop,
  smem,
  when,
} from "tilewright";
import type { KernelDefinition } from "tilewright";
import { family } from "./family.ts";

const length = 16;
const grid = { grid: { i: 2 }, cluster: { i: 2 } } as const;
const pair = fromNumbers(
  f32,
  [2, length],
  Array.from({ length: 2 * length }, (_, i) => i),
);

type ReadMistake = "peer read too early" | "exit while a peer reads" | "no such peer";

const makeRead = (mistake?: ReadMistake): KernelDefinition =>
  // <- exit while a peer reads
  kernel(
    {
      name: "peers",
      ...grid,
      inputs: { x: tensor(f32, [2, length]) },
      outputs: { out: tensor(f32, [2, length]) },
      scratch: { mine: smem(f32, [length]) },
    },
    ({ i, x, out, mine }) => {
      const rank = clusterRank("i");
      mine.store(x.at(i).load()); // <- peer read too early
      if (mistake !== "peer read too early") clusterSync();
      const other = mistake === "no such peer" ? rank.add(1) : rank.xor(1);
      const theirs = mine.peer(other); // <- no such peer
      out.at(i).store(theirs.load()); // <- no such peer; peer read too early; exit while a peer reads
      if (mistake !== "exit while a peer reads") clusterSync();
    },
  );

export const peers = family<ReadMistake>({
  name: "peers' shared memory",
  url: import.meta.url,
  make: makeRead,
  inputs: { x: pair },
  mistakes: {
    "peer read too early": { code: "TW3001" },
    "exit while a peer reads": { code: "TW3010", says: /end with clusterSync\(\)/ },
    "no such peer": { code: "TW3019", says: /rank 2/ },
  },
});

type SendMistake = "no remote arrival" | "arrival on its own barrier" | "arrival before the store";

const makeSend = (mistake?: SendMistake): KernelDefinition =>
  kernel(
    {
      name: "mailbox",
      ...grid,
      inputs: { x: tensor(f32, [2, length]) },
      outputs: { out: tensor(f32, [2, length]) },
      scratch: { inbox: smem(f32, [length]), arrived: barrier() },
    },
    ({ i, x, out, inbox, arrived }) => {
      const peer = clusterRank("i").xor(1);
      if (mistake === "arrival before the store") arrived.arrive({ peer });
      inbox.peer(peer).store(x.at(i).load()); // <- mail
      if (mistake === undefined) arrived.arrive({ peer });
      if (mistake === "arrival on its own barrier") arrived.arrive();
      arrived.wait(); // <- no remote arrival
      out.at(i).store(inbox.load()); // <- mail
      clusterSync();
    },
  );

export const mailbox = family<SendMistake>({
  name: "stores into a peer's shared memory",
  url: import.meta.url,
  make: makeSend,
  inputs: { x: pair },
  mistakes: {
    "no remote arrival": {
      code: "TW3011",
      says: /block \(i = 1\) waits for phase 0 of barrier arrived/,
    },
    "arrival on its own barrier": { code: "TW3001", at: "mail" },
    "arrival before the store": { code: "TW3001", at: "mail" },
  },
});

type MulticastMistake =
  | "a peer does not wait"
  | "a peer still reads"
  | "a peer's reads not committed";

const rounds = 3;

const makeMulticast = (mistake?: MulticastMistake): KernelDefinition =>
  kernel(
    {
      name: "multicast",
      ...grid,
      inputs: { x: tensor(f32, [rounds, length]) },
      outputs: { out: tensor(f32, [2, rounds, length]) },
      scratch: { tile: smem(f32, [length]), landed: barrier() },
    },
    ({ i, x, out, tile, landed }) => {
      const rank = clusterRank("i");
      loop(mistake === "a peer does not wait" ? 1 : rounds, (round) => {
        when(rank.eq(0), () => {
          copyAsync(x.at(round), tile, { barrier: landed, multicast: ["i"] }); // <- multicast; a peer does not wait
        });
        const receive = (): void => {
          landed.wait();
          out.at(i, round).store(tile.load()); // <- multicast
        };
        if (mistake === "a peer does not wait") when(rank.eq(0), receive);
        else receive();
        if (mistake !== "a peer's reads not committed") commitShared();
        if (mistake !== "a peer still reads") clusterSync();
      });
    },
  );

export const multicast = family<MulticastMistake>({
  name: "multicast copies",
  url: import.meta.url,
  make: makeMulticast,
  inputs: { x: fromNumbers(f32, [rounds, length], new Float64Array(rounds * length).fill(1)) },
  mistakes: {
    "a peer does not wait": { code: "TW3009", says: /is not awaited/ },
    "a peer still reads": { code: "TW3001", at: "multicast" },
    "a peer's reads not committed": {
      code: "TW3001",
      at: "multicast",
      says: /call commitShared\(\)/,
    },
  },
});
