#pragma once

#include <string>

namespace torpor::emulator {

// Keeps the first error of a translation, as later errors often follow from the first. Not
// thread-safe.
class FirstError {
 public:
  void Set(const std::string& message) {
    if (message_.empty()) message_ = message;
  }
  bool occurred() const { return !message_.empty(); }
  // Empty if no error occurred.
  const std::string& message() const { return message_; }

 private:
  std::string message_;
};

}  // namespace torpor::emulator
