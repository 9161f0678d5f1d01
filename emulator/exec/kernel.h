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

// One kernel of a module and its compiled variants. Thread-safe.
class Kernel {
 public:
  // `module` must outlive this; `content` names its text.
  Kernel(const ptx::Module& module, std::uint32_t function, std::string content);

  const KernelInfo& info() const { return info_; }
  const KernelLayout& layout() const { return layout_; }
  // Local memory of a warp: its own frame, and room for the functions that it calls.
  std::uint64_t local_bytes_per_warp() const;
  // Whether warps may wait for other warps.
  bool waits() const { return waits_; }
  // Whether threads may spin until another thread, of any block, has done something.
  bool spins() const { return spins_; }
  // Whether threads use texture or surface objects.
  bool accesses_textures() const { return accesses_textures_; }
  // What a block of the last launch took on one core; 0 before the first.
  Duration block_time() const { return block_time_.load(std::memory_order_relaxed); }
  void set_block_time(Duration time) { block_time_.store(time, std::memory_order_relaxed); }

  // Compiles, or finds compiled, the variant for a block of this shape.
  ExecResult<KernelCode> Code(const Dim3& block);

 private:
  void FillInfo();
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
