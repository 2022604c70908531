#!/usr/bin/env python3
"""The repository's own linter: `./lab lint`, and without --tidy a test of its own (label lint).

Checks, each a function that yields (path, line, message):
  format     clang-format-19 agrees
  sizes      lines <= 100, files <= 900 lines, functions <= 70 lines, READMEs <= 60 lines and one per folder
  arrows     includes follow the dependency rule of the design, and no two folders include each other
  tokens     clocks, randomness, threads and unordered iteration only where allowed; no asserts, no bare TODO
  includes   a .cc file includes its own header first, which proves that the header stands alone
  top        nothing lies at the top that the design does not name
  tidy       clang-tidy-19, remembered by content (only with --tidy)
"""

import argparse
import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys

LINE_MAX = 100
FILE_MAX = 900
FUNCTION_MAX = 70
README_MAX = 60

CODE = (".h", ".cc")

# Folder -> folders it may include, besides itself and its own subfolders. The longest prefix decides.
ARROWS = {
    "storage/base": [],
    "storage/runtime": ["storage/base"],
    "storage/block": ["storage/base", "storage/runtime"],
    "storage/volume": ["storage/base", "storage/runtime", "storage/block"],
    "storage/pool": ["storage/base", "storage/runtime", "storage/block"],
    "storage/fs": ["storage/base", "storage/runtime", "storage/block", "storage/volume", "storage/pool"],
    "storage/fuse": ["storage"],
    "storage/tool": ["storage"],
    "proto": ["storage/base"],
    "tests": ["storage", "proto", "agent", "controller"],
}


def arrows_within(top, below, known):
    """The arrows inside a folder: each part may know what all may, and the parts that it names."""
    for part, others in known.items():
        ARROWS[f"{top}/{part}"] = below + [f"{top}/{other}" for other in others]


arrows_within("agent", ["storage", "proto"], {
    "exec": [],
    "inventory": ["exec", "stack"],
    "session": ["exec", "inventory", "telemetry", "worker"],
    "stack": ["exec"],
    "telemetry": [],
    "worker": ["exec", "inventory", "stack", "workload"],
    "workload": ["exec"],
})
arrows_within("controller", ["proto", "storage/base"], {
    "api": ["catalog", "compare", "fleet", "http", "plan", "run"],
    "catalog": [],
    "cli": ["api", "compare", "plan", "report"],
    "compare": ["plan"],
    "fleet": ["catalog", "run"],
    "http": [],
    "plan": [],
    "report": ["compare", "plan"],
    "run": ["catalog", "compare", "plan"],
})

TOP = {
    "CMakeLists.txt", "CMakePresets.json", "README.md", "LICENSE", "lab",
    "proto", "controller", "agent", "storage", "playbooks", "tests",
}

# What may not be named where the same seed must give the same execution, and the files that are the one
# door to it.
DETERMINISTIC = ("storage/", "agent/workload/", "controller/plan/")
DOORS = {
    "storage/base/clock.cc": "reads the host's clock for everybody",
    "storage/base/clock.h": "declares it",
    "storage/runtime/host_env.h": "the host's time, for those who are given it",
    "storage/runtime/host_env.cc": "sleeps in real time",
    "storage/runtime/thread_reactor.h": "real time, and the threads that make system calls",
    "storage/runtime/thread_reactor.cc": "real time, and the threads that make system calls",
    "storage/runtime/uring_reactor.h": "real time",
    "storage/runtime/host_launcher.cc": "gives each client on a host file system its thread",
}
NONDETERMINISTIC = re.compile(
    r"\b(system_clock|steady_clock|high_resolution_clock|clock_gettime|gettimeofday|random_device|mt19937|"
    r"default_random_engine|unordered_map|unordered_set|std::thread|std::jthread|std::async|sleep_for|"
    r"sleep_until|usleep|nanosleep|clock_nanosleep|MonotonicClock|WallClockNow|getrandom)\b|\b(?:s?rand|time)\(")
EVERYWHERE = [
    (re.compile(r"\bassert\("), "use LABRACK_CHECK for invariants and Result for what can happen"),
    (re.compile(r"\busing namespace std;"), "name what is used"),
    (re.compile(r"\bTODO\b(?!\(#\d+\))"), "TODO needs an issue number: TODO(#12)"),
    (re.compile(r"\bNOLINT\b(?!(NEXTLINE|BEGIN|END)?\([a-z])"), "NOLINT names the check that it silences"),
    (re.compile(r"\bstd::endl\b"), "'\\n' does not flush"),
]


