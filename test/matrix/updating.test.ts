import { emulateCases } from "./emulated.ts";
import { updatingCases } from "./updating.ts";

emulateCases(updatingCases(), 4);
