/** For threads that load TypeScript themselves: `execArgv: ["--import", …]`. */
import { register } from "node:module";

register("./erase-types.mjs", import.meta.url);
