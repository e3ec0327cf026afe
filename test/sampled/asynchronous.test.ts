/** Copies by TMA: boxes, swizzles, overhanging windows, fills and reductions. */
import { updatingCases } from "../matrix/updating.ts";
import { sampledNames } from "./names.ts";
import { sample } from "./sample.ts";

sample("copies", updatingCases(), sampledNames["copies"]);
