/**
 * Where compiled kernels are kept and how much of them. Two environment variables say otherwise:
 *
 *   TILEWRIGHT_CACHE=/var/cache/kernels      a folder, or "off"
 *   TILEWRIGHT_CACHE_LIMIT=500M              bytes, with K, M or G; 1 GiB unless given
 */
import { homedir } from "node:os";
import { posix, win32 } from "node:path";
import process from "node:process";
import { TilewrightError } from "../../support/diagnostics.ts";
import { environmentValues } from "../environment.ts";

export interface CacheSettings {
  /** Undefined where nothing is kept. */
  readonly folder: string | undefined;
  readonly limitBytes: number;
}

export interface Surroundings {
  readonly environment: { readonly [name: string]: string | undefined };
  readonly platform: string;
  readonly home: string | undefined;
}

const defaultLimit = 2 ** 30;
const units: { readonly [letter: string]: number } = { "": 1, K: 2 ** 10, M: 2 ** 20, G: 2 ** 30 };

/** The settings that hold for this process. */
export function cacheSettings(surroundings: Surroundings = hostSurroundings()): CacheSettings {
  const { environment } = surroundings;
  const named = environment["TILEWRIGHT_CACHE"] ?? "";
  return {
    folder: named === "off" ? undefined : named === "" ? defaultFolder(surroundings) : named,
    limitBytes: limitOf(environment["TILEWRIGHT_CACHE_LIMIT"] ?? ""),
  };
}

function hostSurroundings(): Surroundings {
  return {
    environment: environmentValues([
      "TILEWRIGHT_CACHE",
      "TILEWRIGHT_CACHE_LIMIT",
      "LOCALAPPDATA",
      "XDG_CACHE_HOME",
    ]),
    platform: process.platform,
    home: homeFolder(),
  };
}

/** Undefined where the host does not tell: a user without a home, or no permission to ask for it. */
function homeFolder(): string | undefined {
  try {
    return homedir();
  } catch {
    return undefined;
  }
}

/** Undefined where there is no folder of the user to keep anything in. */
function defaultFolder({ environment, platform, home }: Surroundings): string | undefined {
  if (platform === "win32") {
    const local = environment["LOCALAPPDATA"] ?? (home && win32.join(home, "AppData", "Local"));
    return local && win32.join(local, "tilewright");
  }
  const caches = environment["XDG_CACHE_HOME"] || (home && posix.join(home, ".cache"));
  return caches && posix.join(caches, "tilewright");
}

function limitOf(text: string): number {
  if (text === "") return defaultLimit;
  const [, digits, letter = ""] = /^(\d+)\s*([KMG]?)(?:i?B)?$/i.exec(text) ?? [];
  if (digits !== undefined) return Number(digits) * (units[letter.toUpperCase()] ?? 1);
  throw new TilewrightError({
    code: "TW4601",
    message: "TILEWRIGHT_CACHE_LIMIT is not a number of bytes",
    expected: "a number, with K, M or G after it for larger units",
    found: text,
  });
}
