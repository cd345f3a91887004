// Runs the tests of this folder with mocha inside VS Code's extension host. Named by `extensionTestsPath`.

const { readdirSync } = require("node:fs");
const { join } = require("node:path");
const Mocha = require(join(process.env.TEST_MODULES, "mocha")); // a cache outside of the checkout

exports.run = async () => {
  const mocha = new Mocha({ ui: "bdd", reporter: "min", timeout: 60_000, color: false, bail: true });
  const names = readdirSync(__dirname).filter((name) => name.endsWith(".test.cjs"));
  for (const name of names.sort()) mocha.addFile(join(__dirname, name));
  const failures = await new Promise((done) => {
    const runner = mocha.run(done);
    // The mark tells these lines from all else that the editor writes.
    runner.on("pass", (test) => console.log(`[test] ok: ${test.title} (${test.duration} ms)`));
    runner.on("fail", (test, error) => console.log(`[test] FAILED: ${test.title}\n${error.stack}`));
  });
  if (failures > 0) throw new Error(`${failures} failed`);
};
