#include "emulator/exec/kernel_program.h"

#include <algorithm>
#include <string>

#include "emulator/exec/kernel_launch.h"

namespace torpor::emulator {
namespace {

// Alignment of DeviceMemory::Allocate, and the minimum alignment of a piece.
constexpr Bytes kPieceAlignment = 256;

}  // namespace

KernelProgram::~KernelProgram() {
  if (allocation_ != 0) memory_.Free(allocation_);
}

Failure<ExecError> KernelProgram::NoKernel(std::string_view name) {
  return {ExecError::kNotFound, "no kernel '" + std::string(name) + "'"};
}

// Takes a single allocation for all pieces.
ExecResult<std::vector<std::uint64_t>> KernelProgram::Place(std::span<const Piece> pieces) {
  std::vector<std::uint64_t> addresses;
  addresses.reserve(pieces.size());
  Bytes total = 0;
  Bytes max_align = kPieceAlignment;
  for (const Piece& piece : pieces) {
    const Bytes align = std::max(piece.align, kPieceAlignment);
    max_align = std::max(max_align, align);
    addresses.push_back(RoundUp(total, align));
    // A pointer just behind a piece must not point into the next piece.
    total = addresses.back() + RoundUp(piece.size + 1, kPieceAlignment);
  }
  if (total == 0) return addresses;
  const auto allocated = memory_.Allocate(total + max_align - kPieceAlignment);
  if (!allocated) return allocated.failure();
  allocation_ = *allocated;
  for (std::uint64_t& address : addresses) address += RoundUp(allocation_, max_align);
  return addresses;
}

ExecResult<void> KernelProgram::Preload(std::string_view name, const Dim3& block) {
  const auto found = Find(name);
  if (!found) return found.failure();
  const auto code = found->kernel->Code(block);
  if (!code) return code.failure();
  return {};
}

ExecResult<void> KernelProgram::Launch(std::string_view name, const LaunchConfig& config) {
  const auto found = Find(name);
  if (!found) return found.failure();
  return LaunchKernel(*found->kernel, config, traits_, memory_, found->symbols);
}

}  // namespace torpor::emulator
