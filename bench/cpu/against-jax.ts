/** Programs on the CPU device beside jax-js's WebAssembly back end, which has one thread in Node. */
import type { Device } from "tilewright";
import { array, jit, useDevice } from "tilewright/arrays";
import type { NDArray } from "tilewright/arrays";
import type { HostArray } from "tilewright";
import type * as Jax from "@jax-js/jax";
import { programs } from "./programs.ts";
import type { CpuProgram } from "./programs.ts";
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

async function ourRunner(program: CpuProgram, name: string, device: Device): Promise<Runner> {
  const f = jit(program.ours);
  const given = program.arguments.map((each, i): NDArray =>
    array(hostOf(each, i + 1) as HostArray<"f32">),
  );
  const run = async (): Promise<number> => {
    // The queue of the device before is empty: switching costs nothing that is timed.
    await useDevice(device);
    return timed(async () => {
      const result = f(...given);
      await result.blockUntilReady();
      result.dispose();
    });
  };
  return { name, first: await run(), run };
}

async function jaxRunner(program: CpuProgram, jax: typeof Jax): Promise<Runner | undefined> {
  if (program.jax === undefined) return undefined;
  const { numpy: np, jit: compile, blockUntilReady } = jax;
  const own = program.jax(jax);
  const f = compile((all: Jax.numpy.Array[]): Jax.numpy.Array => own(...all));
  const given = program.arguments.map((each, i) =>
    np.array(elementsOf(each, i + 1)).reshape([...each.shape]),
  );
  const run = (): Promise<number> =>
    timed(async () => {
      const result = f(given.map((each) => each.ref));
      await blockUntilReady(result);
      result.dispose();
    });
  return { name: "jax-js", first: await run(), run };
}

/** jax-js on one thread; undefined where it is not installed or this Node is too old for it. */
async function loadJax(): Promise<typeof Jax | undefined> {
  return unlessItThrows("jax-js does not run here", async () => {
    const jax = await import("@jax-js/jax");
    await jax.init("wasm");
    jax.defaultDevice("wasm");
    return jax;
  });
}

async function measured(
  program: CpuProgram,
  devices: ReadonlyMap<string, Device>,
  jax: typeof Jax | undefined,
  rounds: number,
): Promise<CpuResult> {
  const runners: Runner[] = [];
  for (const [name, device] of devices) runners.push(await ourRunner(program, name, device));
  const theirs =
    jax && (await unlessItThrows(`jax-js, ${program.name}`, () => jaxRunner(program, jax)));
  if (theirs !== undefined) runners.push(theirs);
  const result = await inTurns(program.name, runners, rounds);
  return besideNumPy(result, numpyTime(program.numpy, program.arguments, rounds));
}

/** All programs, or those with a part in their names. */
export async function againstJax(
  devices: ReadonlyMap<string, Device>,
  rounds: number,
  only: string | undefined,
): Promise<readonly CpuResult[]> {
  const chosen = programs.filter(({ name }) => only === undefined || name.includes(only));
  const jax = chosen.length === 0 ? undefined : await loadJax();
  const results: CpuResult[] = [];
  for (const program of chosen) {
    const result = await unlessItThrows(program.name, () =>
      measured(program, devices, jax, rounds),
    );
    if (result !== undefined) results.push(result);
  }
  return results;
}
