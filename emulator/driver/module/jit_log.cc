#include "emulator/driver/module/jit_log.h"

#include <algorithm>
#include <cstdint>

#include "emulator/driver/base/messages.h"

namespace torpor::emulator {
namespace {

// Returns a pointer to the option's value, or null if the caller did not set it.
void** FindOption(CUjit_option wanted, std::span<const CUjit_option> options, void** values) {
  const auto found = std::find(options.begin(), options.end(), wanted);
  return found == options.end() ? nullptr : values + (found - options.begin());
}

}  // namespace

JitLog::JitLog(unsigned count, const CUjit_option* options, void** values) {
  if (options == nullptr || values == nullptr) return;
  const std::span<const CUjit_option> given(options, count);
  const auto open = [&](CUjit_option text, CUjit_option size) {
    Buffer buffer;
    buffer.size_option = FindOption(size, given, values);
    void** const start = FindOption(text, given, values);
    if (start == nullptr || *start == nullptr || buffer.size_option == nullptr) return Buffer{};
    buffer.text = {static_cast<char*>(*start),
                   reinterpret_cast<std::uintptr_t>(*buffer.size_option)};
    Append(buffer, {});
    return buffer;
  };
  errors_ = open(CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES);
  // There is nothing to tell but errors: the other buffer is emptied.
  open(CU_JIT_INFO_LOG_BUFFER, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES);
}

void JitLog::Tell(std::string_view message) {
  if (errors_.text.empty()) return Say(message);
  Append(errors_, message);
  Append(errors_, "\n");
}

// Appends as much as fits, and keeps the text terminated by NUL.
void JitLog::Append(Buffer& buffer, std::string_view line) {
  if (buffer.text.empty()) return;
  const std::size_t room = buffer.text.size() - buffer.used - 1;
  line = line.substr(0, room);
  std::copy(line.begin(), line.end(),
            buffer.text.begin() + static_cast<std::ptrdiff_t>(buffer.used));
  buffer.used += line.size();
  buffer.text[buffer.used] = '\0';
  *buffer.size_option = reinterpret_cast<void*>(buffer.used);
}

}  // namespace torpor::emulator
