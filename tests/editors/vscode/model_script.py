"""What the fake model answers in the story that the tests in VS Code play. `python -m fake_api --script` runs it.

A message is found by a phrase in it; how far its run has come is the number of the model's replies since then.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from fake_api import Gate, Request, reply, tool
from fake_api.replies import Answer

EXPLAIN = """\
This is a small **shop**. Two modules matter:

- `shop/money.py` computes prices *after* a discount
- `shop/cart.py` adds up what lies in a cart

```python
def with_discount(cents: int, percent: int) -> int:
    return int(cents * (100 - percent) / 100)
```

`int()` cuts fractions off, so **95 cents at 10 %** become 85 instead of 86. See [the rules](https://example.org/rounding)."""

ROUND = """\
*** Begin Patch
*** Update File: shop/money.py
@@
-    return int(cents * (100 - percent) / 100)
+    # Rounded half up, as the shop's terms say.
+    return (cents * (100 - percent) + 50) // 100
*** End Patch
"""
QUANTITY = """\
*** Begin Patch
*** Update File: shop/cart.py
@@
     def total(self) -> int:
-        return sum(cents for _, cents, _ in self.items)
+        return sum(cents * quantity for _, cents, quantity in self.items)
*** End Patch
"""
CURRENCY = """\
*** Begin Patch
*** Update File: shop/cart.py
@@
 class Cart:
+    currency = "EUR"
+
     def __init__(self) -> None:
*** Update File: shop/money.py
@@
-def with_discount(cents: int, percent: int) -> int:
+def with_discount(cents: int, percent: int = 0) -> int:
*** End Patch
"""
TWICE = """\
*** Begin Patch
*** Update File: notes.txt
@@
-todo
+done
*** End Patch
"""
PLAN = [
    {"text": "Read the cart and the money module", "status": "completed"},
    {"text": "Round the discount half up", "status": "in_progress"},
    {"text": "Run the tests", "status": "pending"},
]
TICKS = "for i in 1 2 3 4 5 6; do echo tick $i; sleep 0.5; done"
SENTENCE = "One word after the other comes in, while the person goes on writing in the message box. "
WORDS = re.findall(r"\S+", SENTENCE)

Step = Callable[[], Answer]

STORIES: dict[str, list[Step]] = {
    # First: it holds the phrases of all the others.
    "<transcript>": [lambda: reply("The person asked about prices.")],
    "What does this project do": [
        lambda: reply(*chunks(EXPLAIN), thinking="The person wants an overview. I look at the two modules first."),
    ],
    "Round the discount": [
        lambda: reply(
            "I look at the code first.",
            tools=[
                tool("read_file", path="shop/money.py"),
                tool("update_plan", goal="Correct prices after a discount", steps=PLAN),
            ],
        ),
        lambda: reply("`int()` cuts fractions off. I round half up instead.", tools=[tool("apply_patch", patch=ROUND)]),
        lambda: reply("Done: `with_discount` rounds half up now."),
    ],
    "Count every piece": [
        lambda: reply("I read the cart.", tools=[tool("read_file", path="shop/cart.py")]),
        lambda: reply("The quantity is left out.", tools=[tool("apply_patch", patch=QUANTITY)]).insert(
            Gate("before-patch"), after="message_start"
        ),
        lambda: reply("The file has changed since I read it, so I left it alone. Please choose in the Problems panel."),
    ],
    "Tick off the second": [
        lambda: reply("There are two.", tools=[tool("apply_patch", patch=TWICE)]),
        lambda: reply("I cannot tell which one you mean."),
        lambda: reply("I have read the file again."),
    ],
    "Sign the letter": [
        lambda: reply("I read it.", tools=[tool("read_file", path="letter.txt")]),
        lambda: reply(
            "", tools=[tool("write_file", path="letter.txt", content="Dear A,\n\ntext\n\nYours, B\n")]
        ).insert(Gate("before-write"), after="message_start"),
        lambda: reply("Somebody else wrote in it meanwhile."),
    ],
    "Give carts a currency": [
        lambda: reply("Both files change together.", tools=[tool("apply_patch", patch=CURRENCY)]),
        lambda: reply("I have seen what the check found, and go on from there. Both files are as they should be."),
    ],
    "Run the slow check": [
        lambda: reply("It takes a few seconds.", tools=[tool("run_command", command=TICKS)]),
        lambda: reply("All six ticks came."),
    ],
    "Go on towards the goal": [
        lambda: reply("", tools=[tool("update_goal", status="complete", reason="every price is right")]),
        lambda: reply("Every price is right, so I am done."),
    ],
    "Stream": [lambda: reply(*(f"{word} " for word in WORDS * 20)).paced(200)],
    "Wait at the gate": [lambda: reply("I begin, ", "and I end.").insert(Gate("middle"), after="text_delta")],
}


def chunks(text: str, size: int = 12) -> list[str]:
    return [text[at : at + size] for at in range(0, len(text), size)]


def script(request: Request) -> Answer:
    """The next step of the newest story that the messages tell."""
    for at in range(len(request.messages) - 1, -1, -1):
        message = request.messages[at]
        if message["role"] != "user":
            continue
        told = next((story for phrase, story in STORIES.items() if phrase in text_of(message)), None)
        if told is not None:
            step = sum(each["role"] == "assistant" for each in request.messages[at:])
            return told[min(step, len(told) - 1)]()
    return reply("I have nothing to say to that.")


def text_of(message: dict[str, Any]) -> str:
    content = message["content"]
    if isinstance(content, str):
        return content
    return "\n".join(block.get("text", "") for block in content if block["type"] == "text")
