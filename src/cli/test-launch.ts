/** A real launch, for `doctor`: a kernel with a tail, a scalar and a result that is known. */
import type { Device } from "../device/device.ts";
import { f32 } from "../formats/dtype.ts";
import { fromNumbers, toNumbers } from "../formats/hostarray.ts";
import { tensor, cdiv, dim, kernel, scalar, slice } from "../lang/index.ts";

const elements = 1000;
const block = 256;

/** Runs axpy and gives the milliseconds until its result was there; throws where that is wrong. */
export async function testLaunch(device: Device): Promise<number> {
  const n = dim("n");
  const axpy = kernel(
    {
      name: "axpy",
      grid: { i: cdiv(n, block) },
      inputs: { alpha: scalar(f32), x: tensor(f32, [n]), y: tensor(f32, [n]) },
      outputs: { out: tensor(f32, [n]) },
    },
    ({ i, alpha, x, y, out }) => {
      const here = slice(i.mul(block), block);
      out.at(here).store(x.at(here).load().mul(alpha).add(y.at(here).load()));
    },
  );
  const numbers = Array.from({ length: elements }, (_, index) => index);
  const x = fromNumbers(f32, [elements], numbers);
  const start = performance.now();
  const { out } = await device.run(axpy, { alpha: 2, x, y: x });
  const milliseconds = performance.now() - start;
  const wrong = toNumbers(out).findIndex((value, index) => value !== 3 * index);
  if (wrong >= 0) throw new Error(`element ${wrong} of axpy is ${toNumbers(out)[wrong] ?? NaN}`);
  return milliseconds;
}
