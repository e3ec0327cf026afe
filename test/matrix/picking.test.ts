import { emulateCases } from "./emulated.ts";
import { pickingCases } from "./picking.ts";

emulateCases(pickingCases());
