// Where scripts/web puts what it makes: the folder TARGET, or target/ of the repository.

import { fileURLToPath, pathToFileURL } from "node:url";

const target = process.env.TARGET ?? fileURLToPath(new URL("../target", import.meta.url));

/** The URL of a file there. */
export const made = (path) => new URL(path, pathToFileURL(`${target}/`));
