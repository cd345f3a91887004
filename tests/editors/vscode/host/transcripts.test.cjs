// The conformance transcripts with the extension in the client's place (issue E, "What must be shown" 4): `../transcript.py`
// plays each against a daemon of its own, through a tap that hears what the extension says. What a person does on the chat's
// page goes through the extension's own door for the page, so that the extension itself makes those messages.

const assert = require("node:assert/strict");
const { spawn } = require("node:child_process");
const { once } = require("node:events");
const { mkdirSync, readdirSync } = require("node:fs");
const { dirname, join, resolve } = require("node:path");
const { createInterface } = require("node:readline");
const vscode = require("vscode");

const TESTS = resolve(__dirname, "../../..");
const TRANSCRIPTS = resolve(TESTS, "../protocol-spec/transcripts");
// It says what the extension never says: the wrong version, requests before `initialize`.
const NOT_OURS = ["handshake.jsonl"];
const PLAYED = readdirSync(TRANSCRIPTS).filter((name) => name.endsWith(".jsonl") && !NOT_OURS.includes(name));

let ctx;
let page;
const refusals = new Map();
const refused = new Set();

async function until(check, what) {
  const end = Date.now() + 30_000;
  for (;;) {
    const found = await check();
    if (found) return found;
    if (Date.now() > end) throw new Error(`waited until ${what}`);
    await new Promise((done) => setTimeout(done, 40));
  }
}

/** What the chat's page asks of the extension; `says` is the page's word. */
function newPage() {
  const received = new vscode.EventEmitter();
  const webview = {
    cspSource: "none",
    asWebviewUri: (uri) => uri,
    onDidReceiveMessage: received.event,
    postMessage: async () => true,
  };
  ctx.chat.resolveWebviewView({ webview, visible: true, onDidDispose: new vscode.EventEmitter().event });
  return { says: (message) => received.fire(message) };
}

/** The extension always has somebody to ask. So that a transcript can have one who cannot: an answer that is an error. */
function newAsks() {
  const { connection } = ctx;
  return new ctx.asks.constructor({
    onPermission: (ask) =>
      connection.onPermission((permission, token) =>
        Promise.race([ask(permission, token), new Promise((_, refuse) => refusals.set(permission.callId, refuse))]),
      ),
    onNotice: (type, handle) => connection.onNotice(type, handle),
    onState: (handle) => connection.onState(handle),
  });
}

/** Method → how the extension itself comes to say it. Undefined: not now, or never; then only its connection is used. */
const OWN = {
  "session/attach": ({ sessionId, afterSeq }) => (afterSeq === undefined ? () => ctx.feed.open(sessionId) : undefined),
  "session/detach": () => () => ctx.feed.close(),
  "run/start": ({ text, clientMessageId }) => () => page.says({ type: "send", text, clientMessageId, steer: false }),
  "run/cancel": () => () => page.says({ type: "stop" }),
  "run/resume": ({ runId }) => () => page.says({ type: "resume", runId }),
  "recovery/resolve": ({ callId, action }) => () => page.says({ type: "settle", callId, action }),
  "queue/edit": ({ messageId, text }) => () => page.says({ type: "queueEdit", messageId, text }),
  "queue/move": ({ messageId, position }) => () => page.says({ type: "queueMove", messageId, position }),
  "queue/remove": ({ messageId }) => () => page.says({ type: "queueRemove", messageId }),
  "queue/resume": () => () => page.says({ type: "queueResume" }),
};

async function ask(method, params) {
  await until(() => ctx.connection.isConnected && ctx.sessions.fresh, "it is connected and has looked around");
  const name = method.replace("standfast/", "");
  const shown = params.sessionId === undefined || ctx.feed.sessionId === params.sessionId || name === "session/attach";
  const own = shown ? OWN[name]?.(params) : undefined;
  const asked = own ? own() : ctx.connection.request({ method }, params);
  Promise.resolve(asked).catch(() => undefined); // an answer that is an error is the daemon's part
}

async function answer({ result }) {
  const asked = await until(() => ctx.asks.of(ctx.feed.sessionId).find((each) => !refused.has(each)), "the question is there");
  if (result) {
    page.says({ type: "decide", callId: asked.callId, digest: asked.digest, decision: result.decision });
  } else {
    refused.add(asked); // the same call may be asked again: another question
    refusals.get(asked.callId)(new Error("nobody is here to answer"));
  }
}

async function act(words) {
  if (words.path) await useProgram(words.path);
  else if (words.ask) await ask(words.ask, words.params);
  else if (words.answer) await answer(words.answer);
  else await ctx.connection.stop();
}

/** As a person names another program: the extension connects through it by itself. */
const useProgram = (path) => vscode.workspace.getConfiguration("standfast").update("path", path, vscode.ConfigurationTarget.Global);

describe("the extension plays the client of a transcript", () => {
  let program;
  before(async () => {
    ctx = (await vscode.extensions.getExtension("standfast.standfast").activate()).context;
    program = vscode.workspace.getConfiguration("standfast").get("path");
    page = newPage();
    ctx.asks = newAsks();
  });
  beforeEach(() => ctx.feed.close());
  after(() => useProgram(program));

  for (const name of PLAYED) {
    it(name.replace(".jsonl", ""), async function () {
      this.timeout(90_000); // the player gives up earlier, and says at what
      const stem = name.replace(".jsonl", "");
      const folder = join(dirname(vscode.workspace.workspaceFolders[0].uri.fsPath), stem);
      mkdirSync(folder);
      const python = join(dirname(process.env.STANDFAST_PROGRAM), "python");
      const player = spawn(python, ["-m", "editors.vscode.transcript", stem, folder], { cwd: TESTS, stdio: ["ignore", "pipe", "pipe"] });
      let said = "";
      player.stderr.on("data", (data) => (said += data));
      const ended = once(player, "close");
      for await (const line of createInterface(player.stdout)) await act(JSON.parse(line));
      const [code] = await ended;
      assert.equal(code, 0, said);
    });
  }
});
