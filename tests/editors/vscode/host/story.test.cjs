// The story from inside VS Code's extension host: the extension's own parts, VS Code's own diagnostics and code actions.
// The rig has started a daemon that dies between the two files of the first patch that has two.

const assert = require("node:assert/strict");
const { readFileSync, writeFileSync } = require("node:fs");
const { join } = require("node:path");
const vscode = require("vscode");

const method = (name) => ({ method: `standfast/${name}` });
let ctx;
let root;

async function until(check, what) {
  const end = Date.now() + 30_000;
  for (;;) {
    const found = await check();
    if (found) return found;
    if (Date.now() > end) throw new Error(`waited until ${what}`);
    await new Promise((done) => setTimeout(done, 40));
  }
}
const file = (name) => readFileSync(join(root, name), "utf8");
const uriOf = (name) => vscode.Uri.file(join(root, name));
const ask = (name, params) => ctx.connection.request(method(name), params);
const events = (type) => ctx.feed.events.filter((event) => event.type === type);
const said = () => events("assistant_message").flatMap((event) => event.blocks.map((block) => block.text ?? ""));

async function say(text) {
  const { runId } = await ask("run/start", { sessionId: ctx.feed.sessionId, text, clientMessageId: `test-${text}` });
  return runId;
}
async function ended(runId) {
  return until(() => ctx.feed.events.find((event) => event.type === "run_finished" && event.runId === runId), `the run ends`);
}
async function permission() {
  return until(() => ctx.asks.of(ctx.feed.sessionId)[0], "permission is asked");
}
function ours(name) {
  return vscode.languages.getDiagnostics(uriOf(name)).filter((each) => each.source === "standfast");
}
const codeOf = (diagnostic) => diagnostic.code?.value ?? diagnostic.code;

async function fix(name, diagnostic, title) {
  await vscode.workspace.openTextDocument(uriOf(name)); // VS Code asks for actions of open documents only
  const found = await vscode.commands.executeCommand("vscode.executeCodeActionProvider", uriOf(name), diagnostic.range, undefined, 20);
  const action = found.find((each) => title.test(each.title));
  assert.ok(action, `no action ${title} among ${found.map((each) => each.title).join(", ")}`);
  const { command, arguments: args } = action.command;
  await vscode.commands.executeCommand(command, ...args);
}
async function allow() {
  const asked = await permission();
  ctx.asks.answer(asked.callId, asked.digest, "allow");
}

