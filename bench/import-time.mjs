// @ts-check
/** A fresh process that loads the modules it is given, and prints how many milliseconds that took. */

const beganMs = performance.now();
await Promise.all(process.argv.slice(2).map((specifier) => import(specifier)));
process.stdout.write(String(performance.now() - beganMs));
