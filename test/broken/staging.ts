/** Results leave through two staging buffers in turn, a group of copies each, and are read back. */
import {
  tensor,
  commitGroup,
  commitShared,
  copyAsync,
  f32,
  fromNumbers,
  gmem,
  kernel,
  loop,
  slice,
  smem,
  waitGroup,
} from "tilewright";
import type { KernelDefinition } from "tilewright";
import { family } from "./family.ts";

const [tiles, length] = [4, 16];

type Mistake =
  | "store not committed"
  | "committed before the store"
  | "no wait before the refill"
  | "waits for too few groups"
  | "group not closed"
  | "reads back while copies write"
  | "reads back without a wait";

const make = (mistake?: Mistake): KernelDefinition =>
  kernel(
    {
      name: "staging",
      inputs: { x: tensor(f32, [tiles * length]) },
      outputs: { out: tensor(f32, [tiles * length]) },
      scratch: { staging: smem(f32, [2, length]), result: gmem(f32, [tiles * length]) },
    },
    ({ x, out, staging, result }) => {
      loop(tiles, (tile) => {
        const window = slice(tile.mul(length), length);
        const buffer = staging.at(tile.rem(2));
        const unread = mistake === "waits for too few groups" ? 2 : 1;
        if (mistake !== "no wait before the refill") waitGroup(unread, { read: true });
        if (mistake === "committed before the store") commitShared();
        buffer.store(x.at(window).load().mul(2)); // <- buffer
        const early = mistake === "committed before the store";
        if (mistake !== "store not committed" && !early) commitShared();
        copyAsync(buffer, result.at(window)); // <- buffer; result
        if (mistake !== "group not closed") commitGroup();
      });
      if (mistake !== "reads back without a wait")
        waitGroup(0, { read: mistake === "reads back while copies write" });
      out.store(result.load()); // <- result
    },
  );

export const staging = family<Mistake>({
  name: "staged results",
  url: import.meta.url,
  make,
  inputs: {
    x: fromNumbers(
      f32,
      [tiles * length],
      Array.from({ length: 64 }, (_, i) => i),
    ),
  },
  mistakes: {
    "store not committed": { code: "TW3001", at: "buffer", says: /call commitShared\(\)/ },
    "committed before the store": { code: "TW3001", at: "buffer", says: /after its store/ },
    "no wait before the refill": { code: "TW3001", at: "buffer", says: /wait for the copy/ },
    "waits for too few groups": { code: "TW3001", at: "buffer", says: /wait for the copy/ },
    "group not closed": { code: "TW3001", at: "buffer", says: /wait for the copy/ },
    "reads back while copies write": {
      code: "TW3001",
      at: "result",
      says: /call waitGroup\(\) in thread main/,
    },
    "reads back without a wait": { code: "TW3001", at: "result" },
  },
});
