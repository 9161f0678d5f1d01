#include "emulator/exec/kernel.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "emulator/exec/interface/arena_layout.h"
#include "emulator/exec/jit/compiler.h"
#include "emulator/ptx/control_flow.h"

namespace torpor::emulator {
namespace {

// What the code generator may assume about blocks of this size.
ptx::BlockShape ShapeOf(const Dim3& block) {
  ptx::BlockShape shape;
  shape.whole_rows = block.x % kWarpLanes == 0;
  const bool line = block.y == 1 && block.z == 1;
  if (shape.whole_rows || line) {
    shape.row_lanes = kWarpLanes;
  } else if (block.x >= 4 && std::has_single_bit(block.x) && block.x < kWarpLanes) {
    // Rows of a part of a warp; a warp must not reach into the next plane.
    const bool planes = block.z == 1 || block.y % (kWarpLanes / block.x) == 0;
    if (planes) shape.row_lanes = block.x;
  }
  shape.whole_warps = block.x * block.y * block.z % kWarpLanes == 0;
  return shape;
}

}  // namespace

Kernel::Kernel(const ptx::Module& module, std::uint32_t function, std::string content)
    : module_(module),
      function_(function),
      content_(std::move(content)),
      layout_(LayOutKernel(module, function)) {
  FillInfo();
  spins_ = FindSpins();
  accesses_textures_ = FindTextureAccesses();
  waits_ = spins_ || FindBarriers();
}

// Registers are a plausible number: the emulator has no fixed register file.
void Kernel::FillInfo() {
  const ptx::Function& function = module_.functions[function_];
  info_.name = function.name;
  for (const std::uint32_t index : function.parameters) {
    const ptx::Variable& variable = module_.variables[index];
    info_.parameters.push_back(
        {variable.parameter_offset, static_cast<std::uint32_t>(variable.bytes)});
  }
  info_.parameter_bytes = function.parameter_bytes;
  info_.static_shared_bytes = layout_.static_shared_bytes;
  const auto local = layout_.local_bytes.find(function_);
  info_.local_bytes = local == layout_.local_bytes.end() ? 0 : local->second;
  for (const ptx::Variable& variable : module_.variables) {
    if (variable.space == ptx::Space::kConst) info_.constant_bytes += variable.bytes;
  }
  if (function.max_threads != 0) info_.max_threads_per_block = function.max_threads;
  info_.cluster = {function.cluster[0], function.cluster[1], function.cluster[2]};
  info_.needs_cluster = function.explicit_cluster && info_.cluster.x == 0;
  info_.registers =
      std::clamp<std::uint32_t>(static_cast<std::uint32_t>(function.registers.size()), 16, 64);
  info_.ptx_version = module_.target;
  info_.prints = Calls("vprintf");
  info_.allocates = Calls("malloc");
}

// Whether the kernel may call the system function `name`.
bool Kernel::Calls(std::string_view name) const {
  const auto names = [&](const ptx::Operand& operand) {
    return operand.kind == ptx::Operand::Kind::kFunction &&
           module_.functions[operand.symbol].name == name;
  };
  return std::ranges::any_of(layout_.functions, [&](std::uint32_t function) {
    return std::ranges::any_of(module_.functions[function].instructions,
                               [&](const ptx::Instruction& instruction) {
                                 return std::ranges::any_of(instruction.operands, names);
                               });
  });
}

bool Kernel::FindBarriers() const {
  for (const std::uint32_t index : layout_.functions) {
    for (const ptx::Instruction& instruction : module_.functions[index].instructions) {
      if (instruction.is_barrier()) return true;
    }
  }
  return false;
}

bool Kernel::FindTextureAccesses() const {
  for (const std::uint32_t index : layout_.functions) {
    for (const ptx::Instruction& instruction : module_.functions[index].instructions) {
      if (instruction.is_texture_or_surface_access()) return true;
    }
  }
  return false;
}

// A loop that waits for memory to change, or nanosleep.
bool Kernel::FindSpins() const {
  for (const std::uint32_t index : layout_.functions) {
    const ptx::Function& function = module_.functions[index];
    for (const ptx::Instruction& instruction : function.instructions) {
      if (instruction.opcode == ptx::Opcode::kNanosleep) return true;
    }
    for (const ptx::BasicBlock& block : ptx::BuildControlFlow(function).blocks) {
      if (block.spins) return true;
    }
  }
  return false;
}

// Kernels with calls or alloca get 64 KiB more a lane.
std::uint64_t Kernel::local_bytes_per_warp() const {
  constexpr std::uint64_t kCallBytesPerLane = 64 * kKiB;
  const bool grows = layout_.functions.size() > 1 || layout_.dynamic_stack;
  const std::uint64_t frame = info_.local_bytes + (grows ? kCallBytesPerLane : 0);
  return std::min<std::uint64_t>(RoundUp(frame * kWarpLanes, 4096), kLocalWindowBytes / 32);
}

std::string Kernel::KeyOf(const ptx::BlockShape& shape) const {
  // Kernels of linked parts may share a name.
  return content_ + "|" + info_.name + "|" + std::to_string(function_) + "|" +
         std::to_string(shape.row_lanes) + (shape.whole_rows ? "r" : "") +
         (shape.whole_warps ? "w" : "");
}

// Holds the lock during compilation: a second launch of the kernel waits for the code.
ExecResult<KernelCode> Kernel::Code(const Dim3& block) {
  const ptx::BlockShape shape = ShapeOf(block);
  const std::string key = KeyOf(shape);
  const std::lock_guard lock(mutex_);
  std::unique_ptr<LoadedCode>& variant = variants_[key];
  if (variant == nullptr) {
    auto built = Build(shape);
    if (!built) return built.failure();
    variant = std::move(*built);
  }
  return variant->code();
}

// Compiles again if the linker refuses a cached object.
ExecResult<std::unique_ptr<LoadedCode>> Kernel::Build(const ptx::BlockShape& shape) {
  const ObjectCache cache = ObjectCache::FromEnvironment();
  const std::string key = KeyOf(shape) + "|" + TargetDescription();
  if (const auto cached = cache.Find(key)) {
    auto loaded = LoadObject(*cached);
    if (loaded) return loaded;
  }
  auto compiled = CompileKernel(module_, function_, layout_, shape);
  if (!compiled) return compiled.failure();
  cache.Insert(key, *compiled);
  return LoadObject(*compiled);
}

}  // namespace torpor::emulator
