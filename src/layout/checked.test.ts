import { expect, test } from "vitest";
import { TilewrightError } from "../support/diagnostics.ts";
import { holders } from "./checked.ts";

test("an argument of another kind is named, with what it should be", () => {
  try {
    holders("wgmma" as never, [64, 8], 0);
    expect.fail("nothing was thrown");
  } catch (error) {
    if (!(error instanceof TilewrightError)) throw error;
    expect(error.code).toBe("TW6010");
    expect(error.message).toContain("argument 1 of holders");
  }
});
