#pragma once

#include <cuda.h>

// Contexts. Each device really has only a primary context: a context that a program creates is
// another handle over the same memory, streams and modules, with its own place on the stacks of
// threads. After the last holder is gone (created contexts, retained primary contexts, the
// runtime's use) everything that the process has on the device is destroyed.
namespace torpor::shim {

// Creates a context and pushes it onto the calling thread's stack. Returns CUDA_ERROR_INVALID_VALUE
// for unknown flags.
CUresult CreateContext(CUcontext* context, unsigned flags, CUdevice device);
// Whether cuCtxCreate's parameters ask for an ordinary context only.
bool IsPlain(const CUctxCreateParams* parameters);
// Waits for the device's work, destroys a created context and pops the context if on top of the
// calling thread's stack. Returns CUDA_ERROR_INVALID_CONTEXT for primary contexts.
CUresult DestroyContext(CUcontext context);

// The device's primary context. Retains are counted; the last release resets an unused device.
// ReleasePrimary without a retain returns CUDA_ERROR_INVALID_CONTEXT.
CUresult RetainPrimary(CUcontext* context, CUdevice device);
CUresult ReleasePrimary(CUdevice device);
// Destroys everything of the process on the device at once, reservations of addresses included.
CUresult ResetPrimary(CUdevice device);
// Stores the flags, without effect on the device. A primary context is active if retained or if the
// process uses the runtime.
CUresult SetPrimaryFlags(CUdevice device, unsigned flags);
CUresult GetPrimaryState(CUdevice device, unsigned* flags, int* active);

// The calling thread's stack, whose top decides on the runtime's current device. SetContext
// replaces the top; SetContext(null) pops the top.
CUresult PushContext(CUcontext context);
CUresult PopContext(CUcontext* context);
CUresult SetContext(CUcontext context);
// The current context, or null. A thread that has called the runtime only has the primary context.
CUresult GetContext(CUcontext* context);
// Returns CUDA_ERROR_INVALID_CONTEXT without a current context, CUDA_ERROR_CONTEXT_IS_DESTROYED if
// the current context is destroyed.
CUresult CheckCurrentContext();

// A null `context` stands for the current context.
CUresult GetContextDevice(CUdevice* device, CUcontext context);
CUresult GetContextId(CUcontext context, unsigned long long* id);
CUresult GetContextVersion(CUcontext context, unsigned* version);
CUresult GetContextFlags(unsigned* flags);
CUresult SetContextFlags(unsigned flags);
// The context of a stream: the current context if on the stream's device, else that device's
// primary context.
CUresult GetStreamContext(CUstream stream, CUcontext* context);
// As GetStreamContext, for memory and other objects of `device`.
CUcontext ContextOnDevice(CUdevice device);

// As cudaDeviceEnablePeerAccess and cudaDeviceDisablePeerAccess for the device of `peer`.
CUresult EnablePeer(CUcontext peer, unsigned flags);
CUresult DisablePeer(CUcontext peer);

}  // namespace torpor::shim
