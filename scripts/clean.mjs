/**
 * Removes the build output, so that a package never holds files whose source is gone.
 */
import { rmSync } from "node:fs";

rmSync(new URL("../dist", import.meta.url), { recursive: true, force: true });
