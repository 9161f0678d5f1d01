#pragma once

#include "base/result.h"

namespace torpor::emulator {

enum class NodeError {
  kUnreadable,  // a file is missing, or the system refuses it
  kInvalid,     // its content makes no sense
};

// A value, or the reason why a node cannot be described or joined.
template <typename T>
using NodeResult = Result<T, NodeError>;

}  // namespace torpor::emulator