def tracked_files(root):
    out = subprocess.run(["git", "-C", root, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                         capture_output=True, check=True).stdout
    names = sorted(name for name in out.decode().split("\0") if name)
    return [name for name in names if os.path.isfile(os.path.join(root, name))]


class Tree:
    def __init__(self, root):
        self.root = pathlib.Path(root)
        self.files = tracked_files(root)
        self.code = [f for f in self.files if f.endswith(CODE)]
        self.lines = {f: (self.root / f).read_text(errors="replace").splitlines() for f in self.code}

    def folders(self):
        return sorted({os.path.dirname(f) for f in self.files if "/" in f and not f.startswith(".")})


def check_format(tree):
    if not tree.code:
        return
    run = subprocess.run(["clang-format-19", "--dry-run", "--Werror", *tree.code], cwd=tree.root,
                         capture_output=True, text=True)
    seen = set()
    for match in re.finditer(r"^([^\s:]+):(\d+):\d+: error", run.stderr, re.M):
        if match[1] not in seen:
            seen.add(match[1])
            yield match[1], int(match[2]), "clang-format-19 would change this file"


def function_lengths(lines):
    """(first line, length) of functions: in our format a body ends with `}` in the column where it began."""
    opening = re.compile(r"^( *)(?!namespace|class|struct|enum|union|extern|else|if|for|while|switch|do\b|case|"
                         r"return|public|private|try|catch|\}|#|//|\*).*[\w)>] (const |override |noexcept |final |-> .*)*\{$|"
                         r"^( *)[^ ].*\)( const| override| noexcept| final|: .*| -> .*)* \{$")
    at = 0
    while at < len(lines):
        line = lines[at]
        match = opening.match(line)
        if match and "(" in "".join(lines[max(0, at - 6):at + 1]) and not line.lstrip().startswith(
                ("if ", "for ", "while ", "switch ", "} else", "do ", "namespace", "class ", "struct ", "enum ")):
            indent = len(line) - len(line.lstrip())
            # A definition at the outermost level of a namespace or directly inside a class.
            if indent <= 2:
                end = at + 1
                while end < len(lines) and not (lines[end].startswith(" " * indent + "}") and
                                                not lines[end].startswith(" " * indent + "} ")):
                    end += 1
                yield at + 1, end - at + 1
                at = end
        at += 1


def check_sizes(tree):
    for name in tree.code:
        lines = tree.lines[name]
        if len(lines) > FILE_MAX:
            yield name, len(lines), f"{len(lines)} lines; a file has at most {FILE_MAX}"
        for number, line in enumerate(lines, 1):
            if len(line) > LINE_MAX and "http" not in line and "R\"" not in line:
                yield name, number, f"{len(line)} characters; a line has at most {LINE_MAX}"
        for number, length in function_lengths(lines):
            if length > FUNCTION_MAX:
                yield name, number, f"a function of {length} lines; the limit is {FUNCTION_MAX}"
    for name in tree.files:
        if os.path.basename(name) == "README.md" and "/" in name:
            count = len((tree.root / name).read_text().splitlines())
            if count > README_MAX:
                yield name, count, f"{count} lines; a folder's README has at most {README_MAX}"
    with_code = {os.path.dirname(f) for f in tree.files if f.endswith(CODE + (".proto", ".yaml"))}
    for folder in sorted(with_code):
        if not folder or "corpus" in folder or "golden" in folder or folder.startswith("proto/labrack"):
            continue
        if f"{folder}/README.md" not in tree.files:
            yield folder, 0, "a folder has a README.md: purpose, a picture, entry points, invariants"


def rule_of(folder):
    best = None
    for prefix in ARROWS:
        if (folder == prefix or folder.startswith(prefix + "/")) and (best is None or len(prefix) > len(best)):
            best = prefix
    return best


def project_includes(tree, name):
    for number, line in enumerate(tree.lines[name], 1):
        match = re.match(r'\s*#include "([^"]+)"', line)
        if match:
            target = match[1]
            if target.startswith("labrack/v1/"):
                target = "proto/" + target
            yield number, target


def folder_of(path):
    """storage/base/config/tree.h -> storage/base (the unit that has arrows)."""
    return "/".join(path.split("/")[:2])


def check_arrows(tree):
    edges = {}
    for name in tree.code:
        own = os.path.dirname(name)
        rule = rule_of(own)
        if rule is None:
            yield name, 1, f"folder {own} has no place in the dependency rule"
            continue
        for number, target in project_includes(tree, name):
            folder = os.path.dirname(target)
            if "/" not in target:
                yield name, number, f'include "{target}" by its path from the top'
                continue
            if folder == rule or folder.startswith(rule + "/") or target.startswith(rule + "/"):
                pass
            elif not any(folder == a or folder.startswith(a + "/") for a in ARROWS[rule]):
                allowed = ", ".join(ARROWS[rule]) or "nothing else"
                yield name, number, f"{own} may not know {folder}; {rule} may know: {allowed}"
            a, b = folder_of(own + "/x"), folder_of(target)
            if a != b and not own.startswith("tests"):
                edges.setdefault((a, b), (name, number))
    for (a, b), (name, number) in sorted(edges.items()):
        if a < b and (b, a) in edges:
            other = edges[(b, a)]
            yield name, number, f"{a} and {b} include each other (back at {other[0]}:{other[1]})"


def strip_comment(line):
    return re.sub(r'"(?:[^"\\]|\\.)*"', '""', line).split("//")[0]


def check_tokens(tree):
    for name in tree.code:
        guarded = name.startswith(DETERMINISTIC) and name not in DOORS
        for number, line in enumerate(tree.lines[name], 1):
            code = strip_comment(line)
            if guarded:
                match = NONDETERMINISTIC.search(code)
                if match:
                    yield name, number, f"`{match[0]}` is not deterministic; take time, seeds and threads from outside"
            for pattern, advice in EVERYWHERE:
                text = line if pattern.pattern.startswith((r"\bTODO", r"\bNOLINT")) else code
                if pattern.search(text) and "static_assert" not in code:
                    yield name, number, advice


def check_includes(tree):
    known = set(tree.code)
    for name in tree.code:
        if not name.endswith(".cc"):
            continue
        own = name[:-3] + ".h"
        if own not in known:
            continue
        first = next((target for _, target in project_includes(tree, name)), None)
        includes = [line for line in tree.lines[name] if line.startswith("#include")]
        if first != own or not includes or f'"{own}"' not in includes[0]:
            yield name, 1, f'its own header "{own}" comes first'


def check_top(tree):
    for name in sorted({f.split("/")[0] for f in tree.files}):
        if not name.startswith(".") and name not in TOP:
            yield name, 0, "the top level is fixed by the design; this belongs into the folder that owns it"


def include_closure(tree, name, cache):
    if name in cache:
        return cache[name]
    cache[name] = {name}
    reached = {name}
    for _, target in project_includes(tree, name):
        if target in tree.lines:
            reached |= include_closure(tree, target, cache)
    cache[name] = reached
    return reached


def check_tidy(tree, build):
    with open(os.path.join(build, "compile_commands.json")) as file:
        commands = {os.path.relpath(c["file"], tree.root): c for c in json.load(file)}
    store = pathlib.Path(build) / "tidy"
    store.mkdir(exist_ok=True)
    settings = (tree.root / ".clang-tidy").read_bytes()
    protos = b"".join((tree.root / f).read_bytes() for f in tree.files if f.endswith(".proto"))
    cache = {}

    def one(name):
        digest = hashlib.sha256(settings + protos + commands[name].get("command", "").encode())
        for part in sorted(include_closure(tree, name, cache)):
            digest.update((tree.root / part).read_bytes())
        stamp = store / digest.hexdigest()
        if stamp.exists():
            return []
        run = subprocess.run(["clang-tidy-19", "--quiet", "-p", build, name], cwd=tree.root, capture_output=True,
                             text=True)
        found = re.findall(r"^(\S+?):(\d+):\d+: (?:error|warning): (.*)$", run.stdout, re.M)
        if not found and run.returncode == 0:
            stamp.touch()
        elif not found:
            return [(name, 1, "clang-tidy-19 failed: " + run.stderr.strip()[-200:])]
        return [(os.path.relpath(path, tree.root), int(line), text) for path, line, text in found]

    names = [f for f in tree.code if f in commands]
    for name in names:
        include_closure(tree, name, cache)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        seen = set()
        for findings in pool.map(one, names):
            for finding in findings:
                if finding not in seen:
                    seen.add(finding)
                    yield finding


CHECKS = [check_format, check_sizes, check_arrows, check_tokens, check_includes, check_top]


def main():
    parser = argparse.ArgumentParser(description="labrack's linter")
    parser.add_argument("--root", default=str(pathlib.Path(__file__).resolve().parents[2]))
    parser.add_argument("--tidy", metavar="BUILD", help="also run clang-tidy-19 with this build folder's commands")
    arguments = parser.parse_args()
    tree = Tree(arguments.root)
    findings = [finding for check in CHECKS for finding in check(tree)]
    if arguments.tidy:
        findings += list(check_tidy(tree, arguments.tidy))
    for path, line, message in findings:
        print(f"{path}:{line}: {message}")
    print(f"lint: {len(tree.code)} files of code, {len(findings)} findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
