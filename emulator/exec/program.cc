#include "emulator/exec/program.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>

#include "base/sha256.h"
#include "emulator/exec/interface/arena_layout.h"
#include "emulator/exec/interface/system_functions.h"
#include "emulator/exec/kernel.h"
#include "emulator/exec/kernel_program.h"
#include "emulator/exec/kernel_source.h"
#include "emulator/exec/source_program.h"
#include "emulator/ptx/link.h"
#include "emulator/ptx/parser.h"

namespace torpor::emulator {
namespace {

bool Within(const Dim3& size, const Dim3& limit) {
  return size.x >= 1 && size.y >= 1 && size.z >= 1 && size.x <= limit.x && size.y <= limit.y &&
         size.z <= limit.z;
}

std::string Text(const Dim3& size) {
  return std::to_string(size.x) + "x" + std::to_string(size.y) + "x" + std::to_string(size.z);
}

class LoadedProgram : public KernelProgram {
 public:
  LoadedProgram(ptx::Module module, DeviceMemory& memory, const DeviceTraits& traits)
      : KernelProgram(memory, traits), module_(std::move(module)) {}

  ExecResult<void> Initialise();

  std::vector<KernelInfo> kernels() const override;
  const KernelInfo* FindKernel(std::string_view name) const override;

 private:
  ExecResult<void> PlaceVariables();
  void InitialiseVariable(const ptx::Variable& variable, std::uint64_t address);
  ExecResult<Runnable> Find(std::string_view name) override;

