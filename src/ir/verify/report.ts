/** How the verifier's files report; the location is the op's, or the kernel's where no op is to blame. */
import { TilewrightError } from "../../support/diagnostics.ts";
import type { DiagnosticCode, DiagnosticDetails } from "../../support/diagnostics.ts";
import type { Location } from "../../support/location.ts";

type Details = Pick<DiagnosticDetails, "expected" | "found" | "remedy" | "notes">;

export function reject(
  place: { readonly location: Location },
  code: DiagnosticCode,
  message: string,
  details: Details,
): never {
  throw new TilewrightError({ code, message, location: place.location, ...details });
}
