"""The story of `standfast demo`: a small shop with two bugs, and how the scripted model mends them. Pure data and one function.

The project is written by the demo; the model finds the files with the same tools as any model.
"""

from __future__ import annotations

from standfast.model.script_line import Line
from standfast.model.script_reader import Conversation, Step

REQUEST = "The total of a cart is wrong and its test fails. Find out why, fix it, and run the tests."

MONEY = '''\
"""Amounts of money, in cents."""


def with_discount(cents: int, percent: int) -> int:
    """The price after a discount, rounded half up."""
    return int(cents * (100 - percent) / 100)
'''
CART = '''\
"""A shopping cart."""

from shop.money import with_discount


class Cart:
    def __init__(self) -> None:
        self.items: list[tuple[str, int, int]] = []

    def add(self, name: str, cents: int, quantity: int = 1) -> None:
        self.items.append((name, cents, quantity))

    def total(self, discount_percent: int = 0) -> int:
        """What the customer pays, in cents."""
        total = sum(cents for _, cents, _ in self.items)
        return with_discount(total, discount_percent)
'''
TEST = """\
import time
import unittest

from shop.cart import Cart


class CartTest(unittest.TestCase):
    def setUp(self) -> None:
        self.cart = Cart()
        self.cart.add("pencil", 95, quantity=3)
        self.cart.add("eraser", 50)

    def test_total_counts_every_piece(self) -> None:
        self.assertEqual(self.cart.total(), 335)

    def test_discount_is_rounded_half_up(self) -> None:
        self.assertEqual(self.cart.total(discount_percent=10), 302)

    def test_slow_supplier(self) -> None:
        time.sleep(3)
        self.assertEqual(len(self.cart.items), 2)
"""
PROJECT: dict[str, str] = {
    "shop/__init__.py": "",
    "shop/money.py": MONEY,
    "shop/cart.py": CART,
    "tests/__init__.py": "",
    "tests/test_cart.py": TEST,
}
"""Relative path → text: the files of the demo's project."""

PATCH = """\
*** Begin Patch
*** Update File: shop/money.py
@@
-    return int(cents * (100 - percent) / 100)
+    return (cents * (100 - percent) + 50) // 100
*** Update File: shop/cart.py
@@
-        total = sum(cents for _, cents, _ in self.items)
+        total = sum(cents * quantity for _, cents, quantity in self.items)
*** End Patch
"""
COMMAND = "python3 -m unittest -v"
READ_FIRST = ("tests/test_cart.py", "shop/cart.py", "shop/money.py")


def is_asked_for(request: str) -> bool:
    """Whether the person's message is the one that the demo sends."""
    return REQUEST in request


def next_line(conversation: Conversation) -> Line:
    """What comes next, from what became of the calls so far."""
    steps = conversation.steps
    for path in READ_FIRST:
        if not any(
            step.tool == "read_file" and step.args.get("path") == path and step.state == "done" for step in steps
        ):
            if sum(step.tool == "read_file" for step in steps) >= 2 * len(READ_FIRST):
                return Line(f"I cannot read {path}, so I stop here. Nothing was changed.")
            return Line(_before_reading(path), "read_file", {"path": path})
    patched = _last(steps, "apply_patch")
    if patched is None:
        return Line(
            "Two causes: `total` leaves the quantity out, and the discount cuts fractions off instead of rounding half up. "
            "I change both files in one patch.",
            "apply_patch",
            {"patch": PATCH},
        )
    if patched.state != "done":
        return _after_a_patch_that_is_not_done(steps, patched)
    return _tests(steps, patched)


def _before_reading(path: str) -> str:
    if path == READ_FIRST[0]:
        return "I begin with the test that fails."
    return f"Next, `{path}`."


def _after_a_patch_that_is_not_done(steps: tuple[Step, ...], patched: Step) -> Line:
    """Not applied: once more. In doubt or refused: look first, then decide."""
    tries = sum(step.tool == "apply_patch" for step in steps)
    if patched.state == "not_applied" and tries < 4:
        return Line(
            "The recovery note says that my patch was not applied: the files are as before. I apply it once more.",
            "apply_patch",
            {"patch": PATCH},
        )
    since = steps[max(at for at, step in enumerate(steps) if step.tool == "apply_patch") + 1 :]
    looked = [step for step in since if step.tool == "read_file" and step.state == "done"]
    unread = [path for path in READ_FIRST[1:] if all(step.args.get("path") != path for step in looked)]
    if unread and len(since) < 4:
        return Line(
            f"I do not know what became of my patch in `{unread[0]}`, so I look before I touch anything.",
            "read_file",
            {"path": unread[0]},
        )
    seen = "\n".join(step.result for step in looked)
    if "cents * quantity for" in seen and "+ 50) // 100" in seen:
        return _tests(steps, patched)
    return Line(
        "The files are neither as before nor as I wanted them. I leave them as they are: please choose in the editor what "
        "should happen with the patch, then tell me to go on."
    )


def _tests(steps: tuple[Step, ...], patched: Step) -> Line:
    ran = _last(steps, "run_command")
    if ran is None:
        learnt = (
            "The recovery note says that my patch is in place. " if patched.interrupted else "Both files are changed. "
        )
        return Line(learnt + "Now the tests.", "run_command", {"command": COMMAND})
    if ran.state == "done" and (_passed(ran) or not ran.interrupted):
        return Line(_summary(ran))
    tries = sum(step.tool == "run_command" for step in steps)
    if ran.interrupted and tries < 4:
        return Line(
            "I have no whole result of the tests. They change nothing, so it is safe to run them again.",
            "run_command",
            {"command": COMMAND},
        )
    return Line(
        "The change is made: `shop/cart.py` counts every piece, `shop/money.py` rounds half up. I have no good result of the "
        f"tests; please run `{COMMAND}` yourself."
    )


def _summary(ran: Step) -> str:
    """The end, which claims only what the result says."""
    said = "all tests pass" if _passed(ran) else "the tests ran; look at their output above"
    return f"Done: `shop/cart.py` counts every piece and `shop/money.py` rounds half up; {said}."


def _passed(ran: Step) -> bool:
    return "OK" in ran.result and "FAILED" not in ran.result


def _last(steps: tuple[Step, ...], tool: str) -> Step | None:
    return next((step for step in reversed(steps) if step.tool == tool), None)
