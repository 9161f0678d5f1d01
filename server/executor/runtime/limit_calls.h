#pragma once

#include <cstdint>
#include <map>

#include "proto/cuda_api/cudart_dispatch.h"
#include "server/executor/gpu/device.h"

namespace torpor::executor {

// Carries out the commands about cudaLimits of a session. All sessions share the context, so a
// limit is raised for all and never lowered under another session. Not thread-safe; call with the
// device current.
class LimitCalls final : public cuda_api::CudartLimitHandler {
 public:
  // `device` must outlive this.
  explicit LimitCalls(const Device& device) : device_(device) {}

  cuda_api::CallStatus DeviceSetLimit(const wire::DeviceSetLimit& command) override;
  // Answers with the session's own value if the session has set the limit, else with the
  // driver's default; 0 for a limit that the driver does not have.
  cuda_api::CallStatus DeviceGetLimit(const wire::DeviceGetLimit& command,
                                      wire::DeviceGetLimitResult& result) override;

 private:
  const Device& device_;
  std::map<std::uint32_t, std::uint64_t> limits_;  // set by this session
};

}  // namespace torpor::executor
