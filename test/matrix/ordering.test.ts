import { emulateCases } from "./emulated.ts";
import { orderingCases } from "./ordering.ts";

emulateCases(orderingCases());
