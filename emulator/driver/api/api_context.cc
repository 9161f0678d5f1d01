// Primary contexts, contexts and the calling thread's context stack.
#include <cudaProfiler.h>

#include <utility>

#include "emulator/driver/api/api.h"

using namespace torpor::emulator;  // NOLINT: this file only defines the C interface

namespace {

constexpr unsigned kMaxContextFlags = CU_CTX_FLAGS_MASK;

// Makes a context and pushes it, as cuCtxCreate does.
CUresult CreateContext(CUcontext* context, unsigned flags, CUdevice device) {
  return OnDevice(device, [&](DriverDevice& found) {
    if (context == nullptr || (flags & ~kMaxContextFlags) != 0) return CUDA_ERROR_INVALID_VALUE;
    auto created = Context::Create(found, flags, false);
    if (!created.ok()) return created.failure().code;
    *context = Driver::Get().AddContext(*created);
    ContextStack().push_back({*context, std::move(created).value()});
    return CUDA_SUCCESS;
  });
}

// Calls `body(PrimaryContext&)` with the primary context of a valid device.
template <typename Body>
CUresult OnPrimaryContext(CUdevice index, Body&& body, const char* name = __builtin_FUNCTION()) {
  return OnDevice(
      index,
      [&](DriverDevice& device) { return body(Driver::Get().primary_context(device.index())); },
      name);
}

}  // namespace

