import { accumulationCases } from "./accumulations.ts";
import { emulateCases } from "./emulated.ts";

emulateCases(accumulationCases(), 3 * 4 * 2);
