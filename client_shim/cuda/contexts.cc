#include "client_shim/cuda/contexts.h"

#include <cstddef>
#include <map>
#include <mutex>
#include <optional>

#include "client_shim/cuda/devices.h"
#include "client_shim/cuda/entry.h"
#include "client_shim/cuda/virtual_memory.h"

namespace torpor::shim {
namespace {

constexpr unsigned kApiVersion = 3020;  // what every context since CUDA 3.2 tells
constexpr unsigned kKnownFlags = CU_CTX_FLAGS_MASK;

// A context's device. The flags are kept for queries only.
struct Context {
  CUdevice device = 0;
  unsigned flags = 0;
};

// Every context of the process. Thread-safe.
class Contexts {
 public:
  CUcontext Create(CUdevice device, unsigned flags) {
    std::lock_guard lock(mutex_);
    const CUcontext handle = Mint();
    contexts_[handle] = {device, flags};
    return handle;
  }
  // False if the program has created no such context.
  bool Destroy(CUcontext handle) {
    std::lock_guard lock(mutex_);
    for (const auto& [device, primary] : primaries_)
      if (primary.handle == handle) return false;
    return contexts_.erase(handle) > 0;
  }
  std::optional<Context> Find(CUcontext handle) {
    std::lock_guard lock(mutex_);
    const auto found = contexts_.find(handle);
    return found == contexts_.end() ? std::nullopt : std::optional(found->second);
  }
  void SetFlags(CUcontext handle, unsigned flags) {
    std::lock_guard lock(mutex_);
    const auto found = contexts_.find(handle);
    if (found != contexts_.end()) found->second.flags = flags;
  }

  CUcontext Primary(CUdevice device) {
    std::lock_guard lock(mutex_);
    return PrimaryLocked(device).handle;
  }
  CUcontext Retain(CUdevice device) {
    std::lock_guard lock(mutex_);
    Held& primary = PrimaryLocked(device);
    ++primary.holders;
    return primary.handle;
  }
  // False if the primary context is not retained.
  bool Release(CUdevice device) {
    std::lock_guard lock(mutex_);
    Held& primary = PrimaryLocked(device);
    if (primary.holders == 0) return false;
    --primary.holders;
    return true;
  }
  bool IsHeld(CUdevice device) {
    std::lock_guard lock(mutex_);
    return PrimaryLocked(device).holders > 0;
  }
  bool AnyInUse(CUdevice device) {
    std::lock_guard lock(mutex_);
    const Held& primary = PrimaryLocked(device);
    if (primary.holders > 0) return true;
    for (const auto& [handle, context] : contexts_)
      if (context.device == device && handle != primary.handle) return true;
    return false;
  }

 private:
  // A device's primary context and the number of its retains.
  struct Held {
    CUcontext handle = nullptr;
    int holders = 0;
  };

  Held& PrimaryLocked(CUdevice device) {
    Held& primary = primaries_[device];
    if (!primary.handle) {
      primary.handle = Mint();
      contexts_[primary.handle] = {device, 0};
    }
    return primary;
  }
  // Handles are numbers that are never reused and resemble no other kind of handle.
  CUcontext Mint() { return reinterpret_cast<CUcontext>(kFirstHandle + ++minted_); }

  static constexpr std::uintptr_t kFirstHandle = std::uintptr_t{0xc0} << kHandleSerialBits;

