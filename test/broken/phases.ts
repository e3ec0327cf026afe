/** One buffer goes back and forth between two threads, which follow the phases of two barriers. */
import { tensor, barrier, f32, fromNumbers, kernel, loop, smem, when } from "tilewright";
import type { KernelDefinition } from "tilewright";
import { family } from "./family.ts";

const [steps, length] = [4, 16];
const x = fromNumbers(f32, [steps, length], new Float64Array(steps * length).fill(3));

const spec = {
  name: "phases",
  threads: ["producer", "consumer"],
  inputs: { x: tensor(f32, [steps, length]) },
  outputs: { out: tensor(f32, [steps, length]) },
  scratch: {
    buffer: smem(f32, [length]),
    full: barrier(),
    empty: barrier(),
  },
} as const;

type CountedMistake = "two phases for one wait" | "no way back" | "only every other wait";

const makeCounted = (mistake?: CountedMistake): KernelDefinition =>
  kernel(spec, ({ x, out, buffer, full, empty, producer, consumer }) => {
    producer(() => {
      loop(steps, (step) => {
        if (mistake !== "no way back")
          when(step.gt(0), () => {
            empty.wait();
          });
        buffer.store(x.at(step).load()); // <- only every other wait
        if (mistake === "two phases for one wait") full.arrive();
        full.arrive(); // <- two phases for one wait; no way back
      });
    });
    consumer(() => {
      loop(steps, (step) => {
        if (mistake === "only every other wait")
          when(step.rem(2).eq(0), () => {
            full.wait();
          });
        else full.wait(); // <- two phases for one wait; no way back
        out.at(step).store(buffer.load()); // <- only every other wait
        when(step.lt(steps - 1), () => {
          empty.arrive();
        });
      });
    });
  });

export const phases = family<CountedMistake>({
  name: "phases followed by themselves",
  url: import.meta.url,
  make: makeCounted,
  inputs: { x },
  mistakes: {
    "two phases for one wait": { code: "TW3007", says: /can complete phase 1 before a wait for/ },
    "no way back": { code: "TW3007", says: /phase 1 before a wait for phase 0/ },
    "only every other wait": { code: "TW3001", says: /not ordered/ },
  },
});

type ParityMistake = "the producer's first parity is wrong";

const makeExplicit = (mistake?: ParityMistake): KernelDefinition =>
  kernel(spec, ({ x, out, buffer, full, empty, producer, consumer }) => {
    producer(() => {
      loop(steps, (step) => {
        // A wait for the parity of the phase before the first passes at once.
        const parity = step.add(mistake === undefined ? 1 : 0).rem(2);
        empty.wait({ parity }); // <- the producer's first parity is wrong
        buffer.store(x.at(step).load());
        full.arrive(); // <- the producer's first parity is wrong
      });
    });
    consumer(() => {
      loop(steps, (step) => {
        full.wait({ parity: step.rem(2) }); // <- the producer's first parity is wrong
        out.at(step).store(buffer.load());
        empty.arrive(); // <- the producer's first parity is wrong
      });
    });
  });

export const parities = family<ParityMistake>({
  name: "phases followed by parity",
  url: import.meta.url,
  make: makeExplicit,
  inputs: { x },
  mistakes: {
    "the producer's first parity is wrong": {
      code: "TW3011",
      says: /producer, iteration 0 waits for a phase of parity 0 of .*phase 0 runs, 0 of 1 arrivals so far/,
    },
  },
});
