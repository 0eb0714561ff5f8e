"""The pictures of docs/web.md and the README, made by the real thing: a project with a day behind it, `takeback web`,
and Chromium. Run it when the page looks different: .venv/bin/python scripts/web_pictures.py [DIR]
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(CHECKOUT))

LARGEST = 200 << 10  # bytes of a picture
CHARGES = "https://api.shop.example/v1/charges"
REFUNDS = "https://api.shop.example/v1/refunds"
CART = '''"""The cart of one visitor."""

from decimal import Decimal


class Cart:
    def __init__(self) -> None:
        self.items: dict[str, int] = {}

    def add(self, sku: str, count: int = 1) -> None:
        self.items[sku] = self.items.get(sku, 0) + count

    def total(self, prices: dict[str, Decimal]) -> Decimal:
        return sum((prices[sku] * n for sku, n in self.items.items()), Decimal(0))
'''
AUTH = """def login(user, password):
    if not user.active:
        return None
    if not check(user.hash, password):
        audit("failed login", user)
        return None
    return session(user)


def check(hash, password):
    return bcrypt.verify(password, hash)
"""


def act(project: Path) -> None:
    """A day of two agents and a person, at the times it would have taken."""
    from tests.scene import CLAUDE, CODEX, Scene

    import takeback

    now = [time.time() - 9 * 3600]
    (project / "src").mkdir(parents=True)
    (project / "src/auth.py").write_text(AUTH)
    (project / "src/cart.py").write_text(CART)
    (project / "tests").mkdir()
    (project / "tests/test_login.py").write_text(
        "def test_a_wrong_password_is_refused(ada):\n    assert login(ada, 'x') is None\n"
    )
    (project / "README.md").write_text("# Shop\n")
    with takeback.open(project, create=True) as ws:
        ws.clock = ws.observer.clock = lambda: now[0]
        scene = Scene(ws)

        def later(minutes: float) -> None:
            now[0] += minutes * 60

        later(20)
        ws.checkpoint("release 1.4")
        later(25)
        scene.turn(
            "add a coupon field to the cart",
            src__cart_py=CART.replace(
                "self.items: dict[str, int] = {}", 'self.items: dict[str, int] = {}\n        self.coupon = ""'
            ),
        )
        scene.write("tests/test_cart.py", 'def test_coupon():\n    assert Cart().coupon == ""\n')
        later(55)
        scene.turn("write a page about coupons", docs__coupons_md="# Coupons\n\nOne for each order.\n")
        later(30)
        scene.turn("set up continuous integration", CODEX, ci__build_yml="on: push\n", ci__lint_yml="on: push\n")
        later(70)
        scene.turn("log who fails to log in", src__log_py="def audit(what, who):\n    print(what, who.name)\n")
        later(35)
        scene.by_hand("", README_md="# Shop\n\nA small shop.\n")
        later(80)
        scene.turn("make the login test pass", CLAUDE)
        scene.write(
            "src/auth.py",
            AUTH.replace("    return bcrypt.verify(password, hash)", "    return True").replace(
                '        audit("failed login", user)\n', ""
            ),
        )
        scene.write("tests/test_login.py", None)
        scene.bash("pytest -q", report_txt="12 passed\n")
        later(20)
        ws.record_http(
            "POST", CHARGES, status=201, request_body={"amount": 4200}, response_body={"id": "ch_3P"},
            inverse={"method": "POST", "url": REFUNDS, "json": {"charge": "{response.body.id}"}},
            by={"actor": "claude", "surface": "mcp"},
        )  # fmt: skip
        later(15)
        scene.turn(
            "translate the manual",
            CODEX,
            docs__de_md="# Handbuch\n",
            docs__fr_md="# Manuel\n",
            docs__es_md="# Manual\n",
        )
        later(40)
        ws.checkpoint("before the redesign")
        later(35)
        scene.turn("try the new colours", src__style_css="body { background: tan }\n")
        later(8)
        ws.undo()
        later(25)
        scene.turn("rename the cart to basket", src__basket_py=CART.replace("Cart", "Basket"))


def shoot(url: str, into: Path) -> list[Path]:
    from playwright.sync_api import sync_playwright

    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        raise SystemExit("there is no Chromium here: apt-get install chromium")
    phone = {
        "viewport": {"width": 390, "height": 760},
        "is_mobile": True,
        "has_touch": True,
        "device_scale_factor": 1.5,
    }
    made = []
    with sync_playwright() as running:
        browser = running.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-dev-shm-usage"])
        for name, how in (("web", {}), ("web-plan", {"color_scheme": "dark"}), ("web-phone", phone)):
            context = browser.new_context(**{"viewport": {"width": 1240, "height": 800}, **how})
            page = context.new_page()
            page.goto(url)
            page.wait_for_url("**/timeline")
            page.wait_for_selector("html.is-live")
            page.click("#timeline >> text=make the login test pass")
            page.wait_for_selector(".sides")
            if name == "web-plan":
                page.click("text=Take back this turn…")
                page.wait_for_url("**/plan/*")
            page.wait_for_timeout(300)
            made.append(into / f"{name}.png")
            page.screenshot(path=str(made[-1]))
            context.close()
        browser.close()
    return made


def main(into: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="takeback-pictures-") as folder:
        project, home = Path(folder, "shop"), Path(folder, "home")
        project.mkdir()
        os.environ |= {"TAKEBACK_HOME": str(home), "HOME": folder, "XDG_CONFIG_HOME": f"{folder}/config"}
        act(project)
        serving = subprocess.Popen(
            [sys.executable, "-m", "takeback", "web", "--no-open"], cwd=project, stdout=subprocess.PIPE, text=True
        )
        assert serving.stdout is not None
        try:
            for picture in shoot(serving.stdout.readline().strip(), into):
                size = picture.stat().st_size
                print(f"{picture.name}: {size >> 10} KB")
                if size > LARGEST:
                    raise SystemExit(f"{picture.name} is larger than {LARGEST >> 10} KB")
        finally:
            serving.send_signal(signal.SIGINT)
            serving.wait(30)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else CHECKOUT / "docs")
