#pragma once

#include <cuda.h>

// Contexts. Each device really has only a primary context: a context that a program creates is
// another handle over the same memory, streams and modules, with its own place on the stacks of
// threads. After the last holder is gone (created contexts, retained primary contexts, the
// runtime's use) everything that the process has on the device is destroyed.
namespace torpor::shim {

CUresult CreateContext(CUcontext* context, unsigned flags, CUdevice device);
// Whether cuCtxCreate's parameters ask for an ordinary context only.
bool IsPlain(const CUctxCreateParams* parameters);
CUresult DestroyContext(CUcontext context);

CUresult RetainPrimary(CUcontext* context, CUdevice device);
CUresult ReleasePrimary(CUdevice device);
CUresult ResetPrimary(CUdevice device);
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

CUresult EnablePeer(CUcontext peer, unsigned flags);
CUresult DisablePeer(CUcontext peer);

}  // namespace torpor::shim
