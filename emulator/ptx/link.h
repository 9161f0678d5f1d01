#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "emulator/ptx/module.h"

namespace torpor::ptx {

enum class LinkError { kDuplicate, kUndefined };

// A translation unit to link.
struct LinkPart {
  std::string name;  // for messages
  Module module;
};

// Links several translation units to one module, as nvlink does. A .visible name must be defined
// once. The first part with a .weak name defines it, the largest definition of a .common name wins,
// and names without linkage stay separate. Arrays of dynamic shared memory with one name are one
// array.
//
// Every name in use needs a definition, in a part or, for functions, by the system:
// `is_system_function` tells, and such a function has no body afterwards. The message of a failure
// names the symbols and the parts.
Result<Module, LinkError> Link(std::vector<LinkPart> parts,
                               bool (*is_system_function)(std::string_view name));

}  // namespace torpor::ptx
