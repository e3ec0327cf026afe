import { castCases } from "./elementwise.ts";
import { emulateCases } from "./emulated.ts";

emulateCases(castCases(), 24);