extern "C" {

CUresult CUDAAPI cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  return OnPrimaryContext(device, [&](PrimaryContext& primary) {
    if (context == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const auto retained = primary.Retain(*context);
    return retained.ok() ? CUDA_SUCCESS : retained.failure().code;
  });
}

CUresult CUDAAPI cuDevicePrimaryCtxRelease(CUdevice device) {
  return OnPrimaryContext(device, [](PrimaryContext& primary) { return primary.Release(); });
}

CUresult CUDAAPI cuDevicePrimaryCtxReset(CUdevice device) {
  return OnPrimaryContext(device, [](PrimaryContext& primary) {
    primary.Reset();
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuDevicePrimaryCtxSetFlags(CUdevice device, unsigned int flags) {
  return OnPrimaryContext(device, [&](PrimaryContext& primary) {
    if ((flags & ~kMaxContextFlags) != 0) return CUDA_ERROR_INVALID_VALUE;
    primary.SetFlags(flags);
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuDevicePrimaryCtxGetState(CUdevice device, unsigned int* flags, int* active) {
  return OnPrimaryContext(device, [&](PrimaryContext& primary) {
    if (flags == nullptr || active == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *flags = primary.flags();
    *active = primary.handle() != nullptr ? 1 : 0;
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuCtxCreate(CUcontext* context, CUctxCreateParams* parameters, unsigned int flags,
                             CUdevice device) {
  if (parameters != nullptr &&
      (parameters->numExecAffinityParams != 0 || parameters->cigParams != nullptr)) {
    return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
  }
  return CreateContext(context, flags, device);
}

// The forms that programs built with CUDA 12 and 11 request.
CUresult CUDAAPI cuCtxCreate_v2(CUcontext* context, unsigned int flags, CUdevice device) {
  return CreateContext(context, flags, device);
}
CUresult CUDAAPI cuCtxCreate_v3(CUcontext* context, CUexecAffinityParam*, int count,
                                unsigned int flags, CUdevice device) {
  if (count != 0) return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
  return CreateContext(context, flags, device);
}

CUresult CUDAAPI cuCtxDestroy(CUcontext context) {
  return Call([&](Driver& driver) {
    const Context* found = driver.contexts().Get(context);
    if (found == nullptr || found->primary()) return CUDA_ERROR_INVALID_CONTEXT;
    auto& stack = ContextStack();
    if (!stack.empty() && stack.back().handle == context) stack.pop_back();
    driver.RemoveContext(context);
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuCtxPushCurrent(CUcontext context) {
  return Call([&](Driver& driver) {
    auto found = driver.contexts().Share(context);
    if (found == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
    ContextStack().push_back({context, std::move(found)});
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuCtxPopCurrent(CUcontext* context) {
  return Call([&](Driver&) {
    auto& stack = ContextStack();
    if (stack.empty()) return CUDA_ERROR_INVALID_CONTEXT;
    if (context != nullptr) *context = stack.back().handle;
    stack.pop_back();
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuCtxSetCurrent(CUcontext context) {
  return Call([&](Driver& driver) {
    auto& stack = ContextStack();
    if (!stack.empty() && stack.back().handle == context && context != nullptr &&
        driver.contexts().Get(context) == stack.back().context.get()) {
      return CUDA_SUCCESS;
    }
    auto found = driver.contexts().Share(context);
    if (context != nullptr && found == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
    if (!stack.empty()) stack.pop_back();
    if (context != nullptr) stack.push_back({context, std::move(found)});
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuCtxGetCurrent(CUcontext* context) {
  return Call([&](Driver&) {
    if (context == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *context = ContextStack().empty() ? nullptr : ContextStack().back().handle;
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuCtxGetDevice(CUdevice* device) {
  return Call([&](Driver&) {
    if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (ContextStack().empty()) return CUDA_ERROR_INVALID_CONTEXT;
    *device = ContextStack().back().context->device().index();
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuCtxGetDevice_v2(CUdevice* device, CUcontext context) {
  if (context == nullptr) return cuCtxGetDevice(device);
  return Call([&](Driver& driver) {
    Context* found = driver.contexts().Get(context);
    if (device == nullptr || found == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *device = found->device().index();
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuCtxGetFlags(unsigned int* flags) {
  return InContext([&](Context& context) {
    if (flags == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *flags = context.flags();
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuCtxSetFlags(unsigned int flags) {
  return InContext([&](Context& context) {
    if ((flags & ~kMaxContextFlags) != 0) return CUDA_ERROR_INVALID_VALUE;
    context.set_flags(flags);
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuCtxGetId(CUcontext context, unsigned long long* id) {
  return Call([&](Driver& driver) {
    if (context == nullptr && !ContextStack().empty()) context = ContextStack().back().handle;
    const Context* found = driver.contexts().Get(context);
    if (found == nullptr) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    if (id == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *id = found->id();
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuCtxGetApiVersion(CUcontext context, unsigned int* version) {
  return Call([&](Driver& driver) {
    if (version == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (context != nullptr && driver.contexts().Get(context) == nullptr) {
      return CUDA_ERROR_INVALID_CONTEXT;
    }
    *version = 13000;
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuCtxSynchronize(void) {
  return InContext([](Context& context) {
    context.WaitAll();
    return context.sticky();
  });
}

CUresult CUDAAPI cuCtxSynchronize_v2(CUcontext context) {
  if (context == nullptr) return cuCtxSynchronize();
  return Call([&](Driver& driver) {
    const auto found = driver.contexts().Share(context);
    if (found == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
    found->WaitAll();
    return found->sticky();
  });
}

// Streams accept priorities, but the emulator does not schedule by them.
CUresult CUDAAPI cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  return InContext([&](Context&) {
    if (least != nullptr) *least = 0;
    if (greatest != nullptr) *greatest = -5;
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuCtxSetLimit(CUlimit limit, size_t value) {
  return InContext([&](Context& context) {
    // Resizing the stacks needs an idle context.
    if (limit == CU_LIMIT_STACK_SIZE) context.WaitAll();
    return context.limits().Set(limit, value);
  });
}

CUresult CUDAAPI cuCtxGetLimit(size_t* value, CUlimit limit) {
  return InContext([&](Context& context) {
    const auto found = context.limits().Get(limit);
    if (value == nullptr || !found) return CUDA_ERROR_INVALID_VALUE;
    *value = *found;
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuCtxGetCacheConfig(CUfunc_cache* config) {
  return InContext([&](Context&) {
    if (config == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *config = CU_FUNC_CACHE_PREFER_NONE;
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuCtxSetCacheConfig(CUfunc_cache) {
  return InContext([](Context&) { return CUDA_SUCCESS; });  // a preference, which we lack
}

// There is no cache to reset.
CUresult CUDAAPI cuCtxResetPersistingL2Cache(void) {
  return InContext([](Context&) { return CUDA_SUCCESS; });
}

CUresult CUDAAPI cuCtxEnablePeerAccess(CUcontext peer, unsigned int flags) {
  return InContext([&](Context& context) {
    Context* found = Driver::Get().contexts().Get(peer);
    if (found == nullptr || found == &context) return CUDA_ERROR_INVALID_CONTEXT;
    if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
    return context.EnablePeer(found->device().index()) ? CUDA_SUCCESS
                                                       : CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
  });
}

CUresult CUDAAPI cuCtxDisablePeerAccess(CUcontext peer) {
  return InContext([&](Context& context) {
    Context* found = Driver::Get().contexts().Get(peer);
    if (found == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
    return context.DisablePeer(found->device().index()) ? CUDA_SUCCESS
                                                        : CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
  });
}

// Profiler marks: ignored.
CUresult CUDAAPI cuProfilerStart(void) {
  return InContext([](Context&) { return CUDA_SUCCESS; });
}
CUresult CUDAAPI cuProfilerStop(void) {
  return InContext([](Context&) { return CUDA_SUCCESS; });
}

}  // extern "C"
