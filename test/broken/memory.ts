/** What is in memory and where it ends: windows, indices, unwritten bytes, unions, scopes, warps. */
import {
  tensor,
  assert,
  barrier,
  blockSync,
  commitGroup,
  commitShared,
  copyAsync,
  f32,
  fromNumbers,
  i32,
  kernel,
  scoped,
  slice,
  smem,
  union,
  waitGroup,
  warps,
} from "tilewright";
import type { KernelDefinition, Ref } from "tilewright";
import { family } from "./family.ts";

const length = 16;
const x = fromNumbers(
  f32,
  [2, length],
  Array.from({ length: 2 * length }, (_, i) => i),
);

type WindowMistake =
  | "window outside the buffer"
  | "index outside the array"
  | "part of the buffer unwritten"
  | "output read before it is written"
  | "assertion does not hold";

const makeWindows = (mistake?: WindowMistake): KernelDefinition =>
  kernel(
    {
      name: "windows",
      grid: { i: 2 },
      inputs: { x: tensor(f32, [2, length]) },
      outputs: { out: tensor(f32, [2, length]) },
      scratch: {
        buffer: smem(f32, [2 * length]), // <- part of the buffer unwritten
      },
    },
    ({ i, x, out, buffer }) => {
      assert(i.lt(mistake === "assertion does not hold" ? 1 : 2), "blocks come in pairs"); // <- assertion does not hold
      const start = i.mul(mistake === "window outside the buffer" ? length + 1 : length);
      const window = buffer.at(slice(start, length)); // <- window outside the buffer
      const row = mistake === "index outside the array" ? i.add(1) : i;
      const source = x.at(row); // <- index outside the array
      const tile = source.load(); // <- index outside the array
      if (mistake === "part of the buffer unwritten")
        buffer.at(slice(start, length / 2)).store(tile.slice([0], [length / 2]));
      else window.store(tile); // <- window outside the buffer
      const base = mistake === "output read before it is written" ? out.at(i).load() : 0; // <- output read before it is written
      out.at(i).store(window.load().add(base)); // <- part of the buffer unwritten
    },
  );

export const windows = family<WindowMistake>({
  name: "windows and contents",
  url: import.meta.url,
  make: makeWindows,
  inputs: { x },
  mistakes: {
    "window outside the buffer": { code: "TW3004", says: /17 to 32/ },
    "index outside the array": { code: "TW3005", says: /index 2 on axis 0/ },
    "part of the buffer unwritten": { code: "TW3002", says: /byte (32|96) read/ },
    "output read before it is written": { code: "TW3002", says: /nobody has written/ },
    "assertion does not hold": { code: "TW3012", says: /blocks come in pairs/ },
  },
});

type UnionMistake = "read through another member" | "member clobbered" | "members used at once";

const makeUnion = (mistake?: UnionMistake): KernelDefinition =>
  kernel(
    {
      name: "members",
      threads: ["left", "right"],
      inputs: { x: tensor(f32, [2, length]) },
      outputs: { out: tensor(f32, [length]), bits: tensor(i32, [length]) },
      scratch: { turns: union({ values: smem(f32, [length]) }, { codes: smem(i32, [length]) }) },
    },
    ({ x, out, bits, turns: { values, codes }, left, right }) => {
      left(() => {
        values.store(x.at(0).load()); // <- read through another member; members used at once
        if (mistake === "member clobbered") codes.store(x.at(1).load().bitcast(i32)); // <- member clobbered
        out.store(values.load()); // <- member clobbered
      });
      if (mistake !== "members used at once") blockSync();
      right(() => {
        if (mistake !== "read through another member") codes.store(x.at(1).load().bitcast(i32)); // <- members used at once
        bits.store(codes.load()); // <- read through another member
      });
    },
  );

export const unions = family<UnionMistake>({
  name: "members of a union",
  url: import.meta.url,
  make: makeUnion,
  inputs: { x },
  mistakes: {
    "read through another member": { code: "TW3003", says: /load of codes/ },
    "member clobbered": { code: "TW3003", says: /store through codes/ },
    "members used at once": { code: "TW3001" },
  },
});

type ScopeMistake = "a scope shared by mistake" | "a copy outlives its scope";

