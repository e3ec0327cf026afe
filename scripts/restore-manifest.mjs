/** After npm has packed: the manifest as it was before `join-package.ts`. */
import { renameSync } from "node:fs";

const root = new URL("..", import.meta.url);
renameSync(new URL("node_modules/.tilewright-manifest.json", root), new URL("package.json", root));
