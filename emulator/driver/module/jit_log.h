#pragma once

#include <cuda.h>

#include <span>
#include <string_view>

namespace torpor::emulator {

// The log buffers among the options of cuModuleLoadDataEx and cuLinkCreate: where the caller wants
// to read what goes wrong. Options that tune a compiler are none of ours and ignored.
class JitLog {
 public:
  // Both arrays have `count` elements and outlive the log; the buffers' sizes are written back into
  // `values`.
  JitLog(unsigned count, const CUjit_option* options, void** values);

  // Appends a line to the caller's buffer for errors; where there is none, tells the listeners.
  void Tell(std::string_view message);

 private:
  struct Buffer {
    std::span<char> text;
    std::size_t used = 0;
    void** size_option = nullptr;
  };
  static void Append(Buffer& buffer, std::string_view line);

  Buffer errors_;
};

}  // namespace torpor::emulator
