import { describe, expect, test } from "vitest";
import { FakeDriver } from "../../../test/support/fake-driver/driver.ts";
import { targets } from "../../targets/target.ts";
import { Measurers } from "./measurer.ts";

const source = {
  name: "axpy",
  target: "sm_90a",
  ptx: ".version 8.0\n.target sm_90a\n.visible .entry axpy()\n{\nret; // (C7510) wgmma slow\n}",
};

describe("a report's measurer", () => {
  test("is the driver, where it has the target's GPU; it assembles anew each time", async () => {
    const driver = new FakeDriver();
    const measurers = new Measurers(driver, 1);
    const measurer = measurers.for(targets.sm_90a);
    expect(measurer?.name).toBe("the driver");
    for (let time = 0; time < 2; time += 1)
      expect(await measurer?.measure(source)).toMatchObject({
        registers: 40,
        warnings: [expect.stringContaining("(C7510)") as string],
      });
    measurers.dispose();
    expect(driver.live).toEqual({});
  });

  test("is not the driver for another GPU's code, nor without a GPU", () => {
    const driver = new FakeDriver();
    const measurers = new Measurers(driver, 1);
    expect(measurers.for(targets.sm_100a)?.name).not.toBe("the driver");
    measurers.dispose();
    const none = new Measurers(new FakeDriver({ gpus: [] }), 1);
    expect(none.for(targets.sm_90a)?.name).not.toBe("the driver");
    none.dispose();
  });
});
