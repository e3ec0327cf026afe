import { emulateCases } from "./emulated.ts";
import { combiningCases } from "./combining.ts";

emulateCases(combiningCases(), 28);
