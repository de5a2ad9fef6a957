"""Documents as their readers see them: headings, links, tables, code, and the commands in it."""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token


@dataclass(frozen=True)
class Block:
    """A fenced block of code; `language` is empty when none is named."""

    language: str
    text: str


class Document:
    """A Markdown file, read as GitHub reads it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.text = path.read_text(encoding="utf-8")

    def __repr__(self) -> str:
        return self.path.name

    @cached_property
    def _tokens(self) -> list[Token]:
        return parse(self.text)

    def _inline(self) -> Iterator[Token]:
        for token in self._tokens:
            yield from token.children or []

    @cached_property
    def headings(self) -> list[str]:
        """The headings' texts, without their markup."""
        return [
            "".join(child.content for child in after.children or [])
            for before, after in zip(self._tokens, self._tokens[1:], strict=False)
            if before.type == "heading_open"
        ]

    @cached_property
    def anchors(self) -> list[str]:
        """What a link can name after `#`."""
        return [
            re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in self.headings
        ]

    @cached_property
    def links(self) -> list[str]:
        """Where the links and the pictures lead."""
        return [
            str(t.attrs["href" if t.type == "link_open" else "src"])
            for t in self._inline()
            if t.type in ("link_open", "image")
        ]

    @cached_property
    def blocks(self) -> list[Block]:
        """The fenced blocks, in order."""
        return [Block(t.info, t.content) for t in self._tokens if t.type == "fence"]

    @cached_property
    def spans(self) -> list[str]:
        """The code within lines."""
        return [token.content for token in self._inline() if token.type == "code_inline"]

    @cached_property
    def prose(self) -> str:
        """All text outside of code."""
        return "\n".join(
            "".join(
                " " if c.type == "softbreak" else c.content
                for c in token.children or []
                if c.type in ("text", "softbreak")
            )
            for token in self._tokens
            if token.type == "inline"
        )

    def table(self, *head: str) -> list[list[str]]:
        """The rows below the table head `head`, as written. Raises ValueError without one."""
        lines = iter(self.text.splitlines())
        for line in lines:
            if line.startswith("|") and cells(line) == list(head):
                next(lines)
                rows = []
                for row in lines:
                    if not row.startswith("|"):
                        break
                    rows.append(cells(row))
                return rows
        raise ValueError(f"{self}: no table {head}")

    def blocks_in(self, language: str) -> list[str]:
        """The blocks of one language."""
        return [block.text for block in self.blocks if block.language == language]

    def commands(self) -> Iterator[list[list[str]]]:
        """The commands of each shell block, each a list of words."""
        for text in self.blocks_in("sh"):
            yield list(commands(text))


def parse(text: str) -> list[Token]:
    """The parts of a Markdown text, as GitHub tells them apart."""
    return MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(text)


def cells(row: str) -> list[str]:
    """The cells of one line of a table."""
    return [cell.strip() for cell in row.strip().strip("|").split("|")]


def commands(script: str) -> Iterator[list[str]]:
    """The simple commands in a shell script, those in `$(…)` first; `$(phys X)` is `phys:X`."""
    script = re.sub(r"\$\(phys (\w+)\)", r"phys:\1", script)
    script = re.sub(r"\$\(date \+%s\)", "0", script)
    script = re.sub(r"\$\(\([^()]*\)\)", "0", script)
    while inner := re.search(r"\$\((\w[^()]*)\)", script):
        yield from commands(inner[1])
        script = script.replace(inner[0], "0")
    # A line break ends a command, but for one within quotes or after a backslash.
    for line in re.split(r"(?<!\\)\n(?=(?:[^']*'[^']*')*[^']*\Z)", script):
        lexer = shlex.shlex(line.replace("\\\n", " "), posix=True, punctuation_chars=True)
        lexer.whitespace_split = True
        words: list[str] = []
        for token in [*lexer, ";"]:
            if token not in ("|", ";", "&&", "()", "{", "}"):
                words.append(token)
            elif words:
                yield words
                words = []
