/** The page of the chat's webview: no remote content, no inline script or style, scripts by nonce only. */

import { randomBytes } from "node:crypto";
import * as vscode from "vscode";

export function pageHtml(webview: vscode.Webview, extension: vscode.Uri): string {
  const nonce = randomBytes(18).toString("base64");
  const file = (name: string): string => webview.asWebviewUri(vscode.Uri.joinPath(extension, "dist", name)).toString();
  const policy = [
    "default-src 'none'",
    `script-src 'nonce-${nonce}'`,
    `style-src ${webview.cspSource}`,
    `font-src ${webview.cspSource}`,
    "base-uri 'none'",
    "form-action 'none'",
  ].join("; ");
  return `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="stylesheet" href="${file("codicon.css")}">
<link rel="stylesheet" href="${file("chat.css")}">
<title>Standfast</title>
</head>
<body>
<div id="app"></div>
<script nonce="${nonce}" src="${file("chat.js")}"></script>
</body>
</html>`;
}
