/** Two program threads hand tiles over through a ring of two buffers, filled by TMA. */
import {
  tensor,
  barrier,
  commitShared,
  copyAsync,
  f32,
  fromNumbers,
  kernel,
  loop,
  slice,
  smem,
  when,
} from "tilewright";
import type { KernelDefinition } from "tilewright";
import { family } from "./family.ts";

const [tiles, slots, length] = [6, 2, 16];

type Mistake =
  | "no full wait"
  | "no empty wait"
  | "reads not committed"
  | "committed after the arrival"
  | "arrives before it reads"
  | "an arrival too many expected"
  | "waits before the first fill"
  | "barrier index runs on"
  | "buffer index runs on";

const make = (mistake?: Mistake): KernelDefinition => {
  const arrivals = mistake === "an arrival too many expected" ? 2 : 1;
  return kernel(
    {
      name: "handoff",
      threads: ["load", "compute"],
      inputs: { x: tensor(f32, [tiles * length]) },
      outputs: { out: tensor(f32, [tiles * length]) },
      scratch: {
        ring: smem(f32, [slots, length]),
        full: barrier({ count: slots, arrivals }), // <- barrier index runs on
        empty: barrier({ count: slots }),
      },
    },
    ({ x, out, ring, full, empty, load, compute }) => {
      const unfilled = mistake === "waits before the first fill" ? 0 : slots;
      load(() => {
        loop(tiles, (tile) => {
          const slot = tile.rem(slots);
          if (mistake !== "no empty wait")
            when(tile.ge(unfilled), () => {
              empty.at(slot).wait(); // <- waits
            });
          const source = x.at(slice(tile.mul(length), length));
          const target = ring.at(mistake === "buffer index runs on" ? tile : slot); // <- buffer index runs on
          const landed = full.at(mistake === "barrier index runs on" ? tile : slot);
          copyAsync(source, target, { barrier: landed }); // <- ring; waits; barrier index runs on; buffer index runs on
        });
      });
      compute(() => {
        loop(tiles, (tile) => {
          const slot = tile.rem(slots);
          const giveBack = (): void => {
            when(tile.lt(tiles - slots), () => {
              const late = mistake === "committed after the arrival";
              if (mistake !== "reads not committed" && !late) commitShared();
              empty.at(slot).arrive(); // <- waits
              if (late) commitShared();
            });
          };
          if (mistake !== "no full wait") full.at(slot).wait(); // <- waits
          if (mistake === "arrives before it reads") giveBack();
          const value = ring.at(slot).load(); // <- ring
          if (mistake !== "arrives before it reads") giveBack();
          out.at(slice(tile.mul(length), length)).store(value.maximum(0));
        });
      });
    },
  );
};

export const handoff = family<Mistake>({
  name: "handoff through a ring",
  url: import.meta.url,
  make,
  inputs: {
    x: fromNumbers(
      f32,
      [tiles * length],
      Array.from({ length: 96 }, (_, i) => i - 48),
    ),
  },
  mistakes: {
    "no full wait": {
      code: "TW3001",
      at: "ring",
      says: /wait (on the copy's barrier full before this load|for the copy)/,
    },
    "no empty wait": { code: "TW3001", at: "ring", says: /order the copy after it/ },
    "reads not committed": {
      code: "TW3001",
      at: "ring",
      says: /call commitShared\(\) in thread compute/,
    },
    "committed after the arrival": { code: "TW3001", at: "ring", says: /before what orders it/ },
    "arrives before it reads": { code: "TW3001", at: "ring", says: /not ordered/ },
    "an arrival too many expected": {
      code: "TW3011",
      at: "waits",
      says: /compute, iteration 0 waits for phase 0 of barrier full\[0\] .*1 of 2 arrivals so far\); arrived: thread load/,
    },
    "waits before the first fill": {
      code: "TW3011",
      at: "waits",
      says: /load, iteration 0 waits for phase 0 of barrier empty\[0\] .*0 of 1 arrivals so far\); nobody has arrived/,
    },
    "barrier index runs on": { code: "TW3006", says: /full\[2\]/ },
    "buffer index runs on": { code: "TW3005", says: /2/ },
  },
});
