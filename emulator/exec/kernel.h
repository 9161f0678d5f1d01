#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "base/clock.h"
#include "emulator/exec/codegen/builder/kernel_layout.h"
#include "emulator/exec/jit/jit.h"
#include "emulator/exec/jit/object_cache.h"
#include "emulator/exec/program.h"
#include "emulator/ptx/lane_shape.h"
#include "emulator/ptx/module.h"

namespace torpor::emulator {

// A kernel of a module and the variants compiled for different shapes of blocks. Thread-safe.
class Kernel {
 public:
  // `module` must outlive the kernel. `content` is a hash of the module's text, for cache keys.
  Kernel(const ptx::Module& module, std::uint32_t function, std::string content);

  const KernelInfo& info() const { return info_; }
  const KernelLayout& layout() const { return layout_; }
  // Bytes of local memory of a warp: the kernel's frame, and room for the functions called.
  std::uint64_t local_bytes_per_warp() const;
  // Whether warps may wait for other warps.
  bool waits() const { return waits_; }
  // Whether threads may spin until another thread, of any block, has done something.
  bool spins() const { return spins_; }
  // Whether threads use texture or surface objects.
  bool accesses_textures() const { return accesses_textures_; }
  // Time of a block on one core during the last launch; 0 before the first launch.
  Duration block_time() const { return block_time_.load(std::memory_order_relaxed); }
  void set_block_time(Duration time) { block_time_.store(time, std::memory_order_relaxed); }

  // Returns the variant for blocks of this shape, compiled now, read from the cache or found in
  // memory. The code stays valid while the kernel lives.
  ExecResult<KernelCode> Code(const Dim3& block);

 private:
  void FillInfo();
  bool Calls(std::string_view name) const;
  bool FindBarriers() const;
  bool FindSpins() const;
  bool FindTextureAccesses() const;
  std::string KeyOf(const ptx::BlockShape& shape) const;
  ExecResult<std::unique_ptr<LoadedCode>> Build(const ptx::BlockShape& shape);

  const ptx::Module& module_;
  std::uint32_t function_;
  std::string content_;
  KernelLayout layout_;
  KernelInfo info_;
  bool waits_ = false;
  bool spins_ = false;
  bool accesses_textures_ = false;
  std::atomic<Duration> block_time_ = Duration{};
  std::mutex mutex_;
  std::map<std::string, std::unique_ptr<LoadedCode>> variants_;  // guarded by mutex_
};

}  // namespace torpor::emulator
