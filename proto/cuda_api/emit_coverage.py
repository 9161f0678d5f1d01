"""Emits coverage.md's section on one library: which exported symbols answer, and how."""

from surface import Answer
from vocabulary import SYNC, ScalarResult, SizeAnswer

_MEANINGS = {
    Answer.CUSTOM: "hand-written in the client; remoted by the table's commands where it must be",
    Answer.REMOTED: "generated whole from a line of the table",
    Answer.LOCAL: "a constant, answered in the client",
    Answer.VARIANT: "generated: calls its base with another default stream",
    Answer.TRANSLATED: "generated: an expression, mostly a call of what does the same",
    Answer.UNSUPPORTED: "says so once and returns the library's \"not supported\" error",
}


def section(library, exports):
    supported = [e for e in exports if e.answer is not Answer.UNSUPPORTED]
    lines = [f"## {library.soname}", "",
             f"{len(supported)} of {len(exports)} exported symbols answer.", "",
             "| answer | symbols | what it means |", "| --- | --- | --- |"]
    for answer, meaning in _MEANINGS.items():
        count = sum(e.answer is answer for e in exports)
        if count:
            lines.append(f"| {answer.value} | {count} | {meaning} |")
    lines += [""] + _commands(library)
    lines += ["| symbol | answer | order |", "| --- | --- | --- |"]
    lines += [f"| `{e.name}` | {e.answer.value} | {_order(e)} |" for e in exports]
    return "\n".join(lines) + "\n"


def _commands(library):
    if not library.wire_commands:
        return []
    sync = sum(c.order is SYNC for c in library.wire_commands)
    return [f"On the wire: {len(library.wire_commands)} commands, {sync} of them synchronous.", ""]


def _order(export):
    if export.answer is Answer.REMOTED:
        if any(isinstance(w, SizeAnswer) for w in export.line.parameters.values()):
            return "sync, once for each question"
        if export.line.host_function:
            return "local where the result goes to the host, else stream"
        returns = any(isinstance(w, ScalarResult) for w in export.line.parameters.values())
        return "sync where the result goes to the host, else stream" if returns else "stream"
    if export.answer in (Answer.TRANSLATED, Answer.UNSUPPORTED):
        return ""
    return export.line.order.value
