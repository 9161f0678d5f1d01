#pragma once

#include <cuda.h>

#include <memory>
#include <utility>

#include "emulator/driver/base/exceptions.h"
#include "emulator/driver/context/current_context.h"
#include "emulator/driver/process/driver.h"
#include "emulator/driver/process/stream_target.h"

// What the extern "C" functions have in common: every one is one of these around a lambda, which
// answers CUDA's errors of state and lets no exception out.
namespace torpor::emulator {

// Runs `body` if the driver is initialised.
template <typename Body>
CUresult Call(Body&& body) noexcept {
  try {
    const CUresult state = Driver::Get().state();
    return state == CUDA_SUCCESS ? std::forward<Body>(body)(Driver::Get()) : state;
  } catch (...) {
    return AfterException();
  }
}

// Runs `body` with the calling thread's context, unless that is poisoned.
template <typename Body>
CUresult InContext(Body&& body) noexcept {
  return Call([&](Driver&) -> CUresult {
    auto& stack = ContextStack();
    if (stack.empty() || stack.back().context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
    const std::shared_ptr<Context>& context = stack.back().context;
    if (Driver::Get().contexts().Get(stack.back().handle) != context.get()) {
      return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    }
    if (const CUresult sticky = context->sticky(); sticky != CUDA_SUCCESS) return sticky;
    return body(*context);
  });
}

// Runs `body` with a device.
template <typename Body>
CUresult OnDevice(CUdevice index, Body&& body) noexcept {
  return Call([&](Driver& driver) -> CUresult {
    Device* device = driver.device(index);
    return device == nullptr ? CUDA_ERROR_INVALID_DEVICE : body(*device);
  });
}

// Runs `body` with a stream whose context is not poisoned.
template <typename Body>
CUresult OnStream(CUstream handle, Body&& body) noexcept {
  return Call([&](Driver&) -> CUresult {
    StreamTarget target;
    if (const CUresult found = FindStream(handle, target); found != CUDA_SUCCESS) return found;
    if (const CUresult sticky = target.context->sticky(); sticky != CUDA_SUCCESS) return sticky;
    return body(target);
  });
}

}  // namespace torpor::emulator
