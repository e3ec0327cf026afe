/**
 * Scopes whose time a profile shows:
 *
 *   const tile = profile("load", () => x.at(here).load());
 *
 * They are two marks around what the body records. A device that was not asked for profiles leaves them out.
 */
import { captureLocation } from "../support/location.ts";
import { emit } from "./trace.ts";
import { callBody, wrongKind } from "./traced.ts";

/** Runs `body`, and has a profile show how long its part of the kernel takes; gives what `body` gives. */
export function profile<T>(name: string, body: () => T): T {
  const location = captureLocation();
  if (typeof name !== "string" || name === "")
    return wrongKind(
      "the first argument of profile",
      "a name",
      name,
      location,
      'write profile("name", () => …)',
    );
  emit("profile_mark", {}, { edge: "begin", name }, location);
  const result = callBody("the body of profile", location, body);
  emit("profile_mark", {}, { edge: "end", name }, location);
  return result;
}
