/** What stands in for `open.ts` in a browser, where there are neither a driver nor files. */
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

export function readCompiled(path: string): Promise<never> {
  return Promise.reject(
    new TilewrightError({
      code: "TW4022",
      message: `a browser cannot read ${path}`,
      expected: "kernelFromCompiled(manifest, code), with what was fetched",
      found: "a browser",
    }),
  );
}

/** No processes to compile in. */
export function compileAside(): Promise<number> {
  return Promise.resolve(0);
}

/** No files, and no environment that names any. */
export function namedTuning(): readonly string[] {
  return [];
}

function noFiles(path: string): Promise<never> {
  return Promise.reject(
    new TilewrightError({
      code: "TW9811",
      message: `a browser cannot open ${path}`,
      expected: "TuningTable.parse(text, name), with what was fetched",
      found: "a browser",
    }),
  );
}

export { noFiles as appendTuning, noFiles as readTuning, noFiles as replaceTuning };
