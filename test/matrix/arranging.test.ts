import { arrangingCases } from "./arranging.ts";
import { emulateCases } from "./emulated.ts";

emulateCases(arrangingCases());
