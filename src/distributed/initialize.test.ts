import { afterEach, expect, test } from "vitest";
import { framed, peerLinks, unframed } from "../graph/ranks/frames.ts";
import { RankEndpoint } from "../graph/ranks/endpoint.ts";
import { tensor } from "../graph/evaluate/value.ts";
import { meetPeers } from "../workers/node-peers.ts";
import type { RankMessage } from "../graph/ranks/link.ts";
import { array, jit, sum } from "tilewright/arrays";
import type { NDArray } from "tilewright/arrays";
import {
  initialize,
  makeMesh,
  P,
  processCount,
  processIndex,
  psum,
  shardMap,
  shutdown,
} from "./index.ts";

afterEach(shutdown);

let port = 20_000 + (process.pid % 20_000);
const place = (rank: number, size: number) => ({
  rank,
  size,
  host: "127.0.0.1",
  port,
  timeout: 5000,
});

test("messages are the same behind a socket", () => {
  const call = { group: [0, 1], sequence: 1, text: "all_reduce", line: "a.ts:1:1" };
  const bytes = Uint8Array.of(1, 2, 3, 4);
  const values = [
    { element: "f32", shape: [1], bytes },
    { element: "i1", shape: [0], bytes: new Uint8Array() },
  ] as const;
  const messages: readonly RankMessage[] = [
    { kind: "part", call, round: 1, values },
    { kind: "leave" },
  ];
  for (const message of messages) {
    const frame = new Uint8Array(framed(message).flatMap((part) => [...part]));
    expect(unframed(frame)).toEqual(message);
  }
});

test("ranks over sockets find each other, in any order, and sum", async () => {
  port += 1;
  const all = await Promise.all(
    [2, 0, 1].map(async (rank) => {
      const peers = await meetPeers(place(rank, 3));
      return new RankEndpoint({ rank, size: 3, connect: peerLinks(peers), timeout: 5000 });
    }),
  );
  const groups = [[0, 1, 2]];
  const results = await Promise.all(
    all.map((each) =>
      each.run({ collective: { kind: "all_reduce", reduction: "add" }, groups }, [
        tensor("f32", [20_000], new Float32Array(20_000).fill(each.rank + 1)),
      ]),
    ),
  );
  for (const [result] of results) expect([result?.data[0], result?.data.at(-1)]).toEqual([6, 6]);
  // One that goes is missed at once.
  const [first, second, third] = all;
  const waiting = first?.run({ collective: { kind: "all_gather", axis: 0 }, groups }, [
    tensor("f32", [1], Float32Array.of(1)),
  ]);
  third?.close();
  await expect(waiting).rejects.toThrow(/TW9703: rank 1 has ended/);
  first?.close();
  second?.close();
});

test("a process of one runs programs as any other", async () => {
  port += 1;
  await initialize({ coordinatorAddress: `127.0.0.1:${port}`, numProcesses: 1, processId: 0 });
  expect([processIndex(), processCount()]).toEqual([0, 1]);
  const mesh = makeMesh({ d: 1 });
  const total = jit(
    shardMap((x: NDArray<"f32">) => psum(sum(x), "d"), { mesh, inSpecs: [P("d")], outSpecs: P() }),
  );
  expect(await total(array([1, 2, 3])).values()).toBe(6);
  await expect(initialize({ numProcesses: 1, processId: 0 })).rejects.toThrow(
    /TW9711: initialize was called before/,
  );
});

test("what is missing is named", async () => {
  await expect(initialize()).rejects.toThrow(/TW9711: nobody says how many processes/);
  await expect(initialize({ numProcesses: 2, processId: 2 })).rejects.toThrow(
    /TW9711: nobody says which process[^]*0 … 1/,
  );
  await expect(initialize({ numProcesses: 2, processId: 1 })).rejects.toThrow(
    /TW9711: nobody says where rank 0/,
  );
  port += 1;
  const alone = initialize({
    coordinatorAddress: `127.0.0.1:${port}`,
    numProcesses: 2,
    processId: 0,
    initializationTimeout: 50,
  });
  await expect(alone).rejects.toThrow(/TW9711: rank 0 did not meet[^]*of 2 ranks only 0 came/);
});
