import { emulateCases } from "./emulated.ts";
import { rearrangingCases } from "./rearranging.ts";

emulateCases(rearrangingCases(), 24);
