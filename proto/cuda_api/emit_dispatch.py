"""Emits the server's side: an abstract handler with a method a command, and the dispatch."""



def handler_header(library):
    methods = []
    for command in library.commands:
        if command.note:
            methods.append(f"  // {command.note}")
        result = f", wire::{command.name}Result& result" if command.result is not None else ""
        argument = f"const wire::{command.name}& command"
        methods.append(f"  virtual CallStatus {command.name}({argument}{result}) = 0;")
    prefix = library.prefix
    return f"""\
// Generated from proto/cuda_api/{library.name}.py by generator.py. Do not edit.
#pragma once

#include <cstdint>
#include <span>

#include "absl/status/status.h"
#include "proto/cuda_api/call_outcome.h"
#include "proto/cuda_api/{library.name}_commands.h"

namespace torpor::cuda_api {{

// Carries out the commands of one session. Ids and addresses in a command are the client's words:
// the handler checks that they are the session's own. Spans live only as long as the call.
class {prefix}Handler {{
 public:
  virtual ~{prefix}Handler() = default;

{chr(10).join(methods)}
}};

// Whether the table has a command of this id.
bool Is{prefix}Call(std::uint32_t call_id);

// Decodes one command (`fields`: without its CommandHeader) and has the handler carry it out.
// `outcome` is overwritten. An error means that the bytes are no such command: the handler was not
// called, and the client is broken or hostile. How the call itself went is in `outcome`.
absl::Status Dispatch{prefix}({prefix}Handler& handler, std::uint32_t call_id,
                              std::span<const std::uint8_t> fields, CallOutcome& outcome);

}}  // namespace torpor::cuda_api
"""


def dispatch_source(library):
    prefix = library.prefix
    cases = []
    for command in library.commands:
        run = "RunSync" if command.result is not None else "RunStream"
        result = f", wire::{command.name}Result" if command.result is not None else ""
        cases.append(f"    case wire::{command.name}::kCallId:\n"
                     f"      return {run}<wire::{command.name}{result}>(\n"
                     f"          handler, &{prefix}Handler::{command.name}, fields, outcome);")
    ids = "\n".join(f"    case wire::{command.name}::kCallId:" for command in library.commands)
    return f"""\
// Generated from proto/cuda_api/{library.name}.py by generator.py. Do not edit.
#include "proto/cuda_api/{library.name}_dispatch.h"

#include "proto/cuda_api/run_command.h"

namespace torpor::cuda_api {{

bool Is{prefix}Call(std::uint32_t call_id) {{
  switch (call_id) {{
{ids}
      return true;
    default:
      return false;
  }}
}}

absl::Status Dispatch{prefix}({prefix}Handler& handler, std::uint32_t call_id,
                              std::span<const std::uint8_t> fields, CallOutcome& outcome) {{
  switch (call_id) {{
{chr(10).join(cases)}
    default:
      return UnknownCall(call_id);
  }}
}}

}}  // namespace torpor::cuda_api
"""
