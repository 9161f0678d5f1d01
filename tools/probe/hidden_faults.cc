// Whether a query of an idle stream, or of an old event, tells the fault of another stream.
#include "tools/probe/gpu.h"
#include "tools/probe/items.h"

namespace torpor::probe {

void ProbeHiddenFaults(Report& report) {
  Gpu gpu(report);
  const CUstream faulty = gpu.NewStream();
  const CUstream idle = gpu.NewStream();
  const CUstream late = gpu.NewStream();
  CUevent old = nullptr;
  CUevent fresh = nullptr;
  Need(report, cuEventCreate(&old, CU_EVENT_DISABLE_TIMING), "cuEventCreate");
  Need(report, cuEventCreate(&fresh, CU_EVENT_DISABLE_TIMING), "cuEventCreate");
  Need(report, cuEventRecord(old, idle), "cuEventRecord");
  Need(report, cuStreamSynchronize(idle), "cuStreamSynchronize");
  const CUfunction fault = gpu.kernel("WriteToNowhere");
  Need(report, gpu.Launch(fault, faulty), "cuLaunchKernel");
  CUresult ended = CUDA_ERROR_NOT_READY;
  // Only the stream itself is asked for two seconds, so that the fault has happened.
  for (const Stopwatch watch; ended == CUDA_ERROR_NOT_READY && watch.ms() < 2000;) {
    ended = cuStreamQuery(faulty);
  }
  report.Texts("query of the faulty stream", {NameOf(ended)});
  report.Texts("query of an idle stream", {NameOf(cuStreamQuery(idle))});
  report.Texts("query of an event from before", {NameOf(cuEventQuery(old))});
  report.Texts("cuCtxGetCurrent", {[] {
                 CUcontext current = nullptr;
                 return NameOf(cuCtxGetCurrent(&current));
               }()});
  report.Texts("event recorded afterwards", {NameOf(cuEventRecord(fresh, late))});
  report.Texts("query of that event", {NameOf(cuEventQuery(fresh))});
  report.Texts("synchronising the idle stream", {NameOf(cuStreamSynchronize(idle))});
  report.Texts("query of the idle stream, at the end", {NameOf(cuStreamQuery(idle))});
  report.Texts("synchronising the context", {NameOf(cuCtxSynchronize())});
}

}  // namespace torpor::probe
