#include "server/executor/pool_owner_process.h"

#include <spdlog/spdlog.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/descriptor_limit.h"
#include "base/status_macros.h"
#include "server/executor/executor_confinement.h"
#include "server/executor/executor_loop.h"
#include "server/executor/gpu/cuda_driver.h"
#include "server/executor/gpu/device.h"
#include "server/executor/image/pool_owner.h"
#include "server/unix_socket/unix_listener.h"

namespace torpor::executor {
namespace {

// Executors are torpord's, and so of the same user.
constexpr mode_t kSocketMode = 0600;

absl::Status CheckComputeMode(const Device& device, int gpu) {
  if (device.attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_MODE) != CU_COMPUTEMODE_EXCLUSIVE_PROCESS) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(absl::StrCat(
      "GPU ", gpu,
      " is in exclusive-process mode, and a spare executor needs several processes "
      "there; set spare_executor: false, or change the mode (nvidia-smi --compute-mode=DEFAULT)"));
}

}  // namespace

absl::Status RunPoolOwner(const server::ExecutorSettings& settings) {
  server::Confine(ConfinementOf(settings));
  RaiseDescriptorLimit();  // the owner keeps a descriptor of each chunk
  TORPOR_ASSIGN_OR_RETURN(const CudaDriver driver, LoadCudaDriver(settings.cuda_library_dir));
  TORPOR_ASSIGN_OR_RETURN(const std::unique_ptr<Device> device, Device::Open(driver, settings.gpu));
  TORPOR_RETURN_IF_ERROR(CheckComputeMode(*device, settings.gpu));
  TORPOR_ASSIGN_OR_RETURN(
      const std::unique_ptr<PoolOwner> owner,
      PoolOwner::Create(*device, {.pool_bytes = settings.device.pool_bytes,
                                  .chunk_bytes = settings.device.chunk_bytes,
                                  .driver_reserve = settings.device.driver_reserve,
                                  .contexts = settings.contexts}));
  TORPOR_ASSIGN_OR_RETURN(
      UniqueFd listener,
      server::ListenOnUnixSocket(settings.pool_socket, SOCK_SEQPACKET, kSocketMode));
  owner->Serve(std::move(listener));
  spdlog::info("GPU {}: no executor needs the memory any more", settings.gpu);
  // As an executor does: exit() would destroy what the driver's threads may use.
  _exit(static_cast<int>(ExitStatus::kShutdown));
}

}  // namespace torpor::executor
