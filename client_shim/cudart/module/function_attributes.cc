#include <cuda.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <tuple>

#include "client_shim/cudart/call/entry.h"
#include "client_shim/cudart/device/devices.h"
#include "client_shim/cudart/module/cluster_attributes.h"
#include "client_shim/cudart/module/modules.h"

namespace torpor::shim {
namespace {

// Asks the executor; a kernel's attributes may differ between GPUs.
cudaError_t GetAttributes(cudaFuncAttributes* out, const void* function) {
  if (!out) return cudaErrorInvalidValue;
  TORPOR_TRY(Begin());
  ClientKernel* kernel = nullptr;
  TORPOR_TRY(UseKernel(function, kernel));
  wire::FuncGetAttributesResult result;
  TORPOR_TRY(Ask(wire::FuncGetAttributes{kernel->here().wire}, result));
  const auto value = [&](CUfunction_attribute attribute) {
    const auto index = static_cast<std::size_t>(attribute);
    return index < result.values.size() ? result.values[index] : 0;
  };
  const auto bytes = [&](CUfunction_attribute attribute) {
    return static_cast<std::size_t>(value(attribute));
  };
  *out = {};
  out->sharedSizeBytes = bytes(CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES);
  out->constSizeBytes = bytes(CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES);
  out->localSizeBytes = bytes(CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES);
  out->maxThreadsPerBlock = value(CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
  out->numRegs = value(CU_FUNC_ATTRIBUTE_NUM_REGS);
  out->ptxVersion = value(CU_FUNC_ATTRIBUTE_PTX_VERSION);
  out->binaryVersion = value(CU_FUNC_ATTRIBUTE_BINARY_VERSION);
  out->cacheModeCA = value(CU_FUNC_ATTRIBUTE_CACHE_MODE_CA);
  out->maxDynamicSharedSizeBytes = static_cast<int>(kernel->here().max_dynamic_shared.load());
  out->preferredShmemCarveout = value(CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT);
  out->clusterDimMustBeSet = value(CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET);
  out->requiredClusterWidth = value(CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH);
  out->requiredClusterHeight = value(CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT);
  out->requiredClusterDepth = value(CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH);
  out->clusterSchedulingPolicyPreference =
      value(CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE);
  out->nonPortableClusterSizeAllowed = value(CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED);
  return cudaSuccess;
}

// Kernel, block size, dynamic shared bytes, flags. Programs ask in loops (every block size of a
// search), and the answer depends only on the question and the kernel's attributes.
using OccupancyQuestion = std::tuple<std::uint64_t, int, std::uint64_t, unsigned>;
// Answers of executors to questions about occupancy. Thread-safe.
class OccupancyAnswers {
 public:
  // The count of Forget calls. An answer requested before the latest Forget is stale.
  std::uint64_t age() {
    std::lock_guard lock(mutex_);
    return age_;
  }
  bool Find(const OccupancyQuestion& question, int& blocks) {
    std::lock_guard lock(mutex_);
    const auto found = answers_.find(question);
    if (found == answers_.end()) return false;
    blocks = found->second;
    return true;
  }
  void Remember(const OccupancyQuestion& question, int blocks, std::uint64_t asked_at) {
    std::lock_guard lock(mutex_);
    if (asked_at == age_) answers_[question] = blocks;
  }
  void Forget(std::uint64_t kernel) {
    std::lock_guard lock(mutex_);
    ++age_;
    std::erase_if(answers_, [&](const auto& entry) { return std::get<0>(entry.first) == kernel; });
  }

 private:
  std::mutex mutex_;
  std::uint64_t age_ = 0;
  std::map<OccupancyQuestion, int> answers_;
};

OccupancyAnswers& TheAnswers() {
  static auto* const answers = new OccupancyAnswers();
  return *answers;
}

// Notes the limit of dynamic shared memory for CheckLaunch; the journal keeps the attribute for the
// next executor.
cudaError_t SetAttribute(const void* function, cudaFuncAttribute attribute, int value) {
  TORPOR_TRY(Begin());
  ClientKernel* kernel = nullptr;
  TORPOR_TRY(UseKernel(function, kernel));
  if (attribute <= 0 || attribute >= cudaFuncAttributeMax || value < -1)
    return cudaErrorInvalidValue;
  if (attribute == cudaFuncAttributeMaxDynamicSharedMemorySize) {
    const auto max = DeviceAttribute(cudaDevAttrMaxSharedMemoryPerBlockOptin);
    if (value < 0 || value > max - kernel->entry.static_shared_bytes) return cudaErrorInvalidValue;
    kernel->here().max_dynamic_shared = static_cast<std::uint64_t>(value);
  }
  TORPOR_TRY(NoteClusterAttribute(*kernel, attribute, value));
  // Runtime and driver number the attributes alike.
  const cudaError_t error = Core().Configure(
      kernel->here().wire, Encode(wire::FuncSetAttribute{kernel->here().wire, attribute, value}),
      static_cast<std::uint64_t>(attribute));
  TheAnswers().Forget(kernel->here().wire);
  return error;
}

// The number of blocks of a kernel that share a multiprocessor; asks the executor once a question.
cudaError_t Occupancy(int* blocks, const void* function, int block_size, std::size_t shared,
                      unsigned flags) {
  if (!blocks || block_size <= 0) return cudaErrorInvalidValue;
  TORPOR_TRY(Begin());
  ClientKernel* kernel = nullptr;
  TORPOR_TRY(UseKernel(function, kernel));
  const OccupancyQuestion question{kernel->here().wire, block_size, shared, flags};
  if (TheAnswers().Find(question, *blocks)) return cudaSuccess;
  const std::uint64_t asked_at = TheAnswers().age();
  wire::OccupancyMaxActiveBlocksResult result;
  TORPOR_TRY(
      Ask(wire::OccupancyMaxActiveBlocks{kernel->here().wire, block_size, shared, flags}, result));
  TheAnswers().Remember(question, result.blocks, asked_at);
  *blocks = result.blocks;
  return cudaSuccess;
}

// The maximum of dynamic shared memory with which `blocks` blocks still share a multiprocessor.
cudaError_t AvailableShared(std::size_t* bytes, const void* function, int blocks, int block_size) {
  if (!bytes || blocks <= 0 || block_size <= 0) return cudaErrorInvalidValue;
  int max_blocks = 0;
  TORPOR_TRY(Occupancy(&max_blocks, function, block_size, 0, 0));
  *bytes = 0;
  if (blocks > max_blocks) return cudaSuccess;
  // The granularity of shared memory on GPUs, in bytes.
  constexpr int kUnit = 128;
  const int share =
      DeviceAttribute(cudaDevAttrMaxSharedMemoryPerMultiprocessor) / blocks / kUnit * kUnit -
      DeviceAttribute(cudaDevAttrReservedSharedMemoryPerBlock);
  const int max = DeviceAttribute(cudaDevAttrMaxSharedMemoryPerBlockOptin);
  const int fixed = FindKernel(function)->entry.static_shared_bytes;
  *bytes = static_cast<std::size_t>(std::max(0, std::min(share, max) - fixed));
  return cudaSuccess;
}

}  // namespace
}  // namespace torpor::shim

using namespace torpor::shim;  // NOLINT(google-build-using-namespace): the entries' own library

cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes* attributes, const void* function) {
  return Entry([&] { return GetAttributes(attributes, function); });
}

