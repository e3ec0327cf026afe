/**
 * What stands in for `open.ts` in a browser, where there are neither a driver nor files. A bundle made for browsers may run elsewhere,
 * by mistake: a server that was built without being told that it is one. Where that has a driver, it is told.
 */
import { TilewrightError } from "../support/diagnostics.ts";
import type { DiagnosticDetails } from "../support/diagnostics.ts";
import { driverPresence } from "./driver-presence.ts";
import type { Host } from "./driver-presence.ts";
import { warnOfFallback as tell } from "./fallback-notice.ts";

interface Runtime extends Host {
  readonly platform: string;
  readonly versions: { readonly node: string };
}

/** Node or its like; undefined in a browser. */
function runtime(): Runtime | undefined {
  const { process } = globalThis as { readonly process?: Partial<Runtime> };
  return process?.versions?.node === undefined ? undefined : (process as Runtime);
}

export function openGpu(): Promise<never> {
  const host = runtime();
  if (host === undefined)
    return refuse({
      code: "TW4501",
      message: "a browser has no NVIDIA driver",
      expected: "Node on Linux or Windows",
      found: "a browser",
    });
  const { driver, found } = driverPresence(host, host);
  if (driver !== "here")
    return refuse({
      code: "TW4501",
      message: "this machine has no NVIDIA driver",
      expected: "a driver, and a bundle made for Node",
      found: found || host.platform,
    });
  return refuse({
    code: "TW4503",
    message:
      "there is an NVIDIA driver, but this bundle was made for browsers, without what calls it",
    expected: "a bundle made for Node",
    found: `a bundle made for browsers, in Node ${host.versions.node}`,
    remedy:
      'bundle for Node: esbuild --platform=node, webpack target: "node", Rollup nodeResolve without browser: true; or open another device by its name',
  });
}

function refuse(details: DiagnosticDetails): Promise<never> {
  return Promise.reject(new TilewrightError(details));
}

/** In a browser the simulator stands in for nothing. */
export function warnOfFallback(device: string, reason: TilewrightError): void {
  if (runtime() !== undefined) tell(device, reason);
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
export function compileInBackground(): Promise<number> {
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
