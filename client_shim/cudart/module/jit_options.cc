#include "client_shim/cudart/module/jit_options.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace torpor::shim {

void JitOptions::Report(const std::string& errors) const {
  WriteLog(cudaJitInfoLogBuffer, cudaJitInfoLogBufferSizeBytes, {});
  WriteLog(cudaJitErrorLogBuffer, cudaJitErrorLogBufferSizeBytes, errors);
  // CUDA passes the float itself in the pointer.
  constexpr float kNoTime = 0;
  if (void** const wall_time = Find(cudaJitWallTime))
    std::memcpy(wall_time, &kNoTime, sizeof kNoTime);
}

void** JitOptions::Find(cudaJitOption option) const {
  const auto* const end = options_ + count_;
  const auto* const found = std::find(options_, end, option);
  return found == end ? nullptr : values_ + (found - options_);
}

void JitOptions::WriteLog(cudaJitOption buffer, cudaJitOption bytes,
                          const std::string& text) const {
  void** const target = Find(buffer);
  void** const size = Find(bytes);
  if (!target || !size) return;
  const auto room = static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(*size));
  if (!*target || room == 0) return;
  const std::size_t length = std::min<std::size_t>(text.size(), room - 1);
  auto* const log = static_cast<char*>(*target);
  std::memcpy(log, text.data(), length);
  log[length] = '\0';
  *size = reinterpret_cast<void*>(length);
}

}  // namespace torpor::shim
