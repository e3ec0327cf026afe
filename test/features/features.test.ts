/** Each row of the table of features holds: its page shows it, simulator and emulator compute it, ptxas takes it, and mistakes are refused. */
import { fileURLToPath } from "node:url";
import { afterAll, describe, expect, test } from "vitest";
import { open, TilewrightError } from "tilewright";
import type { DeviceName } from "tilewright";
import { toNumbers } from "../../src/formats/hostarray.ts";
import type { HostArray } from "../../src/formats/hostarray.ts";
import { lower } from "../../src/lower/stages.ts";
import type { PtxModule } from "../../src/ptx/module.ts";
import { targets } from "../../src/targets/target.ts";
import type { TargetName } from "../../src/targets/target.ts";
import { runOn } from "../matrix/case.ts";
import { assembleNow, combineModules, hasPtxas } from "../ptxas.ts";
import type { FeatureCase } from "./feature.ts";
import { blocksOf, sectionOf } from "./headings.ts";
import { casesOf, features } from "./index.ts";

const here = fileURLToPath(new URL(".", import.meta.url));
const devices = new Map<string, ReturnType<typeof open>>();

function deviceOf(name: DeviceName, target: TargetName | undefined): ReturnType<typeof open> {
  const key = `${name} ${target ?? ""}`;
  const opened =
    devices.get(key) ?? open(name, { onNotes: () => undefined, ...(target && { target }) });
  devices.set(key, opened);
  return opened;
}

afterAll(async () => {
  for (const device of devices.values()) (await device).dispose();
});

function elementsOf(array: HostArray): readonly (number | bigint)[] {
  const { data } = array;
  if (data instanceof BigInt64Array || data instanceof BigUint64Array) return [...data];
  return [...toNumbers(array)];
}

/** The first elements that are not what is expected. */
async function differences(name: DeviceName, one: FeatureCase): Promise<readonly string[]> {
  const results = await runOn(await deviceOf(name, one.device), one.kernel(), one.inputs);
  expect(Object.keys(results).sort(), "every output is expected").toEqual(
    Object.keys(one.expected).sort(),
  );
  return Object.entries(one.expected).flatMap(([output, wanted]) => {
    const found = results[output] === undefined ? [] : elementsOf(results[output]);
    expect(found.length, output).toBe(wanted.length);
    return wanted.flatMap((value, index) => {
      const own = found[index];
      const isNear =
        typeof own === "number" &&
        typeof value === "number" &&
        Math.abs(own - value) <= (one.within ?? 0);
      return Object.is(own, value) || isNear
        ? []
        : [`${name}: ${output}[${index}] is ${own}, expected ${value}`];
    });
  });
}

describe.each(features)("$name", (feature) => {
  const { written, page, cases, refused } = feature;

  test("is shown on its page", () => {
    const [file = "", anchor = ""] = page.split("#");
    const section = sectionOf(file, anchor);
    expect(section, `docs/${page}`).toBeDefined();
    expect(written).not.toEqual([]);
    const blocks = blocksOf(section ?? "");
    for (const text of written)
      expect(
        blocks.some((block) => block.includes(text)),
        `a block of code of docs/${page} with ${text}`,
      ).toBe(true);
  });

  if (typeof cases === "function") {
    test("has kernels", () => {
      expect(cases()).not.toEqual([]);
    });
    test.each(cases())("$name", async (one) => {
      const found = [
        ...(await differences("simulator", one)),
        ...(await differences("emulator", one)),
      ];
      expect(found.slice(0, 8)).toEqual([]);
    });
  } else {
    test("says why it has no kernels", () => {
      expect(cases.none).toMatch(/\w+ \w+/);
    });
  }

  if ("none" in refused) {
    test("says why nothing is refused", () => {
      expect(refused.none).toMatch(/\w+ \w+/);
    });
  } else {
    test("refuses something", () => {
      expect(refused).not.toEqual([]);
    });
    test.each(refused)("$code on the line of the mistake", async ({ code, by }) => {
      const error = await Promise.resolve()
        .then(by)
        .then(
          () => undefined,
          (thrown: unknown) => thrown,
        );
      if (!(error instanceof TilewrightError)) throw new Error("it was accepted", { cause: error });
      expect(error.code, error.message).toBe(code);
      expect(error.position?.file).toContain(here);
      expect(error.remedy).toBeTruthy();
    });
  }
});

const byTarget = new Map<TargetName, (readonly [string, PtxModule])[]>();
for (const one of features.flatMap(casesOf))
  for (const name of one.targets ?? ["sm_90a" as const]) byTarget.set(name, []);

describe.skipIf(!hasPtxas)("ptxas (skipped where it is absent) takes the kernels for", () => {
  test.each([...byTarget.keys()])("%s", (name) => {
    const modules = features
      .flatMap(casesOf)
      .filter(({ targets: taken = ["sm_90a"] }) => taken.includes(name))
      .map(
        (one, index) =>
          [`kernel_${index}`, lower(one.kernel().kernel, targets[name]).module] as const,
      );
    expect(assembleNow(combineModules(modules), name)).not.toMatch(/error|fatal|warning/);
  });
});
