import { customCombiningCases } from "./custom-combining.ts";
import { emulateCases } from "./emulated.ts";

emulateCases(customCombiningCases(), 8);
