// @ts-check
/** Loads the given modules in a fresh process, and prints the milliseconds that it took. */

const beganMs = performance.now();
await Promise.all(process.argv.slice(2).map((specifier) => import(specifier)));
process.stdout.write(String(performance.now() - beganMs));
