/**
 * Every function that the library exports, called with everything that it does not take: wrong kinds, nothing, NaN,
 * numbers that are too large, objects that refuse to be read. What each parameter takes is written down as its
 * documented type; everything else must be refused with a code, and nothing may end in an error without one.
 *
 *   zeros("f32", [8])            TW0007
 *   zeros(f32, proxy)            TW1008
 */
import { afterAll, describe, expect, test } from "vitest";
import * as library from "tilewright";
import * as arrays from "tilewright/arrays";
import * as benchmarks from "tilewright/bench";
import * as emulation from "tilewright/emulator";
import * as files from "tilewright/files";
import * as graph from "tilewright/graph";
import * as kernels from "tilewright/kernels";
import * as testing from "tilewright/testing";
import * as tuning from "tilewright/tune";
import { TilewrightError } from "tilewright";
import type { Junk, Parameter } from "./support/bad-calls/junk.ts";
import { junk } from "./support/bad-calls/junk.ts";
import { calls, outside } from "./support/bad-calls/calls.ts";
import { closeDevices } from "./support/bad-calls/surroundings.ts";

let count = 0;

async function verdict(work: () => unknown): Promise<string> {
  try {
    await work();
    return "accepted";
  } catch (error) {
    if (error instanceof TilewrightError) return "refused";
    const stack = error instanceof Error ? (error.stack ?? error.message) : "something thrown";
    return `uncoded ${stack.split("\n").slice(0, 2).join(" ")}`;
  }
}

/** The arguments with one of them replaced. */
function replaced(parameters: readonly Parameter[], at: number, item: unknown): unknown[] {
  return parameters.map(({ valid }, index) => (index === at ? item : valid()));
}

describe("calls with what they do not take", () => {
  test.each(calls)("$name", async ({ parameters, call }) => {
    const whole = await verdict(() => call(...parameters.map(({ valid }) => valid())));
    expect(whole).toBe("accepted");
    const wrong: string[] = [];
    for (const [at, { takes }] of parameters.entries())
      for (const [key, make] of Object.entries(junk)) {
        count += 1;
        const found = await verdict(() => call(...replaced(parameters, at, make())));
        const fine = takes.includes(key as Junk) ? ["accepted", "refused"] : ["refused"];
        if (!fine.includes(found)) wrong.push(`argument ${at} as ${key}: ${found}`);
      }
    expect(wrong).toEqual([]);
  });

  test("are thousands", () => {
    expect(count).toBeGreaterThan(12_000);
  });
});

/** The functions of an entry point by name, those of its namespaces too. */
function functionsOf(module: object): readonly (readonly [name: string, call: unknown])[] {
  return Object.entries(module).flatMap(([name, value]: [string, unknown]) => {
    if (typeof value === "function") return [[name, value] as const];
    if (typeof value !== "object" || value === null) return [];
    return Object.entries(value).flatMap(([inner, each]: [string, unknown]) =>
      typeof each === "function" ? [[`${name}.${inner}`, each] as const] : [],
    );
  });
}

test("every export is called", () => {
  const called = new Set<unknown>(calls.map(({ of }) => of));
  const named = new Set(
    calls.filter(({ of }) => of === undefined).map(({ name }) => name.replace(/[ .(].*$/, "")),
  );
  const modules = [library, emulation, testing, files, graph, arrays, benchmarks, kernels, tuning];
  const missing = modules.flatMap((module) =>
    functionsOf(module).filter(
      ([name, call]) => !called.has(call) && !named.has(name) && !outside.includes(name),
    ),
  );
  expect(missing.map(([name]) => name)).toEqual([]);
});

afterAll(closeDevices);
