#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "emulator/ptx/module.h"

namespace torpor::ptx {

enum class LinkError { kDuplicate, kUndefined };

struct LinkPart {
  std::string name;  // for messages
  Module module;
};

// Makes one module of several translation units, as nvlink does. A name that is .visible is
// defined once; .weak ones are defined by the first part that has them, .common ones by the largest
// definition; names without linkage stay apart. Arrays of dynamic shared memory that have one name
// are one array.
//
// What is used must be defined, in a part or, if it is a function, by the system:
// `is_system_function` tells, and such a function has no body afterwards. The message of a failure
// names the symbols and the parts.
Result<Module, LinkError> Link(std::vector<LinkPart> parts,
                               bool (*is_system_function)(std::string_view name));

}  // namespace torpor::ptx
