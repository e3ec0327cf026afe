/** Reductions, scans, searches, sorts and rearrangements of tiles. */
import { combiningCases } from "../matrix/combining.ts";
import { rearrangingCases } from "../matrix/rearranging.ts";
import { sampledNames } from "./names.ts";
import { sample } from "./sample.ts";

sample("along axes", combiningCases(), sampledNames["along axes"]);

sample("rearranged", rearrangingCases(), sampledNames["rearranged"]);
