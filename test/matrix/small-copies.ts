/**
 * Elements of 4 bits through shared memory and back, by boxes of bytes: windows that begin before the array, end behind it,
 * or lie within, in several stages; and those that begin within a byte, which lanes copy.
 */
import { f4e2m1fn, i4, u4 } from "../../src/formats/dtype.ts";
import {
  tensor,
  barrier,
  commitGroup,
  commitShared,
  copyAsync,
  kernel,
  loop,
  slice,
  smem,
  waitGroup,
} from "../../src/lang/index.ts";
import { exactCase } from "./case.ts";
import type { MatrixCase } from "./case.ts";
import { anyNumbers } from "./inputs.ts";

const [rows, columns] = [40, 192];
const [height, width] = [16, 64];

export function smallCopyCases(): readonly MatrixCase[] {
  return [i4, u4, f4e2m1fn].flatMap((dtype) =>
    [0, -64, 32, 3].map((shift) => {
      const x = anyNumbers(dtype, [rows, columns], 3 + shift);
      return exactCase(`copies of ${dtype.name} from ${shift}`, { x }, () =>
        kernel(
          {
            name: "small_copies",
            grid: { i: 3 },
            inputs: { x: tensor(dtype, [rows, columns]) },
            outputs: { out: tensor(dtype, [48, 256]), back: tensor(dtype, [48, 256]) },
            scratch: { buffer: smem(dtype, [2, height, width]), landed: barrier({ count: 2 }) },
          },
          ({ i, x: source, out, back, buffer, landed }) => {
            loop(4, (step) => {
              const slot = step.and(1);
              const down = slice(i.mul(height), height);
              const along = slice(step.mul(width).add(shift), width);
              copyAsync(source.at(down, along), buffer.at(slot), { barrier: landed.at(slot) });
              landed.at(slot).wait();
              const place = slice(step.mul(width), width);
              out.at(down, place).store(buffer.at(slot).load());
              commitShared();
              copyAsync(buffer.at(slot), back.at(down, place));
              commitGroup();
              waitGroup(0, { read: true });
            });
          },
        ),
      );
    }),
  );
}
