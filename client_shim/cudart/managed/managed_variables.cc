#include "client_shim/cudart/managed/managed_variables.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <functional>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "client_shim/cudart/call/entry.h"
#include "client_shim/cudart/call/per_device.h"
#include "client_shim/cudart/managed/managed_ranges.h"
#include "client_shim/cudart/module/modules.h"
#include "client_shim/cudart/module/variable_copies.h"

namespace torpor::shim {
namespace {

constexpr std::uint64_t kLegacyStream = 0;

struct ManagedVariable {
  ClientModule* module = nullptr;
  void** host_pointer = nullptr;  // nvcc's pointer: null until the variable has a block
  std::string name;
  std::uint64_t bytes = 0;
  int home = 0;  // the device in use when the block was allocated
  // The bytes of both sides when last equal, by device; empty while the device does not know the
  // block.
  PerDevice<std::vector<std::uint8_t>> sent;

  std::uint8_t* block() const { return static_cast<std::uint8_t*>(*host_pointer); }
};

class ManagedVariables {
 public:
  void Register(ManagedVariable variable) {
    std::lock_guard lock(mutex_);
    variables_.push_back(std::move(variable));
  }

  cudaError_t Init(const ClientModule* module) {
    std::lock_guard lock(mutex_);
    for (ManagedVariable& variable : variables_)
      if (variable.module == module && !*variable.host_pointer) TORPOR_TRY(InitOne(variable));
    return cudaSuccess;
  }

  bool is_used() const { return is_used_.load(std::memory_order_acquire); }

  // Holds the mutex throughout: launches of other threads on other devices come later, and a
  // synchronisation fetches either before or after the launch.
  cudaError_t Launch(const std::function<cudaError_t()>& queue) {
    std::lock_guard lock(mutex_);
    if (holder_ != DeviceInUse()) TORPOR_TRY(Send());
    holder_ = DeviceInUse();
    return queue();
  }

  cudaError_t Fetch() {
    if (!is_used()) return cudaSuccess;
    std::lock_guard lock(mutex_);
    return FetchAll();
  }

  cudaError_t FetchAt(std::uint64_t begin, std::uint64_t bytes, bool& meets_one) {
    if (!is_used()) return cudaSuccess;
    std::lock_guard lock(mutex_);
    if (!MeetsOne(begin, bytes)) return cudaSuccess;
    meets_one = true;
    return FetchAll();
  }

  bool Meets(std::uint64_t begin, std::uint64_t bytes) {
    if (!is_used()) return false;
    std::lock_guard lock(mutex_);
    return MeetsOne(begin, bytes);
  }

  std::uint64_t BytesAt(std::uint64_t block) {
    if (!is_used()) return 0;
    std::lock_guard lock(mutex_);
    for (const ManagedVariable& variable : variables_)
      if (block != 0 && Address(*variable.host_pointer) == block) return variable.bytes;
    return 0;
  }

  cudaError_t Reset() {
    std::lock_guard lock(mutex_);
    if (holder_ == DeviceInUse()) holder_ = kProgram;
    for (ManagedVariable& variable : variables_) {
      variable.sent.here().clear();
      if (variable.home != DeviceInUse()) continue;
      if (std::exchange(*variable.host_pointer, nullptr)) TORPOR_TRY(InitOne(variable));
    }
    return cudaSuccess;
  }

 private:
  cudaError_t InitOne(ManagedVariable& variable) {
    TORPOR_TRY(Begin());
    std::uint64_t block = 0;
    TORPOR_TRY(Core().HostAlloc(variable.bytes, block));
    TheManagedRanges().Add(block, variable.bytes);
    *variable.host_pointer = reinterpret_cast<void*>(block);
    variable.home = DeviceInUse();
    TORPOR_TRY(Bind(variable));
    is_used_ = true;
    return Download(variable);
  }

  bool MeetsOne(std::uint64_t begin, std::uint64_t bytes) const {
    return std::any_of(variables_.begin(), variables_.end(), [&](const ManagedVariable& variable) {
      const std::uint64_t block = Address(*variable.host_pointer);
      return block != 0 && begin < block + variable.bytes && block < begin + bytes;
    });
  }

