/** Two threads store a half each and read the other's: ordered by barriers, or by a sync of the block. */
import {
  tensor,
  barrier,
  blockSync,
  f32,
  fromNumbers,
  kernel,
  slice,
  smem,
  threadIndex,
  when,
} from "tilewright";
import type { KernelDefinition } from "tilewright";
import { family } from "./family.ts";

const half = 16;
const [lower, upper] = [slice(0, half), slice(half, half)];
const x = fromNumbers(
  f32,
  [2 * half],
  Array.from({ length: 2 * half }, (_, i) => i),
);

type BarrierMistake =
  | "both arrivals swapped"
  | "an arrival on the wrong barrier"
  | "both wait before they arrive"
  | "an arrival too many";

const makeWithBarriers = (mistake?: BarrierMistake): KernelDefinition =>
  kernel(
    {
      name: "exchange",
      threads: ["left", "right"],
      inputs: { x: tensor(f32, [2 * half]) },
      outputs: { out: tensor(f32, [2 * half]) },
      scratch: {
        shared: smem(f32, [2 * half]),
        leftDone: barrier({ arrivals: mistake === "an arrival too many" ? 2 : 1 }), // <- an arrival too many
        rightDone: barrier(),
      },
    },
    ({ x, out, shared, leftDone, rightDone, left, right }) => {
      const swapped = mistake === "both arrivals swapped";
      const early = mistake === "both wait before they arrive";
      left(() => {
        shared.at(lower).store(x.at(lower).load()); // <- swapped
        if (early) rightDone.wait(); // <- both wait before they arrive
        (swapped ? rightDone : leftDone).arrive(); // <- both wait before they arrive
        if (mistake === "an arrival too many") {
          leftDone.arrive();
          leftDone.arrive(); // <- an arrival too many
        }
        if (!early) rightDone.wait(); // <- an arrival on the wrong barrier
        out.at(upper).store(shared.at(upper).load());
      });
      right(() => {
        shared.at(upper).store(x.at(upper).load());
        if (early) leftDone.wait(); // <- both wait before they arrive
        const wrong = swapped || mistake === "an arrival on the wrong barrier";
        (wrong ? leftDone : rightDone).arrive(); // <- both wait before they arrive
        if (!early) leftDone.wait();
        out.at(lower).store(shared.at(lower).load()); // <- swapped
      });
    },
  );

export const exchange = family<BarrierMistake>({
  name: "exchange by barriers",
  url: import.meta.url,
  make: makeWithBarriers,
  inputs: { x },
  mistakes: {
    "both arrivals swapped": { code: "TW3001", at: "swapped", says: /arrive on a barrier after/ },
    "an arrival on the wrong barrier": { code: "TW3011", says: /left waits for .*phase 0/ },
    "both wait before they arrive": {
      code: "TW3011",
      says: /phase 0 of .* \(0 of 1 arrivals so far\); nobody has arrived/,
    },
    "an arrival too many": { code: "TW3008", says: /1 when its block ended/ },
  },
});

type SyncMistake = "no blockSync" | "a thread misses blockSync";

const makeWithSync = (mistake?: SyncMistake): KernelDefinition =>
  kernel(
    {
      name: "exchange",
      threads: ["left", "right"],
      inputs: { x: tensor(f32, [2 * half]) },
      outputs: { out: tensor(f32, [2 * half]) },
      scratch: { shared: smem(f32, [2 * half]) },
    },
    ({ x, out, shared, left, right }) => {
      left(() => {
        shared.at(lower).store(x.at(lower).load()); // <- no blockSync
      });
      right(() => {
        shared.at(upper).store(x.at(upper).load());
      });
      if (mistake === "a thread misses blockSync")
        when(threadIndex().eq(0), () => {
          blockSync(); // <- a thread misses blockSync
        });
      else if (mistake !== "no blockSync") blockSync();
      left(() => {
        out.at(upper).store(shared.at(upper).load());
      });
      right(() => {
        out.at(lower).store(shared.at(lower).load()); // <- no blockSync
      });
    },
  );

export const meeting = family<SyncMistake>({
  name: "exchange by blockSync",
  url: import.meta.url,
  make: makeWithSync,
  inputs: { x },
  mistakes: {
    "no blockSync": { code: "TW3001", says: /not ordered/ },
    "a thread misses blockSync": {
      code: "TW3011",
      says: /\(1 of 2 so far\); arrived: thread left/,
    },
  },
});