  std::mutex mutex_;
  std::map<CUcontext, Context> contexts_;
  std::map<CUdevice, Held> primaries_;
  std::uintptr_t minted_ = 0;
};

Contexts& TheContexts() {
  static auto* const contexts = new Contexts();
  return *contexts;
}

// Zero-initialised and without destructor, so that exit handlers may use the stack.
constexpr std::size_t kMaxOnStack = 256;
struct Stack {
  std::size_t depth;
  CUcontext contexts[kMaxOnStack];
};
thread_local Stack stack;

// The top of the calling thread's stack. With an empty stack, a thread that has called the runtime
// has the primary context of the runtime's current device; other threads have none.
CUcontext Current() {
  if (stack.depth > 0) return stack.contexts[stack.depth - 1];
  int device = 0;
  const bool has_primary =
      Seam().thread_uses_runtime() && Runtime().cudaGetDevice(&device) == cudaSuccess;
  return has_primary ? TheContexts().Primary(device) : nullptr;
}

// Makes the device of the top context the runtime's current device.
CUresult FollowTop() {
  if (stack.depth == 0) return CUDA_SUCCESS;
  const std::optional<Context> top = TheContexts().Find(stack.contexts[stack.depth - 1]);
  return top ? ToCuResult(Runtime().cudaSetDevice(top->device)) : CUDA_SUCCESS;
}

// Runs `body` with `device` as the runtime's current device.
template <typename Body>
CUresult OnDevice(CUdevice device, const Body& body) {
  int before = 0;
  TORPOR_CU_TRY(Runtime().cudaGetDevice(&before));
  TORPOR_CU_TRY(Runtime().cudaSetDevice(device));
  const CUresult result = ToCuResult(body());
  TORPOR_CU_TRY(Runtime().cudaSetDevice(before));
  return result;
}

// Looks up a context; null stands for the current one. CUDA_ERROR_INVALID_CONTEXT if unknown.
CUresult FindContext(CUcontext handle, Context& context) {
  const std::optional<Context> found = TheContexts().Find(handle ? handle : Current());
  if (!found) return CUDA_ERROR_INVALID_CONTEXT;
  context = *found;
  return CUDA_SUCCESS;
}

// Resets the device after its last context, unless the runtime or reserved addresses still use the
// device.
CUresult ResetIfUnused(CUdevice device) {
  const bool is_used =
      TheContexts().AnyInUse(device) || Seam().process_uses_runtime() || HasReservations(device);
  return is_used ? CUDA_SUCCESS : OnDevice(device, Runtime().cudaDeviceReset);
}

}  // namespace

CUresult CreateContext(CUcontext* context, unsigned flags, CUdevice device) {
  if (!context || (flags & ~kKnownFlags) != 0) return CUDA_ERROR_INVALID_VALUE;
  TORPOR_CU_TRY(CheckDevice(device));
  const CUcontext created = TheContexts().Create(device, flags);
  if (const CUresult pushed = PushContext(created); pushed != CUDA_SUCCESS) {
    TheContexts().Destroy(created);
    return pushed;
  }
  *context = created;
  return CUDA_SUCCESS;
}

bool IsPlain(const CUctxCreateParams* parameters) {
  return !parameters || (parameters->numExecAffinityParams == 0 && !parameters->cigParams);
}

CUresult DestroyContext(CUcontext context) {
  const std::optional<Context> found = TheContexts().Find(context);
  if (!found) return CUDA_ERROR_INVALID_CONTEXT;
  const CUresult earlier = OnDevice(found->device, Runtime().cudaDeviceSynchronize);
  // The context ends even if earlier work has failed; the caller gets that error in the end.
  if (!TheContexts().Destroy(context)) return CUDA_ERROR_INVALID_CONTEXT;
  if (stack.depth > 0 && stack.contexts[stack.depth - 1] == context) --stack.depth;
  TORPOR_CU_TRY(FollowTop());
  const CUresult reset = ResetIfUnused(found->device);
  return earlier != CUDA_SUCCESS ? earlier : reset;
}

CUresult RetainPrimary(CUcontext* context, CUdevice device) {
  if (!context) return CUDA_ERROR_INVALID_VALUE;
  TORPOR_CU_TRY(CheckDevice(device));
  *context = TheContexts().Retain(device);
  return CUDA_SUCCESS;
}

CUresult ReleasePrimary(CUdevice device) {
  TORPOR_CU_TRY(CheckDevice(device));
  return TheContexts().Release(device) ? ResetIfUnused(device) : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult ResetPrimary(CUdevice device) {
  TORPOR_CU_TRY(CheckDevice(device));
  TORPOR_CU_TRY(OnDevice(device, Runtime().cudaDeviceReset));
  ForgetReservations(device);
  return CUDA_SUCCESS;
}

CUresult SetPrimaryFlags(CUdevice device, unsigned flags) {
  TORPOR_CU_TRY(CheckDevice(device));
  if ((flags & ~kKnownFlags) != 0) return CUDA_ERROR_INVALID_VALUE;
  TheContexts().SetFlags(TheContexts().Primary(device), flags);
  return CUDA_SUCCESS;
}

CUresult GetPrimaryState(CUdevice device, unsigned* flags, int* active) {
  if (!flags || !active) return CUDA_ERROR_INVALID_VALUE;
  TORPOR_CU_TRY(CheckDevice(device));
  *flags = TheContexts().Find(TheContexts().Primary(device))->flags;
  *active = TheContexts().IsHeld(device) || Seam().process_uses_runtime() ? 1 : 0;
  return CUDA_SUCCESS;
}

CUresult PushContext(CUcontext context) {
  if (!TheContexts().Find(context)) return CUDA_ERROR_INVALID_CONTEXT;
  if (stack.depth == kMaxOnStack) return CUDA_ERROR_OUT_OF_MEMORY;
  stack.contexts[stack.depth++] = context;
  return FollowTop();
}

CUresult PopContext(CUcontext* context) {
  if (stack.depth == 0) return CUDA_ERROR_INVALID_CONTEXT;
  --stack.depth;
  if (context) *context = stack.contexts[stack.depth];
  return FollowTop();
}

CUresult SetContext(CUcontext context) {
  if (context && !TheContexts().Find(context)) return CUDA_ERROR_INVALID_CONTEXT;
  if (stack.depth > 0) --stack.depth;
  return context ? PushContext(context) : CUDA_SUCCESS;
}

CUresult GetContext(CUcontext* context) {
  if (!context) return CUDA_ERROR_INVALID_VALUE;
  *context = Current();
  return CUDA_SUCCESS;
}

CUresult CheckCurrentContext() {
  const CUcontext current = Current();
  if (!current) return CUDA_ERROR_INVALID_CONTEXT;
  return TheContexts().Find(current) ? CUDA_SUCCESS : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

CUresult GetContextDevice(CUdevice* device, CUcontext handle) {
  if (!device) return CUDA_ERROR_INVALID_VALUE;
  Context context;
  TORPOR_CU_TRY(FindContext(handle, context));
  *device = context.device;
  return CUDA_SUCCESS;
}

CUresult GetContextId(CUcontext handle, unsigned long long* id) {
  if (!id) return CUDA_ERROR_INVALID_VALUE;
  Context context;
  TORPOR_CU_TRY(FindContext(handle, context));
  *id = reinterpret_cast<std::uintptr_t>(handle ? handle : Current());
  return CUDA_SUCCESS;
}

CUresult GetContextVersion(CUcontext handle, unsigned* version) {
  if (!version) return CUDA_ERROR_INVALID_VALUE;
  Context context;
  TORPOR_CU_TRY(FindContext(handle, context));
  *version = kApiVersion;
  return CUDA_SUCCESS;
}

CUresult GetContextFlags(unsigned* flags) {
  if (!flags) return CUDA_ERROR_INVALID_VALUE;
  Context context;
  TORPOR_CU_TRY(FindContext(nullptr, context));
  *flags = context.flags | CU_CTX_MAP_HOST;
  return CUDA_SUCCESS;
}

CUresult SetContextFlags(unsigned flags) {
  if ((flags & ~kKnownFlags) != 0) return CUDA_ERROR_INVALID_VALUE;
  TheContexts().SetFlags(Current(), flags);
  return CUDA_SUCCESS;
}

CUresult GetStreamContext(CUstream stream, CUcontext* context) {
  if (!context) return CUDA_ERROR_INVALID_VALUE;
  int device = 0;
  TORPOR_CU_TRY(Runtime().cudaStreamGetDevice(stream, &device));
  *context = ContextOnDevice(device);
  return CUDA_SUCCESS;
}

CUcontext ContextOnDevice(CUdevice device) {
  Context current;
  const bool is_current = FindContext(nullptr, current) == CUDA_SUCCESS && current.device == device;
  return is_current ? Current() : TheContexts().Primary(device);
}

CUresult EnablePeer(CUcontext peer, unsigned flags) {
  Context context;
  TORPOR_CU_TRY(FindContext(peer, context));
  return ToCuResult(Runtime().cudaDeviceEnablePeerAccess(context.device, flags));
}

CUresult DisablePeer(CUcontext peer) {
  Context context;
  TORPOR_CU_TRY(FindContext(peer, context));
  return ToCuResult(Runtime().cudaDeviceDisablePeerAccess(context.device));
}

}  // namespace torpor::shim
