/** A ring of buffers again: this time nobody is in a hurry. On a GPU this kernel would hang. */
import {
  tensor,
  barrier,
  commitShared,
  copyAsync,
  f32,
  kernel,
  loop,
  slice,
  smem,
} from "tilewright";

const [tiles, slots, length] = [8, 2, 256];

export const handoff = kernel(
  {
    name: "handoff",
    threads: ["load", "compute"],
    inputs: { x: tensor(f32, [tiles * length]) },
    outputs: { out: tensor(f32, [tiles * length]) },
    scratch: {
      ring: smem(f32, [slots, length]),
      full: barrier({ count: slots }),
      empty: barrier({ count: slots }),
    },
  },
  ({ x, out, ring, full, empty, load, compute }) => {
    load(() => {
      loop(tiles, (tile) => {
        const slot = tile.rem(slots);
        empty.at(slot).wait();
        const source = x.at(slice(tile.mul(length), length));
        copyAsync(source, ring.at(slot), { barrier: full.at(slot) });
      });
    });
    compute(() => {
      loop(tiles, (tile) => {
        const slot = tile.rem(slots);
        full.at(slot).wait();
        const value = ring.at(slot).load();
        commitShared();
        empty.at(slot).arrive();
        out.at(slice(tile.mul(length), length)).store(value.maximum(0));
      });
    });
  },
);
