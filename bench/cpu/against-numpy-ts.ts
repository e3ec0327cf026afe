/**
 * Single operations on the CPU device beside numpy-ts's, TypeScript and WebAssembly on one thread. Small ones are called some times one after
 * the other and waited for once, as programs call them: the time is that of one.
 */
import type { Device, HostArray } from "tilewright";
import { array, jit, useDevice } from "tilewright/arrays";
import type { NDArray } from "tilewright/arrays";
import { counts, operations } from "./operations.ts";
import type { CpuOperation, NumPyModule } from "./operations.ts";
import {
  besideNumPy,
  elementsOf,
  hostOf,
  inTurns,
  numpyTime,
  timed,
  unlessItThrows,
} from "./turns.ts";
import type { CpuResult, Runner } from "./turns.ts";

/** Elements of calls that are waited for together. */
const batchElements = 1_000_000;

async function ourRunner(
  operation: CpuOperation,
  count: number,
  name: string,
  device: Device,
): Promise<Runner> {
  const f = jit(operation.ours);
  const [x, y] = operation
    .arguments(count)
    .map((each, i): NDArray => array(hostOf(each, i + 1) as HostArray<"f32">));
  if (x === undefined) throw new Error("an operation takes an array");
  const given = [x, y ?? x] as [NDArray<"f32">, NDArray];
  const calls = async (batch: number): Promise<number> => {
    await useDevice(device);
    const all = await timed(async () => {
      let last: NDArray | undefined;
      for (let call = 0; call < batch; call++) {
        last?.dispose();
        last = f(...given);
      }
      await last?.blockUntilReady();
      last?.dispose();
    });
    return all / batch;
  };
  return { name, first: await calls(1), run: () => calls(batchElements / count) };
}

async function loadNumpyTs(): Promise<NumPyModule> {
  const loaded: unknown = await import("numpy-ts");
  return loaded as NumPyModule;
}

/** A result that holds memory. */
interface Disposable {
  dispose(): void;
}

function isDisposable(value: unknown): value is Disposable {
  return typeof value === "object" && value !== null && "dispose" in value;
}

async function numpyTsRunner(
  operation: CpuOperation,
  count: number,
  np: NumPyModule,
): Promise<Runner> {
  const given = operation
    .arguments(count)
    .map((each, i) => ({ flat: np.array(elementsOf(each, i + 1)), shape: [...each.shape] }));
  const shaped = given.map(({ flat, shape }) => flat.reshape(shape));
  const [x, y] = shaped;
  if (x === undefined) throw new Error("an operation takes an array");
  const calls = async (batch: number): Promise<number> => {
    const all = await timed(async () => {
      for (let call = 0; call < batch; call++) {
        const result = operation.theirs(np, x, y ?? x);
        if (isDisposable(result)) result.dispose();
      }
    });
    return all / batch;
  };
  return {
    name: "numpy-ts",
    first: await calls(1),
    run: () => calls(batchElements / count),
    end: () => {
      for (const each of [...shaped, ...given.map(({ flat }) => flat)]) each.dispose();
    },
  };
}

async function measured(
  operation: CpuOperation,
  count: number,
  devices: ReadonlyMap<string, Device>,
  np: NumPyModule | undefined,
  rounds: number,
): Promise<CpuResult> {
  const name = `${operation.name}, ${count}`;
  const runners: Runner[] = [];
  for (const [own, device] of devices) runners.push(await ourRunner(operation, count, own, device));
  const theirs =
    np && (await unlessItThrows(`numpy-ts, ${name}`, () => numpyTsRunner(operation, count, np)));
  if (theirs !== undefined) runners.push(theirs);
  const result = await inTurns(name, runners, rounds);
  return besideNumPy(result, numpyTime(operation.numpy, operation.arguments(count), rounds));
}

/** All operations of all sizes, or those with a part in their names. */
export async function againstNumpyTs(
  devices: ReadonlyMap<string, Device>,
  rounds: number,
  only: string | undefined,
): Promise<readonly CpuResult[]> {
  const chosen = operations.filter(({ name }) => only === undefined || name.includes(only));
  const np =
    chosen.length === 0
      ? undefined
      : await unlessItThrows("numpy-ts does not run here", loadNumpyTs);
  const results: CpuResult[] = [];
  for (const count of counts)
    for (const operation of chosen) {
      const result = await unlessItThrows(operation.name, () =>
        measured(operation, count, devices, np, rounds),
      );
      if (result !== undefined) results.push(result);
    }
  return results;
}
