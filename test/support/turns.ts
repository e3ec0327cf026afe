/**
 * Gives the event loop a turn before every test. A file of many tests that never wait would keep it from
 * hearing the runner's answers, and on a busy machine the runner would be taken for dead.
 */
import { beforeEach } from "vitest";

beforeEach(() => new Promise<void>((resolve) => void setImmediate(resolve)));
