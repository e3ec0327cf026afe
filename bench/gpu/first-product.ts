/**
 * Time from `open("gpu")` to the first result of a product of 4096³ in a fresh process, and the part of it from `matmul(...)` on. Of
 * the first, what the driver takes for a context (`bare-context.ts`) is nobody's to save. Run it twice with an empty folder in
 * TILEWRIGHT_CACHE and with CUDA_CACHE_DISABLE=1: cold, then warm.
 *
 *   node dist/cli/main.js run bench/gpu/first-product.ts
 */
import { bf16, open } from "tilewright";
import { matmul } from "tilewright/kernels";

const size = 4096;
const opening = performance.now();
const device = await open("gpu");
// Memory is there before the clock starts: what is in it does not matter.
const [a, b, out] = [0, 1, 2].map(() => device.allocate(bf16, [size, size]));
if (a === undefined || b === undefined || out === undefined) throw new Error("three arrays");
for (const each of [a, b]) await device.fill(each, 1);
await device.synchronize();
const start = performance.now();
device.launch(matmul({ a: bf16, b: bf16 }), { a, b, out });
await device.synchronize();
const end = performance.now();
const compilations = device.compilations
  .slice(-1)
  .map(
    ({ cached, milliseconds }) =>
      `${cached ? "compiled before" : "compiled now"} in ${milliseconds.toFixed(1)} ms`,
  );
for (const each of [a, b, out]) each.dispose();
device.dispose();
process.stdout.write(
  `opened and filled in ${(start - opening).toFixed(1)} ms, first product ${(end - start).toFixed(1)} ms later, ${(end - opening).toFixed(1)} ms in all; ${compilations.join()}\n`,
);