  // Tells the device in use the block's address, which stands for the variable.
  static cudaError_t Bind(const ManagedVariable& variable) {
    TORPOR_TRY(LoadModule(*variable.module));
    const std::uint64_t module = variable.module->wire.here();
    const std::uint64_t block = Address(variable.block());
    return Core().Configure(module, Encode(wire::SymbolPublish{module, variable.name, block}),
                            block);
  }

  // Sends the device in use every variable that differs from the bytes sent last.
  cudaError_t Send() {
    TORPOR_TRY(FetchAll());
    bool has_sent = false;
    for (ManagedVariable& variable : variables_) {
      if (!*variable.host_pointer) continue;
      std::vector<std::uint8_t>& sent = variable.sent.here();
      if (sent.empty()) TORPOR_TRY(Bind(variable));
      const bool is_equal =
          !sent.empty() && std::memcmp(variable.block(), sent.data(), variable.bytes) == 0;
      if (is_equal) continue;
      TORPOR_TRY(Upload(variable));
      has_sent = true;
    }
    // The launch may be on any stream, so the copies are waited for.
    return has_sent ? Ask(wire::StreamSynchronize{kLegacyStream}) : cudaSuccess;
  }

  cudaError_t FetchAll() {
    if (holder_ == kProgram) return cudaSuccess;
    const CoreScope scope;
    UseDevice(holder_);
    TORPOR_TRY(Ask(wire::DeviceSynchronize{}));
    for (ManagedVariable& variable : variables_)
      if (*variable.host_pointer) TORPOR_TRY(Download(variable));
    holder_ = kProgram;
    return cudaSuccess;
  }

  static VariablePart WholeOf(const ManagedVariable& variable) {
    return {.module = variable.module->wire.here(), .name = variable.name};
  }

  static cudaError_t Upload(ManagedVariable& variable) {
    std::vector<std::uint8_t>& sent = variable.sent.here();
    sent.assign(variable.block(), variable.block() + variable.bytes);
    return UploadToVariable(WholeOf(variable), sent.data(), variable.bytes);
  }

  static cudaError_t Download(ManagedVariable& variable) {
    std::vector<std::uint8_t>& sent = variable.sent.here();
    sent.resize(variable.bytes);
    TORPOR_TRY(DownloadFromVariable(WholeOf(variable), sent.data(), variable.bytes));
    std::memcpy(variable.block(), sent.data(), variable.bytes);
    return cudaSuccess;
  }

  std::mutex mutex_;
  std::vector<ManagedVariable> variables_;
  // The device whose kernels may have changed the variables since the last fetch.
  static constexpr int kProgram = -1;
  int holder_ = kProgram;
  std::atomic<bool> is_used_{false};
};

ManagedVariables& TheManagedVariables() {
  static auto* const variables = new ManagedVariables();
  return *variables;
}

}  // namespace

void RegisterManagedVariable(ClientModule* module, void** host_pointer, const char* name,
                             std::uint64_t bytes) {
  TheManagedVariables().Register({module, host_pointer, name, bytes, 0, {}});
}

cudaError_t InitManagedVariables(ClientModule* module) {
  return TheManagedVariables().Init(module);
}
bool UsesManagedVariables() { return TheManagedVariables().is_used(); }
cudaError_t LaunchBesideVariables(const std::function<cudaError_t()>& queue) {
  return TheManagedVariables().Launch(queue);
}
cudaError_t FetchManagedVariables() { return TheManagedVariables().Fetch(); }

cudaError_t FetchManagedVariablesAt(const void* pointer, std::uint64_t bytes, bool& meets_one) {
  return TheManagedVariables().FetchAt(Address(pointer), bytes, meets_one);
}

std::uint64_t ManagedVariableBytes(const void* symbol) {
  return TheManagedVariables().BytesAt(Address(symbol));
}

cudaError_t RefuseManagedVariables(const void* pointer, std::uint64_t bytes) {
  if (!TheManagedVariables().Meets(Address(pointer), bytes)) return cudaSuccess;
  Core().WarnOnce("graph variable",
                  "copies and fills of __managed__ variables in graphs are not supported");
  return cudaErrorNotSupported;
}

cudaError_t ResetManagedVariables() { return TheManagedVariables().Reset(); }

}  // namespace torpor::shim
