"""Emits the server's side: an abstract handler with a method a command, and the dispatch."""

import re

import emit_cudnn_calls
import emit_server_calls
from vocabulary import call_commands


def server_calls(library):
    """Who emits the calls of the real library."""
    return emit_cudnn_calls if library.name == "cudnn" else emit_server_calls


def handler_class(library, subject, base):
    """The abstract class of a subject's commands, or of all where the library has no subjects."""
    methods = []
    for command in library.commands:
        if subject and library.subject_of(command) != subject:
            continue
        if command.note:
            methods.append(f"  // {command.note}")
        result = f", wire::{command.name}Result& result" if command.result is not None else ""
        argument = f"const wire::{command.name}& command"
        methods.append(f"  virtual CallStatus {command.name}({argument}{result}) = 0;")
    name = f"{library.prefix}{subject}Handler"
    destructor = f"~{name}() override" if base else f"virtual ~{name}()"
    return f"""\
class {name}{base} {{
 public:
  {destructor} = default;

{chr(10).join(methods)}
}};
"""


def member(subject):
    """The name of a subject's handler among the handlers: SharedEvent -> shared_event."""
    return re.sub("(?<!^)([A-Z])", r"_\1", subject).lower()


def handlers_struct(library):
    """What the dispatch takes in place of one handler."""
    prefix = library.prefix
    members = [f"  {prefix}{s}Handler& {member(s)};" for s in library.subjects]
    return f"""
// The handlers of one session, which outlive this.
struct {prefix}Handlers {{
{chr(10).join(members)}
}};
"""


def handler_argument(library):
    """The dispatch's first parameter."""
    if library.subjects:
        return f"const {library.prefix}Handlers& handlers"
    return f"{library.prefix}Handler& handler"


def dispatch_declaration(library):
    head = f"absl::Status Dispatch{library.prefix}("
    return (f"{head}{handler_argument(library)}, std::uint32_t call_id,\n"
            f"{' ' * len(head)}std::span<const std::uint8_t> fields, CallOutcome& outcome)")


def handler_header(library):
    prefix = library.prefix
    include = base = is_work = ""
    if library.calls:
        include = f'\n#include "proto/cuda_api/{library.name}_environment.h"'
        base = f" : public {prefix}Environment"
        is_work = (f"\n// Whether it only enqueues work: it neither answers nor changes a handle.\n"
                   f"bool Is{prefix}Work(std::uint32_t call_id);\n")
    classes = "\n".join(handler_class(library, s, base) for s in library.subjects or [""])
    if library.subjects:
        classes += handlers_struct(library)
    return f"""\
// Generated from proto/cuda_api/{library.name}.py by generator.py. Do not edit.
#pragma once

#include <cstdint>
#include <span>

#include "absl/status/status.h"
#include "proto/cuda_api/call_outcome.h"
#include "proto/cuda_api/{library.name}_commands.h"{include}

namespace torpor::cuda_api {{

// Carries out the commands of one session. Ids and addresses in a command are untrusted: the
// handler checks that the session owns them. Spans are valid during the call only.
{classes}
// Whether the table has a command of this id.
bool Is{prefix}Call(std::uint32_t call_id);
{is_work}
// Decodes one command (`fields`: without the CommandHeader) and has the handler carry it out.
// Overwrites `outcome` with the call's result. An error means that the bytes are no such command:
// the handler was not called, and the client is broken or hostile.
{dispatch_declaration(library)};

}}  // namespace torpor::cuda_api
"""


def is_function(name, commands):
    """Tells whether an id is that of one of the commands."""
    ids = "\n".join(f"    case wire::{c.name}::kCallId:" for c in commands)
    return f"""\
bool {name}(std::uint32_t call_id) {{
  switch (call_id) {{
{ids}
      return true;
    default:
      return false;
  }}
}}
"""


def dispatch_source(library):
    prefix = library.prefix
    cases = []
    called = {c.name for call in library.calls for c in call_commands(call)}
    for command in library.wire_commands:
        name = f"wire::{command.name}"
        run = f"Run{'Sync' if command.result is not None else 'Stream'}"
        types = f"{name}, {name}Result" if command.result is not None else name
        subject = library.subject_of(command) if library.subjects else ""
        handler = f"handlers.{member(subject)}" if subject else "handler"
        method = (f"Invoke<{types}>" if command.name in called
                  else f"&{prefix}{subject}Handler::{command.name}")
        cases.append(f"    case {name}::kCallId:\n"
                     f"      return {run}<{types}>({handler}, {method}, fields, outcome);")
    questions = is_function(f"Is{prefix}Call", library.wire_commands)
    if library.calls:
        work = [c for call in library.calls for c in call_commands(call) if c.result is None]
        questions += "\n" + is_function(f"Is{prefix}Work", work)
    calls = server_calls(library)
    invokes = calls.invoke_functions(library) if library.calls else ""
    include = calls.INCLUDES if library.calls else ""
    return f"""\
// Generated from proto/cuda_api/{library.name}.py by generator.py. Do not edit.
#include "proto/cuda_api/{library.name}_dispatch.h"

{include}#include "proto/cuda_api/run_command.h"

namespace torpor::cuda_api {{
{invokes}
{questions}
{dispatch_declaration(library)} {{
  switch (call_id) {{
{chr(10).join(cases)}
    default:
      return UnknownCall(call_id);
  }}
}}

}}  // namespace torpor::cuda_api
"""


def fake_handler(library):
    """For tests: notes which commands it was given and answers them all alike."""
    prefix = library.prefix
    methods = []
    for command in library.commands:
        result = f", wire::{command.name}Result&" if command.result is not None else ""
        methods.append(f"  CallStatus {command.name}(const wire::{command.name}& command{result})"
                       " override {\n    return Note(command);\n  }")
    bases = ", ".join(f"public {prefix}{s}Handler" for s in library.subjects or [""])
    if library.subjects:
        this = ", ".join(["*this"] * len(library.subjects))
        methods.append(f"  {prefix}Handlers handlers() {{ return {{{this}}}; }}")
    return f"""\
// Generated from proto/cuda_api/{library.name}.py by generator.py. Do not edit.
#pragma once

#include <vector>

#include "proto/cuda_api/{library.name}_dispatch.h"

namespace torpor::cuda_api {{

class Fake{prefix}Handler : {bases} {{
 public:
{chr(10).join(methods)}

  std::vector<std::uint32_t> call_ids;
  CallStatus answer;

 private:
  template <typename Command>
  CallStatus Note(const Command&) {{
    call_ids.push_back(Command::kCallId);
    return answer;
  }}
}};

}}  // namespace torpor::cuda_api
"""
