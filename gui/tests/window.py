"""Reads and drives the window as assistive technology does. Run by window.rs: window.py SCENARIO STATE_FOLDER."""

import os
import pathlib
import subprocess
import sys
import time

import pyatspi

PROGRAM, SAMPLE, SCENARIO, HOME = sys.argv[1:5]
FILE = pathlib.Path(HOME) / "state/headstart/last-try.json"


def tree(node, depth=0):
    """Every accessible below a node."""
    if depth > 40:
        return
    yield node
    try:
        children = [node.getChildAtIndex(index) for index in range(node.childCount)]
    except Exception:  # the page was replaced while we looked: the next look sees the new one
        return
    for child in children:
        if child is not None:
            yield from tree(child, depth + 1)


def application():
    for app in pyatspi.Registry.getDesktop(0):
        if app is not None and app.name in ("headstart", "io.github.headstart_desktop.Headstart", "Headstart"):
            return app
    return None


def texts():
    app = application()
    if app is None:
        return []
    found = []
    for node in tree(app):
        try:
            found += [node.name, node.description]
            text = node.queryText()
            found.append(text.getText(0, text.characterCount))
        except Exception:  # it has no text, or is gone
            continue
    return [text for text in found if text]


def wait_for(what, *needles, seconds=20):
    """Waits until all needles are said by some accessible."""
    end = time.time() + seconds
    while True:
        said = "\n".join(texts())
        missing = [needle for needle in needles if needle not in said]
        if not missing:
            return said
        if time.time() > end:
            raise AssertionError(f"{what}: {missing} not exposed. Exposed:\n{said}")
        time.sleep(0.2)


def find(role, name):
    for node in tree(application()):
        if node.getRoleName() in role and name in (node.name or ""):
            return node
    raise AssertionError(f"no {role} named {name}")


def press(node):
    action = node.queryAction()
    assert action.nActions > 0, f"{node.name} has no action"
    action.doAction(0)


def keys(*names):
    subprocess.run(["xdotool", "key", "--clearmodifiers", *names], check=True)


def put(content):
    """Writes the file as headstartctl does: beside it, then renamed."""
    FILE.parent.mkdir(parents=True, exist_ok=True)
    beside = FILE.with_suffix(".new")
    beside.write_bytes(content)
    beside.rename(FILE)


def sample(name):
    return subprocess.run([SAMPLE, name], check=True, capture_output=True).stdout


def start():
    environment = dict(os.environ, HOME=HOME, XDG_STATE_HOME=f"{HOME}/state", GSK_RENDERER="cairo")
    return subprocess.Popen([PROGRAM], env=environment)


def stopped_by(window, *key):
    keys(*key)
    assert window.wait(timeout=10) == 0, "the window did not close cleanly"


def states():
    """Each thing that can be in place of the result, one after the other in one window: it follows the file."""
    window = start()
    wait_for("no result yet", "No Result Yet", "headstartctl try APP", "Copy Command")
    put(sample("faster"))
    wait_for(
        "a gain", "Faster by 3.30 s (3.18 – 3.51)", "LibreOffice Writer", "6.40 s", "3.10 s", "2.60 s",
        "96.8 % interval", "52 % (50 – 53)", "87 %", "117.0 MiB from 413 files, 93 % of it used by the start",
        "Sample SSD 500 (sda), flash, scheduler mq-deadline", "evicting only this app", "Sample data:",
        "Cold: median 6.40 s, range 6.31 – 6.61 s, 5 starts.", "6.31  6.61  6.40  6.39  6.46", "Read from drive",
    )
    put(sample("troubled"))
    wait_for("a loss", "Slower by 10.0 ms (7.0 – 128.0)", "lost 12 events", "Stopped early: 5 of 6", "status 1")
    put(sample("few"))
    said = wait_for("one start", "Too few starts to tell: 1 cold and 1 prefetched, 4 of each are needed")
    assert "0.0 %" not in said, "no interval is claimed for one start"
    put(sample("none"))
    wait_for("no starts", "Too few starts to tell: 0 cold", "no starts")
    put(sample("many"))
    wait_for("a thousand starts", "Faster by 1.29 s", "340 starts")
    put(sample("long"))
    wait_for("a hostile name", "<b>برنامج</b> & an application")
    put(b'{"format": 7, "rest": "unknown"}')
    wait_for("a newer file", "The Result Is Too New", "last-try.json", "Update this program")
    for broken in (b"", b"\xff\xfe\x00", b'{"format": 1, "runs": [', b"[" * 200000, b'{"format": -1}', b"null"):
        put(broken)
        wait_for(f"broken: {broken[:10]}", "The Result Is Damaged", "last-try.json", "Try Again")
        FILE.unlink()
        wait_for("removed", "No Result Yet")
    put(sample("faster").replace(b'"rounds": 5', b'"rounds": -5'))
    wait_for("a negative number", "The Result Is Damaged", "-5")
    with open(FILE, "wb") as huge:
        huge.truncate(1 << 34)
    wait_for("huge", "The Result Is Damaged", "16.0 GiB")
    FILE.unlink()
    os.mkfifo(FILE)
    wait_for("a pipe", "not a regular file")
    FILE.unlink()
    put(sample("no-gain"))
    wait_for("no gain", "No measurable gain")
    assert window.poll() is None, "the window is still there"
    stopped_by(window, "ctrl+q")


def keyboard():
    """Menus, windows and buttons by the keyboard alone."""
    window = start()
    wait_for("no result yet", "No Result Yet")
    keys("ctrl+question")
    wait_for("shortcuts", "Save the picture as SVG", "Open the menu")
    keys("Escape")
    time.sleep(0.5)
    keys("F1")
    wait_for("about", "Headstart developers")
    keys("Escape")
    time.sleep(0.5)
    keys("F10")
    wait_for("menu", "About Headstart")
    keys("Escape")
    time.sleep(0.5)
    keys("ctrl+w")
    assert window.wait(timeout=10) == 0


def export():
    """Saves by keyboard and dialog, and finds a whole file."""
    put(sample("faster"))
    window = start()
    wait_for("a gain", "Faster by 3.30 s")
    for key, ending, begins in (("ctrl+s", "svg", b"<?xml"), ("ctrl+shift+s", "png", b"\x89PNG")):
        target = pathlib.Path(HOME) / f"out.{ending}"
        keys(key)
        wait_for("the dialog", "Save Result")
        time.sleep(1)
        subprocess.run(["xdotool", "key", "--clearmodifiers", "ctrl+a"], check=True)
        subprocess.run(["xdotool", "type", "--delay", "20", str(target)], check=True)
        time.sleep(0.5)
        keys("Return")
        wait_for("the toast", f"Saved as out.{ending}")
        assert target.read_bytes().startswith(begins), f"{target} is not {ending}"
    subprocess.run(["xmllint", "--noout", str(pathlib.Path(HOME) / "out.svg")], check=True)
    stopped_by(window, "ctrl+q")


def language():
    """German, with its decimal comma and plurals, from the compiled catalogue."""
    put(sample("faster"))
    window = start()
    wait_for("German", "Um 3,30 s schneller (3,18 – 3,51)", "6,40 s", "aus 413 Dateien")
    stopped_by(window, "ctrl+q")


{"states": states, "keyboard": keyboard, "export": export, "language": language}[SCENARIO]()
print(f"PASS {SCENARIO}")
