#pragma once

#include <cuda.h>

#include <span>
#include <string_view>

namespace torpor::emulator {

// The caller's log buffers among the options of cuModuleLoadDataEx and cuLinkCreate. Options that
// tune a compiler are ignored. Not thread-safe.
class JitLog {
 public:
  // Both arrays have `count` elements and must outlive the log; sizes are written back into
  // `values`.
  JitLog(unsigned count, const CUjit_option* options, void** values);

  // Appends a line to the caller's error buffer, or passes `message` to Say if the caller gave
  // none.
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
