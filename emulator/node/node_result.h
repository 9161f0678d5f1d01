#pragma once

#include "base/result.h"

namespace torpor::emulator {

enum class NodeError {
  kUnreadable,  // a file is missing, or the system refuses it
  kInvalid,     // its content makes no sense
};

template <typename T>
using NodeResult = Result<T, NodeError>;

}  // namespace torpor::emulator
