"""Texts that are Python literals, or nearly, and what ast.literal_eval makes of them.

python_literals.py SEED COUNT: writes COUNT lines of JSON, each an object with the `text`, and with what Python prints of the value
that JSON has for it, `printed`; without that where Python refuses the text, or JSON has no place for its value.
"""

import ast
import json
import random
import sys
import warnings

TEXTS = ["a", "kube_tag", "ü", "\U0001f600", "it's", 'say "x"', "", " ", "#", "{", "\t", "\ufffd"]
ESCAPES = ["\\n", "\\'", '\\"', "\\\\", "\\q", "\\101", "\\7", "\\x41", "\\xe9", "\\u00e4", "\\U0001F600", "\\N{BULLET}",
           "\\N{no such}", "\\\n", "\\ud800", "\\udc00x", "\\x4", "\\u12", "\\a", "\\0", "\\400", "\\777", "\\U00110000"]
PREFIXES = ["", "", "", "", "u", "U", "r", "R", "b", "B", "rb", "bR", "Rb", "ur", "f", "x"]
QUOTES = ["'", '"', "'''", '"""']
NUMBERS = ["0", "1", "42", "007", "00", "0_0", "1_0", "1__0", "1_", "0x10", "0XfF", "0x", "0o17", "0b11", "0b2", ".5", "5.", "1.5",
           "1e-7", "1e-5", "1E5", "1e999", "1_0.5_0e1_0", "9007199254740993", "9007199254740993.0", "18446744073709551616",
           "123456789012345678901234567890", "0xffffffffffffffffff", "1j", "3.14J", "0777", "1.2.3", "1e", "0.1", "1e22",
           "1e16", "123456.789e3"]
LONG = ["9" * 4300, "9" * 4301]
WORDS = ["True", "False", "None", "...", "true", "null", "nan", "inf", "set()", "dict()", "a.b", "lambda: 1", "x for x in y"]
BLANKS = ["", "", "", " ", "  ", "\t", "\n", " # note\n", "\\\n", "\r\n", "\f"]


class Generator:
    """Writes one text after the other, by a seed."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def pick(self, values):
        return self.random.choice(values)

    def string(self):
        quote = self.pick(QUOTES)
        parts = [self.pick(TEXTS if self.random.random() < 0.6 else ESCAPES) for _ in range(self.random.randrange(4))]
        if self.random.random() < 0.05:
            parts.append("\n")
        text = self.pick(PREFIXES) + quote + "".join(parts) + quote
        if self.random.random() < 0.1:
            text += self.pick(BLANKS) + self.string()
        return text

    def number(self):
        text = self.pick(NUMBERS if self.random.random() < 0.999 else LONG)
        chance = self.random.random()
        if chance < 0.2:
            text = self.pick(["-", "+", "- ", "--", "~", "not "]) + text
        elif chance < 0.23:
            text += self.pick(["+", "-", "*"]) + self.pick(NUMBERS)
        return text

    def value(self, depth):
        kind = self.random.random()
        if depth > 3 or kind < 0.35:
            return self.string()
        if kind < 0.6:
            return self.number()
        if kind < 0.68:
            return self.pick(WORDS)
        if kind < 0.84:
            return self.dictionary(depth)
        return self.sequence(depth)

    def blank(self):
        return self.pick(BLANKS)

    def items(self, write):
        items = [self.blank() + write() + self.blank() for _ in range(self.random.randrange(4))]
        text = ",".join(items)
        if items and self.random.random() < 0.2:
            text += "," + self.blank()
        return text

    def dictionary(self, depth):
        def item():
            key = self.string() if self.random.random() < 0.95 else self.value(depth + 1)
            return key + self.blank() + ":" + self.blank() + self.value(depth + 1)

        return "{" + self.items(item) + "}"

    def sequence(self, depth):
        opening, closing = self.pick(["[]", "[]", "()", "{}"])
        return opening + self.items(lambda: self.value(depth + 1)) + closing

    def text(self):
        text = self.value(0)
        chance = self.random.random()
        if chance < 0.1:
            text = self.blank() + text + self.blank()
        elif chance < 0.13:
            text = text + ", " + self.value(1)
        elif chance < 0.25 and text:
            at = self.random.randrange(len(text))
            insert = self.pick(["", "'", '"', "(", ")", ",", ":", " ", "\\", "0", "\0", "-", "1", "=", "$", "u"])
            text = text[:at] + insert + text[at + self.random.randrange(2):]
        return text


class Misfit(Exception):
    """JSON has no place for it."""


def as_json(value):
    """What JSON has for a value of Python."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError as error:
            raise Misfit from error
    if isinstance(value, str):
        if any("\ud800" <= character <= "\udfff" for character in value):
            raise Misfit
        return value
    if isinstance(value, int):
        return value
    if isinstance(value, float):
        if value in (float("inf"), float("-inf")):
            raise Misfit
        return value
    if isinstance(value, (list, tuple)):
        return [as_json(item) for item in value]
    if isinstance(value, dict):
        if not all(isinstance(key, (str, bytes)) for key in value):
            raise Misfit
        return {as_json(key): as_json(item) for key, item in value.items()}
    raise Misfit


def read(text):
    """What JSON has for what a text says."""
    value = as_json(ast.literal_eval(text))
    # What a later item with the same key has replaced is read as well.
    for node in ast.walk(ast.parse(text.lstrip(" \t"), mode="eval")):
        if isinstance(node, ast.Dict):
            for part in node.keys + node.values:
                as_json(ast.literal_eval(part))
    return value


def main():
    seed, count = sys.argv[1:]
    warnings.simplefilter("ignore")
    generator = Generator(int(seed))
    for _ in range(int(count)):
        text = generator.text()
        line = {"text": text}
        try:
            line["printed"] = repr(read(text))
        except (ArithmeticError, MemoryError, RecursionError, SyntaxError, TypeError, ValueError, Misfit):
            pass
        print(json.dumps(line))


main()
