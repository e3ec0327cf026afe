/** What stands in for `open.ts` in a browser, where there is no driver to open. */
import { TilewrightError } from "../support/diagnostics.ts";

export function openGpu(): Promise<never> {
  return Promise.reject(
    new TilewrightError({
      code: "TW4501",
      message: "a browser has no NVIDIA driver",
      expected: "Node on Linux or Windows",
      found: "a browser",
    }),
  );
}