const makeScopes = (mistake?: ScopeMistake): KernelDefinition =>
  kernel(
    {
      name: "scopes",
      threads: ["left", "right"],
      inputs: { x: tensor(f32, [2, length]) },
      outputs: { out: tensor(f32, [2, length]) },
      scratch: { landed: barrier({ count: 2 }) },
    },
    ({ x, out, landed, left, right }) => {
      const work = (mine: Ref<"f32">, row: number): void => {
        copyAsync(x.at(row), mine, { barrier: landed.at(row) }); // <- a copy outlives its scope; a scope shared by mistake
        if (mistake === "a copy outlives its scope") return;
        landed.at(row).wait();
        mine.store(mine.load().add(1)); // <- a scope shared by mistake
        out.at(row).store(mine.load());
      };
      if (mistake === "a scope shared by mistake")
        scoped({ mine: smem(f32, [length]) }, ({ mine }) => {
          left(() => {
            work(mine, 0);
          });
          right(() => {
            work(mine, 1);
          });
        });
      else
        for (const [row, thread] of [left, right].entries())
          thread(() => {
            scoped({ mine: smem(f32, [length]) }, ({ mine }) => {
              work(mine, row);
            });
          });
    },
  );

export const scopes = family<ScopeMistake>({
  name: "scoped buffers",
  url: import.meta.url,
  make: makeScopes,
  inputs: { x },
  mistakes: {
    "a scope shared by mistake": { code: "TW3001" },
    "a copy outlives its scope": { code: "TW3009", says: /before its memory goes away/ },
  },
});

type SharedScopeMistake = "a scope private by mistake";

const makeSharedScope = (mistake?: SharedScopeMistake): KernelDefinition =>
  kernel(
    {
      name: "shared_scope",
      threads: ["left", "right"],
      inputs: { x: tensor(f32, [2, length]) },
      outputs: { out: tensor(f32, [length]) },
    },
    ({ x, out, left, right }) => {
      const send = (box: Ref<"f32">): void => box.store(x.at(0).load());
      const receive = (box: Ref<"f32">): void => out.store(box.load()); // <- a scope private by mistake
      if (mistake === undefined)
        scoped({ box: smem(f32, [length]) }, ({ box }) => {
          left(() => {
            send(box);
          });
          blockSync();
          right(() => {
            receive(box);
          });
        });
      else {
        left(() => {
          scoped({ box: smem(f32, [length]) }, ({ box }) => {
            send(box);
          });
        });
        blockSync();
        right(() => {
          const own = { box: smem(f32, [length]) }; // <- a scope private by mistake
          scoped(own, ({ box }) => {
            receive(box);
          });
        });
      }
    },
  );

export const sharedScope = family<SharedScopeMistake>({
  name: "a scope around both threads",
  url: import.meta.url,
  make: makeSharedScope,
  inputs: { x },
  mistakes: { "a scope private by mistake": { code: "TW3002", says: /thread right/ } },
});

type WarpMistake = "warps store to one row" | "a warp reads its neighbour" | "warps not committed";

const makeWarps = (mistake?: WarpMistake): KernelDefinition =>
  kernel(
    {
      name: "rows",
      outputs: { out: tensor(i32, [4, length]), copied: tensor(i32, [4, length]) },
      scratch: { rows: smem(i32, [4, length]) },
    },
    ({ out, copied, rows }) => {
      warps((warp) => {
        rows.at(mistake === "warps store to one row" ? warp.mul(0) : warp).store(warp); // <- stores; reads; warps not committed
        const read = mistake === "a warp reads its neighbour" ? warp.xor(1) : warp;
        if (mistake !== "warps store to one row") out.at(warp).store(rows.at(read).load()); // <- reads
      });
      if (mistake !== "warps not committed") commitShared();
      copyAsync(rows, copied); // <- warps not committed
      commitGroup();
      waitGroup();
    },
  );

export const rows = family<WarpMistake>({
  name: "warps",
  url: import.meta.url,
  make: makeWarps,
  inputs: {},
  mistakes: {
    "warps store to one row": { code: "TW3001", at: "stores", says: /warp [0-3]/ },
    "a warp reads its neighbour": { code: "TW3001", at: "reads", says: /warp [0-3]/ },
    "warps not committed": { code: "TW3001", says: /call commitShared\(\)/ },
  },
});
