/** The file that `--profile` writes: a drawing, or the trace events that Perfetto opens, by how its name ends. */
import { drawProfiles } from "../device/profile/drawing.ts";
import { profileTrace } from "../device/profile/kernel-profile.ts";
import type { KernelProfile } from "../device/profile/kernel-profile.ts";
import { TilewrightError } from "../support/diagnostics.ts";
import { unknownLocation } from "../support/location.ts";
import { writeFile } from "./files.ts";

export function writeProfiles(path: string, profiles: readonly KernelProfile[]): void {
  if (profiles.length === 0)
    throw new TilewrightError({
      code: "TW5015",
      message: "no kernel with a profile scope was launched",
      location: unknownLocation,
      expected: 'profile("name", () => …) in a kernel that runs',
      found: "none",
    });
  writeFile(
    path,
    path.endsWith(".svg") ? drawProfiles(profiles) : JSON.stringify(profileTrace(profiles)),
  );
}
