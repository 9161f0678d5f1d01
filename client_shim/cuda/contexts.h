#pragma once

#include <cuda.h>

// Contexts, of which each device really has one: its primary context. One that a program
// creates is another handle over the same memory, streams and modules, with a place of its own on
// the stacks of threads. When nothing holds a context any more (no created one, no retained
// primary one, no use of the runtime) everything that the process has on the device goes.
namespace torpor::shim {

CUresult CreateContext(CUcontext* context, unsigned flags, CUdevice device);
// Whether cuCtxCreate's parameters ask for nothing beyond an ordinary context.
bool IsPlain(const CUctxCreateParams* parameters);
CUresult DestroyContext(CUcontext context);

CUresult RetainPrimary(CUcontext* context, CUdevice device);
CUresult ReleasePrimary(CUdevice device);
CUresult ResetPrimary(CUdevice device);
CUresult SetPrimaryFlags(CUdevice device, unsigned flags);
CUresult GetPrimaryState(CUdevice device, unsigned* flags, int* active);

// The calling thread's stack, whose top decides on the runtime's current device. SetContext
// replaces the top; null takes it away.
CUresult PushContext(CUcontext context);
CUresult PopContext(CUcontext* context);
CUresult SetContext(CUcontext context);
// Null where there is none. The primary context of a thread that has called the runtime only.
CUresult GetContext(CUcontext* context);
// CUDA_ERROR_INVALID_CONTEXT where there is none, CUDA_ERROR_CONTEXT_IS_DESTROYED.
CUresult CheckCurrentContext();

// A null `context` is the current one.
CUresult GetContextDevice(CUdevice* device, CUcontext context);
CUresult GetContextId(CUcontext context, unsigned long long* id);
CUresult GetContextVersion(CUcontext context, unsigned* version);
CUresult GetContextFlags(unsigned* flags);
CUresult SetContextFlags(unsigned flags);
// The context of a stream: the current one if it is of its device, else the device's primary one.
CUresult GetStreamContext(CUstream stream, CUcontext* context);
// The same for memory and whatever else is of a device.
CUcontext ContextOnDevice(CUdevice device);

CUresult EnablePeer(CUcontext peer, unsigned flags);
CUresult DisablePeer(CUcontext peer);

}  // namespace torpor::shim