describe("the story in the extension host", () => {
  before(async () => {
    root = vscode.workspace.workspaceFolders[0].uri.fsPath;
    ctx = (await vscode.extensions.getExtension("standfast.standfast").activate()).context;
    await until(() => ctx.connection.isConnected, "it is connected");
  });

  it("connects, and shows that nothing is running", async () => {
    await until(() => ctx.sessions.fresh, "the sessions are listed");
    assert.equal(ctx.status.text, "$(comment-discussion) Standfast");
    assert.equal(await ctx.feed.sessionId, undefined);
  });

  it("creates a session and gets an answer, each event once and in order", async () => {
    await ctx.newSession();
    await ended(await say("What does this project do?"));
    assert.match(said().at(-1), /small \*\*shop\*\*/);
    const seqs = ctx.feed.events.map((event) => event.seq);
    assert.deepEqual(seqs, seqs.map((_, at) => at + 1));
    assert.equal(ctx.sessions.all.length, 1);
  });

  it("asks before it writes, with the difference, for exactly what was shown", async () => {
    const before = file("shop/money.py");
    const document = await vscode.workspace.openTextDocument(uriOf("shop/money.py"));
    await vscode.window.showTextDocument(document);
    const runId = await say("Round the discount half up.");
    const asked = await permission();
    assert.match(asked.files[0].diff, /\+ {4}return \(cents/);
    assert.equal(file("shop/money.py"), before);
    await until(() => ctx.status.text.includes("bell-dot"), "the status bar says that somebody is needed");
    ctx.asks.answer(asked.callId, "another digest", "allow");
    assert.equal(ctx.asks.of(ctx.feed.sessionId).length, 1, "an answer to something else is no answer");
    ctx.asks.answer(asked.callId, asked.digest, "allow");
    assert.equal((await ended(runId)).status, "succeeded");
    assert.match(file("shop/money.py"), /\+ 50\) \/\/ 100/);
    await until(() => document.getText() === file("shop/money.py"), "the open editor shows it (d03)");
  });

  it("undoes a run", async () => {
    const runId = events("run_finished").at(-1).runId;
    await ctx.runs.undo(runId);
    assert.match(file("shop/money.py"), /return int\(/);
  });

  it("puts a change that no longer fits on its line, with actions that settle it", async () => {
    const runId = await say("Count every piece.");
    await until(() => events("tool_result").some((event) => event.runId === runId), "the file was read");
    writeFileSync(join(root, "shop/cart.py"), file("shop/cart.py").replace("cents for _, cents, _ in", "price for _, price, _ in"));
    await fetch(`${process.env.MODEL_URL}/_fake/gates/before-patch/release`, { method: "POST" });
    await ended(runId);
    const before = file("shop/cart.py");
    const found = await until(() => ours("shop/cart.py")[0], "a diagnostic comes");
    assert.equal(codeOf(found), "patch-conflict");
    assert.equal(found.range.start.line, before.split("\n").findIndex((line) => line.includes("return sum(")));
    await vscode.window.showTextDocument(uriOf("shop/cart.py"));
    await fix("shop/cart.py", found, /Show difference/);
    const tab = () => vscode.window.tabGroups.activeTabGroup.activeTab;
    await until(() => tab()?.label.includes("Merging"), "the merge editor opens");
    await fix("shop/cart.py", found, /Keep/);
    await until(() => ours("shop/cart.py").length === 0, "the diagnostic goes");
    assert.equal(file("shop/cart.py"), before, "keep changes no byte");
  });

  it("offers each place where an ambiguous change could go, and lets the agent look again", async () => {
    const note = "todo\n\ntodo\n";
    writeFileSync(join(root, "notes.txt"), note);
    await ended(await say("Tick off the second."));
    const found = await until(() => ours("notes.txt")[0], "a diagnostic comes");
    const runs = events("run_started").length;
    await fix("notes.txt", found, /retry/);
    await until(() => events("run_started").length > runs, "a run is started that tells the model");
    await until(() => said().at(-1).includes("read the file again") && ctx.feed.facts.session.lastRun.status === "succeeded", "it ends");
    await ended(await say("Tick off the second. Again."));
    const again = await until(() => ours("notes.txt")[0], "a diagnostic comes again");
    await fix("notes.txt", again, /line 3/);
    await until(() => file("notes.txt") === "todo\n\ndone\n", "the chosen place is changed");
    await until(() => ours("notes.txt").length === 0, "the diagnostic goes");
  });

  it("offers a clean merge of two writers, and makes it only when told", async () => {
    writeFileSync(join(root, "letter.txt"), "Dear X,\n\ntext\n\nYours, X\n");
    const runId = await say("Sign the letter.");
    await until(() => events("tool_result").some((event) => event.runId === runId), "the letter was read");
    const mine = "Dear X,\n\ntext\nmore of mine\n\nYours, X\n";
    writeFileSync(join(root, "letter.txt"), mine);
    await fetch(`${process.env.MODEL_URL}/_fake/gates/before-write/release`, { method: "POST" });
    await ended(runId);
    const found = await until(() => ours("letter.txt")[0], "a diagnostic comes");
    assert.equal(codeOf(found), "file-changed");
    assert.equal(file("letter.txt"), mine);
    await fix("letter.txt", found, /merged/i);
    await until(() => file("letter.txt") === "Dear A,\n\ntext\nmore of mine\n\nYours, B\n", "both changes are in");
    await until(() => ours("letter.txt").length === 0, "the diagnostic goes");
  });

  it("survives a daemon that is killed between two files: says what is certain, and goes on", async () => {
    const states = [];
    ctx.connection.onState((state) => states.push(state.kind));
    const lost = events("run_finished").length;
    await say("Give carts a currency.");
    await allow();
    await until(() => events("run_finished").length > lost, "the run is marked interrupted");
    assert.deepEqual(states.slice(0, 1), ["waiting"]);
    assert.equal(states.at(-1), "connected");
    assert.equal(events("run_finished").at(-1).status, "interrupted");
    const seqs = ctx.feed.events.map((event) => event.seq);
    assert.deepEqual(seqs, seqs.map((_, at) => at + 1), "nothing lost, nothing doubled");

    const recovery = await until(() => ctx.feed.facts.recovery?.calls[0] && ctx.feed.facts.recovery, "the check has an outcome");
    assert.equal(recovery.calls[0].verdict, "partial");
    await until(() => ctx.extension.workspaceState.get("standfast.announcedRuns", []).length === 1, "it was announced once");
    const partial = await until(() => ours("shop/money.py").find((each) => codeOf(each) === "partial-write"), "a diagnostic stands on the file");
    assert.match(partial.message, /not_applied/);
    await fix("shop/money.py", partial, /Complete/);
    assert.match(file("shop/money.py"), /percent: int = 0/);
    assert.match(file("shop/cart.py"), /currency = "EUR"/);

    await vscode.commands.executeCommand("standfast.resume");
    await until(() => said().some((text) => text.includes("go on from there")), "the resumed run has ended");
    await until(() => ours("shop/money.py").length === 0 && ours("shop/cart.py").length === 0, "nothing is left open");
  });
});
