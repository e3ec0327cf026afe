/**
 * Gives the event loop a turn before every test, so that a file of many tests that never wait reports each as it ends,
 * and what was collected meanwhile is finalized.
 */
import { beforeEach } from "vitest";

beforeEach(() => new Promise<void>((resolve) => void setImmediate(resolve)));
