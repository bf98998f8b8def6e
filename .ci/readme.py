"""Run the Python blocks of Markdown files, each file's blocks in one namespace, from an empty folder."""

import doctest
import os
import pathlib
import re
import sys
import tempfile

FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


def run(path: pathlib.Path) -> int:
    text = path.read_text(encoding="utf-8")
    names: dict[str, object] = {"__name__": "__main__"}
    blocks = 0
    for match in re.finditer(r"^```python\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL):
        code, line = match[1], text[: match.start(1)].count("\n")
        if ">>>" in code:
            test = doctest.DocTestParser().get_doctest(code, names, path.name, str(path), line)
            runner = doctest.DocTestRunner(optionflags=FLAGS)
            if runner.run(test, clear_globs=False).failed:
                sys.exit(f"{path}: the block at line {line + 1} does not print what it says")
            names.update(test.globs)
        else:
            exec(compile("\n" * line + code, str(path), "exec"), names)
        blocks += 1
    return blocks


if __name__ == "__main__":
    files = [pathlib.Path(name).resolve() for name in sys.argv[1:]]
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for file in files:
            print(f"{file.name}: {run(file)} Python blocks ran")
        os.chdir("/")
