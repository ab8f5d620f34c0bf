#!/usr/bin/env python3
"""Writes the results of Python's jinja2 for the templates of the tests, in the environment of Hugging Face's transformers.

Run it in this folder with jinja2 3.1 installed: python3 goldens.py
It reads templates/*.jinja and writes goldens.json.
"""

import datetime
import json
import pathlib

import jinja2
import jinja2.ext
import jinja2.sandbox

# The time of strftime_now.
NOW = datetime.datetime(2026, 3, 7, 9, 5, 2)

HERE = pathlib.Path(__file__).parent


class Generation(jinja2.ext.Extension):
    """The tag with which templates mark the assistant's text; the text is output unchanged."""

    tags = {"generation"}

    def parse(self, parser):
        next(parser.stream)
        return parser.parse_statements(["name:endgeneration"], drop_needle=True)


def environment():
    """The environment of transformers' apply_chat_template."""

    def raise_exception(message):
        raise jinja2.exceptions.TemplateError(message)

    def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
        return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)

    env = jinja2.sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols]
    )
    env.filters["tojson"] = tojson
    env.globals["raise_exception"] = raise_exception
    env.globals["strftime_now"] = NOW.strftime
    return env


def render(source, variables):
    """The result of a template with variables; {"error": true} if it fails."""
    try:
        return {"text": environment().from_string(source).render(**variables)}
    except Exception as e:  # any kind: the tests check only that there is one
        return {"error": True, "why": f"{type(e).__name__}: {e}"}


def write(path, value):
    path.write_text(json.dumps(value, indent=1, ensure_ascii=False) + "\n")


CONVERSATIONS = {
    "one": [{"role": "user", "content": "What is a mixture of experts?"}],
    "system": [
        {"role": "system", "content": "You are terse."},
        {"role": "user", "content": "  Count to three. "},
    ],
    "turns": [
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": "Hello! \n"},
        {"role": "user", "content": "Why is the sky blue?\nIn one line."},
        {"role": "assistant", "content": "<think>\nRayleigh\n</think>\n\nScattering."},
        {"role": "user", "content": "日本語 🙂 {{ not a tag }} {% nor this %}"},
    ],
    "two users": [{"role": "user", "content": "a"}, {"role": "user", "content": "b"}],
}


def chats():
    cases = []
    for path in sorted((HERE / "templates").glob("*.jinja")):
        for name, messages in CONVERSATIONS.items():
            for prompt in (True, False):
                variables = {
                    "messages": messages,
                    "bos_token": "<s>",
                    "eos_token": "</s>",
                    "add_generation_prompt": prompt,
                    "tools": None,
                    "documents": None,
                }
                cases.append(
                    {
                        "template": path.name,
                        "conversation": name,
                        "generation_prompt": prompt,
                        **render(path.read_text(), variables),
                    }
                )
    write(HERE / "goldens.json", {"conversations": CONVERSATIONS, "cases": cases})


if __name__ == "__main__":
    chats()