  ptx::Module module_;
  std::vector<std::uint64_t> symbols_;  // variable -> address; 0 if it has none
  std::map<std::string, std::unique_ptr<Kernel>, std::less<>> kernels_;
};

// The hash of all texts names the module in cache keys.
ExecResult<void> LoadedProgram::Initialise() {
  std::string content;
  for (const auto& text : module_.texts) content += ToHex(Sha256(text->data(), text->size()));
  for (std::uint32_t i = 0; i < module_.functions.size(); ++i) {
    const ptx::Function& function = module_.functions[i];
    if (!function.is_kernel || !function.has_body) continue;
    kernels_.emplace(function.name, std::make_unique<Kernel>(module_, i, content));
  }
  return PlaceVariables();
}

// Places all variables before initialising any: initial values may hold addresses of others.
ExecResult<void> LoadedProgram::PlaceVariables() {
  std::vector<std::size_t> placed;  // of the module's variables
  std::vector<Piece> pieces;
  for (std::size_t i = 0; i < module_.variables.size(); ++i) {
    const ptx::Variable& variable = module_.variables[i];
    if (variable.space != ptx::Space::kGlobal && variable.space != ptx::Space::kConst) continue;
    placed.push_back(i);
    pieces.push_back({variable.bytes, variable.align});
  }
  const auto addresses = Place(pieces);
  if (!addresses) return addresses.failure();
  symbols_.assign(module_.variables.size(), 0);
  for (std::size_t i = 0; i < placed.size(); ++i) {
    const ptx::Variable& variable = module_.variables[placed[i]];
    symbols_[placed[i]] = (*addresses)[i];
    AddVariable({std::string(variable.name), (*addresses)[i], variable.bytes,
                 variable.space == ptx::Space::kConst});
  }
  for (const std::size_t i : placed) InitialiseVariable(module_.variables[i], symbols_[i]);
  return {};
}

// Relocations of one byte take byte `addend` of the address.
void LoadedProgram::InitialiseVariable(const ptx::Variable& variable, std::uint64_t address) {
  auto* const bytes = reinterpret_cast<std::uint8_t*>(address);
  if (!variable.initial.empty()) {
    std::memcpy(bytes, variable.initial.data(), variable.initial.size());
  }
  for (const ptx::Relocation& relocation : variable.relocations) {
    if (relocation.symbol == ptx::kNoIndex) continue;
    std::uint64_t value =
        relocation.is_function ? FunctionAddress(relocation.symbol) : symbols_[relocation.symbol];
    if (relocation.bytes == 1) {
      value >>= 8 * static_cast<unsigned>(relocation.addend);
    } else {
      value += static_cast<std::uint64_t>(relocation.addend);
    }
    std::memcpy(bytes + relocation.offset, &value, std::min(relocation.bytes, 8U));
  }
}

std::vector<KernelInfo> LoadedProgram::kernels() const {
  std::vector<KernelInfo> infos;
  for (const auto& [name, kernel] : kernels_) infos.push_back(kernel->info());
  return infos;
}

const KernelInfo* LoadedProgram::FindKernel(std::string_view name) const {
  const auto found = kernels_.find(name);
  return found == kernels_.end() ? nullptr : &found->second->info();
}

ExecResult<KernelProgram::Runnable> LoadedProgram::Find(std::string_view name) {
  const auto found = kernels_.find(name);
  if (found == kernels_.end()) return NoKernel(name);
  return Runnable{found->second.get(), symbols_.data()};
}

ExecResult<std::unique_ptr<Program>> LoadParsed(ptx::Module module, DeviceMemory& memory,
                                                const DeviceTraits& traits) {
  auto program = std::make_unique<LoadedProgram>(std::move(module), memory, traits);
  if (auto initialised = program->Initialise(); !initialised) return initialised.failure();
  return std::unique_ptr<Program>(std::move(program));
}

ExecResult<ptx::Module> LinkParts(std::span<const PtxPart> parts) {
  std::vector<ptx::LinkPart> modules;
  for (const PtxPart& part : parts) {
    auto parsed = ptx::Parse(part.text);
    if (!parsed) {
      return Failure<ExecError>{ExecError::kInvalidPtx,
                                part.name + ": " + parsed.failure().message};
    }
    modules.push_back({part.name, std::move(*parsed)});
  }
  auto linked = ptx::Link(std::move(modules), IsSystemFunction);
  if (!linked) return Failure<ExecError>{ExecError::kInvalidPtx, linked.failure().message};
  return std::move(linked).value();
}

bool IsGiven(const Dim3& cluster) { return cluster.x != 0 || cluster.y != 0 || cluster.z != 0; }

bool AreEqual(const Dim3& a, const Dim3& b) { return a.x == b.x && a.y == b.y && a.z == b.z; }

// Returns why the launch cannot have its clusters, or an empty text.
std::string ClusterFault(const KernelInfo& kernel, const LaunchConfig& config,
                         const DeviceTraits& traits) {
  const bool given = IsGiven(config.cluster);
  if (kernel.needs_cluster && !given) return "it needs a size of clusters, and none is given";
  if (!given && !IsGiven(kernel.cluster)) return {};
  const Dim3 size = ClusterOf(kernel, config);
  const std::string clusters = "clusters of " + Text(size) + " blocks";
  if (given && IsGiven(kernel.cluster) && !AreEqual(size, kernel.cluster)) {
    return clusters + ", but it is made for " + Text(kernel.cluster);
  }
  // Every product of three fits 64 bits.
  constexpr std::uint32_t kMaxAxis = 0xffff;
  const bool inside = Within(size, {kMaxAxis, kMaxAxis, kMaxAxis}) &&
                      std::uint64_t{size.x} * size.y * size.z <= kMaxClusterBlocks;
  if (!inside) return clusters + ", more than " + std::to_string(kMaxClusterBlocks) + ", or none";
  if (config.grid.x % size.x != 0 || config.grid.y % size.y != 0 || config.grid.z % size.z != 0) {
    return "a grid of " + Text(config.grid) + " blocks does not divide into " + clusters;
  }
  if (traits.compute_capability < kFirstClusterCapability) {
    return clusters + " on a device of compute capability " +
           std::to_string(traits.compute_capability / 10) + "." +
           std::to_string(traits.compute_capability % 10);
  }
  return {};
}

}  // namespace

Dim3 ClusterOf(const KernelInfo& kernel, const LaunchConfig& config) {
  if (IsGiven(config.cluster)) return config.cluster;
  return IsGiven(kernel.cluster) ? kernel.cluster : Dim3{};
}

ExecResult<void> CheckLaunch(const KernelInfo& kernel, const LaunchConfig& config,
                             const DeviceTraits& traits) {
  const auto reject = [&](ExecError code, const std::string& why) {
    return Failure<ExecError>{code, "kernel " + kernel.name + ": " + why};
  };
  const Dim3& block = config.block;
  const std::uint64_t threads = std::uint64_t{block.x} * block.y * block.z;
  if (!Within(block, kMaxBlock) || threads > kMaxThreadsPerBlock) {
    return reject(ExecError::kInvalidLaunch, "a block of " + Text(block) + " threads");
  }
  if (!Within(config.grid, kMaxGrid)) {
    return reject(ExecError::kInvalidLaunch, "a grid of " + Text(config.grid) + " blocks");
  }
  if (const std::string fault = ClusterFault(kernel, config, traits); !fault.empty()) {
    return reject(ExecError::kInvalidCluster, fault);
  }
  if (threads > kernel.max_threads_per_block) {
    return reject(ExecError::kTooManyThreads, "a block of " + std::to_string(threads) +
                                                  " threads, but it is made for " +
                                                  std::to_string(kernel.max_threads_per_block));
  }
  // Both ends of dynamic shared memory may be padded for alignment.
  constexpr Bytes kMaxPadding = Bytes{2} * (ptx::kMaxVariableAlignment + kReservedSharedBytes);
  const Bytes limit =
      std::min<Bytes>(traits.shared_bytes_per_block, kSharedWindowBytes - kMaxPadding);
  if (config.dynamic_shared_bytes > limit ||
      kernel.static_shared_bytes + config.dynamic_shared_bytes > limit) {
    return reject(ExecError::kInvalidLaunch,
                  "more than " + std::to_string(limit) + " bytes of shared memory");
  }
  return {};
}

ExecResult<void> CheckLink(std::span<const PtxPart> parts) {
  const auto linked = LinkParts(parts);
  if (!linked) return linked.failure();
  return {};
}

ExecResult<std::unique_ptr<Program>> Program::Load(std::string_view ptx, DeviceMemory& memory,
                                                   const DeviceTraits& traits) {
  auto parsed = ptx::Parse(ptx);
  if (!parsed) return Failure<ExecError>{ExecError::kInvalidPtx, parsed.failure().message};
  return LoadParsed(std::move(*parsed), memory, traits);
}

ExecResult<std::unique_ptr<Program>> Program::Load(std::span<const PtxPart> parts,
                                                   DeviceMemory& memory,
                                                   const DeviceTraits& traits) {
  auto linked = LinkParts(parts);
  if (!linked) return linked.failure();
  return LoadParsed(std::move(*linked), memory, traits);
}

ExecResult<std::unique_ptr<Program>> Program::Load(std::shared_ptr<const KernelSource> source,
                                                   DeviceMemory& memory,
                                                   const DeviceTraits& traits) {
  auto program = std::make_unique<SourceProgram>(std::move(source), memory, traits);
  if (auto placed = program->PlaceMemories(); !placed) return placed.failure();
  return std::unique_ptr<Program>(std::move(program));
}

}  // namespace torpor::emulator
