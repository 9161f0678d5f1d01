#pragma once

#include <sys/types.h>

#include <cstddef>

namespace torpor::emulator {

// What a process copies: to a GPU, from pinned host memory or from another GPU.
struct CopyWay {
  static constexpr int kHost = -1;
  int from = kHost;
  int to = 0;
};

// A process of its own with the emulated driver, which copies when it is asked to. It must be made
// where the driver has not been started. A failure ends both processes.
class CopyingProcess {
 public:
  // Returns when it is ready to copy `size` bytes.
  CopyingProcess(CopyWay way, std::size_t size);
  ~CopyingProcess();
  CopyingProcess(const CopyingProcess&) = delete;
  CopyingProcess& operator=(const CopyingProcess&) = delete;

  void StartCopy() const;
  void AwaitCopy() const;

 private:
  int requests_[2] = {-1, -1};
  int answers_[2] = {-1, -1};
  pid_t child_ = -1;
};

}  // namespace torpor::emulator
