/** Loads, stores and atomic updates, with tails on every axis and elements of every width. */
import { rearrangingCases } from "../matrix/rearranging.ts";
import { updatingCases } from "../matrix/updating.ts";
import { sampledNames } from "./names.ts";
import { sample } from "./sample.ts";

sample("windows", rearrangingCases(), sampledNames["windows"]);

sample("far outside", updatingCases(), sampledNames["far outside"]);

sample("atomic updates", updatingCases(), sampledNames["atomic updates"]);
