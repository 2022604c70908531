#!/usr/bin/env python3
"""Goal: every check of the linter can fail.
Method: a small tree that is clean, then one planted fault at a time, each of which must be found."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import check

CLEAN = {
    "README.md": "# x\n",
    "storage/base/README.md": "# base\n",
    "storage/base/a.h": "#pragma once\n\nint A();\n",
    "storage/base/a.cc": '#include "storage/base/a.h"\n\nint A() { return 1; }\n',
    "controller/plan/README.md": "# plan\n",
    "controller/plan/p.cc": '#include "storage/base/a.h"\n\nint P() { return A(); }\n',
}


class LintTest(unittest.TestCase):
    def findings(self, changes):
        with tempfile.TemporaryDirectory() as root:
            for name, text in {**CLEAN, **changes}.items():
                path = pathlib.Path(root, name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
            pathlib.Path(root, ".clang-format").write_text("BasedOnStyle: Google\nColumnLimit: 100\n")
            subprocess.run(["git", "init", "-q", root], check=True)
            tree = check.Tree(root)
            return [f"{path}: {message}" for c in check.CHECKS for path, _, message in c(tree)]

    def assert_found(self, changes, text):
        found = self.findings(changes)
        self.assertTrue(any(text in finding for finding in found), found)

    def test_clean_tree_has_no_findings(self):
        self.assertEqual(self.findings({}), [])

    def test_arrow_against_the_rule(self):
        self.assert_found({"storage/base/b.cc": '#include "controller/plan/p.h"\n'}, "storage/base may not know")
        self.assert_found({"controller/plan/q.cc": '#include "agent/exec/child.h"\n'}, "may not know agent/exec")
        self.assert_found({"controller/plan/q.cc": '#include "storage/fs/file.h"\n'}, "may not know storage/fs")

    def test_folders_that_include_each_other(self):
        self.assert_found({
            "controller/plan/q.cc": '#include "controller/run/r.h"\n',
            "controller/run/README.md": "# run\n",
            "controller/run/r.cc": '#include "controller/plan/q.h"\n',
        }, "include each other")

    def test_order_within_a_folder(self):
        self.assert_found({
            "agent/stack/s.cc": '#include "agent/session/t.h"\n',
            "agent/session/t.h": "#pragma once\n",
        }, "may not know agent/session")

    def test_nondeterminism(self):
        for token in ["std::random_device d;", "std::thread t;", "int x = rand();", "std::unordered_map<int, int> m;",
                      "auto n = std::chrono::steady_clock::now();", "auto n = MonotonicClock().Now();"]:
            self.assert_found({"controller/plan/q.cc": token + "\n"}, "not deterministic")
        self.assertEqual(self.findings({"controller/plan/q.cc": "// A std::thread is not used here.\n"}), [])

    def test_tokens_banned_everywhere(self):
        self.assert_found({"storage/base/b.cc": "void F() { assert(true); }\n"}, "LABRACK_CHECK")
        self.assert_found({"storage/base/b.cc": "// TO" + "DO: later\n"}, "issue number")
        self.assert_found({"storage/base/b.cc": "int a;  // NO" + "LINT\n"}, "names the check")

    def test_sizes(self):
        body = "".join(f"  x += {i};\n" for i in range(80))
        self.assert_found({"storage/base/b.cc": "void F(int x) {\n" + body + "}\n"}, "a function of 82 lines")
        self.assert_found({"storage/base/b.cc": "int a;\n" * 901}, "a file has at most")
        self.assert_found({"storage/base/b.cc": "// " + "x" * 100 + "\n"}, "a line has at most")
        self.assert_found({"storage/base/README.md": "x\n" * 61}, "README has at most")

    def test_missing_readme(self):
        self.assert_found({"controller/run/r.cc": "int a;\n"}, "a folder has a README.md")

    def test_own_header_first(self):
        self.assert_found({"storage/base/a.cc": '#include <vector>\n\n#include "storage/base/a.h"\n'}, "comes first")

    def test_format(self):
        self.assert_found({"storage/base/b.cc": "int   a ;\n"}, "clang-format-19 would change")

    def test_top_level(self):
        self.assert_found({"scripts/x.py": "\n"}, "top level is fixed")


if __name__ == "__main__":
    os.environ.setdefault("GIT_CONFIG_GLOBAL", "/dev/null")
    unittest.main()
