/** The oldest Node that everything runs in, as the package's manifest says it, too: `module.register` came with it. */
export const minimumNodeVersion = "20.6";

/** Whether a version, as `process.version` has it, is that or a later one. */
export function isSupportedNode(version: string): boolean {
  const [major = 0, minor = 0] = version.replace(/^v/, "").split(".").map(Number);
  const [oldestMajor = 0, oldestMinor = 0] = minimumNodeVersion.split(".").map(Number);
  return major > oldestMajor || (major === oldestMajor && minor >= oldestMinor);
}