cudaError_t cudaFuncGetName(const char** name, const void* function) {
  return Entry([&] {
    if (!name) return cudaErrorInvalidValue;
    const ClientKernel* const kernel = FindKernel(function);
    if (!kernel) return cudaErrorInvalidDeviceFunction;
    *name = kernel->name;
    return cudaSuccess;
  });
}

cudaError_t cudaFuncGetParamInfo(const void* function, size_t index, size_t* offset, size_t* size) {
  return Entry([&]() -> cudaError_t {
    if (!offset) return cudaErrorInvalidValue;
    ClientKernel* kernel = nullptr;
    TORPOR_TRY(UseKernel(function, kernel));
    if (index >= kernel->entry.parameters.size()) return cudaErrorInvalidValue;
    const torpor::wire::KernelParameter& parameter = kernel->entry.parameters[index];
    *offset = parameter.offset;
    if (size) *size = parameter.bytes;
    return cudaSuccess;
  });
}

cudaError_t cudaKernelSetAttributeForDevice(cudaKernel_t kernel, enum cudaFuncAttribute attribute,
                                            int value, int) {
  return Entry([&] { return SetAttribute(kernel, attribute, value); });
}

cudaError_t cudaFuncSetAttribute(const void* function, enum cudaFuncAttribute attribute,
                                 int value) {
  return Entry([&] { return SetAttribute(function, attribute, value); });
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* function,
                                                          int block_size, size_t shared) {
  return Entry([&] { return Occupancy(blocks, function, block_size, shared, 0); });
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks,
                                                                   const void* function,
                                                                   int block_size, size_t shared,
                                                                   unsigned int flags) {
  return Entry([&] { return Occupancy(blocks, function, block_size, shared, flags); });
}

cudaError_t cudaOccupancyAvailableDynamicSMemPerBlock(size_t* bytes, const void* function,
                                                      int blocks, int block_size) {
  return Entry([&] { return AvailableShared(bytes, function, blocks, block_size); });
}
