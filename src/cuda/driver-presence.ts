/**
 * Whether the driver's library is on this machine, asked without what calls it: the host loads the library as if it were an addon of
 * its own. That fails either way, and how it fails tells.
 *
 *   libcuda.so.1: cannot open shared object file      absent
 *   Module did not self-register: 'libcuda.so.1'      here
 *   loading addons is not allowed                     unknown
 *
 * Nothing of Node is imported, so that bundles made for browsers can ask, too.
 */

/** The system that a library is looked for on, by Node's name of it. */
export interface System {
  readonly platform: string;
}

export interface Platform extends System {
  readonly architecture: string;
}

export interface Presence {
  readonly driver: "here" | "absent" | "unknown";
  /** The host's words for each place. */
  readonly found: string;
}

/** What of the host's `process` is used here. */
export interface Host {
  readonly dlopen?: (module: object, path: string) => void;
  readonly env?: { readonly [name: string]: string | undefined };
}

/** Where the driver's library is looked for, in order; a plain name means the system's own places. */
export function libraryNames({ platform }: System): readonly string[] {
  if (platform === "win32") return ["nvcuda.dll"];
  if (platform === "linux") return ["libcuda.so.1", "/usr/lib/wsl/lib/libcuda.so.1"];
  return [];
}

/** What hosts say of a library that they loaded and that is no addon: Node, Bun, Deno. */
const loadedAnyway = /self-register|napi_register_module|Node-API/i;
/** What the systems' loaders say of one that is not there, or is of another architecture: Linux, musl, Windows. */
const notThere =
  /cannot open|error loading shared library|no such file|could not be found|\bELF\b/i;

/** Looks for the driver's library. */
export function driverPresence(machine: System, host: Host): Presence {
  const problems: string[] = [];
  let driver: Presence["driver"] = "absent";
  for (const name of libraryNames(machine)) {
    const problem = problemOf(host, placeOf(name, host));
    if (problem === undefined || loadedAnyway.test(problem)) return { driver: "here", found: name };
    if (!notThere.test(problem)) driver = "unknown";
    problems.push(`${name}: ${problem}`);
  }
  return { driver, found: problems.join("\n") };
}

/** Windows' own libraries are addressed by their folder here: a plain name would be one of the working directory. */
function placeOf(name: string, { env }: Host): string {
  if (!name.endsWith(".dll")) return name;
  return `${env?.["SystemRoot"] ?? "C:\\Windows"}\\System32\\${name}`;
}

/** Why a library was not loaded as an addon; undefined where it was one. */
function problemOf(host: Host, path: string): string | undefined {
  if (host.dlopen === undefined) return "the host loads no libraries";
  try {
    host.dlopen({ exports: {} }, path);
    return undefined;
  } catch (error) {
    return firstLine(error);
  }
}

/** The first line of what was thrown. */
export function firstLine(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error);
  return text.split("\n")[0] ?? "";
}
