/**
 * Time from `kernel(...)` to the first result of axpy in a fresh process, beyond opening the GPU. Run it
 * twice with an empty folder in TILEWRIGHT_CACHE and with CUDA_CACHE_DISABLE=1: cold, then warm.
 */
import { tensor, cdiv, f32, fromNumbers, kernel, open, slice, toNumbers } from "tilewright";

const count = 1 << 16;
const block = 1024;
const numbers = Array.from({ length: count }, (_, index) => index % 100);
const x = fromNumbers(f32, [count], numbers);

const opening = performance.now();
const device = await open("gpu");
const start = performance.now();
const axpy = kernel(
  {
    name: "axpy",
    grid: { i: cdiv(count, block) },
    inputs: { x: tensor(f32, [count]), y: tensor(f32, [count]) },
    outputs: { out: tensor(f32, [count]) },
  },
  ({ i, x: left, y: right, out }) => {
    const here = slice(i.mul(block), block);
    out.at(here).store(left.at(here).load().mul(2).add(right.at(here).load()));
  },
);
const { out } = await device.run(axpy, { x, y: x });
const end = performance.now();
const right = toNumbers(out).every((value, index) => value === 3 * (numbers[index] ?? NaN));
const [compilation] = device.compilations;
device.dispose();
process.stdout.write(
  `${right ? "right" : "WRONG"}: opened in ${(start - opening).toFixed(1)} ms, first result ${(end - start).toFixed(1)} ms later; ${compilation?.cached === true ? "compiled before" : "compiled now"} in ${compilation?.milliseconds.toFixed(1)} ms, ${compilation?.machineCode?.registers} registers\n`,
);
