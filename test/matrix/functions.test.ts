import { functionCases } from "./elementwise.ts";
import { emulateCases } from "./emulated.ts";

emulateCases(functionCases(), 48);
