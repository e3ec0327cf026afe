/**
 * Time in which the driver starts and opens a context of the first GPU in a fresh process, and nothing else happens: no program can
 * be sooner. `first-product.ts` and `first-result.ts` are told beyond it.
 *
 *   node dist/cli/main.js run bench/gpu/bare-context.ts
 */
import { processDriver } from "../../src/cuda/open.ts";

const driver = await processDriver();
const memory = driver.allocateHost(16);
const begun = performance.now();
const started = await driver.callAside("cuInit", 0);
const opening = performance.now();
const found = driver.calls.cuDeviceGet(memory.address, 0);
const device = new DataView(memory.bytes.buffer, memory.bytes.byteOffset).getInt32(0, true);
const opened = await driver.callAside("cuDevicePrimaryCtxRetain", memory.address + 8, device);
const end = performance.now();
for (const answer of [started, found, opened])
  if (answer !== 0) throw new Error(`the driver answered ${answer}`);
driver.calls.cuDevicePrimaryCtxRelease(device);
driver.freeHost(memory);
process.stdout.write(
  `${(end - begun).toFixed(1)} ms: the driver started in ${(opening - begun).toFixed(1)}, the context was opened in ${(end - opening).toFixed(1)}\n`,
);
