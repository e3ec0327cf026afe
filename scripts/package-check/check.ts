/** What a check is: it says in a few words what it found, or throws. */

/** The package as it was packed and installed, and where further tools come from. */
export interface Subject {
  /** What npm has packed: a .tgz. */
  readonly archive: string;
  /** A project with nothing but the package in its `node_modules`. */
  readonly project: string;
  /** A new folder, outside of the project. */
  readonly folder: (name: string) => string;
  /** The folder of a package that npm installs for this check alone: "publint", "node@20". Throws `NotTried`. */
  readonly tool: (specifier: string) => Promise<string>;
}

export interface Check {
  /** "attw", or with a version "node@20"; both `node` and `node@20` name the latter. */
  readonly name: string;
  readonly about: string;
  readonly run: (subject: Subject) => Promise<string>;
}

/** What a check needs is not to be had here: no network, no browser. */
export class NotTried extends Error {}

/** A check whose answer was not the expected one. */
export class Wrong extends Error {}

/** Whether `--only` with these names takes a check: all of them without any. */
export function isAsked(check: Pick<Check, "name">, only: readonly string[]): boolean {
  return only.length === 0 || only.includes(check.name) || only.includes(familyOf(check.name));
}

export function familyOf(name: string): string {
  return name.replace(/@.*/, "");
}
