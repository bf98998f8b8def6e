"""Check a built site: every link into it leads to a page that is there, and to a heading that the page has."""

import html.parser
import pathlib
import sys
import urllib.parse


class Page(html.parser.HTMLParser):
    """What a page links to, and the places in it that can be linked to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.places: set[str] = {""}
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in ("href", "src") and value is not None:
                self.links.append(value)
            elif name in ("id", "name") and value is not None:
                self.places.add(value)


def broken(root: pathlib.Path) -> list[str]:
    # "_static" has templates of the theme that are no pages
    files = [file for file in root.rglob("*.html") if "_static" not in file.relative_to(root).parts]
    pages = {file: Page(file.read_text(encoding="utf-8")) for file in files}
    faults = []
    for file, page in pages.items():
        for link in page.links:
            parts = urllib.parse.urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (file.parent / urllib.parse.unquote(parts.path)).resolve() if parts.path else file
            place = urllib.parse.unquote(parts.fragment)
            if not target.exists() or (target in pages and place not in pages[target].places):
                faults.append(f"{file.relative_to(root)} links to {link}, which is not there")
    return faults


if __name__ == "__main__":
    site = pathlib.Path(sys.argv[1]).resolve()
    faults = broken(site)
    print(*faults, sep="\n", end="\n" if faults else "")
    sys.exit(f"{len(faults)} links lead nowhere" if faults else 0)
