/** What both devices say of a kernel, under several schedules: a code, or the numbers that it gives. */
import { expect } from "vitest";
import { open, TilewrightError, toNumbers } from "tilewright";
import type { HostArray, KernelDefinition, OpenOptions } from "tilewright";
import { takesAll } from "./sample.ts";

interface Verdict {
  readonly code: string | undefined;
  readonly message: string;
  readonly numbers: readonly number[];
}

const ways = [
  ["simulator", { schedule: "fixed" }],
  ["simulator", { schedule: "adversarial", seed: 2 }],
  ["emulator", { seed: 0 }],
  ["emulator", { seed: 1 }],
  ...(takesAll
    ? ([
        ["simulator", { schedule: "random", seed: 1 }],
        ["emulator", { seed: 2 }],
        ["emulator", { seed: 3 }],
      ] as const)
    : []),
] as const;

async function verdict(
  device: "simulator" | "emulator",
  options: OpenOptions,
  definition: KernelDefinition,
  inputs: { readonly [name: string]: HostArray },
): Promise<Verdict> {
  const opened = await open(device, options);
  try {
    const results: { readonly [name: string]: HostArray } = await opened.run(definition, inputs);
    const numbers = Object.values(results).flatMap((array) => [...toNumbers(array)].map(Number));
    return { code: undefined, message: "", numbers };
  } catch (error) {
    if (!(error instanceof TilewrightError)) throw error;
    return { code: error.code, message: error.message, numbers: [] };
  } finally {
    opened.dispose();
  }
}

/** What each device is to say: its code, and words that its report has. */
export interface Expected {
  readonly simulator: string;
  readonly emulator: string;
  readonly says?: RegExp;
}

/** Both devices find it, under every schedule. */
export async function expectFound(
  { says = /./, ...codes }: Expected,
  definition: KernelDefinition,
  inputs: { readonly [name: string]: HostArray } = {},
): Promise<void> {
  for (const [device, options] of ways) {
    const { code, message, numbers } = await verdict(device, options, definition, inputs);
    const way = `${device} ${JSON.stringify(options)}: ${message}${numbers.join(" ")}`;
    expect(code, way).toBe(codes[device]);
    if (device === "emulator") expect(message, way).toMatch(says);
  }
}

/** Both devices give the numbers, under every schedule. */
export async function expectClean(
  numbers: readonly number[],
  definition: KernelDefinition,
  inputs: { readonly [name: string]: HostArray } = {},
): Promise<void> {
  for (const [device, options] of ways) {
    const found = await verdict(device, options, definition, inputs);
    expect(found, `${device} ${JSON.stringify(options)}`).toEqual({
      code: undefined,
      message: "",
      numbers,
    });
  }
}
