/**
 * Names that a kernel's specification gives to things. They become properties of the body's argument,
 * words of the IR's text and later symbols of PTX, so they are identifiers, and no two are alike.
 */
import { TilewrightError } from "../support/diagnostics.ts";
import type { Location } from "../support/location.ts";
import { describe } from "./traced.ts";

const identifier = /^[A-Za-z_][A-Za-z0-9_]*$/;

/** `what` is the thing named, with its article: "a grid axis". */
export function requireName(what: string, name: unknown, location: Location): void {
  if (typeof name === "string" && identifier.test(name)) return;
  throw new TilewrightError({
    code: "TW1020",
    message: `${describe(name)} cannot name ${what}`,
    location,
    expected: "letters, digits and _, not starting with a digit",
    found: describe(name),
  });
}

/** Hands out names and refuses one that is taken. */
export class NameRegister {
  readonly #owners = new Map<string, string>();

  claim(what: string, name: string, location: Location): void {
    requireName(what, name, location);
    const owner = this.#owners.get(name);
    if (owner !== undefined) {
      throw new TilewrightError({
        code: "TW1021",
        message:
          owner === what
            ? `${name} names ${what} twice`
            : `${name} names both ${owner} and ${what}`,
        location,
        expected: "a name for each thing",
        found: `${name} twice`,
      });
    }
    this.#owners.set(name, what);
  }

  get names(): readonly string[] {
    return [...this.#owners.keys()];
  }
}
