#pragma once

#include <cuda.h>

#include <memory>
#include <utility>

#include "base/try.h"
#include "emulator/driver/api/failure_log.h"
#include "emulator/driver/base/exceptions.h"
#include "emulator/driver/context/current_context.h"
#include "emulator/driver/process/driver.h"
#include "emulator/driver/process/stream_target.h"

// Every extern "C" function of the driver is one of the wrappers below around a lambda. The
// wrappers answer CUDA's errors of state, and no exception leaves them. `name` is the caller's, for
// the log.
namespace torpor::emulator {

// Calls `body(Driver&)`; returns the driver's state unless it is initialised.
template <typename Body>
CUresult Call(Body&& body, const char* name = __builtin_FUNCTION()) noexcept {
  const auto guarded = [&]() noexcept -> CUresult {
    try {
      const CUresult state = Driver::Get().state();
      return state == CUDA_SUCCESS ? std::forward<Body>(body)(Driver::Get()) : state;
    } catch (...) {
      return AfterException();
    }
  };
  const CUresult result = guarded();
  if (result != CUDA_SUCCESS) LogFailure(name, result);
  return result;
}

// Calls `body(Context&)` with the calling thread's current context. Returns the sticky error of a
// poisoned context, and CUDA_ERROR_INVALID_CONTEXT or CUDA_ERROR_CONTEXT_IS_DESTROYED without a
// live one.
template <typename Body>
CUresult InContext(Body&& body, const char* name = __builtin_FUNCTION()) noexcept {
  return Call(
      [&](Driver&) -> CUresult {
        auto& stack = ContextStack();
        if (stack.empty() || stack.back().context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
        const std::shared_ptr<Context>& context = stack.back().context;
        if (Driver::Get().contexts().Get(stack.back().handle) != context.get()) {
          return CUDA_ERROR_CONTEXT_IS_DESTROYED;
        }
        TORPOR_TRY(context->sticky());
        return body(*context);
      },
      name);
}

// Calls `body(DriverDevice&)`, or returns CUDA_ERROR_INVALID_DEVICE.
template <typename Body>
CUresult OnDevice(CUdevice index, Body&& body, const char* name = __builtin_FUNCTION()) noexcept {
  return Call(
      [&](Driver& driver) -> CUresult {
        DriverDevice* device = driver.device(index);
        return device == nullptr ? CUDA_ERROR_INVALID_DEVICE : body(*device);
      },
      name);
}

// Calls `body(StreamTarget&)`, in a poisoned context too; `handle` is as in FindStream.
template <typename Body>
CUresult OnAnyStream(CUstream handle, Body&& body,
                     const char* name = __builtin_FUNCTION()) noexcept {
  return Call(
      [&](Driver&) -> CUresult {
        StreamTarget target;
        TORPOR_TRY(FindStream(handle, target));
        return body(target);
      },
      name);
}

// As OnAnyStream, but returns the sticky error of a poisoned context.
template <typename Body>
CUresult OnStream(CUstream handle, Body&& body, const char* name = __builtin_FUNCTION()) noexcept {
  return OnAnyStream(
      handle,
      [&](StreamTarget& target) -> CUresult {
        TORPOR_TRY(target.context->sticky());
        return body(target);
      },
      name);
}

}  // namespace torpor::emulator
