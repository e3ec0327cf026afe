/** A tile is shifted by one through shared memory. The result looks right, most of the time. */
import { tensor, f32, kernel, slice, smem } from "tilewright";

const length = 128;

export const shift = kernel(
  {
    name: "shift",
    inputs: { x: tensor(f32, [length]) },
    outputs: { out: tensor(f32, [length]) },
    scratch: { buffer: smem(f32, [length + 1]) },
  },
  ({ x, out, buffer }) => {
    buffer.at(slice(1, length)).store(x.load());
    out.store(buffer.at(slice(0, length)).load());
  },
);
